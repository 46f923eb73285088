//! What waits for the writer, and how those who wait for a commit hear of it.
//!
//! # Design
//!
//! *Why no channel, with an answer of its own for each job?* Each job would wake the writer and each answer the runtime:
//! with 64 clients that takes longer than the sync. Here the writer is woken when as many have come as it expects, and
//! it wakes one of those who wait for it, who wakes the others from within the runtime.

use std::{
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use super::frame::Entries;

/// What is to be written.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// The last words on leases, each for somebody who waits for it: their texts, or that there are none.
    pub(super) leases: Entries,
    /// Those of resources that were forgotten, which is in force already. Nothing is said of one of them after words in
    /// `leases`, as those have to be written before it can be forgotten.
    pub(super) forgotten: Entries,
    /// The words that hold for them as long as these are not written.
    pub(super) earlier: Entries,
    /// Revisions up to this one may be given.
    pub(super) reserve: u64,
    /// Whether no process uses the file any longer, and the last one leaves it in good order.
    pub(super) gives_back: bool,
    /// Whether it is to be found out if there is room for more.
    pub(super) tries: bool,
}

/// A commit to come, or one that was tried.
#[derive(Debug, Default)]
pub(super) struct Commit {
    is_made: OnceLock<bool>,
    ended: Notify,
}

/// The next commit, and what goes into it.
///
/// It has no limit of its own: a request in flight has one word in it, and no more records are forgotten than have a lease
/// in the file.
#[derive(Debug, Default)]
pub(super) struct CommitQueue {
    next: Mutex<Next>,
    came: Condvar,
}

#[derive(Debug, Default)]
struct Next {
    /// `None` as long as there is nothing to write.
    words: Option<Words>,
    /// As many bytes of leases as the last commit had.
    usual_bytes: usize,
    /// Those who wait for the commit, or will.
    callers: usize,
    commit: Arc<Commit>,
    awaited: AwaitedCommit,
    /// Whether nobody is left who adds to it, or nobody who takes from it.
    is_closed: bool,
}

/// What the writer waits for.
#[derive(Clone, Copy, Debug, Default)]
enum AwaitedCommit {
    #[default]
    Nothing,
    Anything,
    Callers(usize),
}

/// What the writer has taken. Whoever waits for it is told that it was not written, unless [`TakenCommit::end`] says so.
pub(super) struct TakenCommit {
    pub(super) words: Words,
    pub(super) callers: usize,
    commit: Arc<Commit>,
}

impl Commit {
    /// Whether it was made, if it has ended.
    pub(super) fn outcome(&self) -> Option<bool> {
        self.is_made.get().copied()
    }

    /// Waits for its end, and tells whether it was made.
    pub(super) async fn is_made(&self) -> bool {
        loop {
            let ended = self.ended.notified();
            if let Some(is_made) = self.is_made.get() {
                self.ended.notify_waiters();
                return *is_made;
            }
            // Who is woken and goes away before it looks passes it on.
            ended.await;
        }
    }

    fn end(&self, is_made: bool) {
        // The first word stands.
        let _ = self.is_made.set(is_made);
        self.ended.notify_one();
    }
}

impl CommitQueue {
    /// Adds to what is written next, for somebody who waits for it.
    pub(super) fn ask(&self, add: impl FnOnce(&mut Words)) -> Arc<Commit> {
        self.put(1, add)
    }

    /// Adds to what is written next, for nobody.
    pub(super) fn note(&self, add: impl FnOnce(&mut Words)) {
        self.put(0, add);
    }

    fn put(&self, callers: usize, add: impl FnOnce(&mut Words)) -> Arc<Commit> {
        let mut next = self.lock();
        if next.is_closed {
            // It must not grow for ever where nobody takes from it.
            next.commit.end(false);
            return Arc::clone(&next.commit);
        }
        let room = next.usual_bytes;
        add(next.words.get_or_insert_with(|| Words { leases: Entries::with_capacity(room), ..Words::default() }));
        next.callers += callers;
        let commit = Arc::clone(&next.commit);
        let is_enough = match next.awaited {
            AwaitedCommit::Nothing => false,
            AwaitedCommit::Anything => true,
            AwaitedCommit::Callers(expected) => next.callers >= expected,
        };
        if is_enough {
            next.awaited = AwaitedCommit::Nothing;
            drop(next);
            self.came.notify_one();
        }
        commit
    }

    /// Those who wait for the next commit already.
    pub(super) fn callers(&self) -> usize {
        self.lock().callers
    }

    /// Waits for so many callers, and no longer than this; and then until there is something to write, or no longer than
    /// `pause` if there is one. `None` when nothing will come any more.
    pub(super) fn take(&self, expected: usize, patience: Duration, pause: Option<Duration>) -> Option<TakenCommit> {
        let mut next = self.lock();
        // One caller is something to write.
        if expected > 1 {
            next.awaited = AwaitedCommit::Callers(expected);
            let is_early = |next: &mut Next| next.callers < expected && !next.is_closed;
            let waited = self.came.wait_timeout_while(next, patience, is_early);
            next = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        next.awaited = AwaitedCommit::Anything;
        let is_idle = |next: &mut Next| next.words.is_none() && !next.is_closed;
        next = match pause {
            Some(pause) => self.came.wait_timeout_while(next, pause, is_idle).unwrap_or_else(PoisonError::into_inner).0,
            None => self.came.wait_while(next, is_idle).unwrap_or_else(PoisonError::into_inner),
        };
        next.awaited = AwaitedCommit::Nothing;
        let is_over = next.is_closed && next.words.is_none();
        let words = (!is_over).then(|| next.words.take().unwrap_or_default())?;
        next.usual_bytes = words.leases.length();
        Some(TakenCommit { words, callers: mem::take(&mut next.callers), commit: mem::take(&mut next.commit) })
    }

    /// Ends the waiting on either side.
    pub(super) fn close(&self) {
        let mut next = self.lock();
        next.is_closed = true;
        next.commit.end(false);
        drop(next);
        self.came.notify_one();
    }

    /// A panic under the lock leaves each word in its place or not.
    fn lock(&self) -> MutexGuard<'_, Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TakenCommit {
    /// Tells whoever waits for it whether it was written.
    pub(super) fn end(self, is_made: bool) {
        self.commit.end(is_made);
    }
}

impl Drop for TakenCommit {
    fn drop(&mut self) {
        self.commit.end(false);
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, task::Poll, thread, time::Instant};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn reserve(revision: u64) -> impl FnOnce(&mut Words) {
        move |words| words.reserve = words.reserve.max(revision)
    }

    #[test]
    fn what_has_come_goes_into_one_commit_and_nobody_else_is_waited_for() {
        let queue = CommitQueue::default();
        let commits: Vec<_> = (1..=3).map(|revision| queue.ask(reserve(revision))).collect();
        queue.note(reserve(9));
        let taken = queue.take(0, LONG, None).expect("there is something");
        assert_eq!((taken.callers, taken.words.reserve), (3, 9));
        assert!(commits.iter().all(|commit| Arc::ptr_eq(commit, &taken.commit)));
    }

    #[test]
    fn those_who_are_expected_are_waited_for_and_no_longer_than_patience_lasts() {
        let queue = Arc::new(CommitQueue::default());
        queue.ask(reserve(1));
        let (other, began) = (Arc::clone(&queue), Instant::now());
        let later = thread::spawn(move || drop(other.ask(reserve(2))));
        assert_eq!(queue.take(2, LONG, None).expect("there is something").callers, 2);
        assert!(began.elapsed() < LONG);
        later.join().expect("it was sent");
        queue.ask(reserve(3));
        assert_eq!(queue.take(2, Duration::from_millis(1), None).expect("there is something").callers, 1);
    }

    #[test]
    fn where_nothing_comes_the_wait_is_as_long_as_the_pause() {
        let queue = CommitQueue::default();
        let taken = queue.take(0, LONG, Some(Duration::from_millis(1))).expect("it is not closed");
        assert_eq!((taken.callers, taken.words.leases.length()), (0, 0));
        queue.close();
        assert!(queue.take(0, LONG, Some(LONG)).is_none(), "nothing will come any more");
    }

    #[tokio::test]
    async fn all_who_wait_hear_of_the_end_whoever_goes_away() {
        for is_made in [true, false] {
            let queue = CommitQueue::default();
            let commits: Vec<_> = (0..5).map(|_| queue.ask(reserve(1))).collect();
            let mut waiting: Vec<_> = commits.iter().map(|commit| Box::pin(commit.is_made())).collect();
            for wait in &mut waiting {
                assert!(poll_fn(|context| Poll::Ready(wait.as_mut().poll(context).is_pending())).await);
            }
            queue.take(0, LONG, None).expect("there is something").end(is_made);
            // The one that was woken does not look any more.
            drop(waiting.remove(0));
            for wait in waiting {
                assert_eq!(tokio::time::timeout(LONG, wait).await, Ok(is_made));
            }
            assert_eq!(commits[0].is_made().await, is_made, "who asks late is told too");
        }
    }

    #[tokio::test]
    async fn without_a_writer_nothing_is_written() {
        let queue = CommitQueue::default();
        let before = queue.ask(reserve(1));
        drop(queue.take(0, LONG, None));
        assert!(!before.is_made().await, "it was taken and lost");
        let waiting = queue.ask(reserve(2));
        queue.close();
        assert!(!waiting.is_made().await);
        assert!(!queue.ask(reserve(3)).is_made().await);
        assert!(queue.take(0, LONG, None).is_some_and(|taken| taken.words.reserve == 2), "what came before is taken");
        assert!(queue.take(0, LONG, None).is_none());
        assert!(!queue.ask(reserve(4)).is_made().await);
    }
}
