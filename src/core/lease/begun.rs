//! The lease that a step has made held, which may have come too late (DESIGN, section 3, rules 1 and 7).

use crate::core::records::record::{Record, Revision, Snapshot, Stamp};

/// A lease that a step has made held, by its fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BegunLease {
    /// It was not held when the step was judged.
    Anew(Revision),
    /// It was held when the step was judged, and forgotten by the time that the step took effect. Others may have used the
    /// resource meanwhile.
    TooLate(Revision),
}

/// Returns the lease that a step has made held, by the record that it was judged by and by the one that it has made.
pub fn begun(before: &Snapshot, after: &Snapshot) -> Option<BegunLease> {
    after.held_leases().find_map(|lease| {
        let fence = lease.fence.resolve(after.revision);
        let Some(earlier) = before.held_lease(fence) else { return Some(BegunLease::Anew(fence)) };
        let is_forgotten = earlier.forgotten_from().is_some_and(|forgotten| forgotten <= after.now);
        is_forgotten.then_some(BegunLease::TooLate(fence))
    })
}

/// Returns the record without the lease that has this fence.
pub fn without_lease(current: &Snapshot, fence: Revision) -> Record {
    let mut record = current.draft();
    record.leases.retain(|lease| lease.fence != Stamp::At(fence));
    record
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::lease::{
        Action,
        testing::{Resource, acquire, fixed, id},
    };

    fn renew() -> Action {
        Action::Renew { id: id(1), duration: None }
    }

    /// Returns the lease that a step begins if it takes effect `later` seconds after its judgement.
    fn begun_by(resource: &mut Resource, action: Action, later: u64) -> Option<BegunLease> {
        let before = resource.snapshot.clone();
        resource.must(action);
        resource.pass_seconds(later);
        begun(&before, &resource.snapshot)
    }

    #[test]
    fn a_grant_and_a_renewal_after_the_end_begin_a_holding() {
        let mut resource = Resource::new();
        let granted = begun_by(&mut resource, acquire(Some(id(1)), fixed(60)), 0);
        assert_eq!(granted, Some(BegunLease::Anew(resource.snapshot.fence())));
        assert_eq!(begun_by(&mut resource, renew(), 0), None, "it is held already");
        resource.pass_seconds(60);
        assert_eq!(begun_by(&mut resource, renew(), 0), granted, "it had ended");
        assert_eq!(begun_by(&mut resource, Action::Release { id: id(1) }, 0), None);
    }

    #[test]
    fn a_renewal_that_takes_effect_after_its_lease_is_forgotten_is_too_late() {
        for (remember_time, later, is_late) in [(0, 9, false), (0, 10, true), (1, 10, false), (1, 11, true)] {
            let mut resource = Resource::new();
            resource.rules.remember_time = Duration::from_secs(remember_time);
            resource.must(acquire(Some(id(1)), fixed(60)));
            resource.pass_seconds(50);
            let expected = is_late.then(|| BegunLease::TooLate(resource.snapshot.fence()));
            let begun = begun_by(&mut resource, renew(), later);
            assert_eq!(begun, expected, "{remember_time} {later}");
            if let Some(BegunLease::TooLate(fence)) = begun {
                assert!(without_lease(&resource.snapshot, fence).leases.is_empty());
            }
        }
    }
}
