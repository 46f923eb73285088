//! The one writer of the file: a thread that commits whatever has come meanwhile, all in one (group commit).

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
    frame::Entries,
    log::{Log, NotMade},
    queue::{Commit, CommitQueue, TakenCommit},
};
use crate::{
    core::{
        lease::Lease,
        record::{Record, Revision, Snapshot, Stamp},
        resource::ResourceKey,
        time::StoreTime,
    },
    store::{encoding, memory::Journal},
};

/// How many revisions are reserved at once: at a million writes a second, two commits a second are spent on it.
const RESERVED_AT_ONCE: u64 = if cfg!(test) { 1 << 12 } else { 1 << 20 };

/// How long after a commit that failed it is tried again, if nobody asks for one before.
const PAUSE: Duration = Duration::from_secs(1);

/// The way to the writer.
pub(super) struct DiskWriter {
    queue: Arc<CommitQueue>,
    /// The last revision that is reserved in the file.
    reserved: Arc<AtomicU64>,
    /// The last one that it was asked to reserve.
    requested: AtomicU64,
}

/// What is not in the file yet, and what is reserved there.
struct Backlog {
    log: Log,
    /// Words that hold, whoever waits: those that could not be committed are tried again with the next.
    holding: Entries,
    /// Whether the next commit is to find out if there is room for more.
    tries: bool,
    is_failing: bool,
    /// Since when the disk is known to have no room for another lease.
    is_full_since: Option<Instant>,
    /// What the file is to say next.
    reserve: u64,
    in_use: bool,
    reserved: Arc<AtomicU64>,
}

/// Closes a queue at the end of its thread, however that comes.
struct Closing(Arc<CommitQueue>);

impl DiskWriter {
    /// Starts the thread. It ends with the last of its writers.
    pub(super) fn start(log: Log, reserved: u64) -> io::Result<Self> {
        let (queue, requested) = (Arc::new(CommitQueue::default()), AtomicU64::new(reserved));
        let reserved = Arc::new(AtomicU64::new(reserved));
        let mut backlog = Backlog {
            log,
            holding: Entries::default(),
            tries: false,
            is_failing: false,
            is_full_since: None,
            reserve: requested.load(Ordering::Relaxed),
            in_use: true,
            reserved: Arc::clone(&reserved),
        };
        let closing = Closing(Arc::clone(&queue));
        thread::Builder::new().name("ifmatch-store".to_owned()).spawn(move || backlog.write_all(&closing.0))?;
        Ok(Self { queue, reserved, requested })
    }

    /// Has the first revisions reserved, and the file marked as in use.
    pub(super) fn begin(&self) -> Arc<Commit> {
        self.reserve_next()
    }

    /// Has the file marked as given back in good order.
    pub(super) fn give_back(&self) -> Arc<Commit> {
        self.queue.ask(|words| words.gives_back = true)
    }

    /// Has a commit made that leaves room for more, although there is nothing to write.
    pub(super) fn try_out(&self) -> Arc<Commit> {
        self.queue.ask(|words| words.tries = true)
    }

    fn reserve_next(&self) -> Arc<Commit> {
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

    /// A grant is written before it is in force, and so is its end. All else is gone with the process.
    fn swaps(&self, key: &ResourceKey, before: Option<(&Record, StoreTime)>, after: &Snapshot) -> Option<Arc<Commit>> {
        let revision = after.revision.0;
        if revision + RESERVED_AT_ONCE / 2 > self.requested.load(Ordering::Relaxed) {
            drop(self.reserve_next());
        }
        let earlier = before.and_then(|(record, since)| lasting(record, since));
        let next = lasting(&after.record, after.now);
        if earlier == next {
            let is_reserved = revision <= self.reserved.load(Ordering::Acquire);
            // What was asked for before this is in the same commit, or in an earlier one.
            return (!is_reserved).then(|| self.queue.ask(|_| ()));
        }
        let text = |(lease, fence): (&Lease, Stamp)| {
            let record = Record { lease: Some(lease.clone()), fence, ..Record::absent(Revision(0)) };
            encoding::encode(&record, after.now)
        };
        let (earlier, next) = (earlier.map(text), next.map(text));
        Some(self.queue.ask(|words| {
            words.leases.push(key.as_str(), next.as_deref());
            words.earlier.push(key.as_str(), earlier.as_deref());
        }))
    }

    fn outcome(commit: &Arc<Commit>) -> Option<bool> {
        commit.outcome()
    }

    async fn ended(commit: &Arc<Commit>) {
        commit.is_made().await;
    }

    /// Most records have no lease, and nothing in the file that a commit would have to take out.
    fn forgotten(&self, key: &ResourceKey, record: &Record) {
        if record.lease.is_some() {
            self.queue.note(|words| words.forgotten.push(key.as_str(), None));
        }
    }
}

/// What of a record that was put in at this moment must survive: a lease and its fence.
///
/// A write under way that takes an ended lease from its holder takes it here at its beginning. Otherwise a crash
/// before its end would bring the lease back, and a renewal would prove that nothing was written. A lease that is held
/// is left by every write.
fn lasting(record: &Record, since: StoreTime) -> Option<(&Lease, Stamp)> {
    let is_taken = |lease: &Lease| record.marks().any(|mark| mark.takes(lease, since));
    let lease = record.lease.as_ref().filter(|lease| !is_taken(lease))?;
    Some((lease, record.fence))
}

impl Backlog {
    /// Commits until nobody is left. Those who were answered together come again one after the other, so a commit waits
    /// for them, if they come within the time that the one before took: without that they would come in two halves, each
    /// of which waits for the commit of the other.
    fn write_all(&mut self, queue: &CommitQueue) {
        let (mut expected, mut patience) = (0, Duration::ZERO);
        while let Some(taken) = queue.take(expected, patience, self.is_failing.then_some(PAUSE)) {
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
                // Nobody is told of these: what was before takes their place.
                Err(NotMade { is_in_log: true, .. }) => self.keep(&taken.words.earlier),
                // Neither the file nor anybody knows of them. To keep words on each request that is refused would let
                // them grow as long as the disk fails.
                Err(NotMade { is_in_log: false, .. }) => {}
            }
            // Before they are answered: some come again at once.
            (expected, patience) = (queue.callers() + taken.callers, began.elapsed());
            taken.end(committed.is_ok());
        }
    }

    fn add(&mut self, taken: &TakenCommit) {
        let words = &taken.words;
        self.keep(&words.forgotten);
        // What is to be written may take the last room that there is.
        self.tries = (words.tries || taken.callers == 0) && words.leases.length() + self.holding.length() == 0;
        self.reserve = self.reserve.max(words.reserve);
        self.in_use &= !words.gives_back;
    }

    /// Whether all of these would add to a file that could not grow a moment ago: to find that out again costs as much as
    /// to read all of it. Who renews a lease, or gives one back, is not kept waiting.
    fn is_in_vain(&self, taken: &TakenCommit, now: Instant) -> bool {
        let is_full = self.is_full_since.is_some_and(|since| now.saturating_duration_since(since) < PAUSE);
        let words = &taken.words;
        is_full && words.leases.length() > 0 && words.earlier.iter().all(|(_, text)| text.is_none())
    }

    /// Adds words that hold, and keeps the last on each lease alone: whatever fails, and however often, there are no more
    /// of them than leases in the file.
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

    /// One line when the disk begins to fail, and one when it works again: it is tried each second.
    fn tell(&mut self, failure: Option<&io::Error>) {
        match failure {
            Some(error) if !self.is_failing => {
                tracing::error!(%error, "leases cannot be written; changes of them are refused until they can");
            }
            None if self.is_failing => tracing::info!("leases can be written again"),
            _ => {}
        }
        self.is_failing = failure.is_some();
    }

    /// Writes what there is, and waits until the disk has it.
    fn commit(&mut self, leases: &Entries) -> Result<(), NotMade> {
        let mut words = Cow::Borrowed(leases);
        if self.holding.length() > 0 {
            let mut both = self.holding.clone();
            both.append(leases);
            words = Cow::Owned(both);
        }
        if self.tries {
            self.log.commit_with_room(&words, self.reserve, self.in_use)?;
        } else {
            self.log.commit(&words, self.reserve, self.in_use)?;
        }
        self.reserved.fetch_max(self.reserve, Ordering::Release);
        Ok(())
    }
}
