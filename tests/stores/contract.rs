//! The contract of `ifmatch::store`, as tests that every store passes.
//!
//! [`contract`] makes a test of each for one kind of store; what that kind needs is its [`Fixture`].

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use ifmatch::{
    core::{
        lease::{Lease, LeaseDuration, LeaseId, LeaseMode, LeaseSet, TargetName, Term},
        policy::LeaseGuards,
        records::{
            record::{Doubt, Mark, Record, Revision, Snapshot, Stamp},
            trees::TreeRoot,
        },
        resource::ResourceKey,
        time::StoreTime,
    },
    store::{Store, StoreError, Swapped},
};
use tokio::task::JoinSet;

/// A moment that is short for a test and long for a busy machine.
pub const MOMENT: Duration = Duration::from_millis(400);

const HOUR: Duration = Duration::from_secs(3_600);

/// A store to be tested, alone on its server.
pub trait Fixture: Sized + Send + Sync + 'static {
    /// A new store with room for this many records.
    async fn start(capacity: usize) -> Self;

    /// The store as one process has it.
    fn store(&self) -> Arc<dyn Store>;

    /// The same store as another process has it; the first one again if only one process can.
    async fn other(&self) -> Arc<dyn Store>;

    /// Lets the store's time pass.
    async fn pass(&self, time: Duration);

    /// Lets idle records be forgotten, all of them.
    async fn collect(&self);
}

/// Makes the tests of the contract for one [`Fixture`].
#[macro_export]
macro_rules! contract {
    ($fixture:ty) => {
        $crate::contract!($fixture:
            a_swap_succeeds_once_against_one_revision
            revisions_grow_over_all_resources
            a_record_may_name_its_own_revision
            forgetting_gives_absence_a_later_revision
            what_is_not_idle_is_not_forgotten
            a_lease_is_forgotten_after_it_was_remembered
            moments_come_with_time_and_not_before
            a_wait_ends_with_the_change_that_another_makes
            a_wait_for_what_has_changed_already_is_over
            of_many_swaps_at_once_exactly_one_succeeds
            a_scan_finds_every_record_once
            pinned_records_below_a_collection_are_found
            raised_floors_give_every_absence_a_later_revision
            a_full_store_says_so
        );
    };
    ($fixture:ty: $($name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $crate::contract::$name::<$fixture>().await;
            }
        )*
    };
}

pub fn key(name: &str) -> ResourceKey {
    ResourceKey::from_text(name)
}

pub fn idle() -> Record {
    Record { version: Stamp::Itself, touched: Stamp::Itself, ..Record::absent(Revision(0)) }
}

/// A record with everything that pins one.
pub fn busy(now: StoreTime) -> Record {
    let deadline = now.plus(HOUR);
    let mark = |nonce| Mark { owner: u64::MAX - 1, nonce, deadline, late_write_window: HOUR, leaves_lease: true };
    let doubt = Doubt { until: deadline, version: Stamp::Itself };
    Record { claim: Some(mark(1)), unclaimed: vec![mark(2), mark(3)], doubt: Some(doubt), ..leased(now, HOUR) }
}

pub fn leased(now: StoreTime, duration: Duration) -> Record {
    let lease = Lease {
        id: LeaseId::from_random([7; 16]),
        mode: LeaseMode::Exclusive,
        fence: Stamp::Itself,
        term: Term::Held(Some(now.plus(duration))),
        duration: LeaseDuration::Fixed(duration),
        granted: now,
        holder: None,
        note: None,
        keeper: None,
        principal: Some([9; 16]),
        remember_time: MOMENT,
        guards: LeaseGuards::Write,
        target: TargetName::default(),
    };
    Record { leases: LeaseSet::from_iter([lease]), fence: Stamp::Itself, ..idle() }
}

/// Swaps a record in for any other.
pub async fn put(store: &dyn Store, name: &str, record: Record) -> Snapshot {
    let current = store.read(&key(name)).await.expect("the store can be read");
    match store.swap(&key(name), current.revision, record).await.expect("the store can be written") {
        Swapped::Done(snapshot) => snapshot,
        Swapped::Conflict(_) => panic!("nobody else writes {name}"),
    }
}

/// Swaps records in all over a store whose swaps forget what is old near them.
pub async fn fill(store: &dyn Store) {
    for number in 0..1_000 {
        let key = key(&format!("filler {number}"));
        let revision = store.read(&key).await.expect("the store can be read").revision;
        let _full = store.swap(&key, revision, idle()).await;
    }
}

pub async fn read(store: &dyn Store, name: &str) -> Snapshot {
    store.read(&key(name)).await.expect("the store can be read")
}

/// The same but for the moment of the reading, and what follows from it.
fn assert_same(one: &Snapshot, other: &Snapshot) {
    assert_eq!((one.revision, one.version(), one.fence()), (other.revision, other.version(), other.fence()));
    assert_eq!(one.record.claim.is_some(), other.record.claim.is_some());
}

pub async fn a_swap_succeeds_once_against_one_revision<F: Fixture>() {
    let fixture = F::start(10).await;
    let (store, other) = (fixture.store(), fixture.other().await);
    let absent = read(&*store, "a").await;
    let first = store.swap(&key("a"), absent.revision, idle()).await.unwrap();
    let Swapped::Done(now) = first else { panic!("the first swap is done") };
    assert!(now.revision > absent.revision);
    let busy = busy(now.now);
    let Swapped::Conflict(current) = other.swap(&key("a"), absent.revision, busy).await.unwrap() else {
        panic!("the second swap is not");
    };
    assert_same(&current, &now);
    assert_same(&read(&*store, "a").await, &now);
    assert_same(&read(&*other, "a").await, &now);
    assert_eq!(store.incarnation(), other.incarnation());
}

pub async fn revisions_grow_over_all_resources<F: Fixture>() {
    let fixture = F::start(10).await;
    let (store, other) = (fixture.store(), fixture.other().await);
    let mut last = Revision(0);
    for (store, name) in [(&store, "a"), (&other, "b"), (&other, "a"), (&store, "c"), (&store, "b")] {
        let snapshot = put(&**store, name, idle()).await;
        assert!(snapshot.revision > last, "{:?} after {last:?}", snapshot.revision);
        last = snapshot.revision;
    }
}

pub async fn a_record_may_name_its_own_revision<F: Fixture>() {
    let fixture = F::start(10).await;
    let (store, other) = (fixture.store(), fixture.other().await);
    let first = put(&*store, "a", Record { fence: Stamp::Itself, ..idle() }).await;
    assert_eq!((first.version(), first.fence(), first.touched()), (first.revision, first.revision, first.revision));
    let earlier = first.draft();
    let second = put(&*store, "a", Record { touched: Stamp::Itself, ..earlier }).await;
    let seen = read(&*other, "a").await;
    assert_eq!((seen.version(), seen.fence(), seen.touched()), (first.revision, first.revision, second.revision));
}

/// Rule 8: absence has a revision, no tag comes back, and a swap that was decided on "absent" before fails.
pub async fn forgetting_gives_absence_a_later_revision<F: Fixture>() {
    let fixture = F::start(10).await;
    let (store, other) = (fixture.store(), fixture.other().await);
    let before = read(&*store, "a").await;
    let held = put(&*store, "a", Record { fence: Stamp::Itself, ..idle() }).await;
    fixture.collect().await;
    let after = read(&*other, "a").await;
    assert_eq!(after.draft(), Record::absent(after.revision), "it is forgotten");
    assert!(after.revision >= held.revision && after.version() >= held.version() && after.fence() >= held.fence());
    let late = store.swap(&key("a"), before.revision, idle()).await.unwrap();
    assert!(matches!(late, Swapped::Conflict(current) if current.revision == after.revision));
    let late = store.swap(&key("a"), held.revision, idle()).await.unwrap();
    // Absence may have the very revision of what was forgotten; then it is a swap against absence.
    assert!(held.revision == after.revision || matches!(late, Swapped::Conflict(_)));
    let again = put(&*store, "a", idle()).await;
    assert!(again.revision > after.revision);
}

/// Also of what was never there, and of what was forgotten before or is forgotten afterwards; what is there stays as it is.
pub async fn raised_floors_give_every_absence_a_later_revision<F: Fixture>() {
    let fixture = F::start(10).await;
    let (store, other) = (fixture.store(), fixture.other().await);
    put(&*store, "gone", idle()).await;
    fixture.collect().await;
    let now = store.now().await.unwrap();
    let kept = put(&*store, "kept", busy(now)).await;
    let going = put(&*store, "going", idle()).await;
    let (never, gone) = (read(&*store, "never").await, read(&*store, "gone").await);
    store.raise_floors().await.unwrap();
    assert_same(&read(&*other, "kept").await, &kept);
    fixture.collect().await;
    for (name, before) in [("never", &never), ("gone", &gone), ("going", &going)] {
        let raised = read(&*other, name).await;
        assert!(raised.revision > before.revision && raised.version() > before.version(), "{name}: {raised:?}");
        let late = store.swap(&key(name), before.revision, idle()).await.unwrap();
        assert!(matches!(late, Swapped::Conflict(current) if current.revision == raised.revision), "{name}");
        assert!(put(&*store, name, idle()).await.revision > raised.revision, "{name}");
    }
}

/// A record with two shared leases. The second was granted just now, the first before.
pub fn shared(now: StoreTime) -> Record {
    let record = leased(now, HOUR);
    let grants = [([8; 16], Stamp::At(Revision(1))), ([9; 16], Stamp::Itself)];
    let leases = record.leases.iter().flat_map(|lease| {
        let shared =
            |(id, fence)| Lease { id: LeaseId::from_random(id), mode: LeaseMode::SHARED, fence, ..lease.clone() };
        grants.map(shared)
    });
    Record { leases: leases.collect(), ..record }
}

pub async fn what_is_not_idle_is_not_forgotten<F: Fixture>() {
    let fixture = F::start(10).await;
    let store = fixture.store();
    let now = store.now().await.unwrap();
    let full = busy(now);
    let parts = [
        ("claim", Record { claim: full.claim, ..idle() }),
        ("unclaimed", Record { unclaimed: full.unclaimed.clone(), ..idle() }),
        ("doubt", Record { doubt: full.doubt, ..idle() }),
        ("lease", Record { leases: full.leases.clone(), ..idle() }),
        ("shared leases", shared(now)),
    ];
    for (name, record) in parts.clone() {
        // It has been idle before.
        put(&*store, name, idle()).await;
        put(&*store, name, record).await;
    }
    fixture.collect().await;
    for (name, record) in parts {
        let kept = read(&*store, name).await.record;
        assert_eq!(
            (kept.claim.is_some(), kept.unclaimed.len(), kept.doubt.is_some(), kept.leases.iter().count()),
            (record.claim.is_some(), record.unclaimed.len(), record.doubt.is_some(), record.leases.iter().count()),
            "{name}"
        );
    }
}

pub async fn a_lease_is_forgotten_after_it_was_remembered<F: Fixture>() {
    let fixture = F::start(10).await;
    let (store, other) = (fixture.store(), fixture.other().await);
    let now = store.now().await.unwrap();
    let granted = put(&*store, "a", leased(now, MOMENT)).await;
    assert_eq!(granted.lease().map(|lease| lease.id), Some(LeaseId::from_random([7; 16])));
    assert!(read(&*other, "a").await.lease_state().is_held());
    fixture.pass(MOMENT * 2 + MOMENT / 2).await;
    assert!(read(&*store, "a").await.lease().is_none());
    fixture.collect().await;
    let forgotten = read(&*store, "a").await;
    assert!(forgotten.record.leases.is_empty());
    assert!(forgotten.fence() >= granted.fence(), "no fence comes back");
}

pub async fn moments_come_with_time_and_not_before<F: Fixture>() {
    let fixture = F::start(10).await;
    let (store, other) = (fixture.store(), fixture.other().await);
    let now = store.now().await.unwrap();
    let until = now.plus(MOMENT);
    let doubted = put(&*store, "a", Record { doubt: Some(Doubt { until, version: Stamp::Itself }), ..idle() }).await;
    assert!(!doubted.has_no_pending_writes());
    assert!(!read(&*other, "a").await.has_no_pending_writes());
    fixture.pass(MOMENT + MOMENT / 2).await;
    let later = read(&*store, "a").await;
    assert!(later.has_no_pending_writes() && later.now > doubted.now);
    assert_eq!(later.version(), doubted.revision);
    // Each process counts from when it first saw the record, at the latest.
    assert!(read(&*other, "a").await.has_no_pending_writes());
}

pub async fn a_wait_ends_with_the_change_that_another_makes<F: Fixture>() {
    let fixture = F::start(10).await;
    let (store, other) = (fixture.store(), fixture.other().await);
    for record in [idle(), busy(store.now().await.unwrap())] {
        let seen = read(&*store, "a").await.revision;
        let waiting = tokio::spawn({
            let store = Arc::clone(&store);
            async move {
                // It may end early: then it is waited again.
                while read(&*store, "a").await.revision == seen {
                    store.changed(&key("a"), seen).await;
                }
            }
        });
        put(&*other, "a", record).await;
        tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("the wait ends").expect("no panic");
    }
}

pub async fn a_wait_for_what_has_changed_already_is_over<F: Fixture>() {
    let fixture = F::start(10).await;
    let store = fixture.store();
    let seen = read(&*store, "a").await.revision;
    put(&*store, "a", idle()).await;
    let key = key("a");
    let wait = store.changed(&key, seen);
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("the wait is over");
}

pub async fn of_many_swaps_at_once_exactly_one_succeeds<F: Fixture>() {
    let fixture = F::start(10).await;
    let stores = [fixture.store(), fixture.other().await];
    for round in 0..20 {
        let revision = read(&*stores[0], "a").await.revision;
        let mut swaps = JoinSet::new();
        for number in 0..8 {
            let store = Arc::clone(&stores[number % 2]);
            swaps.spawn(async move { store.swap(&key("a"), revision, idle()).await.unwrap() });
        }
        let results = swaps.join_all().await;
        let done: Vec<_> = results.iter().filter(|swapped| matches!(swapped, Swapped::Done(_))).collect();
        assert_eq!(done.len(), 1, "round {round}");
        let current = read(&*stores[1], "a").await.revision;
        for swapped in &results {
            let (Swapped::Done(snapshot) | Swapped::Conflict(snapshot)) = swapped;
            assert_eq!(snapshot.revision, current, "all are told of the one that won");
        }
    }
}

pub async fn a_scan_finds_every_record_once<F: Fixture>() {
    let fixture = F::start(100).await;
    let store = fixture.store();
    let names: BTreeSet<String> = (0..25).map(|number| format!("upstream:/scan/{number}")).collect();
    let now = store.now().await.unwrap();
    for name in &names {
        put(&*store, name, busy(now)).await;
    }
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.scan(after.as_ref(), 10).await.unwrap();
        let is_last = page.len() < 10;
        after = page.last().map(|(key, _)| key.clone());
        found.extend(page);
        if is_last {
            break;
        }
    }
    assert_eq!(found.len(), names.len());
    assert_eq!(found.iter().map(|(key, _)| key.as_str().to_owned()).collect::<BTreeSet<_>>(), names);
    for (key, snapshot) in &found {
        assert_same(snapshot, &store.read(key).await.unwrap());
    }
}

/// The neighbours of a collection in the order of keys are not below it, and a page may end between any two of its members.
pub async fn pinned_records_below_a_collection_are_found<F: Fixture>() {
    let fixture = F::start(10_000).await;
    let store = fixture.store();
    let now = store.now().await.unwrap();
    let long = format!("u:/long/{}", "a".repeat(400));
    let below = ["u:/a/1", "u:/a/1/2", "u:/a/~", "t:/people(1)", &format!("{long}/b"), &format!("{long}/c")];
    let beside = ["u:/a", "u:/a.b", "u:/a0", "u:/ab", "u:/b/a", "v:/a/1", "t:/peoples(1)", &format!("{long}d/b")];
    for name in below.iter().chain(&beside) {
        put(&*store, name, busy(now)).await;
    }
    put(&*store, "u:/a/idle", idle()).await;
    let roots = ["u:/a", "t:/people(", &long].map(|key| TreeRoot { key: (*key).into(), is_read: false });
    let found = async |limit| {
        let found = store.pinned_below(&roots, limit).await.unwrap();
        found.into_iter().map(|(key, _)| key.as_str().to_owned()).collect::<BTreeSet<_>>()
    };
    let expected: BTreeSet<String> = below.iter().map(ToString::to_string).collect();
    assert_eq!(found(100).await, expected);
    assert_eq!(found(2).await.len(), 2);
    let mut many = expected;
    for number in 0..1_100 {
        let name = format!("u:/a/many/{number}");
        put(&*store, &name, if number % 100 == 99 { busy(now) } else { idle() }).await;
        if number % 100 == 99 {
            many.insert(name);
        }
    }
    assert_eq!(found(100).await, many, "more than a page");
}

pub async fn a_full_store_says_so<F: Fixture>() {
    let fixture = F::start(2).await;
    let store = fixture.store();
    let now = store.now().await.unwrap();
    put(&*store, "a", busy(now)).await;
    put(&*store, "b", busy(now)).await;
    let absent = read(&*store, "c").await.revision;
    assert_eq!(store.swap(&key("c"), absent, busy(now)).await, Err(StoreError::Full));
    put(&*store, "a", idle()).await;
    fixture.collect().await;
    put(&*store, "c", busy(now)).await;
}
