//! The facts that a write without rights must not learn, and the places that it must not take.

use super::Writes;
use crate::{
    core::{records::record::Snapshot, resource::ResourceKey, rights::Obstacle, verdict::Verdict},
    guard::{
        Halt,
        destination::refused_at_destination,
        lease::usage::{conditions_go_first, is_open_to_all, judge_write_by_lease, lease_obstacle},
        request::Request,
    },
    store::Sighting,
};

impl Writes {
    /// True if a write with something in its way is refused only after its body, as it would be if nothing were.
    pub(super) async fn must_wait_for_body(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        is_costly: bool,
    ) -> Result<bool, Halt> {
        if is_open_to_all(request) || !self.knowledge.is_stranger(request, snapshot) {
            return Ok(false);
        }
        let is_sent = match self.knowledge.verdict(request, snapshot).0 {
            Verdict::Refused(refusal) => return Err(self.knowledge.explain(request, snapshot, refusal).into()),
            Verdict::Pass => true,
            Verdict::Missing | Verdict::AskUpstream => false,
        };
        if !is_costly {
            return Ok(true);
        }
        match self.probes.must_know(request, snapshot, lease_obstacle(request)).await {
            Err(_own) if is_sent => Ok(true),
            may_know => may_know.map(|()| false),
        }
    }

    /// Lets a write stand in a line that others stand in. A client without rights takes no place of another one: it
    /// gets its answer at once.
    pub(super) async fn must_know_of_line(
        &self,
        request: &Request,
        early: Option<&Sighting>,
        touched: &[ResourceKey],
    ) -> Result<(), Halt> {
        let queues = &self.claims.queues;
        if let Some(destination) = request.destination().filter(|other| queues.is_used(&other.key)) {
            let snapshot = self.knowledge.record(destination).await?;
            Box::pin(self.must_know_to_wait(destination, &snapshot)).await.map_err(refused_at_destination)?;
        }
        if !queues.is_used(&request.key) && !touched.iter().any(|key| queues.is_used(key)) {
            return Ok(());
        }
        let snapshot = match early {
            Some(early) => early.snapshot.clone(),
            None => self.knowledge.record(request).await?,
        };
        self.must_know_to_wait(request, &snapshot).await
    }

    /// Lets a write wait for others. A client without rights gets the answer that it would get if no write were in its
    /// way: its lease fields are judged first.
    pub(super) async fn must_know_to_wait(&self, request: &Request, snapshot: &Snapshot) -> Result<(), Halt> {
        if !self.knowledge.is_stranger(request, snapshot) {
            return Ok(());
        }
        match judge_write_by_lease(request, snapshot) {
            Err(denied) if !conditions_go_first(request) => {
                Err(self.leases.refuse_by_lease(request, snapshot, denied).await)
            }
            _ => self.probes.must_know(request, snapshot, Obstacle::Write).await,
        }
    }
}
