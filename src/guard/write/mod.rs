//! The life of a guarded write (DESIGN, section 4, "Write"): one function from the first verdict to the answer.

use std::sync::Arc;

use http::{Method, header};
use pingora::http::RequestHeader;
use tokio::time::Instant;

use super::{
    answer::{Answer, Halt, set_tag},
    claim::Claims,
    knowledge::{Knowledge, untrue_statements::Statement, warn_once::Unsuited},
    lease::{
        Leases,
        usage::{conditions_go_first, judge_write_by_lease},
    },
    probe::Probes,
    refusals,
    request::Request,
};
use crate::{
    body::{Bodies, Body, Client, MemoryUse},
    box_future::box_future,
    config::Config,
    core::{
        attempt_end::Reached,
        bare_tags::{ShortName, Shown},
        client_address::ClientAddress,
        delete_steps::outcome_of_late_delete,
        lease::Standing,
        steps::Outcome,
        validators::{Validators, judges_preconditions},
        verdict::Verdict,
    },
    routing::{door::Door, table::RoutingTable},
    store::Sighting,
    telemetry::Step,
    upstream::{BufferedBody, Transport, fields::response_head, read_whole},
};
use admit::{Admission, Admitted};
use idempotency::{Beginning, KeyedWrite, Replays, WriteKey, key_of_write};
use metadata::{after_change, half_changed};
use new_state::{NewState, describes_target};
use parts::Parts;
use send::{end_of, forward_conditions, names_stale_tags};
use touches::Related;

pub(crate) mod admit;
pub(crate) mod blocks;
mod checksums;
mod deferred;
pub(crate) mod idempotency;
mod metadata;
pub(crate) mod method_in_form;
pub(crate) mod named_by_body;
pub(crate) mod new_state;
mod parts;
mod rights;
pub(crate) mod send;
pub(crate) mod touches;
pub(crate) mod unclaimed;

/// Guarded writes under one configuration.
pub(crate) struct Writes {
    knowledge: Arc<Knowledge>,
    probes: Arc<Probes>,
    claims: Arc<Claims>,
    leases: Arc<Leases>,
    exchanger: Arc<dyn Transport>,
    replays: Replays,
    related: Related,
    /// The budgets of bodies.
    pub(crate) bodies: Bodies,
}

impl Writes {
    /// Creates the room of writes. `leases` and its rooms judge the writes, `exchanger` sends them.
    pub(crate) fn new(leases: Arc<Leases>, exchanger: Arc<dyn Transport>, config: &Config, bodies: Bodies) -> Self {
        let (knowledge, probes, claims) = leases.rooms();
        let (replays, related) = (Replays::new(knowledge.records.are_shared()), Related::new(config));
        Self { knowledge, probes, claims, leases, exchanger, replays, related, bodies }
    }

    /// Returns the writes of another configuration. Both recognise retries of each other's writes.
    pub(crate) fn renewed(&self, config: &Config, bodies: Bodies) -> Self {
        let replays = self.replays.clone();
        Self { replays, ..Self::new(Arc::clone(&self.leases), Arc::clone(&self.exchanger), config, bodies) }
    }

    /// Returns the table of the routes.
    pub(crate) const fn table(&self) -> &Arc<RoutingTable> {
        &self.related.table
    }

    /// Decides where a request goes that the guard has made, as the door does.
    pub(crate) fn door(&self, method: &Method, head: &RequestHeader, client: ClientAddress) -> Door {
        self.related.door(method, head, client)
    }

    /// Handles a write from its first verdict to the answer. The claim never waits for the client: the whole body
    /// arrives before the claim is taken, and the claim is released before the answer is written.
    pub(crate) async fn write(&self, client: &mut dyn Client, request: &Request) -> Result<Answer, Halt> {
        let mut key = key_of_write(client, request)?;
        let is_costly = self.bodies.is_costly(&client.head().headers);
        let early = self.judge_unless_retry(request, is_costly, key.as_mut()).await?;
        // Boxed, so that a refusal from memory need not make room for an exchange.
        box_future(|| self.write_named(client, request, key, early)).await
    }

    /// Judges the write early, unless it may be a retry. A retry is answered before its preconditions are judged: its
    /// own success made them false.
    async fn judge_unless_retry(
        &self,
        request: &Request,
        is_costly: bool,
        mut key: Option<&mut WriteKey>,
    ) -> Result<Option<Sighting>, Halt> {
        if self.may_be_retry(key.as_deref_mut()).await? {
            return Ok(None);
        }
        match self.judge_early(request, is_costly).await {
            Ok(early) => Ok(early),
            // Its first attempt may have succeeded since.
            Err(_) if self.may_be_retry(key).await? => Ok(None),
            Err(refused) => Err(refused),
        }
    }

    async fn write_named(
        &self,
        client: &mut dyn Client,
        request: &Request,
        key: Option<WriteKey>,
        early: Option<Sighting>,
    ) -> Result<Answer, Halt> {
        let body = self.bodies.receive(client).await.map_err(refusals::of_body)?;
        checksums::check(request, &request.content.checksums, &body).await?;
        // The retry of a list is recognised by the list itself: its blocks may be gone.
        let mut attempt = match self.begin(key, client.head(), request, &body).await? {
            Beginning::First(attempt) => attempt,
            Beginning::Replayed(answer) => return Ok(answer),
        };
        let answer = match self.written_body(request, body).await {
            Ok(body) => self.write_to_upstream(request, early, &body, &mut attempt).await,
            Err(refused) => Err(refused),
        };
        attempt.end(&answer).await;
        answer
    }

    async fn write_to_upstream(
        &self,
        request: &Request,
        early: Option<Sighting>,
        body: &Body,
        attempt: &mut KeyedWrite,
    ) -> Result<Answer, Halt> {
        let parts = Parts::of(request, body)?;
        let end = Instant::now() + request.rules().claim_max_wait;
        let step = Step::begin("claim");
        let touched = self.touched(request);
        self.must_know_of_line(request, early.as_ref(), &touched).await?;
        let mut places = self.claims.stand_to_claim(request, &touched, end).await?;
        // A write that had its turn meanwhile has changed the record.
        let early = early.filter(|_| !places.came_after_others());
        // Taken only after the wait in line: a reload waits for all writes with a pass, but not for those in line.
        let pass = request.pass().await?;
        let admitted = match self.admit(request, early, &mut places, end).await? {
            Admission::Admitted(admitted) => admitted,
            Admission::Deferred(answer) => return Ok(answer),
        };
        places.step_aside();
        drop(step);
        let answer = self.exchange_under_claim(request, admitted, parts, body, attempt).await;
        drop((pass, places));
        answer
    }

    /// Judges the write before its body is requested, so that a vain upload is never sent. Passing is not final: the
    /// write is judged again under the claim, by the same record if it is still current.
    ///
    /// `None`: only once the body has arrived may the client be answered. A client without rights must not see by an
    /// early answer that something is in its way.
    async fn judge_early(&self, request: &Request, is_costly: bool) -> Result<Option<Sighting>, Halt> {
        // A costly upload is worth a read.
        let recalled = if is_costly { None } else { self.recalled(request).await };
        if let Some(recalled) = recalled {
            return Ok(Some(recalled));
        }
        let since = Instant::now();
        let snapshot = self.knowledge.record(request).await?;
        let (may_write, by_lease) = (self.claims.may_write(&snapshot), judge_write_by_lease(request, &snapshot));
        let has_obstacle = may_write.is_err() || by_lease.is_err();
        if has_obstacle && self.must_wait_for_body(request, &snapshot, is_costly).await? {
            return Ok(None);
        }
        may_write?;
        if let (Err(denied), false) = (&by_lease, conditions_go_first(request)) {
            return Err(self.leases.refuse_by_lease(request, &snapshot, denied.clone()).await);
        }
        let verdict = if self.knowledge.may_be_removed(request, &snapshot).await {
            Verdict::AskUpstream
        } else {
            self.knowledge.judge_by_memory(request, &snapshot).0
        };
        match verdict {
            Verdict::Refused(refusal) => Err(self.knowledge.explain(request, &snapshot, refusal).into()),
            Verdict::Missing | Verdict::AskUpstream if by_lease.is_err() => {
                Box::pin(self.probes.judge_by_probe(request, &snapshot)).await.map(drop)
            }
            Verdict::Missing | Verdict::AskUpstream if is_costly && snapshot.has_no_pending_writes() => {
                let verdict = Box::pin(self.probes.judge_by_probe(request, &snapshot)).await.map(drop);
                // During another write, the upstream may show a half-written state, which decides nothing.
                if verdict.is_err() && !self.knowledge.is_untouched(request, &snapshot).await {
                    Ok(())
                } else {
                    verdict
                }
            }
            Verdict::Pass | Verdict::Missing | Verdict::AskUpstream => Ok(()),
        }?;
        match by_lease {
            Ok(_) => Ok(Some(Sighting { snapshot, since })),
            Err(denied) => Err(self.leases.refuse_by_lease(request, &snapshot, denied).await),
        }
    }

    /// Sends an admitted write, learns its outcome, and settles it before the answer goes out.
    async fn exchange_under_claim(
        &self,
        request: &Request,
        mut admitted: Admitted,
        mut parts: Parts,
        body: &Body,
        attempt: &mut KeyedWrite,
    ) -> Result<Answer, Halt> {
        attempt.bound(&mut admitted.claim);
        admitted.claim = self.spare_members(request, admitted.claim).await?;
        admitted.claim = self.complete(request, admitted.claim, &mut parts).await?;
        forward_conditions(&mut parts.main, request, &admitted)?;
        parts.send_fence(admitted.standing, admitted.fence)?;
        let Parts { before, main, document, after } = parts;
        let (claim, has_changed) = self.change_before(request, admitted.claim, before, attempt).await?;
        let main = (main, document.as_ref().unwrap_or(body));
        let (mut exchange, claim) = self
            .send(request, claim, main, after_change(Outcome::NotApplied, has_changed))
            .await
            .map_err(|refusal| half_changed(refusal, has_changed))?;
        self.touch_named(request, exchange.head()).await;
        let status = exchange.head().status;
        let outcome =
            if request.sender.is_late_delete { outcome_of_late_delete(status) } else { Outcome::of_status(status) };
        let outcome = after_change(outcome, has_changed);
        let upstream = request.upstream();
        let (max_bytes, budget) = (request.rules().max_hash_size_bytes, self.bodies.budget_for(MemoryUse::Response));
        let whole = read_whole(&mut exchange, max_bytes, upstream.timeout, budget).await;
        let end = end_of(request, exchange.head(), admitted.judged.modified);
        let (claim, end) = match after.filter(|_| outcome == Outcome::Applied) {
            Some(change) => {
                attempt.reached(Reached::Part);
                self.change_after(request, claim, change, end).await?
            }
            None => (claim, end),
        };
        if outcome == Outcome::Applied || !has_changed {
            attempt.answered(exchange.head());
        }
        if judges_preconditions(status) && !request.rules().etag.is_upstreams_own() {
            self.knowledge.is_unsuited(request, Unsuited::BackendJudges);
        }
        let Ok(whole) = whole else {
            claim.settle_shown(outcome, None, None, end).await;
            return Err(refusals::of_lost_response(status.as_u16(), outcome, upstream.late_write_window).into());
        };
        let may_learn = outcome == Outcome::Applied && matches!(whole, BufferedBody::Complete(_));
        let learned = if may_learn { self.new_state(request, (exchange.head(), &whole), body).await } else { None };
        let kept = learned.as_ref().and_then(|learned| learned.to_keep(request));
        let tags = [admitted.judged.tag.as_ref(), learned.as_ref().and_then(NewState::entity_tag)];
        let shown = self.knowledge.follows(request, tags).map(|purpose| Shown {
            target: ShortName::of_target(request.head.raw_path()),
            before: admitted.judged.before,
            after: learned.as_ref().and_then(NewState::tag),
            purpose,
        });
        let settled = claim.settle_shown(outcome, kept, shown, end).await;
        if outcome == Outcome::Applied
            && self.knowledge.backend_judges(request)
            && names_stale_tags(request, &admitted.spelling)
        {
            self.knowledge.is_untrue(request, Statement::BackendChecks);
        }
        if outcome == Outcome::Applied && request.method == Method::DELETE {
            self.knowledge.was_removed(request);
        }
        if let (Outcome::Applied, Some(settled)) = (outcome, &settled) {
            self.knowledge.was_changed(request, &settled.snapshot);
        }
        let may_end_lease = request.rules().lease.is_some() || admitted.standing == Standing::Holder;
        if let Some(settled) = settled.as_ref().filter(|_| may_end_lease) {
            self.leases.recount(&request.key, &settled.snapshot);
        }
        let mut answer = response_head(exchange.take_head());
        let modified = learned.as_ref().and_then(NewState::modified);
        let tag = match outcome {
            Outcome::Applied if describes_target(&request.method) => {
                self.tag_after_write(request, learned, settled.as_ref())
            }
            Outcome::Applied if request.method == Method::DELETE => None,
            _ if request.rules().etag.is_upstreams_own() => {
                let spelling = self.knowledge.spelling(request, settled.as_ref().map(|settled| &settled.snapshot));
                Validators::from_headers(&answer.headers).0.tag.and_then(|tag| spelling.issued(&tag))
            }
            _ => None,
        };
        set_tag(&mut answer, tag.as_ref())?;
        if let (true, Some(modified)) = (request.rules().quirks.date_after_write, modified) {
            answer.insert_header(header::LAST_MODIFIED, modified.date.to_string())?;
        }
        Answer::read_so_far(answer, whole, exchange).await
    }
}
