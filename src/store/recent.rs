//! The records that this process has seen last, in a store that other processes change too.
//!
//! # Design
//!
//! *What is a sighting good for?* A swap compares the revision of the record. So a change that was judged by a sighting
//! is made only if the record is still the same, and needs no read before it. A judgement without a swap after it needs
//! a read.
//!
//! *Why does a sighting not last?* A store that lost writes, because a backup was restored, may give a revision again.
//! Then the comparison would prove nothing. Any failure of the store therefore ends all sightings, and age ends each.
//! The first operation after a failure is a read, which a breaker can refuse at once.

use std::{
    mem::size_of,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use moka::sync::Cache;
use tokio::time::Instant;

use super::memory::weight::weight;
use crate::core::{
    records::record::{Record, Snapshot},
    resource::ResourceKey,
    time::StoreTime,
};

/// The approximate limit of all sightings, in bytes: enough for 10,000 records without leases.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The maximum age of a sighting. A program that reads and then writes takes less, and the restoration of a backup takes
/// more.
const AGE_MAX: Duration = Duration::from_secs(10);

/// The maximum age of a sighting whose time only the engine could renew. Deadlines that are counted from that time are
/// early by no more than this, and a failover takes longer.
const TIME_AGE_MAX: Duration = Duration::from_secs(1);

/// A record as this process last saw it.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// The record, with a time at which it can be judged.
    pub snapshot: Snapshot,
    /// A moment before that time was taken, by this process's own clock.
    pub since: Instant,
}

/// The last sightings of records that no write is in the way of.
pub(super) struct Recent {
    /// Each sighting, with the number of failures before it.
    seen: Cache<ResourceKey, Arc<(Sighting, u64)>>,
    /// The number of times that the store has failed. A record that was seen before the last failure does not count.
    failures: AtomicU64,
}

impl Recent {
    /// Starts without any sightings.
    pub(super) fn new() -> Self {
        let weigh = |key: &ResourceKey, seen: &Arc<(Sighting, u64)>| {
            let bytes = size_of::<Sighting>() as u64 + weight(key, &seen.0.snapshot.record);
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        let seen = Cache::builder().max_capacity(BYTES_MAX).weigher(weigh).build();
        Self { seen, failures: AtomicU64::new(0) }
    }

    /// Notes a record that was requested after the moment `since`.
    pub(super) fn note(&self, key: &ResourceKey, snapshot: &Snapshot, since: Instant) {
        if is_open(&snapshot.record) {
            let seen = Sighting { snapshot: snapshot.clone(), since };
            self.seen.insert(key.clone(), Arc::new((seen, self.failures.load(Ordering::Relaxed))));
        } else {
            self.seen.invalidate(key);
        }
    }

    /// Forgets all sightings: the store has failed.
    pub(super) fn forget_all(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the last sighting of a record, with a time at which it can be judged: `own_time` if this process keeps
    /// the store's time itself, and a moment before that. `None` if the time would cost a call of the engine, for which
    /// the record itself can be read.
    pub(super) fn recall(&self, key: &ResourceKey, own_time: Option<(StoreTime, Instant)>) -> Option<Sighting> {
        let seen = self.recall_as_seen(key)?;
        match own_time {
            Some((now, since)) => Some(Sighting { snapshot: Snapshot { now, ..seen.snapshot }, since }),
            None if seen.snapshot.record.has_moments() || seen.since.elapsed() > TIME_AGE_MAX => None,
            None => Some(seen),
        }
    }

    /// Returns the last sighting of a record, with the time of then.
    pub(super) fn recall_as_seen(&self, key: &ResourceKey) -> Option<Sighting> {
        let (seen, failures) = Arc::unwrap_or_clone(self.seen.get(key)?);
        if failures != self.failures.load(Ordering::Relaxed) || seen.since.elapsed() > AGE_MAX {
            return None;
        }
        Some(seen)
    }
}

/// True if a write could begin at once, without the turn of another one and without a DELETE that waits. The answer to
/// a keyed write is not kept: it may be large, and a retry reads it anyway.
fn is_open(record: &Record) -> bool {
    record.marks().next().is_none()
        && record.waiting.is_empty()
        && record.pending_delete.is_none()
        && record.attempt.is_none()
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::core::{
        lease::TargetName,
        records::{
            first_attempt::{FirstAttempt, SentWrite},
            pending_delete::PendingDelete,
            record::{Doubt, Mark, Revision, Stamp, WaitingSign},
        },
    };

    const NOW: StoreTime = StoreTime::from_milliseconds(5_000);

    fn own() -> (StoreTime, Instant) {
        (NOW, Instant::now())
    }

    fn key() -> ResourceKey {
        ResourceKey::from_text("a")
    }

    fn snapshot(record: Record) -> Snapshot {
        Snapshot::new(Revision(3), record, StoreTime::from_milliseconds(1_000))
    }

    fn plain() -> Record {
        Record::absent(Revision(3))
    }

    fn doubted() -> Record {
        Record { doubt: Some(Doubt { until: StoreTime::default(), version: Stamp::Itself }), ..plain() }
    }

    fn seen(record: Record) -> Recent {
        let recent = Recent::new();
        recent.note(&key(), &snapshot(record), Instant::now());
        recent
    }

    #[tokio::test(start_paused = true)]
    async fn a_sighting_has_the_time_of_now_where_that_costs_nothing() {
        for record in [plain(), doubted()] {
            let recent = seen(record.clone());
            advance(AGE_MAX).await;
            let recalled = recent.recall(&key(), Some(own())).expect("it was seen");
            assert_eq!((recalled.snapshot.now, recalled.snapshot.record), (NOW, record.into()));
            assert_eq!(recalled.since.elapsed(), Duration::ZERO);
            advance(Duration::from_millis(1)).await;
            assert!(recent.recall(&key(), Some(own())).is_none(), "it is too old");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sighting_without_the_time_of_now_serves_records_that_time_does_not_change() {
        assert!(seen(doubted()).recall(&key(), None).is_none());
        let recent = seen(plain());
        advance(TIME_AGE_MAX).await;
        let recalled = recent.recall(&key(), None).expect("it was seen");
        assert_eq!((recalled.snapshot, recalled.since.elapsed()), (snapshot(plain()), TIME_AGE_MAX));
        advance(Duration::from_millis(1)).await;
        assert!(recent.recall(&key(), None).is_none(), "its time is too old");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_ends_all_sightings_before_it() {
        let recent = seen(plain());
        recent.forget_all();
        assert!(recent.recall(&key(), Some(own())).is_none());
        recent.note(&key(), &snapshot(plain()), Instant::now());
        assert!(recent.recall(&key(), Some(own())).is_some());
    }

    /// Such a record also replaces the one that was seen before.
    #[tokio::test(start_paused = true)]
    async fn a_record_that_makes_writes_wait_is_not_kept() {
        let until = StoreTime::from_milliseconds(9_000);
        let mark = Mark { owner: 1, nonce: 1, deadline: until, late_write_window: Duration::ZERO, leaves_lease: false };
        let delete = PendingDelete {
            host: Box::default(),
            target: Box::default(),
            name: TargetName::default(),
            conditions: [].into(),
        };
        let attempt = FirstAttempt { sent: SentWrite::default(), until, answer: None };
        for busy in [
            Record { claim: Some(mark), ..plain() },
            Record { unclaimed: vec![mark], ..plain() },
            Record { waiting: vec![WaitingSign { owner: 1, until }], ..plain() },
            Record { pending_delete: Some(Box::new(delete)), ..plain() },
            Record { attempt: Some(Box::new(attempt)), ..plain() },
        ] {
            let recent = seen(plain());
            recent.note(&key(), &snapshot(busy.clone()), Instant::now());
            assert!(recent.recall(&key(), Some(own())).is_none(), "{busy:?}");
        }
    }
}
