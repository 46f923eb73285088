//! The only writer of the file: a thread that commits all words that have come meanwhile at once (group commit).

use std::{
    borrow::Cow,
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    debt::Debt,
    frame::Entries,
    lasting::{EarlierRecord, LastingPart},
    log::{Log, NotMade},
    queue::{Commit, CommitQueue, TakenCommit, Words},
};
use crate::{
    core::{
        records::{
            owed::Owed,
            record::{Record, Snapshot},
        },
        resource::ResourceKey,
        time::StoreTime,
    },
    store::memory::Journal,
};

/// The number of revisions that are reserved at once. At a million writes a second, this costs two commits a second.
const RESERVED_AT_ONCE: u64 = if cfg!(test) { 1 << 12 } else { 1 << 20 };

/// The pause before a failed commit is retried, unless a caller requests one earlier.
const PAUSE: Duration = Duration::from_secs(1);

/// A handle of the writer.
pub struct DiskWriter {
    queue: Arc<CommitQueue>,
    /// The last revision that is reserved in the file.
    reserved: Arc<AtomicU64>,
    /// The last revision whose reservation was requested.
    requested: AtomicU64,
    debt: Debt,
}

/// The state of the writer's thread: the words that are not in the file yet, and the revisions reserved there.
struct Backlog {
    log: Log,
    /// Words that are in force without a waiting caller. If they cannot be committed, the next commit retries them.
    holding: Entries,
    /// True if the next commit checks that there is room for more.
    tries: bool,
    is_failing: bool,
    /// The time since when the disk is known to have no room for another lease.
    is_full_since: Option<Instant>,
    /// The reservation that the next commit writes.
    reserve: u64,
    owed: Owed,
    reserved: Arc<AtomicU64>,
}

/// Closes a queue when its thread ends, for any reason.
struct Closing(Arc<CommitQueue>);

impl DiskWriter {
    /// Starts the thread, which ends after this handle is dropped.
    pub(super) fn start(log: Log, reserved: u64, debt: Debt) -> io::Result<Self> {
        let (queue, requested) = (Arc::new(CommitQueue::default()), AtomicU64::new(reserved));
        let reserved = Arc::new(AtomicU64::new(reserved));
        let mut backlog = Backlog {
            log,
            holding: Entries::default(),
            tries: false,
            is_failing: false,
            is_full_since: None,
            reserve: requested.load(Ordering::Relaxed),
            owed: Owed::NONE,
            reserved: Arc::clone(&reserved),
        };
        let closing = Closing(Arc::clone(&queue));
        thread::Builder::new().name("ifmatch-store".to_owned()).spawn(move || backlog.write_all(&closing.0))?;
        Ok(Self { queue, reserved, requested, debt })
    }

    /// Requests the first commit, without which no write may begin: it says what the process owes.
    pub(super) fn begin(&self, now: StoreTime) -> Arc<Commit> {
        drop(self.owe_at(now));
        self.reserve_next()
    }

    /// Requests a commit that says what the process owes now. Whichever of several is written last, it says enough.
    fn owe_at(&self, now: StoreTime) -> Arc<Commit> {
        self.queue.ask(|words| words.owed = Some(self.debt.at(now)))
    }

    /// Requests a commit that reserves the next revisions.
    pub(super) fn reserve_next(&self) -> Arc<Commit> {
        let next = self.requested.fetch_add(RESERVED_AT_ONCE, Ordering::Relaxed) + RESERVED_AT_ONCE;
        self.queue.ask(|words| words.reserve = words.reserve.max(next))
    }
}

impl Drop for DiskWriter {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Journal for DiskWriter {
    type Entry = Arc<Commit>;

    /// Requests a commit for each change of a lease, which is in force only once it is written. All else ends with the
    /// process.
    fn swaps(
        &self,
        key: &ResourceKey,
        before: Option<(&Arc<Record>, StoreTime)>,
        after: &Snapshot,
    ) -> Option<Arc<Commit>> {
        let revision = after.revision.0;
        if revision + RESERVED_AT_ONCE / 2 > self.requested.load(Ordering::Relaxed) {
            drop(self.reserve_next());
        }
        let earlier = before.and_then(|(record, since)| LastingPart::of(record, since));
        let next = LastingPart::of(&after.record, after.now);
        if earlier == next {
            let is_reserved = revision <= self.reserved.load(Ordering::Acquire);
            // The reservation that was requested earlier is in the same commit, or in an earlier one.
            return (!is_reserved).then(|| self.queue.ask(|_| ()));
        }
        let record = before.map(|(record, since)| (Arc::clone(record), since));
        let earlier = EarlierRecord { key: key.clone(), record, now: after.now };
        let text = next.map(|part| part.text(after.now));
        Some(self.queue.ask(|words| {
            words.leases.push(key.as_str(), text.as_deref());
            words.earlier.push(earlier);
        }))
    }

    fn outcome(commit: &Arc<Commit>) -> Option<bool> {
        commit.outcome()
    }

    async fn ended(commit: &Arc<Commit>) {
        commit.is_made().await;
    }

    async fn try_out(&self) -> bool {
        self.queue.ask(|words| words.tries = true).is_made().await
    }

    async fn owe(&self, owed: Owed, now: StoreTime) -> bool {
        self.debt.add(owed);
        self.owe_at(now).is_made().await
    }

    async fn close(&self, has_no_pending_writes: bool, now: StoreTime) {
        if has_no_pending_writes {
            let owed = self.debt.without_writes(now);
            self.queue.ask(|words| words.owed = Some(owed)).is_made().await;
        } else {
            tracing::warn!("the process ends with writes in flight or in doubt: the next start waits for them");
        }
    }

    /// Notes a forgotten lease. Most records have none, and so nothing in the file to remove.
    fn forgotten(&self, key: &ResourceKey, record: &Record) {
        if !record.leases.is_empty() {
            self.queue.note(|words| words.forgotten.push(key.as_str(), None));
        }
    }
}

impl Backlog {
    /// Commits until the queue is closed. A commit waits for no further callers: those that come while the disk syncs
    /// share the next one, and work while the others' words are synced.
    fn write_all(&mut self, queue: &CommitQueue) {
        while let Some(mut taken) = queue.take(self.is_failing.then_some(PAUSE)) {
            let began = Instant::now();
            self.add(&taken);
            let committed = if self.is_in_vain(&taken, began) {
                Err(NotMade::from(io::Error::from(io::ErrorKind::StorageFull)))
            } else {
                let committed = self.commit(&taken.words.leases);
                let is_full = committed.as_ref().is_err_and(|failed| failed.error.kind() == io::ErrorKind::StorageFull);
                self.is_full_since = is_full.then_some(began);
                committed
            };
            self.tell(committed.as_ref().err().map(|failed| &failed.error));
            match &committed {
                Ok(()) => self.holding.clear(),
                // The file has these words, but they are refused: the earlier words replace them.
                Err(NotMade { is_in_log: true, .. }) => self.keep_earlier(&mut taken.words),
                // The next commit overwrites these words. If the words of each refused request were kept, they would
                // grow as long as the disk fails.
                Err(NotMade { is_in_log: false, .. }) => {}
            }
            taken.end(committed.is_ok());
        }
    }

    fn add(&mut self, taken: &TakenCommit) {
        let words = &taken.words;
        self.keep(&words.forgotten);
        // Words that must be written may take the last room.
        self.tries = (words.tries || taken.callers == 0) && words.leases.length() + self.holding.length() == 0;
        self.reserve = self.reserve.max(words.reserve);
        self.owed = words.owed.unwrap_or(self.owed);
    }

    /// True if a commit would only add leases to a file that could not grow a moment ago. Another attempt would cost as
    /// much as a read of the whole file. A renewal or a release of a lease is always attempted.
    fn is_in_vain(&self, taken: &TakenCommit, now: Instant) -> bool {
        let is_full = self.is_full_since.is_some_and(|since| now.saturating_duration_since(since) < PAUSE);
        let words = &taken.words;
        is_full && words.leases.length() > 0 && words.earlier.iter().all(|earlier| earlier.part().is_none())
    }

    /// Adds the words that stay in force because later ones are refused.
    fn keep_earlier(&mut self, words: &mut Words) {
        let mut earlier = Entries::default();
        words.earlier.drain(..).for_each(|record| record.put_into(&mut earlier));
        self.keep(&earlier);
    }

    /// Adds words that are in force, and keeps only the last of each lease. After any failures, there are no more words
    /// than leases in the file.
    fn keep(&mut self, words: &Entries) {
        if words.length() == 0 {
            return;
        }
        self.holding.append(words);
        if self.is_failing {
            let last: HashMap<_, _> = self.holding.iter().collect();
            let mut holding = Entries::default();
            for (key, text) in last {
                holding.push(key, text);
            }
            self.holding = holding;
        }
    }

    /// Logs one line when the disk begins to fail, and one when it works again. Commits are tried each second.
    fn tell(&mut self, failure: Option<&io::Error>) {
        match failure {
            Some(error) if !self.is_failing => {
                tracing::error!(%error, "leases cannot be written; changes to them are refused until they can");
            }
            None if self.is_failing => tracing::info!("leases can be written again"),
            _ => {}
        }
        self.is_failing = failure.is_some();
    }

    /// Writes all words, and waits until the disk has them.
    fn commit(&mut self, leases: &Entries) -> Result<(), NotMade> {
        let mut words = Cow::Borrowed(leases);
        if self.holding.length() > 0 {
            let mut both = self.holding.clone();
            both.append(leases);
            words = Cow::Owned(both);
        }
        if self.tries {
            self.log.commit_with_room(&words, self.reserve, self.owed)?;
        } else {
            self.log.commit(&words, self.reserve, self.owed)?;
        }
        self.reserved.fetch_max(self.reserve, Ordering::Release);
        Ok(())
    }
}
