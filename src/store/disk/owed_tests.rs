//! Chains of restarts: what a process owes is in the file until it is over (DESIGN, section 3, rule 20).

use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    file::read,
    log::new,
    testing::{BOOT, Disk, REGION_BYTES, ROOM, place},
    *,
};
use crate::{
    core::{
        records::record::{Doubt, Record, Revision, Stamp},
        resource::ResourceKey,
        time::StoreTime,
    },
    store::{Store as _, StoreError},
};

const LONG: Owed = Owed::by_writes(seconds(30), seconds(20));
const SHORT: Owed = Owed::by_writes(seconds(2), seconds(1));

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A clock that is moved by hand, and begins anew with each start of the machine.
#[derive(Default)]
struct HandClock(AtomicU64);

impl Clock for HandClock {
    fn now(&self) -> StoreTime {
        StoreTime::from_milliseconds(self.0.load(Ordering::SeqCst))
    }
}

/// A machine with one file.
struct Machine {
    disk: Disk,
    clock: Arc<HandClock>,
    boot: Option<u128>,
}

impl Machine {
    fn new() -> Self {
        let (mut bytes, length) = new(7, REGION_BYTES).unwrap();
        bytes.resize(place(length), 0);
        Self { disk: Disk::holding(bytes), clock: Arc::default(), boot: BOOT }
    }

    fn pass(&self, time: Duration) {
        let milliseconds = u64::try_from(time.as_millis()).unwrap();
        self.clock.0.fetch_add(milliseconds, Ordering::SeqCst);
    }

    /// Restarts the machine.
    fn reboot(&mut self) {
        (self.clock, self.boot) = (Arc::default(), self.boot.map(|boot| boot + 1));
    }

    /// Starts a process that owes this much. Returns how long it must hold back, too.
    async fn start(&self, owed: Owed) -> (DiskStore, Duration) {
        let bytes = self.disk.platter().synced.clone();
        let clock: Arc<dyn Clock> = Arc::<HandClock>::clone(&self.clock);
        let (log, contents) = read(Box::new(self.disk.clone()), &bytes, clock.now(), self.boot).unwrap();
        let hold = contents.hold;
        (DiskStore::begin(log, contents, clock, (ROOM, Duration::ZERO), owed).await.unwrap(), hold)
    }

    /// Returns how long a process that started now would have to hold back.
    async fn owes(&self) -> Duration {
        // The process is dropped before anything relies on it, and its first commit shortens nothing.
        let copy = Self {
            disk: Disk::holding(self.disk.platter().synced.clone()),
            clock: Arc::clone(&self.clock),
            boot: self.boot,
        };
        copy.start(Owed::NONE).await.1
    }
}

#[tokio::test]
async fn an_unused_file_owes_nothing() {
    let mut machine = Machine::new();
    assert_eq!(machine.owes().await, Duration::ZERO);
    machine.reboot();
    assert_eq!(machine.owes().await, Duration::ZERO);
}

/// Rule 20: the window of the process that made the writes counts, not that of the next one.
#[tokio::test]
async fn a_killed_process_owes_its_own_window() {
    let mut machine = Machine::new();
    drop(machine.start(LONG).await);
    assert_eq!(machine.start(SHORT).await.1, seconds(20));
    let mut rebooted = Machine::new();
    drop(rebooted.start(LONG).await);
    rebooted.reboot();
    assert_eq!(rebooted.owes().await, seconds(50), "the write itself may go on");
    machine.boot = None;
    assert_eq!(machine.owes().await, seconds(20), "the second process owes no more than what is left");
    drop(machine.start(LONG).await);
    assert_eq!(machine.owes().await, seconds(50), "without a number, the machine may have restarted");
}

/// Rule 20: a stop in good order ends no hold.
#[tokio::test]
async fn a_stop_during_the_hold_passes_the_rest_on() {
    let mut machine = Machine::new();
    drop(machine.start(LONG).await);
    let (second, _) = machine.start(SHORT).await;
    machine.pass(seconds(5));
    second.close().await;
    assert_eq!(machine.owes().await, seconds(15));
    let (third, hold) = machine.start(SHORT).await;
    machine.pass(hold.saturating_sub(seconds(1)));
    third.close().await;
    assert_eq!(machine.owes().await, seconds(1));
    machine.reboot();
    let (fourth, hold) = machine.start(SHORT).await;
    assert_eq!(hold, seconds(1), "the time that is left is no moment of a clock");
    machine.pass(hold);
    fourth.close().await;
    assert_eq!(machine.owes().await, Duration::ZERO);
}

/// Rule 20: a death during the hold ends it no earlier.
#[tokio::test]
async fn a_death_during_the_hold_keeps_it() {
    let mut machine = Machine::new();
    drop(machine.start(LONG).await);
    for _ in 0..3 {
        drop(machine.start(SHORT).await);
        machine.pass(seconds(5));
    }
    assert_eq!(machine.owes().await, seconds(20), "the rest was not written since the last start");
    machine.reboot();
    assert_eq!(machine.start(SHORT).await.1, seconds(20));
    machine.reboot();
    assert_eq!(machine.owes().await, seconds(20));
}

#[tokio::test]
async fn what_is_owed_goes_down_when_the_hold_is_over() {
    let machine = Machine::new();
    drop(machine.start(LONG).await);
    let (second, hold) = machine.start(SHORT).await;
    machine.pass(hold);
    second.owe(Owed::NONE).await.unwrap();
    assert_eq!(machine.owes().await, seconds(1));
}

/// Rule 20: a reload that changes windows counts under both.
#[tokio::test]
async fn another_configuration_adds_its_window_and_takes_none_away() {
    let machine = Machine::new();
    let (store, _) = machine.start(SHORT).await;
    store.owe(LONG).await.unwrap();
    assert_eq!(machine.owes().await, seconds(20));
    store.owe(SHORT).await.unwrap();
    assert_eq!(machine.owes().await, seconds(20));
    store.close().await;
    assert_eq!(machine.owes().await, Duration::ZERO);
}

#[tokio::test]
async fn a_window_that_cannot_be_written_is_reported() {
    let machine = Machine::new();
    let (store, _) = machine.start(SHORT).await;
    machine.disk.platter().power = Some(0);
    assert_eq!(store.owe(LONG).await, Err(StoreError::Unavailable));
}

/// Rule 20: a doubt is owed after a stop in good order.
#[tokio::test]
async fn a_stop_during_a_doubt_owes_the_window() {
    let machine = Machine::new();
    let (store, _) = machine.start(LONG).await;
    let key = ResourceKey::from_text("a");
    let until = store.now().await.unwrap().plus(seconds(20));
    let doubt = Some(Doubt { until, version: Stamp::Itself });
    let before = store.read(&key).await.unwrap();
    store.swap(&key, before.revision, Record { doubt, ..Record::absent(Revision(0)) }).await.unwrap();
    store.close().await;
    assert_eq!(machine.owes().await, seconds(20));
    machine.pass(seconds(20));
    store.close().await;
    assert_eq!(machine.owes().await, Duration::ZERO, "the doubt is over");
}
