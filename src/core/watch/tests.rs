//! The view of observers, over a model of a store with one record.

use http::StatusCode;

use super::{leases::LeaseChange::*, *};
use crate::core::{
    lease::{
        Action, Standing, break_leases,
        testing::{Resource, acquire, fixed, id, share},
    },
    records::{
        availability::Availability,
        record::{Record, Stamp},
        steps::Outcome,
        trees::TreeInTheWay,
    },
};

fn tagged(tag: &str) -> SeenContent {
    SeenContent::of(EntityTag::strong(tag).ok())
}

/// A resource and its observer.
struct Scene {
    resource: Resource,
    observer: StateObserver,
}

impl Scene {
    fn new() -> Self {
        let resource = Resource::new();
        let observer = StateObserver::new(&resource.snapshot, tagged("one"));
        Self { resource, observer }
    }

    fn sees(&mut self, content: bool, leases: &[LeaseChange]) {
        self.sees_with(SeenContent::Unknown, content, leases);
    }

    #[track_caller]
    fn sees_with(&mut self, found: impl Into<Sight>, content: bool, leases: &[LeaseChange]) {
        let changes = self.observer.look(&self.resource.snapshot, found);
        assert_eq!(changes, SeenChanges { content, leases: leases.to_vec() });
    }

    fn write(&mut self, outcome: Outcome) {
        let write = self.resource.begin(Standing::Free);
        // A write in flight may still be refused.
        self.sees(false, &[]);
        self.resource.end(write, outcome, false);
    }

    fn id(&self) -> StateId {
        StateId::of(1, [(&b"/doc"[..], &self.observer, false)].into_iter())
    }
}

/// An observer sees no state that is taken back.
#[test]
fn a_write_is_told_once_it_is_applied() {
    let mut scene = Scene::new();
    for refused in [Outcome::NotApplied, Outcome::NotAppliedAsKnown] {
        scene.write(refused);
        scene.sees(false, &[]);
        assert_eq!(scene.observer.content(), &tagged("one"));
    }
    scene.write(Outcome::Applied);
    scene.sees_with(tagged("two"), true, &[]);
    scene.sees_with(tagged("two"), false, &[]);
    scene.write(Outcome::Applied);
    scene.sees(true, &[]);
    assert_eq!(scene.observer.content(), &SeenContent::Unknown, "the earlier tag is not told again");
}

/// No other client may want to write for a long time.
#[test]
fn a_write_of_a_dead_proxy_is_told_when_nothing_of_it_can_arrive() {
    let mut scene = Scene::new();
    let _dead = scene.resource.begin(Standing::Free);
    scene.sees(false, &[]);
    let (before, left) = (scene.id(), next_change(&scene.resource.snapshot).expect("the end of the mark"));
    scene.resource.pass_seconds(left.as_secs() - 1);
    scene.sees(false, &[]);
    assert_eq!(scene.id(), before);
    let earlier = scene.resource.snapshot.clone();
    scene.resource.pass_seconds(1);
    assert!(!looks_same(&earlier, &scene.resource.snapshot));
    scene.sees(true, &[]);
    assert_eq!(scene.observer.content(), &SeenContent::Unknown);
    assert_ne!(scene.id(), before);
    scene.sees(false, &[]);
}

/// A write from before the start has no mark if the store forgets.
#[test]
fn the_end_of_the_time_after_a_start_is_told() {
    let mut scene = Scene::new();
    let sight = |is_held_back| Sight { content: SeenContent::Unknown, changes: 0, is_held_back };
    let mut observer = StateObserver::new(&scene.resource.snapshot, sight(true));
    let id = |observer: &StateObserver| StateId::of(1, [(&b"/doc"[..], observer, false)].into_iter());
    let before = id(&observer);
    assert!(observer.look(&scene.resource.snapshot, sight(true)).is_empty());
    assert!(observer.look(&scene.resource.snapshot, sight(false)).content);
    assert_ne!(id(&observer), before);
    assert!(observer.look(&scene.resource.snapshot, sight(false)).is_empty());
    scene.sees(false, &[]);
}

#[test]
fn a_write_in_doubt_is_told_when_the_doubt_is_over() {
    let mut scene = Scene::new();
    scene.write(Outcome::Doubt);
    scene.sees(false, &[]);
    assert_eq!(next_change(&scene.resource.snapshot), Some(Duration::from_secs(1)));
    scene.resource.pass_seconds(1);
    scene.sees(true, &[]);
    assert_eq!(next_change(&scene.resource.snapshot), None);
}

#[test]
fn each_step_of_a_lease_is_told() {
    let mut scene = Scene::new();
    scene.resource.must(acquire(Some(id(1)), fixed(30)));
    scene.sees(false, &[Acquired]);
    assert_eq!(next_change(&scene.resource.snapshot), Some(Duration::from_secs(30)));
    scene.resource.pass_seconds(10);
    scene.sees(false, &[]);
    scene.resource.must(Action::Renew { id: id(1), duration: None });
    scene.sees(false, &[Renewed]);
    scene.resource.must(Action::Change { id: id(1), proposed: id(2) });
    scene.sees(false, &[]);
    scene.resource.must(Action::Release { id: id(2) });
    scene.sees(false, &[Released]);
    scene.resource.must(acquire(Some(id(3)), fixed(30)));
    scene.sees(false, &[Acquired]);
    scene.resource.pass_seconds(30);
    scene.sees(false, &[Expired]);
    scene.resource.must(Action::Renew { id: id(3), duration: None });
    scene.sees(false, &[Acquired]);
    let broken = break_leases(&scene.resource.snapshot, Duration::from_secs(5), None).expect("it is held");
    scene.resource.swap(broken);
    scene.sees(false, &[Breaking]);
    scene.resource.pass_seconds(5);
    scene.sees(false, &[Broken]);
    scene.resource.pass_seconds(3_600);
    scene.sees(false, &[]);
}

/// An observer that was busy finds the newest state, and the steps to it that the record shows.
#[test]
fn steps_that_were_missed_are_told_by_their_ends() {
    let mut scene = Scene::new();
    scene.resource.must(acquire(Some(id(1)), fixed(30)));
    scene.sees(false, &[Acquired]);
    scene.resource.pass_seconds(31);
    scene.resource.must(acquire(Some(id(2)), fixed(30)));
    scene.sees(false, &[Expired, Acquired]);
    scene.resource.must(Action::Release { id: id(2) });
    scene.resource.must(acquire(Some(id(3)), fixed(30)));
    scene.sees(false, &[Released, Acquired]);
    scene.resource.must(Action::Release { id: id(3) });
    scene.resource.must(acquire(Some(id(4)), fixed(30)));
    scene.resource.must(Action::Release { id: id(4) });
    scene.sees(false, &[Released]);
}

#[test]
fn the_holders_of_a_shared_lease_come_and_go_one_by_one() {
    let mut scene = Scene::new();
    scene.resource.must(share(id(1), fixed(30)));
    scene.resource.must(share(id(2), fixed(60)));
    scene.sees(false, &[Acquired, Acquired]);
    scene.resource.must(Action::Release { id: id(2) });
    scene.sees(false, &[Released]);
    scene.resource.pass_seconds(30);
    scene.sees(false, &[Expired]);
}

/// Rule 3: the same of a write of a tree around the resource, whose mark is in another record.
#[test]
fn the_write_of_a_tree_whose_proxy_has_died_is_told_when_it_is_over() {
    let mut scene = Scene::new();
    let (deadline, over) =
        ([5, 10].map(|seconds| scene.resource.snapshot.now.plus(Duration::from_secs(seconds)))).into();
    scene.resource.snapshot.above = Some(TreeInTheWay {
        availability: Availability::Busy { deadline },
        seen: Revision(1),
        mark_over_from: Some(over),
    });
    scene.sees(false, &[]);
    assert_eq!(next_change(&scene.resource.snapshot), Some(Duration::from_secs(10)));
    let before = scene.resource.snapshot.clone();
    scene.resource.pass_seconds(10);
    assert!(!looks_same(&before, &scene.resource.snapshot));
    scene.sees(true, &[]);
    scene.sees(false, &[]);
}

/// A look at a record that is older than the last one.
#[test]
fn time_does_not_run_backwards() {
    let mut scene = Scene::new();
    let before = scene.resource.snapshot.clone();
    scene.write(Outcome::Applied);
    scene.sees(true, &[]);
    let id = scene.id();
    assert_eq!(scene.observer.look(&before, tagged("one")), SeenChanges::default());
    assert_eq!(scene.id(), id);
}

/// The backend may need long to show the content.
#[test]
fn leases_are_seen_before_the_content_and_are_not_taken_back_by_it() {
    let mut scene = Scene::new();
    let before = scene.resource.snapshot.clone();
    scene.write(Outcome::Applied);
    let written = scene.resource.snapshot.clone();
    scene.resource.must(acquire(Some(id(1)), fixed(30)));
    let leased = scene.resource.snapshot.clone();
    assert_eq!(scene.observer.look_at_leases(&leased), [Acquired]);
    assert_eq!(scene.observer.content(), &tagged("one"), "the content is not seen yet");
    assert!(scene.observer.look_at_content(&written, tagged("two")));
    assert!(!scene.observer.look_at_content(&before, tagged("one")));
    assert_eq!(scene.observer.look_at_leases(&written), [], "a look at an older record");
    assert_eq!(scene.observer.look(&leased, tagged("two")), SeenChanges::default());
}

/// The record of a resource stays as it is when a tree around it changes.
#[test]
fn a_look_at_an_older_record_of_trees_is_put_aside() {
    let mut scene = Scene::new();
    let before = scene.resource.snapshot.clone();
    let change = Revision(before.revision.0 + 10);
    let record = Record { version: Stamp::At(change), tree_change: change, ..before.draft() };
    let after = Snapshot { record: record.into(), ..before.clone() };
    assert!(scene.observer.look(&after, tagged("moved")).content);
    let id = scene.id();
    // A record of the resource that was read later, with one of trees that was read before.
    let later = Snapshot { revision: Revision(before.revision.0 + 1), ..before.clone() };
    for older in [&before, &later] {
        assert_eq!(scene.observer.look(older, tagged("one")), SeenChanges::default());
        assert_eq!((scene.observer.content(), scene.id()), (&tagged("moved"), id.clone()));
        assert!(!looks_same(older, &after), "its observers look again");
    }
}

/// A refused write of a tree changes nothing, and what was read before it counts as older.
#[test]
fn observers_look_again_after_a_tree_whose_write_was_refused() {
    let scene = Scene::new();
    let before = scene.resource.snapshot;
    let record = Record { tree_change: Revision(before.revision.0 + 10), ..before.draft() };
    assert!(!looks_same(&before, &Snapshot { record: record.into(), ..before.clone() }));
}

/// Others may write without a new version.
#[test]
fn what_others_have_changed_is_told() {
    let mut scene = Scene::new();
    scene.sees_with(tagged("one"), false, &[]);
    let found = |content: SeenContent, changes: u64| Sight { content, changes, is_held_back: false };
    scene.sees_with(found(tagged("two"), 1), true, &[]);
    scene.sees_with(found(tagged("two"), 1), false, &[]);
    let known = scene.id();
    scene.sees_with(found(SeenContent::Unknown, 2), true, &[]);
    assert_eq!(scene.observer.content(), &SeenContent::Unknown);
    assert_eq!(scene.id(), known, "a name for the states of this store alone");
    let by_tag = |scene: &Scene| StateId::of(1, [(&b"/doc"[..], &scene.observer, true)].into_iter());
    let mut names = vec![by_tag(&scene)];
    for sight in [found(SeenContent::Unknown, 3), found(SeenContent::Deleted, 4), found(tagged("three"), 5)] {
        scene.sees_with(sight, true, &[]);
        names.push(by_tag(&scene));
    }
    for (place, name) in names.iter().enumerate() {
        assert!(!names[place + 1..].contains(name), "{place}");
    }
}

#[test]
fn states_have_names_that_change_with_what_is_seen() {
    let mut scene = Scene::new();
    let first = scene.id();
    scene.write(Outcome::NotApplied);
    scene.sees(false, &[]);
    assert_eq!(scene.id(), first, "nothing is different");
    let mut names = vec![first];
    scene.write(Outcome::Applied);
    scene.sees(true, &[]);
    names.push(scene.id());
    scene.resource.must(acquire(Some(id(1)), fixed(30)));
    scene.sees(false, &[Acquired]);
    names.push(scene.id());
    scene.resource.pass_seconds(10);
    scene.resource.must(Action::Renew { id: id(1), duration: None });
    scene.sees(false, &[Renewed]);
    assert_eq!(Some(&scene.id()), names.last(), "a renewal is no other state");
    scene.resource.must(Action::Release { id: id(1) });
    scene.sees(false, &[Released]);
    assert_eq!(scene.id(), names[1], "the state before the lease");
    names.push(StateId::of(2, [(&b"/doc"[..], &scene.observer, false)].into_iter()));
    names.push(StateId::of(1, [(&b"/other"[..], &scene.observer, false)].into_iter()));
    for (place, name) in names.iter().enumerate() {
        assert!(!names[place + 1..].contains(name), "{place}");
    }
}

/// Rule 11: no text has the id of a lease.
#[test]
fn events_tell_what_everybody_may_see() {
    let mut scene = Scene::new();
    scene.resource.must(acquire(Some(id(1)), fixed(30)));
    scene.sees(false, &[Acquired]);
    let (snapshot, id) = (&scene.resource.snapshot, scene.id());
    let fence = snapshot.fence().0;
    let lease = format!("\"state\":\"leased\",\"duration\":\"fixed\",\"remaining\":30,\"fence\":{fence}");
    assert_eq!(
        state_event("/a\"b", &tagged("one"), snapshot, Some(&id)),
        format!(
            "event: state\nid: {}\ndata: {{\"path\":\"/a\\\"b\",\"etag\":\"\\\"one\\\"\",\"lease\":{{{lease}}}}}\n\n",
            id.as_str()
        )
    );
    assert_eq!(
        lease_event("/doc", Acquired, snapshot, None),
        format!("event: lease\ndata: {{\"path\":\"/doc\",\"change\":\"acquired\",{lease}}}\n\n")
    );
    assert_eq!(changed_event("/doc", &SeenContent::Unknown, None), "event: changed\ndata: {\"path\":\"/doc\"}\n\n");
    assert_eq!(
        changed_event("/doc", &SeenContent::Deleted, None),
        "event: changed\ndata: {\"path\":\"/doc\",\"deleted\":true}\n\n"
    );
    assert_eq!(
        denied_event("/doc", StatusCode::NOT_FOUND),
        "event: denied\ndata: {\"path\":\"/doc\",\"status\":404}\n\n"
    );
}
