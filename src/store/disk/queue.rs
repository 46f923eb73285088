//! The queue of the writer, and how callers that wait for a commit learn its outcome.
//!
//! # Design
//!
//! *Why not a channel, with a separate answer for each job?* Each job would wake the writer, and each answer the
//! runtime. With 64 clients that takes longer than the sync. Here the writer is woken only if it has nothing to write. It
//! wakes one of its waiting callers, and that one wakes the others from within the runtime.

use std::{
    mem,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

use super::{frame::Entries, lasting::EarlierRecord};
use crate::core::records::owed::Owed;

/// The words to be written.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// The latest words on leases, each with a waiting caller: their texts, or that there are none.
    pub(super) leases: Entries,
    /// The words on forgotten resources, which are in force already. None of them can follow words on the same resource
    /// in `leases`, because those must be written before the resource can be forgotten.
    pub(super) forgotten: Entries,
    /// The records that are in force until `leases` are written.
    pub(super) earlier: Vec<EarlierRecord>,
    /// The last revision that may be given.
    pub(super) reserve: u64,
    /// The debt of the process from this commit on; `None` if it does not change.
    pub(super) owed: Option<Owed>,
    /// True if the commit checks that there is room for more.
    pub(super) tries: bool,
}

/// A future commit, or one that was tried.
#[derive(Debug, Default)]
pub struct Commit {
    is_made: OnceLock<bool>,
    ended: Notify,
}

/// The next commit, and its words.
///
/// The queue needs no limit: a request in flight has one word in it, and only records with a lease in the file add
/// words when they are forgotten.
#[derive(Debug, Default)]
pub(super) struct CommitQueue {
    next: Mutex<Next>,
    came: Condvar,
}

#[derive(Debug, Default)]
struct Next {
    /// The words, or `None` as long as there is nothing to write.
    words: Option<Words>,
    /// The bytes of leases in the last commit, and the number of their changes.
    usual_room: (usize, usize),
    /// The number of callers that wait for the commit, or will.
    callers: usize,
    commit: Arc<Commit>,
    /// True if the writer sleeps until something comes.
    is_awaited: bool,
    /// True if one side of the queue is gone: the callers or the writer.
    is_closed: bool,
}

/// The commit that the writer has taken. Its callers learn that it failed, unless [`TakenCommit::end`] reports success.
pub(super) struct TakenCommit {
    pub(super) words: Words,
    pub(super) callers: usize,
    commit: Arc<Commit>,
}

impl Commit {
    /// True if the commit was made, if it has ended.
    pub(super) fn outcome(&self) -> Option<bool> {
        self.is_made.get().copied()
    }

    /// Waits for the end of the commit, and returns whether it was made.
    pub(super) async fn is_made(&self) -> bool {
        loop {
            let ended = self.ended.notified();
            if let Some(is_made) = self.is_made.get() {
                self.ended.notify_waiters();
                return *is_made;
            }
            // A caller that is woken but dropped before it checks passes the wake-up on.
            ended.await;
        }
    }

    fn end(&self, is_made: bool) {
        // The first outcome stands, and each wake-up of the runtime is a call of the operating system.
        if self.is_made.set(is_made).is_ok() {
            self.ended.notify_one();
        }
    }
}

impl CommitQueue {
    /// Adds words to the next commit, for a caller that waits for it.
    pub(super) fn ask(&self, add: impl FnOnce(&mut Words)) -> Arc<Commit> {
        self.put(1, add)
    }

    /// Adds words to the next commit, without a waiting caller.
    pub(super) fn note(&self, add: impl FnOnce(&mut Words)) {
        self.put(0, add);
    }

    fn put(&self, callers: usize, add: impl FnOnce(&mut Words)) -> Arc<Commit> {
        let mut next = self.next.lock();
        if next.is_closed {
            // The queue must not grow forever if no writer empties it.
            next.commit.end(false);
            return Arc::clone(&next.commit);
        }
        let (bytes, changes) = next.usual_room;
        add(next.words.get_or_insert_with(|| Words {
            leases: Entries::with_capacity(bytes),
            earlier: Vec::with_capacity(changes),
            ..Words::default()
        }));
        next.callers += callers;
        let commit = Arc::clone(&next.commit);
        if mem::take(&mut next.is_awaited) {
            drop(next);
            self.came.notify_one();
        }
        commit
    }

    /// Waits until there is something to write, but at most for `pause` if that is given. Returns `None` once the queue
    /// is closed and empty.
    pub(super) fn take(&self, pause: Option<Duration>) -> Option<TakenCommit> {
        let mut next = self.next.lock();
        next.is_awaited = true;
        let is_idle = |next: &mut Next| next.words.is_none() && !next.is_closed;
        match pause {
            Some(pause) => drop(self.came.wait_while_for(&mut next, is_idle, pause)),
            None => self.came.wait_while(&mut next, is_idle),
        }
        next.is_awaited = false;
        let is_over = next.is_closed && next.words.is_none();
        let words = (!is_over).then(|| next.words.take().unwrap_or_default())?;
        next.usual_room = (words.leases.length(), words.earlier.len());
        Some(TakenCommit { words, callers: mem::take(&mut next.callers), commit: mem::take(&mut next.commit) })
    }

    /// Ends the waiting on both sides.
    pub(super) fn close(&self) {
        let mut next = self.next.lock();
        next.is_closed = true;
        next.commit.end(false);
        drop(next);
        self.came.notify_one();
    }
}

impl TakenCommit {
    /// Reports to the waiting callers whether the commit was made.
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
        let taken = queue.take(None).expect("there is something");
        assert_eq!((taken.callers, taken.words.reserve), (3, 9));
        assert!(commits.iter().all(|commit| Arc::ptr_eq(commit, &taken.commit)));
    }

    #[test]
    fn a_writer_that_sleeps_is_woken_by_the_first_caller() {
        let queue = Arc::new(CommitQueue::default());
        let (other, began) = (Arc::clone(&queue), Instant::now());
        let later = thread::spawn(move || drop(other.ask(reserve(2))));
        assert_eq!(queue.take(Some(LONG)).expect("there is something").callers, 1);
        assert!(began.elapsed() < LONG);
        later.join().expect("it was sent");
    }

    #[test]
    fn where_nothing_comes_the_wait_is_as_long_as_the_pause() {
        let queue = CommitQueue::default();
        let taken = queue.take(Some(Duration::from_millis(1))).expect("it is not closed");
        assert_eq!((taken.callers, taken.words.leases.length()), (0, 0));
        queue.close();
        assert!(queue.take(Some(LONG)).is_none(), "nothing will come any more");
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
            queue.take(None).expect("there is something").end(is_made);
            // The caller that was woken is dropped before it checks.
            drop(waiting.remove(0));
            for wait in waiting {
                assert_eq!(tokio::time::timeout(LONG, wait).await, Ok(is_made));
            }
            assert_eq!(commits[0].is_made().await, is_made, "late callers learn it too");
        }
    }

    #[tokio::test]
    async fn without_a_writer_nothing_is_written() {
        let queue = CommitQueue::default();
        let before = queue.ask(reserve(1));
        drop(queue.take(None));
        assert!(!before.is_made().await, "it was taken and lost");
        let waiting = queue.ask(reserve(2));
        queue.close();
        assert!(!waiting.is_made().await);
        assert!(!queue.ask(reserve(3)).is_made().await);
        assert!(queue.take(None).is_some_and(|taken| taken.words.reserve == 2), "what came before is taken");
        assert!(queue.take(None).is_none());
        assert!(!queue.ask(reserve(4)).is_made().await);
    }
}
