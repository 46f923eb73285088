//! Judging a write and taking its claim: one verdict, bound to one revision (DESIGN, section 4, steps 5 and 6).

use std::time::Duration;

use tokio::time::Instant;

use super::Writes;
use crate::{
    core::{
        coarse_tag::Spelling,
        lease,
        record::{Availability, Revision, Snapshot},
        refusal::Refusal,
    },
    guard::{
        answer::Answer,
        claim::{Claim, MarkKind, Marked, turn::PlaceInFront},
        lease::usage::{conditions_go_first, judge_write_by_lease},
        probe::judge::Judged,
        refusals,
        request::Request,
    },
};

/// A write that may begin: it was judged against the very record that its claim was swapped in for.
pub(crate) struct Admitted {
    /// Its claim.
    pub(crate) claim: Claim,
    /// What it was judged by.
    pub(crate) judged: Judged,
    /// How tags are spelled by the record that it was judged against.
    pub(crate) spelling: Spelling,
    /// Its right to write, as far as leases are concerned.
    pub(crate) standing: lease::Standing,
    /// The fence of the last lease of the resource.
    pub(crate) fence: Revision,
}

/// A record that a write is judged by, first before its body was received.
pub(crate) struct Early {
    /// The record.
    pub(crate) snapshot: Snapshot,
    /// When it was asked for.
    pub(crate) since: Instant,
}

/// How long the time of a record without moments may lie back: a mark's deadline is counted from it, and is longer than
/// all that its owner may wait for by more than this.
const EARLY_AGE_MAX: Duration = Duration::from_secs(1);

impl Writes {
    /// Takes the claim: judges the write against the record as it stands, and swaps the mark in against that very
    /// revision. Whatever changes the record in between makes the swap fail, and the write is judged again.
    ///
    /// The first attempt is made by the record that was read early: passing counts if the swap shows that it still
    /// stands, a refusal if another read does.
    pub(crate) async fn admit(
        &self,
        request: &Request,
        early: Option<Early>,
        standing: &mut PlaceInFront,
        end: Instant,
    ) -> Result<Admitted, Answer> {
        let (mut early, mut last) = (self.as_of_now(early).await?, None);
        loop {
            let is_early = early.is_some();
            let Early { snapshot, since } = match early.take().or(last.take()) {
                Some(known) => known,
                None => self.read_for(request).await?,
            };
            self.claims.may_write(&snapshot)?;
            if standing.is_behind(&snapshot) || snapshot.availability() != Availability::Free {
                self.claims.wait_until_free(request, &snapshot, standing, end).await?;
                continue;
            }
            let (judged, right) = match self.judge_wholly(request, &snapshot).await {
                Err(refused) if is_early => {
                    let current = self.read_for(request).await?;
                    if current.snapshot.revision == snapshot.revision {
                        return Err(refused);
                    }
                    last = Some(current);
                    continue;
                }
                judged => judged?,
            };
            let marking = Instant::now();
            let marked = self.claims.mark(request, (&snapshot, since), MarkKind::Claim, right).await;
            match marked.map_err(|error| refusals::of_store(&error))? {
                Marked::Done(claim) => {
                    let spelling = self.knowledge.spelling(request.rules(), Some(&snapshot));
                    return Ok(Admitted { claim, judged, spelling, standing: right, fence: snapshot.fence() });
                }
                Marked::Conflict(current) if Instant::now() < end => {
                    last = Some(Early { snapshot: *current, since: marking });
                }
                Marked::Full if Instant::now() < end => {}
                Marked::Conflict(_) | Marked::Full => {
                    return Err(refusals::write_in_flight(refusals::RETRY_SOON).into());
                }
            }
        }
    }

    /// A record that was read early, if nothing was in its way then, with the time that it is now: no lease is judged by
    /// an earlier one.
    async fn as_of_now(&self, early: Option<Early>) -> Result<Option<Early>, Refusal> {
        let Some(Early { mut snapshot, mut since }) = early else { return Ok(None) };
        if snapshot.record.has_moments() || since.elapsed() > EARLY_AGE_MAX {
            since = Instant::now();
            snapshot.now = self.knowledge.records().now().await.map_err(|error| refusals::of_store(&error))?;
        }
        Ok((snapshot.availability() == Availability::Free).then_some(Early { snapshot, since }))
    }

    async fn read_for(&self, request: &Request) -> Result<Early, Refusal> {
        let since = Instant::now();
        Ok(Early { snapshot: self.knowledge.record(request).await?, since })
    }

    /// The whole verdict: on passing, what the request was judged by, and its right to write.
    async fn judge_wholly(&self, request: &Request, snapshot: &Snapshot) -> Result<(Judged, lease::Standing), Answer> {
        let by_lease = judge_write_by_lease(request, snapshot);
        if let (Err(denied), false) = (&by_lease, conditions_go_first(request)) {
            // Whoever may not write at all need not know what there is.
            return Err(self.leases.refuse_by_lease(request, snapshot, denied.clone()).await);
        }
        let judged = self.probes.judge(request, snapshot).await?;
        match by_lease {
            Ok(standing) => Ok((judged, standing)),
            Err(denied) => Err(self.leases.refuse_by_lease(request, snapshot, denied).await),
        }
    }
}
