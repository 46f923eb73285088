//! The steps of a write of another resource that changes this one too.

use super::*;

/// DESIGN, section 6: `also_changes`.
#[test]
fn a_touch_makes_a_new_version_and_disturbs_a_write_in_flight() {
    let mut resource = Resource::new();
    let first = resource.claim(1);
    resource.settle(1, first, Outcome::Applied, Some(known("old")));
    let version = resource.snapshot.version();
    let second = resource.claim(2);
    let record = touch(&resource.snapshot, None);
    resource.swap(record);
    assert!(resource.snapshot.version() > version);
    assert!(resource.snapshot.record.claim.is_some(), "the write continues");
    resource.settle(2, second, Outcome::Applied, Some(known("mine")));
    assert_eq!(resource.snapshot.known(), None, "what it learned may be older than the touch");
}

/// Rule 1: a claimed write and a write of another resource that touches this one exclude each other.
#[test]
fn a_touch_and_a_claim_exclude_each_other() {
    let mut resource = Resource::new();
    let put = resource.claim(1);
    assert_eq!(add_touch(&resource.snapshot, resource.mark(2)), None, "the claimed write would replace it unseen");
    let deadline = resource.mark(1).deadline;
    assert_eq!(resource.snapshot.availability_to_touch(), Availability::Busy { deadline });
    resource.settle(1, put, Outcome::Applied, None);
    resource.append(3);
    let record = add_touch(&resource.snapshot, resource.mark(4)).expect("it runs beside what replaces nothing");
    resource.swap(record);
    let record = add_touch(&resource.snapshot, resource.mark(5)).expect("and beside others of its kind");
    resource.swap(record);
    assert_eq!(claim(&resource.snapshot, resource.mark(6)), None);
}

/// Rule 3: the write in doubt may be a claimed one, and may still come.
#[test]
fn nothing_touches_what_is_in_doubt() {
    for is_beside_another in [false, true] {
        let mut resource = Resource::new();
        let put = resource.append(1);
        if is_beside_another {
            resource.append(2);
        }
        resource.settle(1, put, Outcome::Doubt, None);
        let until = resource.snapshot.now.plus(LATE_WRITE_WINDOW);
        assert_eq!(resource.snapshot.availability_to_touch(), Availability::InDoubt { until });
        assert_eq!(add_touch(&resource.snapshot, resource.mark(3)), None);
        resource.pass(50);
        assert!(add_touch(&resource.snapshot, resource.mark(3)).is_some(), "{is_beside_another}: it is over");
    }
}

#[test]
fn nothing_touches_what_a_dead_owner_has_marked() {
    let mut resource = Resource::new();
    resource.append(1);
    resource.pass(100);
    assert_eq!(resource.snapshot.availability_to_touch(), Availability::Orphaned);
    assert_eq!(add_touch(&resource.snapshot, resource.mark(2)), None, "its write must become a doubt first");
}

#[test]
fn a_touch_forgets_what_was_known() {
    let mut resource = Resource::new();
    let first = resource.claim(1);
    resource.settle(1, first, Outcome::Applied, Some(known("old")));
    let record = touch(&resource.snapshot, None);
    resource.swap(record);
    assert_eq!(resource.snapshot.known(), None);
    assert_eq!(resource.snapshot.touched(), resource.snapshot.revision, "an earlier read is not kept either");
}
