//! The life of an unclaimed write: it appends rather than replaces, and runs beside others (DESIGN, section 4).

use pingora::proxy::Session;
use tokio::time::Instant;

use super::{
    Guards,
    answer::{Answer, withhold_foreign_tag},
    claim::{Claim, MarkKind, Marked},
    refusals,
    request::{Request, remove_conditions},
};
use crate::{
    core::{policy::Guard, record::Availability, refusal::Refusal, steps::Outcome},
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
    ) -> Result<Answer, Answer> {
        let body = self.receive(session).await?;
        let mut head = request_head(&request.head, body.len()).map_err(|error| refusals::of_head(&error))?;
        if !guard.etag.is_upstreams_own() {
            // Those that could not be read and are ignored (RFC 9110 section 13.1).
            remove_conditions(&mut head);
        }
        let claim = self.mark_unclaimed(request, guard).await?;
        let (mut exchange, claim) = self.send(request, claim, head, &body).await?;
        claim.settle(Outcome::of_status(exchange.head().status), None).await;
        let mut answer = response_head(exchange.take_head());
        withhold_foreign_tag(&mut answer, guard)?;
        Answer::read_so_far(answer, Whole::unread(), exchange).await
    }

    /// Puts the mark in beside whatever else is in flight or in doubt.
    async fn mark_unclaimed(&self, request: &Request, guard: &Guard) -> Result<Claim, Refusal> {
        let end = Instant::now() + guard.claim_max_wait;
        loop {
            let snapshot = self.record(request).await?;
            if snapshot.availability() == Availability::Orphaned {
                self.wait_until_free(request, &snapshot, end).await?;
                continue;
            }
            self.may_begin(&snapshot)?;
            let standing = Self::judge_write_by_lease(request, guard, &snapshot)?;
            match self.mark(request, guard, &snapshot, MarkKind::Unclaimed, standing).await {
                Ok(Marked::Done(claim)) => return Ok(claim),
                Ok(Marked::Full) => return Err(refusals::too_many_unclaimed()),
                Ok(Marked::Conflict) if Instant::now() < end => {}
                Ok(Marked::Conflict) => return Err(refusals::write_in_flight(refusals::RETRY_SOON)),
                Err(error) => return Err(refusals::of_store(&error)),
            }
        }
    }
}
