//! The life of a guarded write (DESIGN, section 4, "Write"): one function from the first verdict to the answer.

use std::time::Duration;

use http::header;
use pingora::{http::RequestHeader, proxy::Session};
use tokio::time::Instant;

use super::{
    Guards,
    answer::{Answer, set_tag},
    claim::{Claim, MarkKind, Marked},
    evidence::{evidence, match_rule},
    probe::Probed,
    refusals,
    request::{Request, remove_conditions},
};
use crate::{
    config::Upstream,
    core::{
        entity_tag::EntityTag,
        policy::{Guard, TagSource},
        precondition::TagCondition,
        record::{Availability, Snapshot},
        refusal::{Code, Refusal},
        steps::Outcome,
        time::StoreTime,
        validators::{Representation, Validators},
        verdict::{Evidence, Verdict, judge_from_memory, judge_write},
    },
    exchange::{
        Body, Exchange, Failure, Purpose, Whole,
        fields::{request_head, response_head},
        read_whole,
    },
    store::StoreError,
};

/// What a mark's deadline adds to all that its owner may wait for: pauses of the process, and of the store.
const DEADLINE_GRACE: Duration = Duration::from_secs(5);

/// A write that may begin: it was judged against the very record that its claim was swapped in for.
struct Admitted {
    claim: Claim,
    /// The tag that it was judged by.
    judged: Option<EntityTag>,
}

/// What judging came to.
enum Judged {
    Pass(Option<EntityTag>),
    Answer(Answer),
}

impl Guards {
    /// Handles a write from its first verdict to the answer. The claim is never held while the client is waited for:
    /// the whole body is here before it is taken, and it is given back before the answer is written.
    pub(super) async fn write(
        &self,
        session: &mut Session,
        request: &Request,
        guard: &Guard,
    ) -> pingora::Result<Answer> {
        if let Some(answer) = self.judge_early(session, request, guard).await? {
            return Ok(answer);
        }
        let body = match self.receive(session).await {
            Ok(body) => body,
            Err(answer) => return Ok(answer),
        };
        let head = match request_head(&request.head, body.len()) {
            Ok(head) => head,
            Err(error) => return Ok(refusals::of_head(&error).into()),
        };
        let end = Instant::now() + guard.claim_max_wait;
        let turn = match self.queues.turn(&request.key, guard.claim_max_waiters, end).await {
            Ok(turn) => turn,
            Err(no_turn) => return Ok(refusals::of_turn(no_turn).into()),
        };
        let admitted = match self.admit(request, guard, end).await? {
            Ok(admitted) => admitted,
            Err(answer) => return Ok(answer),
        };
        let answer = self.exchange_under_claim(request, guard, admitted, head, &body).await;
        drop(turn);
        answer
    }

    /// The verdict before the body is asked for, so that an upload in vain is never sent. Passing decides nothing: the
    /// write is judged again under the claim.
    async fn judge_early(
        &self,
        session: &mut Session,
        request: &Request,
        guard: &Guard,
    ) -> pingora::Result<Option<Answer>> {
        let snapshot = match self.snapshot(&request.key).await {
            Ok(snapshot) => snapshot,
            Err(error) => return Ok(Some(refusals::of_store(&error).into())),
        };
        if let Some(refusal) = self.held_back(&snapshot) {
            return Ok(Some(refusal.into()));
        }
        match self.judge_by_memory(request, guard, &snapshot).0 {
            Verdict::Refused(refusal) => return Ok(Some(refusal.into())),
            Verdict::Pass => return Ok(None),
            Verdict::Missing | Verdict::AskUpstream => {}
        }
        if !self.is_costly(session) {
            return Ok(None);
        }
        match self.judge_by_probe(request, guard, &snapshot).await? {
            Judged::Pass(_) => Ok(None),
            Judged::Answer(answer) => Ok(Some(answer)),
        }
    }

    /// Takes the claim: judges the write against the record as it stands, and swaps the mark in against that very
    /// revision. Whatever changes the record in between makes the swap fail, and the write is judged again.
    async fn admit(&self, request: &Request, guard: &Guard, end: Instant) -> pingora::Result<Result<Admitted, Answer>> {
        loop {
            let snapshot = match self.snapshot(&request.key).await {
                Ok(snapshot) => snapshot,
                Err(error) => return Ok(Err(refusals::of_store(&error).into())),
            };
            if let Some(refusal) = self.held_back(&snapshot) {
                return Ok(Err(refusal.into()));
            }
            if snapshot.availability() != Availability::Free {
                match self.wait_until_free(request, &snapshot, end).await {
                    Ok(()) => continue,
                    Err(refusal) => return Ok(Err(refusal.into())),
                }
            }
            let judged = match self.judge_by_memory(request, guard, &snapshot) {
                (Verdict::Pass, tag) => Judged::Pass(tag),
                (Verdict::Refused(refusal), _) => Judged::Answer(refusal.into()),
                (Verdict::Missing | Verdict::AskUpstream, _) => self.judge_by_probe(request, guard, &snapshot).await?,
            };
            let judged = match judged {
                Judged::Pass(tag) => tag,
                Judged::Answer(answer) => return Ok(Err(answer)),
            };
            match self.mark(request, guard, &snapshot, MarkKind::Claim).await {
                Ok(Marked::Done(claim)) => return Ok(Ok(Admitted { claim, judged })),
                Ok(Marked::Conflict | Marked::Full) if Instant::now() < end => {}
                Ok(Marked::Conflict | Marked::Full) => {
                    return Ok(Err(refusals::write_in_flight(Duration::from_secs(1)).into()));
                }
                Err(error) => return Ok(Err(refusals::of_store(&error).into())),
            }
        }
    }

    /// Sends the write, learns what became of it, and settles it before the answer goes out.
    async fn exchange_under_claim(
        &self,
        request: &Request,
        guard: &Guard,
        admitted: Admitted,
        mut head: RequestHeader,
        body: &Body,
    ) -> pingora::Result<Answer> {
        let Admitted { claim, judged } = admitted;
        let upstream = request.upstream();
        forward_conditions(&mut head, guard, request, judged.as_ref())?;
        let (mut exchange, claim) = match self.send(request, claim, head, body).await {
            Ok(sent) => sent,
            Err(refusal) => return Ok(refusal.into()),
        };
        let status = exchange.head().status;
        let outcome = Outcome::of_status(status);
        let whole = match read_whole(&mut exchange, guard.hash_max_bytes, upstream.timeout).await {
            Ok(whole) => whole,
            Err(_) => {
                claim.settle(outcome, None).await;
                return Ok(refusals::of_lost_response(status.as_u16()).into());
            }
        };
        let may_learn = outcome == Outcome::Applied && matches!(whole, Whole::Complete(_));
        let learned = if may_learn { self.new_state(request, guard, exchange.head(), body).await } else { None };
        let kept = learned.as_ref().and_then(|learned| learned.to_keep(request));
        let settled = claim.settle(outcome, kept).await;
        let mut answer = response_head(exchange.head());
        let tag = match (outcome, guard.etag) {
            (Outcome::Applied, _) => self.tag_after_write(request, guard, learned, settled.as_ref()),
            (_, TagSource::Upstream) => Validators::from_headers(&answer.headers).0.tag,
            _ => None,
        };
        set_tag(&mut answer, tag.as_ref())?;
        Answer::read_so_far(answer, whole, exchange).await
    }

    /// Connects and sends a marked write. On failure its claim is settled: untouched where nothing was sent, in doubt
    /// where a byte may have been.
    pub(super) async fn send(
        &self,
        request: &Request,
        claim: Claim,
        head: RequestHeader,
        body: &Body,
    ) -> Result<(Exchange, Claim), Refusal> {
        let upstream = request.upstream();
        let connected = match self.exchanger.connect(upstream, request.preferred_server(), Purpose::Write).await {
            Ok(connected) => connected,
            Err(failure) => {
                claim.settle(Outcome::NotApplied, None).await;
                return Err(refusals::of_write(failure, upstream.late_max));
            }
        };
        if !claim.has_left(upstream.timeout).await {
            claim.settle(Outcome::NotApplied, None).await;
            return Err(refusals::too_late_to_begin());
        }
        match connected.send(head, body).await {
            Ok(exchange) => Ok((exchange, claim)),
            Err(failure) => {
                let was_sent = matches!(failure, Failure::Abandoned { .. });
                claim.settle(if was_sent { Outcome::Doubt } else { Outcome::NotApplied }, None).await;
                Err(refusals::of_write(failure, upstream.late_max))
            }
        }
    }

    /// Puts a mark in, with a deadline after all that its owner may wait for.
    pub(super) async fn mark(
        &self,
        request: &Request,
        guard: &Guard,
        snapshot: &Snapshot,
        kind: MarkKind,
    ) -> Result<Marked, StoreError> {
        let deadline = deadline(snapshot.now, request.upstream(), guard);
        self.marker.mark(&request.key, snapshot, kind, deadline, request.upstream().late_max).await
    }

    /// The verdict of memory, and the tag that made the write pass.
    fn judge_by_memory(&self, request: &Request, guard: &Guard, snapshot: &Snapshot) -> (Verdict, Option<EntityTag>) {
        let remembered = self.memory.current(request.variant, snapshot, &request.head.headers);
        let validators = remembered.as_ref().map(|remembered| &remembered.validators);
        let evidence = evidence(request, guard, snapshot, self.store.incarnation(), validators);
        let (verdict, passed_by) = judge_from_memory(guard, &request.method, &request.conditions, &evidence);
        // To say no is to tell of the current state: only to those who may know it. What needs no knowledge, such as
        // a precondition that is missing, anybody may be told.
        let needs_knowledge = matches!(&verdict, Verdict::Refused(refusal)
            if refusal.code == Code::PreconditionFailed);
        let may_know = || self.acquaintances.may_know(&request.key, request.principal, snapshot.now);
        let verdict = if needs_knowledge && !may_know() { Verdict::AskUpstream } else { verdict };
        (verdict, passed_by.and_then(Evidence::selected_tag).cloned())
    }

    async fn judge_by_probe(&self, request: &Request, guard: &Guard, snapshot: &Snapshot) -> pingora::Result<Judged> {
        let (current, missing) = match self.probe(request, guard, snapshot).await {
            Probed::Current { representation, missing } => (representation, missing),
            Probed::Answer(exchange) => return self.upstreams_own(guard, *exchange).await.map(Judged::Answer),
            Probed::Refused(refusal) => return Ok(Judged::Answer(refusal.into())),
        };
        Ok(match (judge_write(guard, &request.method, &request.conditions, &current, match_rule(guard)), missing) {
            (Verdict::Refused(refusal), _) => Judged::Answer(refusal.into()),
            (Verdict::Missing, Some(exchange)) => Judged::Answer(self.upstreams_own(guard, *exchange).await?),
            (Verdict::Pass, _) => Judged::Pass(match current {
                Representation::Present(validators) => validators.tag,
                Representation::Absent | Representation::Unknown => None,
            }),
            // A probe leaves nothing unknown, and where nothing is there it brings the upstream's answer.
            (Verdict::AskUpstream | Verdict::Missing, _) => {
                Judged::Answer(refusals::of_read(Failure::Abandoned { timed_out: false }).into())
            }
        })
    }
}

/// When the owner of a mark made now must be dead: after all that it may wait for.
fn deadline(now: StoreTime, upstream: &Upstream, guard: &Guard) -> StoreTime {
    let connecting = upstream.connect_timeout.saturating_mul(u32::try_from(upstream.servers.len()).unwrap_or(u32::MAX));
    let exchange = upstream.timeout.saturating_mul(2);
    now.plus(connecting.saturating_add(exchange).saturating_add(guard.probe_timeout).saturating_add(DEADLINE_GRACE))
}

/// What the upstream is to see of the preconditions: nothing where it does not know our tags; where they are its own,
/// what the client sent, made exact by the tag that was judged (the last fence).
fn forward_conditions(
    head: &mut RequestHeader,
    guard: &Guard,
    request: &Request,
    judged: Option<&EntityTag>,
) -> pingora::Result<()> {
    if guard.etag != TagSource::Upstream {
        remove_conditions(head);
        return Ok(());
    }
    let is_exact = matches!(&request.conditions.if_match, Some(TagCondition::Tags(tags)) if tags.len() == 1);
    match judged {
        Some(tag) if !is_exact && !tag.is_weak() => head.insert_header(header::IF_MATCH, tag.to_header_value()),
        _ => Ok(()),
    }
}
