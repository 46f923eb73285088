//! The life of an unclaimed write: it appends rather than replaces, and runs beside others (DESIGN, section 4).

use std::time::Duration;

use pingora::proxy::Session;
use tokio::time::Instant;

use super::{
    Guards,
    answer::{Answer, set_tag},
    claim::{Claim, MarkKind, Marked},
    refusals,
    request::{Request, remove_conditions},
};
use crate::{
    core::{
        policy::{Guard, TagSource},
        record::Availability,
        refusal::Refusal,
        steps::Outcome,
    },
    exchange::{
        Whole,
        fields::{request_head, response_head},
    },
};

impl Guards {
    /// Handles a write that is judged by nothing: its mark tells all others that the resource may change meanwhile.
    pub(super) async fn write_unclaimed(
        &self,
        session: &mut Session,
        request: &Request,
        guard: &Guard,
    ) -> pingora::Result<Answer> {
        let body = match self.receive(session).await {
            Ok(body) => body,
            Err(answer) => return Ok(answer),
        };
        let mut head = match request_head(&request.head, body.len()) {
            Ok(head) => head,
            Err(error) => return Ok(refusals::of_head(&error).into()),
        };
        if guard.etag != TagSource::Upstream {
            // Those that could not be read and are ignored (RFC 9110 section 13.1).
            remove_conditions(&mut head);
        }
        let claim = match self.mark_unclaimed(request, guard).await {
            Ok(claim) => claim,
            Err(refusal) => return Ok(refusal.into()),
        };
        let (exchange, claim) = match self.send(request, claim, head, &body).await {
            Ok(sent) => sent,
            Err(refusal) => return Ok(refusal.into()),
        };
        claim.settle(Outcome::of_status(exchange.head().status), None).await;
        let mut answer = response_head(exchange.head());
        if guard.etag != TagSource::Upstream {
            set_tag(&mut answer, None)?;
        }
        Answer::read_so_far(answer, Whole::TooLarge(Vec::new()), exchange).await
    }

    async fn mark_unclaimed(&self, request: &Request, guard: &Guard) -> Result<Claim, Refusal> {
        let end = Instant::now() + guard.claim_max_wait;
        loop {
            let snapshot = self.snapshot(&request.key).await.map_err(|error| refusals::of_store(&error))?;
            if let Some(refusal) = self.after_start(&snapshot) {
                return Err(refusal);
            }
            if snapshot.availability() == Availability::Orphaned {
                self.take_over(request, &snapshot).await?;
                continue;
            }
            match self.mark(request, guard, &snapshot, MarkKind::Unclaimed).await {
                Ok(Marked::Done(claim)) => return Ok(claim),
                Ok(Marked::Full) => return Err(refusals::too_many_unclaimed()),
                Ok(Marked::Conflict) if Instant::now() < end => {}
                Ok(Marked::Conflict) => return Err(refusals::write_in_flight(Duration::from_secs(1))),
                Err(error) => return Err(refusals::of_store(&error)),
            }
        }
    }
}
