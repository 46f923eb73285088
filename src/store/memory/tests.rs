//! The memory store: what it forgets, and when. The contract of all stores is tested in `tests/stores`.

use super::*;
use crate::core::{
    lease::{Lease, LeaseDuration, LeaseId, LeaseMode, LeaseSet, TargetName, Term},
    policy::LeaseGuards,
    records::{
        record::{Doubt, Mark, Stamp},
        steps::{Outcome, Settlement, claim, settle},
    },
};

/// A clock that stands still until a test advances it.
#[derive(Default)]
struct StillClock(AtomicU64);

impl Clock for StillClock {
    fn now(&self) -> StoreTime {
        StoreTime::from_milliseconds(self.0.load(Ordering::Relaxed))
    }
}

struct Fixture {
    clock: Arc<StillClock>,
    store: MemoryStore,
}

impl Fixture {
    fn new(capacity: usize) -> Self {
        Self::with(Room { records: capacity, bytes: 1 << 30 })
    }

    fn with(room: Room) -> Self {
        let clock = Arc::new(StillClock::default());
        let store = MemoryStore::new(clock.clone(), Incarnation(1), room, Duration::from_secs(10));
        Self { clock, store }
    }

    fn pass(&self, after: Duration) {
        self.clock.0.fetch_add(u64::try_from(after.as_millis()).unwrap(), Ordering::Relaxed);
    }

    async fn read(&self, name: &str) -> Snapshot {
        self.store.read(&key(name)).await.unwrap()
    }

    /// Replaces the current record with `record`.
    async fn write(&self, name: &str, record: Record) -> Result<Swapped, StoreError> {
        let revision = self.read(name).await.revision;
        self.store.swap(&key(name), revision, record).await
    }
}

fn key(name: &str) -> ResourceKey {
    ResourceKey::from_text(name)
}

fn idle() -> Record {
    Record { version: Stamp::Itself, touched: Stamp::Itself, ..Record::absent(Revision(0)) }
}

fn claimed() -> Record {
    let deadline = StoreTime::from_milliseconds(u64::MAX);
    let mark = Mark { owner: 1, nonce: 1, deadline, late_write_window: Duration::ZERO, leaves_lease: false };
    Record { claim: Some(mark), ..idle() }
}

fn in_doubt(until: u64) -> Record {
    let doubt = Doubt { until: StoreTime::from_milliseconds(until), version: Stamp::Itself };
    Record { doubt: Some(doubt), ..idle() }
}

fn mark() -> Mark {
    let deadline = StoreTime::from_milliseconds(u64::MAX);
    Mark { owner: 1, nonce: 1, deadline, late_write_window: Duration::ZERO, leaves_lease: false }
}

/// Makes a write that is marked and has this outcome. Returns the state before its mark.
async fn write_ends(fixture: &Fixture, name: &str, outcome: Outcome) -> Snapshot {
    let before = fixture.read(name).await;
    let Swapped::Done(marked) = fixture.write(name, claim(&before, mark()).unwrap()).await.unwrap() else {
        panic!("nobody else writes");
    };
    let (mark, marked_at) = (mark(), marked.revision);
    let settlement = Settlement { mark, marked_at, outcome, leaves: None, learned: None, shown: None, end: None };
    let settled = settle(&marked, settlement).unwrap();
    assert!(matches!(fixture.write(name, settled).await, Ok(Swapped::Done(_))));
    before
}

/// Rule 13: 4,000 POSTs that the backend refused once took 258 MB for a day.
#[tokio::test]
async fn a_write_that_was_not_applied_leaves_no_record_where_there_was_none() {
    for outcome in [Outcome::NotApplied, Outcome::NotAppliedAsKnown] {
        let fixture = Fixture::new(10);
        let before = write_ends(&fixture, "a", outcome).await;
        let after = fixture.read("a").await;
        assert_eq!(fixture.store.account.taken(), RecordPlaces::NONE, "{outcome:?}");
        assert_eq!(after.version(), before.version(), "it did nothing: tags stay valid");
        assert_eq!(after.record.bare_tags, before.record.bare_tags);
        assert!(after.touched() > before.touched(), "a read that began before it teaches nothing");
        let late = fixture.store.swap(&key("a"), before.revision, claimed()).await.unwrap();
        assert_eq!(late, Swapped::Conflict(after), "absence has a revision");
    }
}

#[tokio::test]
async fn a_write_that_was_applied_or_may_have_been_leaves_a_record() {
    for outcome in [Outcome::Applied, Outcome::Unclear, Outcome::Doubt] {
        let fixture = Fixture::new(10);
        let before = write_ends(&fixture, "a", outcome).await;
        assert_eq!(fixture.store.account.taken().records, 1, "{outcome:?}");
        assert!(fixture.read("a").await.version() >= before.version());
    }
    let fixture = Fixture::new(10);
    write_ends(&fixture, "a", Outcome::Applied).await;
    let applied = write_ends(&fixture, "a", Outcome::NotApplied).await;
    assert_eq!(fixture.read("a").await.version(), applied.version(), "one that was there stays");
    assert_eq!(fixture.store.account.taken().records, 1);
}

/// A refused write raises only the revision of a floor. When a record is forgotten, the version rises too.
#[tokio::test]
async fn a_forgotten_record_raises_the_version_of_a_floor_that_had_only_a_revision() {
    let fixture = Fixture::new(1);
    write_ends(&fixture, "a", Outcome::NotApplied).await;
    let refused = fixture.read("a").await;
    assert_eq!((refused.version(), refused.revision.0 > 0), (Revision(0), true));
    write_ends(&fixture, "a", Outcome::Applied).await;
    let applied = fixture.read("a").await;
    fixture.write("b", idle()).await.unwrap();
    let forgotten = fixture.read("a").await;
    assert_eq!((forgotten.version(), forgotten.revision), (applied.revision, applied.revision));
    fixture.store.raise_floors().await.unwrap();
    assert!(fixture.read("a").await.version() > forgotten.version());
}

/// Rules 2 and 8: the write of a dead process may have been applied, so the version from before it names nothing. Late
/// swaps of that process fail.
#[tokio::test]
async fn a_record_with_a_dead_mark_is_forgotten_with_another_version() {
    let fixture = Fixture::new(1);
    write_ends(&fixture, "a", Outcome::Applied).await;
    let before = fixture.read("a").await;
    let dead =
        Mark { deadline: StoreTime::from_milliseconds(70), late_write_window: Duration::from_millis(30), ..mark() };
    fixture.write("a", claim(&before, dead).unwrap()).await.unwrap();
    let marked = fixture.read("a").await;
    fixture.pass(Duration::from_millis(99));
    assert!(matches!(fixture.write("b", idle()).await, Err(StoreError::Full)), "the write may still arrive");
    fixture.pass(Duration::from_millis(1));
    fixture.write("b", idle()).await.unwrap();
    let forgotten = fixture.read("a").await;
    assert!(forgotten.version() > before.version());
    assert_eq!((forgotten.record.marks().count(), forgotten.revision), (0, marked.revision));
}

fn long(name: &str) -> String {
    name.repeat(10_000)
}

/// Rule 13: 5,000 PUTs with paths of 60 KB once took 317 MB.
#[tokio::test]
async fn records_are_weighed_and_idle_ones_make_room() {
    let fixture = Fixture::with(Room { records: 1_000, bytes: 35_000 });
    for name in ["a", "b", "c", "d", "e"] {
        assert!(matches!(fixture.write(&long(name), idle()).await, Ok(Swapped::Done(_))));
        assert!(fixture.store.account.taken().bytes <= 35_000);
    }
    assert_eq!(fixture.store.account.taken().records, 3);
    assert_eq!(fixture.write(&"f".repeat(40_000), idle()).await, Err(StoreError::Full), "it is too large by itself");
}

#[tokio::test]
async fn busy_records_are_pinned_whatever_they_weigh_and_their_writes_can_end() {
    let fixture = Fixture::with(Room { records: 1_000, bytes: 25_000 });
    fixture.write(&long("a"), claimed()).await.unwrap();
    fixture.write(&long("b"), claimed()).await.unwrap();
    assert_eq!(fixture.write(&long("c"), claimed()).await, Err(StoreError::Full));
    let full = RecordPlaces { records: 0, bytes: 25_000 }.less(fixture.store.account.taken());
    assert!(fixture.store.account.take(full), "not a byte is left");
    let variant = crate::core::records::record::VariantName([0; 16]);
    let tag = crate::core::tags::entity_tag::EntityTag::strong("t".repeat(1_000)).ok();
    let validators = crate::core::tags::validators::Validators { tag, modified: None };
    let representation = crate::core::tags::validators::Representation::Present(validators);
    let known = Record { known: Some(crate::core::records::record::Known { variant, representation }), ..idle() };
    assert!(matches!(fixture.write(&long("a"), known).await, Ok(Swapped::Done(_))), "the end of a write is recorded");
    assert!(fixture.store.account.taken().bytes > 25_000);
    assert!(matches!(fixture.write("c", claimed()).await, Ok(Swapped::Done(_))), "the idle one made room");
    assert!(fixture.store.account.taken().bytes <= 25_000);
}

/// The account matches the records that are present, after any additions and removals.
#[tokio::test]
async fn the_account_is_right_after_any_changes() {
    let fixture = Fixture::with(Room { records: 20, bytes: 20_000 });
    let mut random = 1_u64;
    for _ in 0..5_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let name = "n".repeat(usize::try_from((random >> 33) % 60).unwrap() * 20 + 1);
        let (in_doubt, absent) =
            (in_doubt(fixture.store.clock.now().milliseconds() + 5), fixture.read(&name).await.draft());
        let next = match (random >> 50) % 4 {
            0 => idle(),
            1 => in_doubt,
            2 => Record { unclaimed: vec![mark(); usize::try_from((random >> 20) % 20).unwrap()], ..idle() },
            _ => Record { claim: None, unclaimed: Vec::new(), ..absent },
        };
        let _full = fixture.write(&name, next).await;
        fixture.pass(Duration::from_millis(1));
    }
    let all = fixture.store.scan(None, 1_000).await.unwrap();
    let weighed = all.iter().map(|(key, snapshot)| RecordPlaces::one(weight(key, &snapshot.record)));
    assert_eq!(fixture.store.account.taken(), weighed.fold(RecordPlaces::NONE, RecordPlaces::and));
}

/// Rule 8: absence has a revision.
#[tokio::test]
async fn forgetting_raises_the_floor_so_that_a_late_swap_against_absent_fails() {
    let fixture = Fixture::new(1);
    let before = fixture.read("a").await;
    fixture.write("a", idle()).await.unwrap();
    let held = fixture.read("a").await;
    fixture.write("b", idle()).await.unwrap();
    let after = fixture.read("a").await;
    assert_eq!(*after.record, Record::absent(held.revision), "the record of a is forgotten");
    assert_eq!(after.revision, held.revision);
    assert!(after.version() >= held.version(), "no version comes back");
    let late = fixture.store.swap(&key("a"), before.revision, claimed()).await.unwrap();
    assert_eq!(late, Swapped::Conflict(after));
}

#[tokio::test]
async fn an_idle_record_is_forgotten_after_its_time() {
    let fixture = Fixture::new(100);
    fixture.write("a", idle()).await.unwrap();
    let held = fixture.read("a").await;
    fixture.pass(Duration::from_secs(10));
    let same_shard = (0..10_000)
        .map(|number| number.to_string())
        .find(|name| {
            key(name).bucket() % SHARDS == key("a").bucket() % SHARDS && key(name).bucket() != key("a").bucket()
        })
        .unwrap();
    fixture.write(&same_shard, idle()).await.unwrap();
    assert_eq!(*fixture.read("a").await.record, Record::absent(held.revision));
    assert_eq!(fixture.store.account.taken().records, 1);
}

#[tokio::test]
async fn busy_records_are_pinned_and_a_full_store_says_so() {
    let fixture = Fixture::new(2);
    fixture.write("a", claimed()).await.unwrap();
    fixture.write("b", in_doubt(500)).await.unwrap();
    let held = fixture.read("a").await;
    assert_eq!(fixture.write("c", claimed()).await, Err(StoreError::Full));
    assert_eq!(fixture.read("a").await, held);
    fixture.write("a", idle()).await.unwrap();
    assert!(matches!(fixture.write("c", claimed()).await, Ok(Swapped::Done(_))), "an idle record makes room");
    assert_eq!(fixture.write("a", claimed()).await, Err(StoreError::Full));
}

#[tokio::test]
async fn a_doubt_that_is_over_pins_nothing() {
    let fixture = Fixture::new(1);
    fixture.write("a", in_doubt(500)).await.unwrap();
    assert_eq!(fixture.write("b", claimed()).await, Err(StoreError::Full));
    fixture.pass(Duration::from_millis(500));
    let doubted = fixture.read("a").await;
    assert!(matches!(fixture.write("b", claimed()).await, Ok(Swapped::Done(_))));
    assert_eq!(fixture.read("a").await.version(), doubted.version(), "the floor is the version that the doubt brought");
}

#[tokio::test]
async fn the_least_recently_used_record_goes_first() {
    let fixture = Fixture::new(2);
    let mut in_one_shard =
        (0..).map(|number: u32| number.to_string()).filter(|name| key(name).bucket().is_multiple_of(SHARDS)).take(3);
    let (a, b, c) = (in_one_shard.next().unwrap(), in_one_shard.next().unwrap(), in_one_shard.next().unwrap());
    fixture.write(&a, idle()).await.unwrap();
    fixture.write(&b, idle()).await.unwrap();
    let used = fixture.read(&a).await;
    fixture.write(&c, idle()).await.unwrap();
    assert_eq!(fixture.read(&a).await, used);
    assert_eq!(fixture.read(&b).await.record.version, Stamp::At(fixture.read(&b).await.revision), "b is forgotten");
    assert_eq!(fixture.store.account.taken().records, 2);
}

fn leased(until: Option<u64>) -> Record {
    let lease = Lease {
        id: LeaseId::from_random([1; 16]),
        mode: LeaseMode::Exclusive,
        fence: Stamp::Itself,
        term: Term::Held(until.map(StoreTime::from_milliseconds)),
        duration: LeaseDuration::Infinite,
        granted: StoreTime::default(),
        holder: None,
        note: None,
        keeper: None,
        principal: None,
        remember_time: Duration::from_millis(100),
        guards: LeaseGuards::Write,
        target: TargetName::default(),
    };
    Record { leases: LeaseSet::from_iter([lease]), fence: Stamp::Itself, ..idle() }
}

#[tokio::test]
async fn a_lease_pins_its_record_until_it_is_forgotten() {
    let fixture = Fixture::new(1);
    fixture.write("a", leased(Some(500))).await.unwrap();
    let held = fixture.read("a").await;
    fixture.pass(Duration::from_millis(599));
    assert_eq!(fixture.write("b", claimed()).await, Err(StoreError::Full), "it has ended but is still remembered");
    fixture.pass(Duration::from_millis(1));
    assert!(matches!(fixture.write("b", claimed()).await, Ok(Swapped::Done(_))));
    let forgotten = fixture.read("a").await;
    assert!(forgotten.record.leases.is_empty());
    assert!(forgotten.fence() >= held.fence(), "no fence comes back");
}

#[tokio::test]
async fn a_renewed_lease_is_not_let_go_at_its_first_end() {
    let fixture = Fixture::new(1);
    fixture.write("a", leased(Some(500))).await.unwrap();
    fixture.write("a", leased(Some(1_000))).await.unwrap();
    fixture.pass(Duration::from_millis(600));
    assert_eq!(fixture.write("b", claimed()).await, Err(StoreError::Full));
    fixture.write("a", leased(None)).await.unwrap();
    fixture.pass(Duration::from_secs(1_000_000));
    assert_eq!(fixture.write("b", claimed()).await, Err(StoreError::Full), "an infinite lease stays");
}
