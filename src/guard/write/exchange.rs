//! An admitted write from its first byte to its answer: sent, learned of, settled, and only then told (DESIGN, section 4,
//! steps 7 to 9).

use http::{Method, StatusCode, header};
use pingora::http::{RequestHeader, ResponseHeader};

use super::{
    Writes,
    admit::{Admitted, Basis},
    idempotency::KeyedWrite,
    new_state::{NewState, describes_target},
    parts::DocumentParts,
    send::end_of,
};
use crate::{
    body::{Body, MemoryUse},
    core::{
        lease::Standing,
        records::{delete_steps::outcome_of_late_delete, steps::Outcome},
        refusal::Refusal,
        tags::{
            bare_tags::{ShortName, Shown},
            coarse_tag::Spelling,
            precondition::TagCondition,
            told_dates::WriteEnd,
            validators::{Validators, judges_preconditions},
        },
    },
    dialect::s3::Signature,
    guard::{
        Answer, Halt,
        answer::set_tag,
        claim::{Held, Settled},
        knowledge::{untrue_statements::Statement, warn_once::Unsuited},
        lease::usage::send_fence,
        refusals,
        request::Request,
        request_conditions::{remove_conditions, show_tags},
    },
    upstream::{BufferedBody, Exchange, Failure, fields::response_head, read_whole},
};

/// A write that was sent, under its claim.
pub(super) struct Sent {
    pub(super) claim: Held,
    pub(super) exchange: Exchange,
    /// The part of the answer's body that was read.
    whole: Result<BufferedBody, Failure>,
    pub(super) outcome: Outcome,
    pub(super) end: Option<WriteEnd>,
}

/// The bases of the verdicts on a write.
#[derive(Clone, Copy)]
pub(super) struct Bases<'a> {
    own: &'a Basis,
    at_destination: Option<&'a Basis>,
}

impl Writes {
    /// Sends an admitted write, learns its outcome, and settles it before the answer goes out.
    pub(super) async fn exchange_under_claim(
        &self,
        request: &Request,
        Admitted { mut claim, mut basis, at_destination }: Admitted,
        (head, body, described): (Box<RequestHeader>, &Body, Option<DocumentParts>),
        attempt: &mut KeyedWrite,
    ) -> Result<Answer, Halt> {
        let committed = basis.judged.committed.take();
        let _until_settled = committed.map(|state| self.knowledge.committed.show(&request.key, claim.mark(), *state));
        attempt.bound(&mut claim);
        let begun = (claim, Bases { own: &basis, at_destination: at_destination.as_deref() });
        let Sent { mut claim, exchange, whole, outcome, end } = match described {
            None => self.send_content(request, begun, (head, body), attempt).await?,
            // Boxed, so that the futures of other writes stay small.
            Some(parts) => Box::pin(self.send_described(request, begun, (head, body, parts), attempt)).await?,
        };
        if let (Some(destination), Some(basis), Some(claim)) =
            (request.destination(), &at_destination, claim.take_destination())
        {
            // Boxed, so that the futures of other writes stay small.
            Box::pin(self.settle_destination(destination, (claim, basis), (outcome, exchange.head()))).await;
        }
        if outcome == Outcome::Applied && !claim.tree_roots().is_empty() {
            Box::pin(self.end_leases_below(claim.tree_roots())).await;
        }
        let Ok(whole) = whole else {
            claim.settle_shown(outcome, None, None, end).await;
            let (status, late_write_window) = (exchange.head().status.as_u16(), request.upstream().late_write_window);
            return Err(refusals::of_lost_response(status, outcome, late_write_window).into());
        };
        let may_learn = outcome == Outcome::Applied && matches!(whole, BufferedBody::Complete(_));
        let learned = if may_learn { self.new_state(request, (exchange.head(), &whole), body).await } else { None };
        let settled = self.settle(request, (claim, &basis), (outcome, end), learned.as_ref()).await;
        self.tell(request, (exchange, whole), outcome, (learned, settled)).await
    }

    /// Sends a write, and reads the answer.
    async fn send_content(
        &self,
        request: &Request,
        (claim, bases): (Held, Bases<'_>),
        (mut head, body): (Box<RequestHeader>, &Body),
        attempt: &mut KeyedWrite,
    ) -> Result<Sent, Halt> {
        bases.forward_conditions(&mut head, request)?;
        bases.send_fence(&mut head)?;
        let sent = self.send_main(request, (claim, bases), (head, body, Outcome::NotApplied)).await?;
        attempt.answered(sent.exchange.head());
        Ok(sent)
    }

    /// Sends the part of a write whose result the client gets, and reads the answer. If no byte of the part was sent, the
    /// write has the outcome `unsent`.
    pub(super) async fn send_main(
        &self,
        request: &Request,
        (claim, bases): (Held, Bases<'_>),
        (head, body, unsent): (Box<RequestHeader>, &Body, Outcome),
    ) -> Result<Sent, Refusal> {
        let (mut exchange, claim) = self.send(request, claim, (head, body), unsent).await?;
        self.touch_named(request, exchange.head()).await;
        let status = exchange.head().status;
        let outcome =
            if request.sender.is_late_delete { outcome_of_late_delete(status) } else { Outcome::of_status(status) };
        let (max_bytes, budget) = (request.rules().max_hash_size_bytes, self.bodies.budget_for(MemoryUse::Response));
        let whole = read_whole(&mut exchange, max_bytes, request.upstream().timeout, budget).await;
        let outcome = match &whole {
            Ok(BufferedBody::Complete(body))
                if status == StatusCode::MULTI_STATUS
                    && outcome == Outcome::Unclear
                    && request.grammar().tells_success(&request.method, &body.chunks().concat()) =>
            {
                Outcome::Applied
            }
            _ => outcome,
        };
        if judges_preconditions(status) && !request.rules().etag.is_upstreams_own() {
            self.knowledge.is_unsuited(request, Unsuited::BackendJudges);
        }
        let end = end_of(request, exchange.head(), bases.own.judged.modified);
        Ok(Sent { claim, exchange, whole, outcome, end })
    }

    /// Records the outcome of a write, and lets memory follow it.
    pub(super) async fn settle(
        &self,
        request: &Request,
        (mut claim, basis): (Held, &Basis),
        (outcome, end): (Outcome, Option<WriteEnd>),
        learned: Option<&NewState>,
    ) -> Option<Settled> {
        let kept = learned.and_then(|learned| learned.to_keep(request));
        let tags = [basis.judged.tag.as_ref(), learned.and_then(NewState::entity_tag)];
        let shown = self.knowledge.follows(request, tags).map(|purpose| Shown {
            target: ShortName::of_target(request.head.raw_path()),
            before: basis.judged.before,
            after: learned.and_then(NewState::tag),
            purpose,
        });
        if learned.is_some_and(NewState::is_absent) {
            claim.leaves_unknown();
        }
        let settled = claim.settle_shown(outcome, kept, shown, end).await;
        if outcome == Outcome::Applied {
            if self.knowledge.backend_judges(request) && names_stale_tags(request, &basis.spelling) {
                self.knowledge.is_untrue(request, Statement::BackendChecks);
            }
            if request.removes_target() {
                self.knowledge.was_removed(request);
            }
            if let Some(settled) = &settled {
                self.knowledge.was_changed(request, &settled.snapshot);
            }
        }
        let may_end_lease = request.rules().lease.is_some() || basis.standing == Standing::Holder;
        if let Some(settled) = settled.as_ref().filter(|_| may_end_lease) {
            self.leases.recount(&request.key, &settled.snapshot);
        }
        settled
    }

    /// Makes the answer to a settled write from that of the upstream.
    async fn tell(
        &self,
        request: &Request,
        (mut exchange, whole): (Exchange, BufferedBody),
        outcome: Outcome,
        (learned, settled): (Option<NewState>, Option<Settled>),
    ) -> Result<Answer, Halt> {
        let mut answer: Box<ResponseHeader> = response_head(exchange.take_head());
        let modified = learned.as_ref().and_then(NewState::modified);
        let tag = match outcome {
            Outcome::Applied if describes_target(&request.method) => {
                self.tag_after_write(request, learned, settled.as_ref())
            }
            Outcome::Applied if request.method == Method::DELETE => None,
            // It describes the source, or the destination, or neither.
            _ if request.destination().is_some() => None,
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

/// True if all tags that a write names are of earlier states, as the record shows.
fn names_stale_tags(request: &Request, spelling: &Spelling) -> bool {
    match &request.conditions.if_match {
        Some(TagCondition::Tags(tags)) => tags.iter().all(|tag| spelling.is_stale(tag)),
        Some(TagCondition::Any) | None => false,
    }
}

impl Bases<'_> {
    /// Sets the preconditions that the upstream receives. If the upstream does not know our tags, it gets none. If the
    /// tags are its own, it gets the client's preconditions, made exact by the judged tag (the last fence).
    pub(super) fn forward_conditions(self, head: &mut RequestHeader, request: &Request) -> pingora::Result<()> {
        if !request.rules().etag.is_upstreams_own() {
            remove_conditions(head);
            return Ok(());
        }
        let spelling = &self.own.spelling;
        let seen = spelling.conditions_of_write_at_backend(&request.conditions);
        if seen != request.conditions {
            show_tags(head, &seen);
        }
        let signature = Signature::of(request.head.raw_path(), &request.head.headers);
        let is_exact = matches!(&request.conditions.if_match, Some(TagCondition::Tags(tags)) if tags.len() == 1);
        match self.own.judged.tag.as_ref().map(|tag| spelling.at_backend(tag)) {
            // A field that the client has signed is left as it was sent, or the backend would refuse the request.
            Some(tag) if !is_exact && !tag.is_weak() && !signature.covers(&header::IF_MATCH) => {
                head.insert_header(header::IF_MATCH, tag.to_header_value())
            }
            _ => Ok(()),
        }
    }

    /// Adds the fence of the lease that the client holds, so that the upstream can check it.
    pub(super) fn send_fence(self, head: &mut RequestHeader) -> pingora::Result<()> {
        // The write changes the destination, if there is one.
        let fencing = self.at_destination.filter(|other| other.standing.is_held()).unwrap_or(self.own);
        send_fence(head, fencing.standing, fencing.fence)
    }
}
