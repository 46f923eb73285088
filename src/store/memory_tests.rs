//! The memory store against the contract in `store`.

use super::*;
use crate::core::record::{Doubt, Mark, Stamp};

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
    let mark = Mark { owner: 1, nonce: 1, deadline: StoreTime::from_milliseconds(u64::MAX) };
    Record { claim: Some(mark), ..idle() }
}

fn in_doubt(until: u64) -> Record {
    let doubt = Doubt { until: StoreTime::from_milliseconds(until), version: Stamp::Itself };
    Record { doubt: Some(doubt), ..idle() }
}

#[tokio::test]
async fn a_swap_succeeds_once_against_one_revision() {
    let fixture = Fixture::new(10);
    let absent = fixture.read("a").await;
    let first = fixture.store.swap(&key("a"), absent.revision, idle()).await.unwrap();
    let Swapped::Done(now) = first else { panic!("the first swap is done") };
    assert!(now.revision > absent.revision);
    assert_eq!(now.version(), now.revision, "a stamp of itself is the record's own revision");
    let second = fixture.store.swap(&key("a"), absent.revision, claimed()).await.unwrap();
    assert_eq!(second, Swapped::Conflict(now.clone()), "a failed swap gives the current record");
    assert_eq!(fixture.read("a").await, now);
}

#[tokio::test]
async fn revisions_grow_over_all_resources() {
    let fixture = Fixture::new(10);
    let mut last = Revision(0);
    for name in ["a", "b", "a", "c"] {
        let Swapped::Done(snapshot) = fixture.write(name, idle()).await.unwrap() else { panic!("nobody else writes") };
        assert!(snapshot.revision > last);
        last = snapshot.revision;
    }
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

#[tokio::test]
async fn a_wait_ends_with_the_next_change() {
    let fixture = Fixture::new(10);
    let seen = fixture.read("a").await.revision;
    let key = key("a");
    let wait = fixture.store.changed(&key, seen);
    let ((), written) = tokio::join!(wait, fixture.write("a", idle()));
    assert!(written.is_ok());
    fixture.store.changed(&key, seen).await;
}

#[tokio::test]
async fn of_many_swaps_at_once_exactly_one_succeeds() {
    let fixture = Arc::new(Fixture::new(10));
    for _ in 0..100 {
        let revision = fixture.read("a").await.revision;
        let swaps = (0..8).map(|_| {
            let fixture = fixture.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let swapped = runtime.block_on(fixture.store.swap(&key("a"), revision, idle())).unwrap();
                matches!(swapped, Swapped::Done(_))
            })
        });
        let swaps: Vec<_> = swaps.collect();
        let done = swaps.into_iter().map(|swap| swap.join().unwrap()).filter(|done| *done).count();
        assert_eq!(done, 1);
    }
}
