//! The leases of collections, as the resources below them see them.

use std::time::Duration;

use super::*;
use crate::core::{
    lease::{
        Acquire, Action, Denied, LeaseMode, Standing, Usage, UseDenied, judge_use,
        testing::{Resource, acquire, fixed, id, share},
    },
    records::steps::Outcome,
    time::StoreTime,
};

const ROOT: &str = "u:/a";
const MEMBER: &str = "u:/a/b";

fn listed(root: &str, fence: u64, reach: LeaseReach) -> TreeLease {
    TreeLease { root: root.into(), fence: Revision(fence), reach }
}

/// The record of trees with these leases.
fn trees(leases: &[TreeLease]) -> Snapshot {
    let mut snapshot = Snapshot::new(Revision(1), Record::absent(Revision(1)), StoreTime::default());
    for lease in leases {
        snapshot.record = list(&snapshot, lease, TREE_LEASES).expect("there is room").into();
    }
    snapshot
}

/// The lease that a collection is seen to have, held or not.
fn around(root: &Resource, reach: LeaseReach) -> Vec<LeaseAround> {
    let fence = root.snapshot.fence().0;
    lease_around(&listed(ROOT, fence, reach), ResourceKey::from_text(ROOT), &root.snapshot).into_iter().collect()
}

/// A member of a collection with a lease of this mode by the client 1.
fn member_of(mode: LeaseMode, reach: LeaseReach) -> Resource {
    let mut root = Resource::new();
    root.must(if mode == LeaseMode::SHARED { share(id(1), fixed(60)) } else { acquire(Some(id(1)), fixed(60)) });
    let mut member = Resource::new();
    member.snapshot.now = root.snapshot.now;
    member.snapshot.leases_around = around(&root, reach);
    member
}

fn usage(resource: &Resource, usage: Usage, by: Option<u8>) -> Result<Standing, UseDenied> {
    judge_use(&resource.snapshot, Some(&resource.rules), usage, by.map(id), None)
}

#[test]
fn a_lease_reaches_what_is_below_its_collection() {
    for (root, key, membership, tree) in [
        (ROOT, MEMBER, true, true),
        ("u:/a/", MEMBER, true, true),
        (ROOT, "u:/a/b/c", false, true),
        (ROOT, ROOT, false, false),
        (ROOT, "u:/ab", false, false),
        (ROOT, "v:/a/b", false, false),
        ("u:/", "u:/a", true, true),
        ("u:/", "u:/a/b", false, true),
    ] {
        let reaches = [LeaseReach::Membership, LeaseReach::Tree].map(|reach| listed(root, 1, reach).reaches(key));
        assert_eq!(reaches, [membership, tree], "{root} {key}");
        assert!(!listed(root, 1, LeaseReach::Itself).reaches(key), "{root} {key}");
        let record = trees(&[listed(root, 1, LeaseReach::Membership), listed(root, 2, LeaseReach::Tree)]);
        let shown: Vec<u64> = listed_around(&record, key).map(|listed| listed.fence.0).collect();
        let expected = [(1, membership), (2, tree)].into_iter().filter(|(_, reaches)| *reaches);
        assert_eq!(shown, expected.map(|(fence, _)| fence).collect::<Vec<_>>(), "{root} {key}");
    }
}

/// A backend that checks fences would always refuse the holder.
#[test]
fn the_fence_of_a_holder_does_not_go_back_when_a_lease_around_ends() {
    let mut member = Resource::new();
    member.must(share(id(2), fixed(60)));
    let (own, before) = (member.snapshot.fence(), member.snapshot.fence_of_writes());
    assert_eq!(own, before);
    let mut root = Resource::new();
    for _ in 0..3 {
        root.must(share(id(1), fixed(60)));
        root.must(Action::Release { id: id(1) });
    }
    root.must(share(id(1), fixed(60)));
    member.snapshot.leases_around = around(&root, LeaseReach::Tree);
    let greatest = member.snapshot.fence_of_writes();
    assert!(greatest > own);
    let write = member.begin(Standing::Holder);
    member.end(write, Outcome::Applied, false);
    member.snapshot.leases_around.clear();
    assert_eq!(member.snapshot.fence_of_writes(), greatest);
}

#[test]
fn the_list_has_room_for_so_many_leases() {
    let many: Vec<_> = (0..TREE_LEASES.leases as u64).map(|fence| listed(ROOT, fence, LeaseReach::Tree)).collect();
    let mut full = trees(&many);
    assert_eq!(list(&full, &listed(ROOT, 1_000, LeaseReach::Tree), TREE_LEASES), None, "it is full");
    full.record = unlist(&full, |listed| listed.fence == Revision(7)).expect("one leaves").into();
    assert_eq!(unlist(&full, |listed| listed.fence == Revision(7)), None, "it has left");
    assert!(list(&full, &listed(ROOT, 1_000, LeaseReach::Tree), TREE_LEASES).is_some());
    assert_eq!(list(&full, &listed(ROOT, 8, LeaseReach::Tree), TREE_LEASES), None, "it is there");
    let long = "u:/".to_owned() + &"a".repeat(TREE_LEASES.bytes - 3);
    assert_eq!(
        list(&trees(&[listed(&long, 1, LeaseReach::Tree)]), &listed("u:/b", 2, LeaseReach::Tree), TREE_LEASES),
        None,
        "they are long"
    );
    assert_eq!(unlist(&trees(&[]), |_listed| true), None);
}

/// Rule 10: a client that removes its own entry leaves that of the next holder.
#[test]
fn a_record_older_than_an_entry_does_not_show_that_its_lease_has_ended() {
    let (mut root, key) = (Resource::new(), ResourceKey::from_text(ROOT));
    root.must(acquire(Some(id(1)), fixed(60)));
    let first = listed(ROOT, root.snapshot.fence().0, LeaseReach::Tree);
    assert!(!is_over(&first, &key, &root.snapshot));
    root.must(Action::Release { id: id(1) });
    let released = root.snapshot.clone();
    root.must(acquire(Some(id(2)), fixed(60)));
    let second = listed(ROOT, root.snapshot.fence().0, LeaseReach::Tree);
    assert_eq!([&first, &second].map(|listed| is_over(listed, &key, &released)), [true, false]);
    assert_eq!([&first, &second].map(|listed| is_over(listed, &key, &root.snapshot)), [true, false]);
    assert!(!is_over(&first, &ResourceKey::from_text(MEMBER), &released), "it is that of another resource");
}

/// Rule 10: as if each member were leased.
#[test]
fn the_lease_of_a_tree_keeps_others_from_its_members() {
    for mode in [LeaseMode::Exclusive, LeaseMode::SHARED] {
        let member = member_of(mode, LeaseReach::Tree);
        for changing in [Usage::Write, Usage::Delete] {
            assert_eq!(usage(&member, changing, None), Err(UseDenied::IdMissing), "{mode:?}");
            assert_eq!(usage(&member, changing, Some(2)), Err(UseDenied::IdMismatch), "{mode:?}");
            assert_eq!(usage(&member, changing, Some(1)), Ok(Standing::HolderAround), "{mode:?}");
        }
        assert_eq!(usage(&member, Usage::Read, None), Ok(Standing::Unguarded), "{mode:?}");
    }
    let member = member_of(LeaseMode::Exclusive, LeaseReach::Membership);
    assert_eq!(usage(&member, Usage::Write, None), Ok(Standing::Free), "the members themselves are free");
}

#[test]
fn a_lease_around_that_has_ended_binds_nobody() {
    let mut member = member_of(LeaseMode::Exclusive, LeaseReach::Tree);
    member.pass_seconds(60);
    assert_eq!(usage(&member, Usage::Write, None), Ok(Standing::Free));
    member.must(acquire(Some(id(2)), fixed(60)));
    let mut root = Resource::new();
    root.must(acquire(Some(id(1)), fixed(60)));
    let fence = root.snapshot.fence();
    root.must(Action::Release { id: id(1) });
    root.must(acquire(Some(id(1)), fixed(60)));
    let entry = listed(ROOT, fence.0, LeaseReach::Tree);
    assert_eq!(lease_around(&entry, ResourceKey::from_text(ROOT), &root.snapshot), None, "it is another lease");
}

#[test]
fn leases_of_a_tree_and_of_its_members_exclude_one_another_unless_all_are_shared() {
    for mode in [LeaseMode::Exclusive, LeaseMode::SHARED] {
        for wanted in [LeaseMode::Exclusive, LeaseMode::SHARED] {
            let mut member = member_of(mode, LeaseReach::Tree);
            let Action::Acquire(acquired) = acquire(Some(id(2)), fixed(60)) else { unreachable!() };
            let around = member.snapshot.leases_around.clone();
            let granted = member.lease(Action::Acquire(Acquire { mode: wanted, ..acquired }));
            member.snapshot.leases_around = around;
            let are_shared = [mode, wanted] == [LeaseMode::SHARED; 2];
            assert_eq!(granted.is_ok(), are_shared, "{mode:?} {wanted:?}: {granted:?}");
            if are_shared {
                let by = |number| usage(&member, Usage::Write, Some(number));
                assert_eq!((by(1), by(2)), (Ok(Standing::HolderAround), Ok(Standing::Holder)), "one of them suffices");
            } else {
                assert!(matches!(granted, Err(Denied::Held { remaining: Some(_), .. })), "{granted:?}");
            }
        }
    }
    let mut member = member_of(LeaseMode::Exclusive, LeaseReach::Membership);
    member.must(acquire(Some(id(2)), fixed(60)));
}

/// The id of a lease around proves nothing beside an exclusive lease of the resource itself.
#[test]
fn an_exclusive_lease_of_a_member_needs_its_own_id() {
    let mut member = Resource::new();
    member.must(acquire(Some(id(2)), fixed(60)));
    let around = member_of(LeaseMode::Exclusive, LeaseReach::Tree).snapshot.leases_around;
    member.snapshot.leases_around = around;
    assert_eq!(usage(&member, Usage::Write, Some(1)), Err(UseDenied::IdMismatch));
    assert_eq!(usage(&member, Usage::Write, Some(2)), Ok(Standing::Holder));
}

/// A renewal after the end proves that only its holder has written.
#[test]
fn an_ended_lease_of_a_member_is_not_renewed_under_the_lease_of_the_tree() {
    let mut member = Resource::new();
    member.must(acquire(Some(id(2)), fixed(15)));
    member.pass_seconds(15);
    let renew = || Action::Renew { id: id(2), duration: None };
    let before = member.snapshot.clone();
    let mut root = Resource::new();
    root.snapshot.now = member.snapshot.now;
    root.must(acquire(Some(id(1)), fixed(60)));
    member.snapshot.leases_around = around(&root, LeaseReach::Tree);
    assert!(matches!(member.lease(renew()), Err(Denied::Held { .. })));
    let (mark, marked_at) = member.begin(usage(&member, Usage::Write, Some(1)).expect("it is the holder"));
    member.end((mark, marked_at), Outcome::Applied, false);
    member.snapshot.leases_around.clear();
    assert!(member.lease(renew()).is_err(), "the holder of the tree has written");
    member.snapshot = before;
    member.must(renew());
}

#[test]
fn a_write_is_shown_all_leases_that_are_held_around_it() {
    let judged = member_of(LeaseMode::Exclusive, LeaseReach::Tree).snapshot;
    let alone = Resource::new().snapshot;
    assert!(judged.shows_all_around(&judged) && judged.shows_all_around(&alone));
    assert!(!alone.shows_all_around(&judged), "it was granted since");
    let mut ended = judged.clone();
    ended.now = ended.now.plus(Duration::from_secs(60));
    assert!(alone.shows_all_around(&ended));
}

#[test]
fn the_fence_of_writes_is_that_of_the_last_grant() {
    let mut member = member_of(LeaseMode::Exclusive, LeaseReach::Tree);
    let of_root = member.snapshot.leases_around[0].lease.fence.resolve(Revision(0));
    assert_eq!(member.snapshot.fence_of_writes(), of_root.max(member.snapshot.fence()));
    member.snapshot.leases_around[0].lease.fence = Stamp::At(Revision(1_000));
    assert_eq!(member.snapshot.fence_of_writes(), Revision(1_000));
    member.pass_seconds(60);
    assert_eq!(member.snapshot.fence_of_writes(), member.snapshot.fence());
}
