//! The memory store: what it forgets, and when. The contract of all stores is tested in `tests/stores`.

use super::*;
use crate::core::{
    lease::{Lease, LeaseDuration, LeaseId, TargetName, Term},
    policy::LeaseGuards,
    record::{Doubt, Mark, Stamp},
};

/// A clock that stands still until it is told otherwise.
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
        let clock = Arc::new(StillClock::default());
        let store = MemoryStore::new(clock.clone(), Incarnation(1), capacity, Duration::from_secs(10));
        Self { clock, store }
    }

    fn pass(&self, after: Duration) {
        self.clock.0.fetch_add(u64::try_from(after.as_millis()).unwrap(), Ordering::Relaxed);
    }

    async fn read(&self, name: &str) -> Snapshot {
        self.store.read(&key(name)).await.unwrap()
    }

    /// Swaps `record` in for whatever is there.
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
    let mark = Mark { owner: 1, nonce: 1, deadline, late_max: Duration::ZERO, leaves_lease: false };
    Record { claim: Some(mark), ..idle() }
}

fn in_doubt(until: u64) -> Record {
    let doubt = Doubt { until: StoreTime::from_milliseconds(until), version: Stamp::Itself };
    Record { doubt: Some(doubt), ..idle() }
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
    assert_eq!(after.record, Record::absent(held.revision), "the record of a is forgotten");
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
    assert_eq!(fixture.read("a").await.record, Record::absent(held.revision));
    assert_eq!(fixture.store.records.load(Ordering::Relaxed), 1);
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
    assert_eq!(fixture.store.records.load(Ordering::Relaxed), 2);
}

fn leased(until: Option<u64>) -> Record {
    let lease = Lease {
        id: LeaseId::from_random([1; 16]),
        term: Term::Held(until.map(StoreTime::from_milliseconds)),
        duration: LeaseDuration::Infinite,
        granted: StoreTime::default(),
        holder: None,
        principal: None,
        remember: Duration::from_millis(100),
        guards: LeaseGuards::Write,
        target: TargetName::default(),
    };
    Record { lease: Some(lease), fence: Stamp::Itself, ..idle() }
}

#[tokio::test]
async fn a_lease_pins_its_record_until_it_is_forgotten() {
    let fixture = Fixture::new(1);
    fixture.write("a", leased(Some(500))).await.unwrap();
    let held = fixture.read("a").await;
    fixture.pass(Duration::from_millis(599));
    assert_eq!(fixture.write("b", claimed()).await, Err(StoreError::Full), "it has ended and is remembered");
    fixture.pass(Duration::from_millis(1));
    assert!(matches!(fixture.write("b", claimed()).await, Ok(Swapped::Done(_))));
    let forgotten = fixture.read("a").await;
    assert_eq!(forgotten.record.lease, None);
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
    assert_eq!(fixture.write("b", claimed()).await, Err(StoreError::Full), "one without an end stays");
}
