//! Judges a write and takes its claim: one verdict, bound to one revision (DESIGN, section 4, steps 5 and 6).

use tokio::time::Instant;

use super::Writes;
use crate::{
    core::{
        cause::Reason,
        lease::Standing,
        records::record::{Availability, Revision, Snapshot},
        tags::coarse_tag::Spelling,
    },
    guard::{
        Answer, Halt,
        claim::{
            Held, Holding, MarkKind,
            places::{Others, Places, TouchedPart},
        },
        probe::judge::Judged,
        refusals,
        request::Request,
    },
    store::Sighting,
};

/// A write that may begin: it was judged against the very record that its claim was swapped in for.
pub(crate) struct Admitted {
    /// The claim of the write, and its marks on all that it touches.
    pub(crate) claim: Held,
    /// The basis of its verdict.
    pub(crate) basis: Basis,
    /// The basis of the verdict at its destination, if it is a COPY or MOVE.
    pub(crate) at_destination: Option<Box<Basis>>,
}

/// The basis of the verdict on a write that may begin.
pub(crate) struct Basis {
    /// The state that the write was judged by.
    pub(crate) judged: Judged,
    /// The spelling of tags by the record that the write was judged against.
    pub(crate) spelling: Spelling,
    /// The right of the write under the lease.
    pub(crate) standing: Standing,
    /// The fence of the last lease of the resource.
    pub(crate) fence: Revision,
}

/// The result of the admission of a write.
pub(crate) enum Admission {
    /// The write may begin.
    Admitted(Box<Admitted>),
    /// The write waits, and gets this answer.
    Deferred(Answer),
}

/// The result for a DELETE that may have to wait.
pub(super) enum Deferral {
    /// The DELETE need not wait.
    None,
    /// The record has changed: the DELETE must be judged again, by this one.
    Outdated(Box<Snapshot>),
    /// The DELETE waits, and gets this answer.
    Waits(Answer),
}

impl Writes {
    /// Takes the claim, together with the marks on all that the write touches: judges the write against the current
    /// record, and swaps the mark in against that very revision. If the record changes in between, the swap fails and
    /// the write is judged again.
    ///
    /// The first attempt uses the record that was read early. Passing counts if the swap shows that this record is
    /// still current, and a refusal if a second read shows it.
    pub(crate) async fn admit(
        &self,
        request: &Request,
        early: Option<Sighting>,
        places: &mut Places,
        end: Instant,
    ) -> Result<Admission, Halt> {
        let (mut early, mut last) = (self.as_of_now(early).await?, None);
        let mut may_know = false;
        loop {
            if !self.others_are_free(request, places, TouchedPart::Before, end).await? {
                (early, last) = (None, None);
                continue;
            }
            let is_early = early.is_some();
            let seen = match early.take().or(last.take()) {
                Some(known) => known,
                None => self.read_for(request).await?,
            };
            let snapshot = &seen.snapshot;
            if !self.own_is_free(request, snapshot, (places, &mut may_know), end).await? {
                continue;
            }
            if !self.others_are_free(request, places, TouchedPart::After, end).await? {
                continue;
            }
            let (judged, right) = match self.judge(request, snapshot, self.probes.judge(request, snapshot)).await {
                Err(refused) if is_early => {
                    let current = self.read_for(request).await?;
                    if current.snapshot.is_that_of(snapshot) {
                        return Err(refused);
                    }
                    last = Some(current);
                    continue;
                }
                judged => judged?,
            };
            let marking = Instant::now();
            if may_be_deferred(request, right) {
                match self.defer(request, snapshot).await? {
                    Deferral::Waits(answer) => return Ok(Admission::Deferred(answer)),
                    Deferral::Outdated(current) if Instant::now() < end => {
                        last = Some(Sighting { snapshot: *current, since: marking });
                        continue;
                    }
                    Deferral::Outdated(_) | Deferral::None => {}
                }
            }
            let at_destination = match request.destination() {
                // Boxed, so that the futures of other writes stay small.
                Some(destination) => Some(Box::pin(self.judge_destination(destination, places)).await?),
                None => None,
            };
            let rights = (right, at_destination.as_ref().map(|basis| basis.standing));
            let held = self.claims.hold(request, places, &seen, MarkKind::Claim, rights).await;
            match held.map_err(|error| refusals::of_store(&error))? {
                Holding::Done(claim) => {
                    let basis = self.basis(request, snapshot, (judged, right));
                    return Ok(Admission::Admitted(Box::new(Admitted { claim, basis, at_destination })));
                }
                // A record that was outdated from the beginning does not use up the time of the write.
                Holding::Conflict(current) if is_early || Instant::now() < end => {
                    last = Some(Sighting { snapshot: *current, since: marking });
                }
                Holding::Taken if Instant::now() < end => {}
                Holding::Full => return Err(refusals::too_many_unclaimed().into()),
                Holding::Conflict(_) | Holding::Taken => {
                    return Err(refusals::write_in_flight(refusals::RETRY_SOON, Reason::WriteInFlight).into());
                }
            }
        }
    }

    /// Looks whether the record lets the write begin in its turn. If not, waits for a change of it. Only a client that
    /// `may_know` learns that it does not.
    async fn own_is_free(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        (places, may_know): (&mut Places, &mut bool),
        end: Instant,
    ) -> Result<bool, Halt> {
        let (permitted, availability) = (self.claims.may_write(snapshot), snapshot.availability());
        if permitted.is_ok() && !places.own.is_behind(snapshot) && availability == Availability::Free {
            return Ok(true);
        }
        // Any request may turn a dead owner's mark into a doubt: that reveals nothing.
        if !*may_know && availability != Availability::Orphaned {
            self.must_know_to_wait(request, snapshot).await?;
            *may_know = true;
        }
        permitted?;
        self.claims.wait_for_own(request, snapshot, places, end).await?;
        Ok(false)
    }

    /// Returns the basis of a verdict by this record.
    pub(super) fn basis(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        (judged, standing): (Judged, Standing),
    ) -> Basis {
        let (spelling, fence) = (self.knowledge.spelling(request, Some(snapshot)), snapshot.fence_of_writes());
        Basis { judged, spelling, standing, fence }
    }

    /// Looks whether all other resources of this part can be marked. If not, waits for a change of one that cannot.
    pub(super) async fn others_are_free(
        &self,
        request: &Request,
        places: &mut Places,
        part: TouchedPart,
        end: Instant,
    ) -> Result<bool, Halt> {
        match self.claims.touched_are_free(request, places, part, end).await? {
            Others::Free => Ok(true),
            Others::Changed => Ok(false),
            Others::DestinationBusy(snapshot) => {
                Box::pin(self.wait_for_destination(request, &snapshot, places, end)).await.map(|()| false)
            }
        }
    }
}

/// True if a DELETE with this right may have to wait for the other holders of the lease.
fn may_be_deferred(request: &Request, right: Standing) -> bool {
    request.rules().lease.as_ref().is_some_and(|rules| rules.delete_pending)
        && request.removes_target()
        && right == Standing::Holder
        && !request.sender.is_late_delete
}
