//! Tests that no tag is valid for any state but the one that it was given for. They follow every path through the
//! changes of a record, with a backend that has two tags for all its states.

use std::{collections::HashMap, time::Duration};

use http::HeaderMap;

use super::*;
use crate::core::{
    records::{
        record::{Mark, Record, Stamp},
        steps::{self, Outcome, Settlement},
    },
    tags::{
        bare_tags::{Before, EARLIER_MAX, Listed, Shown},
        followed_tags::Followed,
        recent_tags::RecentTags,
    },
    time::StoreTime,
};

const INCARNATION: u64 = 0xab;

fn tag(text: &str) -> EntityTag {
    EntityTag::parse(text.as_bytes()).unwrap()
}

fn name(text: &str) -> ShortName {
    ShortName::of_tag(&tag(text))
}

fn snapshot(version: u64, bare_tags: BareTags) -> Snapshot {
    let record = Record { version: Stamp::At(Revision(version)), bare_tags, ..Record::absent(Revision(version)) };
    Snapshot::new(Revision(version), record, StoreTime::default())
}

fn spelling(version: u64, bare_tags: BareTags) -> Spelling {
    Spelling::of(INCARNATION, Some(&snapshot(version, bare_tags)))
}

fn one(current: Option<&str>, earlier: &[&str]) -> BareTags {
    let earlier = earlier.iter().map(|text| name(text)).collect();
    BareTags::One(Listed { target: ShortName(1), current: current.map(name), earlier })
}

fn seen(before: Before, after: Option<&str>) -> Shown {
    Shown { target: ShortName(1), before, after: after.map(name), purpose: Followed::Bare }
}

#[test]
fn a_tag_has_the_suffix_of_its_version() {
    let spelling = spelling(12, BareTags::None);
    for (bare, issued) in [("\"t-3\"", "\"t-3~00000000000000ab-12\""), ("W/\"t\"", "W/\"t~00000000000000ab-12\"")] {
        assert_eq!(spelling.issued(&tag(bare)), Some(tag(issued)));
        assert_eq!(spelling.at_backend(&tag(issued)), tag(bare));
    }
}

#[test]
fn the_one_tag_that_names_one_state_goes_out_bare() {
    let spelling = spelling(12, one(Some("\"t-3\""), &["\"t-4\""]));
    assert_eq!(spelling.issued(&tag("\"t-3\"")), Some(tag("\"t-3\"")));
    assert_eq!(spelling.at_backend(&tag("\"t-3\"")), tag("\"t-3\""));
    for other in ["\"t-4\"", "\"t-5\""] {
        assert_ne!(spelling.issued(&tag(other)), Some(tag(other)), "{other}");
    }
}

#[test]
fn a_resource_that_nobody_wrote_has_the_tags_of_the_backend() {
    let spelling = spelling(0, BareTags::All);
    assert!(spelling.is_bare());
    assert_eq!(spelling.issued(&tag("\"t\"")), Some(tag("\"t\"")));
}

/// A forgotten record leaves its bucket a floor, and its earlier tags are not known any more.
#[test]
fn where_something_was_forgotten_no_tag_is_bare() {
    let absent = Snapshot::new(Revision(5), Record::absent(Revision(5)), StoreTime::default());
    assert_eq!(Spelling::of(INCARNATION, Some(&absent)), spelling(5, BareTags::None));
    let never = Snapshot::new(Revision(0), Record::absent(Revision(0)), StoreTime::default());
    assert!(Spelling::of(INCARNATION, Some(&never)).is_bare());
}

#[test]
fn without_a_record_no_tag_goes_out_and_none_counts() {
    let spelling = Spelling::of(INCARNATION, None);
    assert_eq!(spelling.issued(&tag("\"t\"")), None);
    assert_eq!(spelling.at_backend(&tag("\"t\"")), tag("\"t~\""));
}

/// The backend gets its own tag only for the tag of the current state. For all others it gets one that it never gives.
#[test]
fn a_stale_tag_becomes_one_that_the_backend_never_gives() {
    let backends = [("t-3", false), ("t-4", false), ("t-5", false), ("t-3", true)];
    let spelled = |opaque: &str, weak: bool| if weak { EntityTag::weak(opaque) } else { EntityTag::strong(opaque) };
    let forms = ["", "~00000000000000ab-12", "~00000000000000ab-11", "~00000000000000ac-12", "~", "-gzip"];
    for bare_tags in [BareTags::None, one(Some("\"t-3\""), &["\"t-4\""]), one(None, &[])] {
        let spelling = spelling(12, bare_tags);
        for ((bare, weak), form) in backends.iter().flat_map(|each| forms.map(|form| (*each, form))) {
            let presented = spelled(&format!("{bare}{form}"), weak).unwrap();
            let own = spelled(bare, weak).unwrap();
            let seen = spelling.at_backend(&presented);
            if spelling.issued(&own) == Some(presented.clone()) {
                assert_eq!(seen, own, "{presented:?}");
            } else {
                let is_backends = backends.iter().any(|(bare, weak)| Ok(&seen) == spelled(bare, *weak).as_ref());
                assert!(!is_backends, "{presented:?} became {seen:?}");
            }
        }
    }
}

#[test]
fn lists_and_if_range_are_translated_and_the_rest_is_not() {
    let fields = [
        (http::header::IF_MATCH, "\"t~00000000000000ab-12\", \"u\""),
        (http::header::IF_NONE_MATCH, "*"),
        (http::header::IF_RANGE, "\"t\""),
    ];
    let headers: HeaderMap = fields.into_iter().map(|(name, value)| (name, value.parse().unwrap())).collect();
    let conditions = Preconditions::parse_for_read(&headers);
    let seen = spelling(12, BareTags::None).conditions_at_backend(&conditions);
    let tags = vec![tag("\"t\""), tag("\"u~00000000000000ab-12\"")];
    assert_eq!(seen.if_match, Some(TagCondition::Tags(tags)));
    assert_eq!(seen.if_none_match, Some(TagCondition::Any));
    assert_eq!(seen.if_range, Some(RangeCondition::Tag(tag("\"t~00000000000000ab-12\""))));
}

#[test]
fn a_list_ends_with_what_it_cannot_follow() {
    let known = seen(Before::Tag(name("\"a\"")), Some("\"b\""));
    let listed = one(Some("\"b\""), &["\"a\""]);
    assert_eq!(BareTags::All.changed(Some(known)), listed);
    assert_eq!(BareTags::All.changed(Some(seen(Before::Absent, Some("\"b\"")))), one(Some("\"b\""), &[]));
    assert_eq!(BareTags::All.changed(Some(seen(Before::Unknown, Some("\"b\"")))), BareTags::None);
    assert_eq!(BareTags::None.changed(Some(known)), BareTags::None);
    assert_eq!(
        listed.clone().changed(Some(seen(Before::Unknown, Some("\"c\"")))),
        one(Some("\"c\""), &["\"a\"", "\"b\""])
    );
    assert_eq!(listed.clone().changed(Some(seen(Before::Unknown, Some("\"a\"")))), one(None, &["\"a\"", "\"b\""]));
    assert_eq!(listed.clone().changed(Some(seen(Before::Unknown, None))), one(None, &["\"a\"", "\"b\""]));
    assert_eq!(listed.clone().changed(None), BareTags::None);
    let elsewhere = Shown { target: ShortName(2), before: Before::Tag(name("\"x\"")), after: None, ..known };
    assert_eq!(listed.changed(Some(elsewhere)), BareTags::None);
}

#[test]
fn a_list_that_is_full_ends() {
    let mut bare_tags = BareTags::All;
    for number in 0..EARLIER_MAX {
        let after = format!("\"{number}\"");
        bare_tags = bare_tags.changed(Some(seen(Before::Tag(name("\"first\"")), Some(&after))));
        assert!(matches!(&bare_tags, BareTags::One(listed) if listed.current == Some(name(&after))), "{number}");
    }
    assert_eq!(bare_tags.changed(Some(seen(Before::Unknown, Some("\"last\"")))), BareTags::None);
}

/// A model of two targets of one key at a backend, their record, and all tags that went out.
#[derive(Clone)]
struct World {
    snapshot: Snapshot,
    /// The tag that each target shows, and the number of its state.
    targets: [(&'static str, u32); 2],
    states: u32,
    /// The state that a tag was given for, by target and tag.
    issued: HashMap<(usize, EntityTag), u32>,
}

/// One change of the state.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// A claimed write to a target, which then shows the tag `after`. `knows`: the tag before it is known. `learns`:
    /// the proxy learns the tag after it.
    Write { target: usize, after: &'static str, knows: bool, learns: bool },
    /// A write that is settled in another way, which may have changed any target. They show these tags then.
    Other(Outcome, [&'static str; 2]),
    /// A touch, after which the targets show these tags.
    Touch([&'static str; 2]),
    /// The record is forgotten.
    Forget,
}

/// The last is spelled like the first with the suffix of an early version.
const TAGS: [&str; 3] = ["\"a\"", "\"b\"", "\"a~00000000000000ab-2\""];

fn changes() -> Vec<Change> {
    let mut changes = vec![Change::Forget];
    for (after, knows, learns) in TAGS.iter().flat_map(|after| {
        [(true, true), (true, false), (false, true), (false, false)].map(|(knows, learns)| (*after, knows, learns))
    }) {
        changes.extend([0, 1].map(|target| Change::Write { target, after, knows, learns }));
    }
    for shows in [[TAGS[0], TAGS[0]], [TAGS[0], TAGS[1]], [TAGS[1], TAGS[0]]] {
        changes.push(Change::Touch(shows));
        changes.extend([Outcome::Applied, Outcome::Unclear, Outcome::Doubt].map(|end| Change::Other(end, shows)));
    }
    changes
}

impl World {
    fn new(targets: [&'static str; 2]) -> Self {
        let snapshot = Snapshot::new(Revision(0), Record::absent(Revision(0)), StoreTime::default());
        let mut world = Self { snapshot, targets: targets.map(|tag| (tag, 0)), states: 0, issued: HashMap::new() };
        world.read();
        world
    }

    /// Reads each target, as a client that keeps its tag.
    fn read(&mut self) {
        let spelling = Spelling::of(INCARNATION, Some(&self.snapshot));
        for (number, (shows, state)) in self.targets.iter().enumerate() {
            let issued = spelling.issued(&tag(shows)).unwrap();
            let given_for = *self.issued.entry((number, issued.clone())).or_insert(*state);
            if !self.snapshot.has_no_pending_writes() {
                // No client can write with this tag before the version has changed.
                continue;
            }
            assert_eq!(given_for, *state, "{issued:?} was given for another state of target {number}");
        }
    }

    fn swap(&mut self, record: Record) {
        self.snapshot.revision.0 += 1;
        self.snapshot.record = record.resolved(self.snapshot.revision).into();
    }

    fn show(&mut self, target: usize, tag: &'static str) {
        self.states += 1;
        self.targets[target] = (tag, self.states);
    }

    fn settle(&mut self, outcome: Outcome, shown: Option<Shown>, change: impl FnOnce(&mut Self)) {
        let (late_write_window, deadline) = (Duration::from_secs(1), StoreTime::from_milliseconds(1 << 40));
        let mark = Mark { owner: 1, nonce: 1, deadline, leaves_lease: true, late_write_window };
        self.swap(steps::claim(&self.snapshot, mark).unwrap());
        let marked_at = self.snapshot.revision;
        // Meanwhile readers see the old state, and then the new one under the old version.
        self.read();
        change(self);
        let settlement = Settlement { mark, marked_at, outcome, leaves: None, learned: None, shown, end: None };
        self.swap(steps::settle(&self.snapshot, settlement).unwrap());
        if outcome == Outcome::Doubt {
            self.read();
            self.snapshot.now = self.snapshot.now.plus(late_write_window);
        }
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Write { target, after, knows, learns } => {
                let before = tag(self.targets[target].0);
                let before = if knows { Before::Tag(ShortName::of_tag(&before)) } else { Before::Unknown };
                let after_name = learns.then(|| name(after));
                let purpose = Followed::Bare;
                let shown = Shown { target: ShortName(target as u64), before, after: after_name, purpose };
                self.settle(Outcome::Applied, Some(shown), |world| world.show(target, after));
            }
            Change::Other(outcome, shows) => self.settle(outcome, None, |world| {
                (0..2).for_each(|target| world.show(target, shows[target]));
            }),
            Change::Touch(shows) => {
                (0..2).for_each(|target| self.show(target, shows[target]));
                self.swap(steps::touch(&self.snapshot, None));
            }
            Change::Forget => self.snapshot.record = Record::absent(self.snapshot.revision).into(),
        }
        self.read();
    }
}

fn explore(world: &World, changes: &[Change], depth: u32) {
    for change in changes {
        let mut next = world.clone();
        next.apply(*change);
        if depth > 1 {
            explore(&next, changes, depth - 1);
        }
    }
}

/// Tries every sequence of three changes from each initial state.
#[test]
fn no_tag_outlives_its_state() {
    for targets in [[TAGS[0], TAGS[0]], [TAGS[0], TAGS[1]]] {
        explore(&World::new(targets), &changes(), 3);
    }
}

/// Tries long sequences that fill and end the list of a record, and forget records.
#[test]
fn no_tag_outlives_its_state_in_the_long_run() {
    let changes = changes();
    let mut random = 1_u64;
    for _ in 0..300 {
        let mut world = World::new([TAGS[0], TAGS[1]]);
        for _ in 0..40 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            world.apply(changes[usize::try_from(random >> 33).unwrap() % changes.len()]);
        }
    }
}

/// Tags were given out for states that only the forgotten record listed.
#[test]
fn no_tag_of_a_resource_whose_record_was_forgotten_is_bare() {
    assert!(spelling(0, BareTags::All).is_bare());
    assert!(!spelling(12, BareTags::All).is_bare());
}

#[test]
fn a_write_beside_another_one_lists_none_of_its_tags() {
    let now = StoreTime::from_milliseconds(1_000);
    let at = |revision, record: Record| {
        let revision = Revision(revision);
        Snapshot::new(revision, record.resolved(revision), now)
    };
    let deadline = now.plus(Duration::from_secs(1));
    let mark = Mark { owner: 1, nonce: 1, deadline, late_write_window: Duration::ZERO, leaves_lease: false };
    let claimed = at(1, steps::claim(&at(0, Record::absent(Revision(0))), mark).expect("it is free"));
    let beside = at(2, steps::add_unclaimed(&claimed, Mark { nonce: 2, ..mark }).expect("there is room"));
    for (snapshot, is_listed) in [(claimed, true), (beside, false)] {
        let shown = Some(seen(Before::Absent, Some("\"new\"")));
        let (marked_at, outcome) = (Revision(1), Outcome::Applied);
        let settlement = Settlement { mark, marked_at, outcome, leaves: None, learned: None, shown, end: None };
        let record = steps::settle(&snapshot, settlement).expect("the mark is there");
        assert_eq!(record.bare_tags != BareTags::None, is_listed);
    }
}

/// Rule 2: a backend may give a tag that looks as if it had the suffix of a later version.
#[test]
fn a_tag_that_looks_like_one_with_a_suffix_gets_one() {
    let (like, of_other) = ("\"t~00000000000000ab-12\"", "\"t~00000000000000ac-12\"");
    for bare_tags in [BareTags::All, one(Some(like), &[]), BareTags::None] {
        let (before, after) = (spelling(0, bare_tags), spelling(12, BareTags::None));
        let issued = before.issued(&tag(like)).unwrap();
        assert_eq!(issued, tag("\"t~00000000000000ab-12~00000000000000ab-0\""));
        assert_eq!(before.at_backend(&issued), tag(like));
        assert_ne!(after.issued(&tag("\"t\"")), Some(issued), "the tag of a later state");
        assert_ne!(before.at_backend(&tag(like)), tag(like), "no state was given it");
    }
    assert_eq!(spelling(0, BareTags::All).issued(&tag(of_other)), Some(tag(of_other)), "that of another store");
}

/// Rule 2: tags that are unique by the configuration go out as they are, until one comes back.
#[test]
fn a_unique_tag_that_comes_back_gets_a_suffix() {
    let recent = RecentTags { target: ShortName(1), current: Some(name("\"b\"")), earlier: vec![name("\"a\"")] };
    let record = Record { recent_tags: Some(Box::new(recent)), ..Record::absent(Revision(12)) };
    let snapshot = Snapshot::new(Revision(12), record, StoreTime::default());
    let spelling = Spelling::of_unique(INCARNATION, Some(&snapshot));
    let suffixed = tag("\"a~00000000000000ab-12\"");
    for (backends, issued, repeated) in
        [("\"a\"", suffixed.clone(), true), ("\"b\"", tag("\"b\""), false), ("\"c\"", tag("\"c\""), false)]
    {
        assert_eq!(spelling.issued(&tag(backends)), Some(issued.clone()));
        assert_eq!(spelling.at_backend(&issued), tag(backends));
        assert_eq!((spelling.is_repeated(&tag(backends)), spelling.is_stale(&issued)), (repeated, false));
    }
    assert!(spelling.is_stale(&tag("\"a\"")), "it was given for an earlier state");
    assert_ne!(spelling.at_backend(&tag("\"a\"")), tag("\"a\""));
    let never = Record { recent_tags: None, ..Record::absent(Revision(12)) };
    let never = Snapshot::new(Revision(12), never, StoreTime::default());
    assert_eq!(Spelling::of_unique(INCARNATION, Some(&never)), Spelling::Own);
    assert_eq!(Spelling::of_unique(INCARNATION, None), Spelling::Own);
}

/// Rule 2: what the record knows of a client's tag.
#[test]
fn a_tag_is_stale_if_no_tag_of_the_backend_goes_out_as_it() {
    for (spelling, presented, stale) in [
        (spelling(0, BareTags::All), "\"t\"", false),
        (spelling(12, BareTags::None), "\"t\"", true),
        (spelling(12, BareTags::None), "\"t~00000000000000ab-11\"", true),
        (spelling(12, BareTags::None), "\"t~00000000000000ab-12\"", false),
        (spelling(12, one(Some("\"t\""), &[])), "\"t\"", false),
        (spelling(12, one(Some("\"t\""), &[])), "\"u\"", true),
        (Spelling::Own, "\"t\"", false),
        (Spelling::Withheld, "\"t\"", false),
    ] {
        assert_eq!(spelling.is_stale(&tag(presented)), stale, "{spelling:?} {presented}");
    }
}
