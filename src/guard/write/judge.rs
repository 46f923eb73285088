//! The verdict on a write, by its lease and by its preconditions. One sequence leads to it: before the body arrives, under
//! the claim, and again after a conflict (DESIGN, section 4, steps 2 and 5).

use std::time::Duration;

use tokio::time::Instant;

use super::{Writes, idempotency::WriteKey};
use crate::{
    core::{
        lease::Standing,
        records::record::{Availability, Snapshot},
        refusal::Refusal,
        verdict::Verdict,
    },
    guard::{
        Halt,
        lease::usage::{conditions_go_first, judge_write_by_lease},
        probe::judge::Depth,
        refusals,
        request::Request,
    },
    store::Sighting,
};

/// The maximum age of the time of a record without moments. A mark's deadline is counted from that time, and exceeds
/// all waits of its owner by more than this.
const EARLY_AGE_MAX: Duration = Duration::from_secs(1);

impl Writes {
    /// Judges a write by a record: by the lease, and by the preconditions as this future judges them. Returns what that
    /// found, and the right of the write under the lease.
    pub(super) async fn judge<T>(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        preconditions: impl Future<Output = Result<T, Halt>>,
    ) -> Result<(T, Standing), Halt> {
        let by_lease = judge_write_by_lease(request, snapshot);
        if let (Err(denied), false) = (&by_lease, conditions_go_first(request)) {
            // A client that may not write at all does not learn the state of the resource.
            return Err(self.leases.refuse_by_lease(request, snapshot, denied.clone()).await);
        }
        let judged = preconditions.await?;
        match by_lease {
            Ok(standing) => {
                if !snapshot.leases_around.is_empty() {
                    self.judge_membership(request, snapshot).await?;
                }
                Ok((judged, standing))
            }
            Err(denied) => Err(self.leases.refuse_by_lease(request, snapshot, denied).await),
        }
    }

    /// Judges the write early, unless it may be a retry. A retry is answered before its preconditions are judged: its
    /// own success made them false.
    pub(super) async fn judge_unless_retry(
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
        let seen = self.read_for(request).await?;
        let snapshot = &seen.snapshot;
        let (may_write, is_denied) =
            (self.claims.may_write(snapshot), judge_write_by_lease(request, snapshot).is_err());
        let has_obstacle = may_write.is_err() || is_denied;
        if has_obstacle && self.must_wait_for_body(request, snapshot, is_costly).await? {
            return Ok(None);
        }
        may_write?;
        let depth = match (is_denied, is_costly) {
            (true, _) => Depth::Certain,
            (false, true) => Depth::Undisturbed,
            (false, false) => Depth::Memory,
        };
        self.judge(request, snapshot, self.probes.judge_early(request, snapshot, depth)).await?;
        Ok(Some(seen))
    }

    /// Returns the record as this process last saw it, if the write passes by it. The swap of the mark then shows
    /// whether it is still current, so the record need not be read. No refusal rests on a remembered record.
    async fn recalled(&self, request: &Request) -> Option<Sighting> {
        let seen = self.knowledge.records.recall(&request.key).await?;
        let snapshot = &seen.snapshot;
        let passes = self.claims.may_write(snapshot).is_ok()
            && judge_write_by_lease(request, snapshot).is_ok()
            && self.knowledge.verdict(request, snapshot).0 == Verdict::Pass;
        passes.then_some(seen)
    }

    /// Returns the record that was read early, with the current time, if no other write is in the way. No lease is
    /// judged by an earlier time.
    pub(super) async fn as_of_now(&self, early: Option<Sighting>) -> Result<Option<Sighting>, Refusal> {
        let Some(mut seen) = early else { return Ok(None) };
        if seen.snapshot.record.has_moments() || seen.since.elapsed() > EARLY_AGE_MAX {
            seen.since = Instant::now();
            seen.snapshot.now = self.knowledge.records.now().await.map_err(|error| refusals::of_store(&error))?;
        }
        Ok((seen.snapshot.availability() == Availability::Free).then_some(seen))
    }

    /// Reads the record of a write.
    pub(super) async fn read_for(&self, request: &Request) -> Result<Sighting, Refusal> {
        let since = Instant::now();
        Ok(Sighting { snapshot: self.knowledge.record(request).await?, since })
    }
}
