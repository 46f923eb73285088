//! The queue for the claim: writes of this process wait here, first come first served (DESIGN, section 4, step 4).
//!
//! A place in it decides nothing: the mark in the store does. It keeps the writers of one process from racing for
//! the same swap, and gives them their order.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use crate::{core::resource::ResourceKey, telemetry::metrics::Gauged};

/// A power of two, far above the number of threads, so that two of them rarely meet at one lock.
const SHARDS: usize = 64;

/// The lines of all resources.
pub(super) struct Queues {
    shards: Vec<Mutex<HashMap<ResourceKey, Line>>>,
    waiters: AtomicUsize,
    waiters_max: usize,
    is_for_leases: bool,
}

/// The line of one resource: it exists while somebody stands in it or has its turn.
struct Line {
    turn: Arc<Semaphore>,
    /// Those who wait and the one whose turn it is.
    members: usize,
}

/// Why nobody gets a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoTurn {
    /// Too many wait for this resource.
    LineFull,
    /// Too many wait for any resource.
    AllFull,
    /// It took too long.
    TimedOut,
}

/// The turn of one write; the next one's comes when it is dropped.
pub(super) struct Turn {
    _permit: OwnedSemaphorePermit,
    _place: Place,
    came_after_others: bool,
}

impl Turn {
    /// Whether others had their turn while it was waited for.
    pub(super) const fn came_after_others(&self) -> bool {
        self.came_after_others
    }
}

/// A place in a line, given up by dropping it, whatever happens to its write.
struct Place {
    queues: Arc<Queues>,
    key: ResourceKey,
}

impl Queues {
    /// Empty lines, in which at most `waiters_max` writes wait.
    pub(super) fn new(waiters_max: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, waiters: AtomicUsize::new(0), waiters_max, is_for_leases: false }
    }

    /// The same for leases.
    pub(super) fn for_leases(waiters_max: usize) -> Self {
        Self { is_for_leases: true, ..Self::new(waiters_max) }
    }

    /// Waits for the turn of a write, until `end` and behind at most `line_max` others.
    pub(super) async fn turn(
        self: &Arc<Self>,
        key: &ResourceKey,
        line_max: usize,
        end: Instant,
    ) -> Result<Turn, NoTurn> {
        let semaphore = self.join(key, line_max)?;
        let place = Place { queues: Arc::clone(self), key: key.clone() };
        let (permit, came_after_others) = match Arc::clone(&semaphore).try_acquire_owned() {
            Ok(permit) => (permit, false),
            Err(_) => (self.wait(semaphore, end).await?, true),
        };
        Ok(Turn { _permit: permit, _place: place, came_after_others })
    }

    async fn wait(&self, turn: Arc<Semaphore>, end: Instant) -> Result<OwnedSemaphorePermit, NoTurn> {
        let _waiter = self.count()?;
        // A line's semaphore is never closed.
        timeout_at(end, turn.acquire_owned()).await.ok().and_then(Result::ok).ok_or(NoTurn::TimedOut)
    }

    /// Whether anybody waits for, or has, the turn at a resource.
    pub(super) fn has_line(&self, key: &ResourceKey) -> bool {
        self.lines(key).contains_key(key)
    }

    fn join(&self, key: &ResourceKey, line_max: usize) -> Result<Arc<Semaphore>, NoTurn> {
        let mut lines = self.lines(key);
        let line = lines.entry(key.clone()).or_insert_with(|| Line { turn: Arc::new(Semaphore::new(1)), members: 0 });
        if line.members > line_max {
            return Err(NoTurn::LineFull);
        }
        line.members += 1;
        Ok(Arc::clone(&line.turn))
    }

    fn leave(&self, key: &ResourceKey) {
        let mut lines = self.lines(key);
        if let Some(line) = lines.get_mut(key) {
            line.members -= 1;
            if line.members == 0 {
                lines.remove(key);
            }
        }
    }

    fn count(&self) -> Result<Waiter<'_>, NoTurn> {
        let waiter = Waiter(&self.waiters);
        let before = self.waiters.fetch_add(1, Ordering::Relaxed);
        if before >= self.waiters_max { Err(NoTurn::AllFull) } else { Ok(waiter) }
    }

    fn lines(&self, key: &ResourceKey) -> MutexGuard<'_, HashMap<ResourceKey, Line>> {
        let shard = usize::from(key.bucket()) % SHARDS;
        // A panic under the lock leaves whole lines behind: each change is one step.
        #[expect(clippy::indexing_slicing, reason = "the remainder is smaller than the number of shards")]
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gauged for Queues {
    fn waiters(&self) -> (u64, u64) {
        let waiters = u64::try_from(self.waiters.load(Ordering::Relaxed)).unwrap_or(u64::MAX);
        if self.is_for_leases { (0, waiters) } else { (waiters, 0) }
    }
}

/// One who waits, in the total.
struct Waiter<'a>(&'a AtomicUsize);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queues.leave(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key() -> ResourceKey {
        ResourceKey::from_text("a")
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[tokio::test]
    async fn turns_come_in_the_order_of_arrival() {
        let queues = Arc::new(Queues::new(10));
        let first = queues.turn(&key(), 10, soon()).await.ok().unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for number in 0..5 {
            let (queues, order) = (queues.clone(), order.clone());
            waiting.push(tokio::spawn(async move {
                let turn = queues.turn(&key(), 10, soon()).await.ok().unwrap();
                order.lock().unwrap().push(number);
                drop(turn);
            }));
            tokio::task::yield_now().await;
        }
        drop(first);
        for waiter in waiting {
            waiter.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
        assert!(queues.lines(&key()).is_empty(), "an empty line is gone");
    }

    #[tokio::test]
    async fn a_full_line_takes_nobody() {
        let queues = Arc::new(Queues::new(10));
        let _turn = queues.turn(&key(), 0, soon()).await.ok().unwrap();
        assert_eq!(queues.turn(&key(), 0, soon()).await.err(), Some(NoTurn::LineFull));
    }

    #[tokio::test]
    async fn all_lines_together_are_bounded() {
        let queues = Arc::new(Queues::new(0));
        let _turn = queues.turn(&key(), 10, soon()).await.ok().unwrap();
        assert_eq!(queues.turn(&key(), 10, soon()).await.err(), Some(NoTurn::AllFull));
        assert!(queues.turn(&ResourceKey::from_text("b"), 10, soon()).await.is_ok(), "one that waits for nobody");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_in_time_and_leaves_the_line() {
        let queues = Arc::new(Queues::new(10));
        let first = queues.turn(&key(), 1, soon()).await.ok().unwrap();
        assert_eq!(queues.turn(&key(), 1, soon()).await.err(), Some(NoTurn::TimedOut));
        drop(first);
        assert!(queues.turn(&key(), 0, soon()).await.is_ok());
    }
}
