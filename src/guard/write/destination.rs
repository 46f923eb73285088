//! The destination of a COPY or MOVE: judged under the same claim as the source, and settled with what it has become
//! (DESIGN, section 3, rules 1 and 2).

use pingora::http::ResponseHeader;
use tokio::time::Instant;

use super::{Writes, admit::Basis, send::end_of};
use crate::{
    core::{
        records::{record::Snapshot, steps::Outcome},
        refusal::{Code, Refusal},
        tags::precondition::TagCondition,
        verdict::excluded,
    },
    guard::{
        Halt, TypeSeen,
        claim::{Held, places::Places},
        destination::refused_at_destination,
        refusals,
        request::Request,
    },
};

impl Writes {
    /// Judges the destination by the record that its claim will be swapped in for: by the lease, and by its part of the
    /// request.
    pub(super) async fn judge_destination(&self, destination: &Request, places: &Places) -> Result<Box<Basis>, Halt> {
        let snapshot = &places.destination().ok_or_else(refusals::unknown_state)?.snapshot;
        let judged = self.judge(destination, snapshot, self.probes.judge(destination, snapshot)).await;
        let judged = match judged {
            Err(Halt::Refused(refusal)) if refusal.code == Code::ValidatorUnavailable => {
                Err(self.refused_by_collection(destination).await.unwrap_or(refusal).into())
            }
            judged => judged,
        };
        Ok(Box::new(self.basis(destination, snapshot, judged.map_err(refused_at_destination)?)))
    }

    /// Returns the refusal of a destination that must not be replaced, if a collection is there. Few servers answer a GET
    /// of one.
    async fn refused_by_collection(&self, destination: &Request) -> Option<Refusal> {
        let is_kept = destination.conditions.if_none_match == Some(TagCondition::Any);
        if !is_kept || !destination.route().has_trees {
            return None;
        }
        let seen = Box::pin(self.probes.type_of(destination)).await.ok()?;
        (seen == Some(TypeSeen::Collection)).then(|| excluded(&destination.conditions))
    }

    /// Waits until the destination may be free. A client without rights does not learn that it is not.
    pub(super) async fn wait_for_destination(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        places: &mut Places,
        end: Instant,
    ) -> Result<(), Halt> {
        if let Some(destination) = request.destination() {
            self.must_know_to_wait(destination, snapshot).await.map_err(refused_at_destination)?;
        }
        let waited = self.claims.wait_for_destination(request, snapshot, places, end).await;
        waited.map_err(|refusal| refused_at_destination(refusal.into()))
    }

    /// Records the outcome for the destination. Its new state is read under the claim, since the answer does not show
    /// it.
    pub(super) async fn settle_destination(
        &self,
        destination: &Request,
        (claim, basis): (Held, &Basis),
        (outcome, answer): (Outcome, &ResponseHeader),
    ) {
        let end = end_of(destination, answer, basis.judged.modified);
        let learned = match outcome {
            Outcome::Applied => self.new_state_of_destination(destination).await,
            _ => None,
        };
        self.settle(destination, (claim, basis), (outcome, end), learned.as_ref()).await;
    }
}
