//! Every record survives encoding and decoding, with any zero of time. Nothing else decodes as a record.

use bytes::Bytes;
use proptest::{option, prelude::*};

use super::*;
use crate::core::{
    lease::{
        HolderLabel, KeeperName, Lease, LeaseDuration, LeaseId, LeaseMode, LeaseNote, LeaseSet, ShareMode, TargetName,
        Term, Usage, Usages,
    },
    policy::LeaseGuards,
    records::{
        first_attempt::{AttemptSender, Fingerprint, FirstAttempt, KeptAnswer, SentWrite},
        pending_delete::PendingDelete,
        record::{Known, VariantName},
        tree_leases::{LeaseReach, TreeLease},
        trees::{TreeChange, TreeEffect, TreeRoot, Trees},
    },
    tags::{
        bare_tags::{Listed, ShortName},
        entity_tag::EntityTag,
        http_date::HttpDate,
        recent_tags::RecentTags,
        validators::{Modified, Representation, Validators},
    },
};

const BASE: u64 = 1 << 40;

fn moments() -> impl Strategy<Value = StoreTime> {
    (0..BASE * 2).prop_map(StoreTime::from_milliseconds)
}

fn durations() -> impl Strategy<Value = Duration> {
    (0..BASE).prop_map(Duration::from_millis)
}

fn stamps() -> impl Strategy<Value = Stamp> {
    prop_oneof![Just(Stamp::Itself), any::<u64>().prop_map(|number| Stamp::At(Revision(number)))]
}

fn tags() -> impl Strategy<Value = EntityTag> {
    // Every byte that an entity-tag may hold, including those beyond ASCII (RFC 9110 section 8.8.3).
    let characters = prop::collection::vec(prop_oneof![Just(0x21), 0x23..=0x7e_u8, 0x80..=0xff_u8], 0..12);
    (any::<bool>(), characters).prop_map(|(weak, opaque)| {
        let tag = if weak { EntityTag::weak(opaque) } else { EntityTag::strong(opaque) };
        tag.expect("these bytes make a tag")
    })
}

fn known() -> impl Strategy<Value = Known> {
    let modified = (0..253_402_300_799_u64, any::<bool>()).prop_map(|(seconds, strong)| {
        let date = HttpDate::from_unix_seconds(seconds);
        Modified { date, strong, first: FirstDate::NONE }
    });
    let representation = prop_oneof![
        Just(Representation::Unknown),
        Just(Representation::Absent),
        (option::of(tags()), option::of(modified))
            .prop_map(|(tag, modified)| Representation::Present(Validators { tag, modified })),
    ];
    (any::<[u8; 16]>(), representation)
        .prop_map(|(variant, representation)| Known { variant: VariantName(variant), representation })
}

fn marks() -> impl Strategy<Value = Mark> {
    (any::<u64>(), any::<u64>(), moments(), durations(), any::<bool>()).prop_map(
        |(owner, nonce, deadline, late_write_window, leaves_lease)| Mark {
            owner,
            nonce,
            deadline,
            late_write_window,
            leaves_lease,
        },
    )
}

/// Returns leases of this mode, each with an earlier fence than the next.
fn leases(mode: LeaseMode) -> impl Strategy<Value = Lease> {
    let terms = prop_oneof![
        option::of(moments()).prop_map(Term::Held),
        moments().prop_map(Term::Breaking),
        moments().prop_map(Term::Released),
    ];
    let duration = prop_oneof![Just(LeaseDuration::Infinite), durations().prop_map(LeaseDuration::Fixed)];
    let holder = option::of("[a-z][ a-z]{0,10}[a-z]".prop_map(|text| HolderLabel::parse(text.as_bytes()).unwrap()));
    let guards = prop_oneof![
        Just(LeaseGuards::Write),
        Just(LeaseGuards::Read),
        Just(LeaseGuards::ReadAndWrite),
        Just(LeaseGuards::Delete)
    ];
    let names = (any::<[u8; 16]>(), option::of(any::<[u8; 16]>()), any::<[u8; 16]>());
    let note = option::of("\\PC{0,20}".prop_map(|text| LeaseNote::new(&text).unwrap()));
    let keeper = option::of(any::<u64>().prop_map(KeeperName::of));
    (names, terms, duration, moments(), (holder, note, keeper), guards, durations()).prop_map(
        move |((id, principal, target), term, duration, granted, (holder, note, keeper), guards, remember)| Lease {
            id: LeaseId::from_random(id),
            mode,
            fence: Stamp::At(Revision(1)),
            term,
            duration,
            granted,
            holder,
            note,
            keeper,
            principal,
            remember_time: remember,
            guards,
            target: TargetName(target),
        },
    )
}

fn lease_sets() -> impl Strategy<Value = LeaseSet> {
    let set = || prop::sample::subsequence(&Usage::ALL[..], 0..=3).prop_map(Usages::from_iter);
    let mode = (set(), set()).prop_map(|(access, share)| LeaseMode::Shared(ShareMode { access, share }));
    let shared = prop::collection::vec((mode.prop_flat_map(leases), any::<u64>()), 0..4);
    prop_oneof![
        Just(LeaseSet::NONE),
        leases(LeaseMode::Exclusive).prop_map(|lease| LeaseSet::from_iter([lease])),
        shared.prop_map(|all| {
            all.into_iter().map(|(lease, fence)| Lease { fence: Stamp::At(Revision(fence)), ..lease }).collect()
        }),
    ]
}

fn bare_tags() -> impl Strategy<Value = BareTags> {
    let names = || any::<u64>().prop_map(ShortName);
    prop_oneof![
        Just(BareTags::All),
        Just(BareTags::None),
        (names(), option::of(names()), prop::collection::vec(names(), 0..4))
            .prop_map(|(target, current, earlier)| BareTags::One(Listed { target, current, earlier })),
    ]
}

fn recent_tags() -> impl Strategy<Value = Box<RecentTags>> {
    let names = || any::<u64>().prop_map(ShortName);
    (names(), option::of(names()), prop::collection::vec(names(), 0..4))
        .prop_map(|(target, current, earlier)| Box::new(RecentTags { target, current, earlier }))
}

fn attempts() -> impl Strategy<Value = Box<FirstAttempt>> {
    let fields = ("[a-z][a-z-]{0,8}", prop::collection::vec(any::<u8>(), 0..12));
    let body = option::of(prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from));
    let answer = (200..600_u16, prop::collection::vec(fields, 0..3), body)
        .prop_map(|(status, fields, body)| KeptAnswer { status, fields, body });
    let sender = any::<[[u8; 16]; 2]>().prop_map(|[owner, credentials]| AttemptSender { owner, credentials });
    let sent = (any::<[u8; 32]>().prop_map(Fingerprint), sender)
        .prop_map(|(fingerprint, sender)| SentWrite { fingerprint, sender });
    (sent, moments(), option::of(answer))
        .prop_map(|(sent, until, answer)| Box::new(FirstAttempt { sent, until, answer }))
}

fn pending_deletes() -> impl Strategy<Value = Box<PendingDelete>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..20).prop_map(Into::into);
    let names = prop::sample::select(vec!["if-match", "if-unmodified-since"]).prop_map(Box::from);
    let conditions = prop::collection::vec((names, bytes()), 0..3).prop_map(Vec::into_boxed_slice);
    (bytes(), bytes(), any::<[u8; 16]>(), conditions).prop_map(|(host, target, name, conditions)| {
        Box::new(PendingDelete { host, target, name: TargetName(name), conditions })
    })
}

fn trees() -> impl Strategy<Value = Box<Trees>> {
    let keys = || "[a-z]:/[ -~]{0,12}".prop_map(Box::from);
    let root = (keys(), any::<bool>()).prop_map(|(key, is_read)| TreeRoot { key, is_read });
    let effect = prop::sample::select(vec![TreeEffect::Changed, TreeEffect::Forgotten]);
    let change = (keys(), stamps(), effect).prop_map(|(root, at, effect)| TreeChange { root, at, effect });
    let reach = prop::sample::select(vec![LeaseReach::Itself, LeaseReach::Membership, LeaseReach::Tree]);
    let lease = (keys(), any::<u64>(), reach);
    let lease = lease.prop_map(|(root, fence, reach)| TreeLease { root, fence: Revision(fence), reach });
    let lists = (prop::collection::vec(root, 0..3), prop::collection::vec(change, 0..3));
    let before = (stamps(), stamps());
    (lists, prop::collection::vec(lease, 0..3), before).prop_map(|((roots, changes), leases, before)| {
        let (changed_before, forgotten_before) = before;
        Box::new(Trees { roots, changes, changed_before, forgotten_before, leases })
    })
}

fn presences() -> impl Strategy<Value = Presence> {
    (any::<[u8; 16]>(), any::<bool>())
        .prop_map(|(target, is_present)| Presence { target: TargetName(target), is_present })
}

fn records() -> impl Strategy<Value = Record> {
    let doubt = (moments(), stamps()).prop_map(|(until, version)| Doubt { until, version });
    (
        (stamps(), stamps(), stamps()),
        (
            (option::of(known()), option::of(presences())),
            (bare_tags(), option::of(recent_tags())),
            any::<u64>().prop_map(FirstDate::of_number),
        ),
        option::of(marks()),
        prop::collection::vec(marks(), 0..3),
        option::of(doubt),
        (lease_sets(), option::of(moments()), option::of(pending_deletes())),
        prop::collection::vec((any::<u64>(), moments()).prop_map(|(owner, until)| WaitingSign { owner, until }), 0..3),
        (option::of(attempts()), any::<u64>().prop_map(Revision), option::of(trees())),
    )
        .prop_map(
            |(
                (version, touched, fence),
                ((known, presence), (bare_tags, recent_tags), first_date),
                claim,
                unclaimed,
                doubt,
                leases,
                waiting,
                (attempt, tree_change, trees),
            )| {
                let (leases, exclusive_awaited_until, pending_delete) = leases;
                Record {
                    version,
                    touched,
                    known,
                    presence,
                    bare_tags,
                    recent_tags,
                    first_date,
                    claim,
                    unclaimed,
                    doubt,
                    leases,
                    exclusive_awaited_until,
                    pending_delete,
                    fence,
                    waiting,
                    attempt,
                    tree_change,
                    trees,
                }
            },
        )
}

proptest! {
    #[test]
    fn a_record_comes_back_as_it_was(record in records(), base in moments()) {
        let text = encode(&record, base);
        prop_assert_eq!(decode(text.as_bytes(), base).unwrap(), record);
    }

    #[test]
    fn moments_keep_their_distance_from_the_base(record in records(), later in 0..BASE) {
        let text = encode(&record, StoreTime::from_milliseconds(BASE));
        let moved = decode(text.as_bytes(), StoreTime::from_milliseconds(BASE + later)).unwrap();
        let shift = |moment: StoreTime| StoreTime::from_milliseconds(moment.milliseconds() + later);
        prop_assert_eq!(moved.doubt.map(|doubt| doubt.until), record.doubt.map(|doubt| shift(doubt.until)));
        prop_assert_eq!(moved.claim.map(|mark| mark.deadline), record.claim.map(|mark| shift(mark.deadline)));
        let until = |attempt: &FirstAttempt| attempt.until;
        prop_assert_eq!(
            moved.attempt.as_deref().map(until),
            record.attempt.as_deref().map(until).map(shift)
        );
        prop_assert_eq!(
            moved.leases.iter().map(|lease| lease.granted).collect::<Vec<_>>(),
            record.leases.iter().map(|lease| shift(lease.granted)).collect::<Vec<_>>()
        );
        prop_assert_eq!(moved.exclusive_awaited_until, record.exclusive_awaited_until.map(shift));
    }

    #[test]
    fn no_text_makes_it_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&text, StoreTime::default());
    }
}

#[test]
fn a_record_is_readable() {
    let record = Record { version: Stamp::Itself, ..Record::absent(Revision(7)) };
    let text = encode(&record, StoreTime::default());
    assert_eq!(text, r#"{"format":1,"version":null,"touched":7,"fence":7}"#);
}

#[test]
fn leases_and_a_delete_that_waits_are_read_as_they_were_written() {
    let exclusive = r#"{"format":1,"version":1,"touched":1,"fence":9,"leases":[{"id":"00000000-0000-4000-8000-000000000000","shared":false,"fence":9,"term":"held","granted_ms":5,"remember_time_ms":600000,"guards":"write","target":"00000000000000000000000000000000"}]}"#;
    let record = decode(exclusive.as_bytes(), StoreTime::default()).expect("it is a record");
    assert_eq!(encode(&record, StoreTime::default()), exclusive);
    let lease = record.leases.iter().next().expect("it has a lease").clone();
    assert_eq!((lease.mode, lease.fence), (LeaseMode::Exclusive, Stamp::At(Revision(9))));
    let earlier = Lease { fence: Stamp::At(Revision(8)), ..lease.clone() };
    let shared = Lease { mode: LeaseMode::SHARED, ..lease };
    let written =
        encode(&Record { leases: LeaseSet::from_iter([shared.clone()]), ..record.clone() }, StoreTime::default());
    assert!(written.contains(r#""shared":true,"fence":9"#), "a lease for every use is as short as before: {written}");
    let mode = ShareMode { access: Usage::Read.into(), share: Usages::NONE };
    let opened = Lease { mode: LeaseMode::Shared(mode), ..shared.clone() };
    let written = encode(&Record { leases: LeaseSet::from_iter([opened]), ..record.clone() }, StoreTime::default());
    assert!(written.contains(r#""shared":true,"access":["read"],"share":[],"fence":9"#), "{written}");
    let awaited = Some(StoreTime::from_milliseconds(5));
    for written in [
        Record { leases: LeaseSet::from_iter([earlier]), ..record.clone() },
        Record { leases: LeaseSet::from_iter([shared]), ..record.clone() },
        Record { exclusive_awaited_until: awaited, ..record.clone() },
    ] {
        let text = encode(&written, StoreTime::default());
        assert_eq!(decode(text.as_bytes(), StoreTime::default()).as_ref(), Ok(&written));
    }
    let delete = PendingDelete {
        host: (*b"a").into(),
        target: (*b"/a?b").into(),
        name: TargetName([1; 16]),
        conditions: [].into(),
    };
    let pending = encode(&Record { pending_delete: Some(Box::new(delete)), ..record }, StoreTime::default());
    let name = "01".repeat(16);
    assert!(
        pending.ends_with(&format!(r#""pending_delete":{{"host":"a","target":"/a?b","name":"{name}"}}}}"#)),
        "{pending}"
    );
}

#[test]
fn a_moment_before_the_first_is_the_first() {
    let record = Record {
        doubt: Some(Doubt { until: StoreTime::from_milliseconds(5), version: Stamp::Itself }),
        ..Record::absent(Revision(0))
    };
    let text = encode(&record, StoreTime::from_milliseconds(100));
    let decoded = decode(text.as_bytes(), StoreTime::from_milliseconds(10)).unwrap();
    assert_eq!(decoded.doubt.unwrap().until, StoreTime::default());
}

#[test]
fn an_error_quotes_nothing() {
    let text = r#"{"format":1,"version":"0f8fad5b","touched":1,"fence":1}"#;
    let error = decode(text.as_bytes(), StoreTime::default()).unwrap_err().to_string();
    assert!(error.ends_with("it is JSON, but not a record, at line 1, column 32"), "{error}");
}

#[test]
fn what_this_version_does_not_know_is_refused() {
    let refused = |text: &str| decode(text.as_bytes(), StoreTime::default()).unwrap_err().to_string();
    let later = refused(r#"{"format":2,"version":1,"touched":1,"fence":1,"more":1}"#);
    assert_eq!(later, "a record in the store cannot be read: its format is 2, but this version supports only 1");
    assert!(refused(r#"{"format":1,"version":1,"touched":1,"fence":1,"more":1}"#).contains("not a record"));
    assert!(refused("").contains("cut off"));
}
