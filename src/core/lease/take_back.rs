//! The removal of a grant that was never reported to its client (DESIGN, section 3, rule 15).

use super::LeaseId;
use crate::core::records::record::{Record, Snapshot, Stamp};

/// A grant that may or may not have reached the store.
#[derive(Clone, Copy, Debug)]
pub struct LostGrant {
    /// The id of its lease.
    pub id: LeaseId,
    /// True if the client has chosen the id. If so, it may have acquired the same lease again and got an answer.
    pub is_known: bool,
}

/// Returns the record without a grant that was made on the record as it was `before`. Returns `None` if the grant is
/// not there, or if the client may have learned of it in another way.
pub fn take_back(grant: LostGrant, before: &Snapshot, current: &Snapshot) -> Option<Record> {
    let mut record = current.draft();
    let granted = record.leases.iter().find(|lease| lease.id == grant.id)?;
    let was_granted_since = granted.fence.resolve(current.revision) > before.fence();
    // A repeated acquisition swaps the record again, but keeps the fence.
    let is_last_change = granted.fence == Stamp::At(current.revision);
    if !was_granted_since || (grant.is_known && !is_last_change) {
        return None;
    }
    record.leases.retain(|lease| lease.id != grant.id);
    // A lease that had ended can be renewed again, unless there was a write or another grant since.
    if record.leases.is_empty() && current.touched() == before.touched() {
        record.leases = before.lease_draft();
    }
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            Action, LeaseState, Standing,
            testing::{Resource, acquire, fixed, id},
        },
        *,
    };
    use crate::core::records::steps::Outcome;

    /// Returns a grant whose id the proxy has made.
    fn fresh() -> LostGrant {
        LostGrant { id: id(0xff), is_known: false }
    }

    fn chosen() -> LostGrant {
        LostGrant { id: id(1), is_known: true }
    }

    /// Returns a resource after a grant, and its snapshot from before.
    fn granted(grant: LostGrant) -> (Resource, Snapshot) {
        let mut resource = Resource::new();
        let before = resource.snapshot.clone();
        resource.must(acquire(grant.is_known.then_some(grant.id), fixed(60)));
        (resource, before)
    }

    #[test]
    fn a_grant_is_taken_back_no_matter_who_chose_its_id() {
        for grant in [fresh(), chosen()] {
            let (mut resource, before) = granted(grant);
            let fence = resource.snapshot.fence();
            let record = take_back(grant, &before, &resource.snapshot).expect("it is there");
            resource.swap(record);
            assert_eq!(resource.snapshot.lease_state(), LeaseState::Available);
            assert_eq!(resource.snapshot.fence(), fence, "no fence is given twice");
        }
    }

    #[test]
    fn what_is_not_there_is_not_taken_back() {
        for grant in [fresh(), chosen()] {
            let before = Resource::new().snapshot;
            assert_eq!(take_back(grant, &before, &before), None);
            let (mut resource, before) = granted(grant);
            resource.must(Action::Release { id: grant.id });
            resource.must(acquire(Some(id(2)), fixed(60)));
            assert_eq!(take_back(grant, &before, &resource.snapshot), None, "another client holds it");
        }
    }

    /// A client that holds the lease requests it once more, and that request is lost before it has any effect.
    #[test]
    fn a_grant_from_before_is_not_taken_back() {
        for grant in [fresh(), chosen()] {
            let (resource, _) = granted(grant);
            assert_eq!(take_back(grant, &resource.snapshot, &resource.snapshot), None);
        }
    }

    /// The client repeated the request with its id, and the answer was that it holds the lease.
    #[test]
    fn a_grant_that_its_client_has_learned_of_stands() {
        let (mut resource, before) = granted(chosen());
        resource.must(acquire(Some(chosen().id), fixed(60)));
        assert_eq!(take_back(chosen(), &before, &resource.snapshot), None);
    }

    #[test]
    fn a_grant_that_nobody_can_have_learned_of_is_taken_back_whatever_came_since() {
        let (mut resource, before) = granted(fresh());
        resource.begin(Standing::Unguarded);
        let record = take_back(fresh(), &before, &resource.snapshot).expect("it is there");
        assert!(record.leases.is_empty() && record.claim.is_some(), "the write goes on");
    }

    #[test]
    fn a_lease_that_had_ended_can_be_renewed_again_unless_something_was_written() {
        for is_written in [false, true] {
            let mut resource = Resource::new();
            resource.must(acquire(Some(id(2)), fixed(15)));
            resource.pass_seconds(15);
            let before = resource.snapshot.clone();
            resource.must(acquire(None, fixed(60)));
            if is_written {
                let begun = resource.begin(Standing::Unguarded);
                resource.end(begun, Outcome::Applied, false);
            }
            let record = take_back(fresh(), &before, &resource.snapshot).expect("it is there");
            resource.swap(record);
            assert_eq!(resource.lease(Action::Renew { id: id(2), duration: None }).is_ok(), !is_written);
        }
    }
}
