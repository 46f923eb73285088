//! The one writer of the file: a thread that commits whatever has come meanwhile, all in one (group commit).

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use redb::Database;
use tokio::sync::oneshot;

use super::file::{IN_USE, LEASES, NUMBERS, RESERVED, RESERVED_AT_ONCE};
use crate::{
    core::{
        lease::Lease,
        record::{Record, Revision, Snapshot, Stamp},
        resource::ResourceKey,
    },
    store::{encoding, memory::Journal},
};

/// Operations in one commit at most, so that the first of them does not wait for ever.
const BATCH_MAX: usize = 10_000;

/// Those who were answered together come again one after the other: so far apart at most, on a machine that is not busy.
const COMPANY_GAP: Duration = Duration::from_micros(50);

/// How long a commit waits for them, as a share of what the last one took.
const COMPANY_WAIT: u32 = 3;

/// The answer to whoever waits for a commit: whether it was made.
pub(super) type Committed = oneshot::Receiver<bool>;

/// What is to be written.
enum Operation {
    /// The lease of a resource, as text; or that it has none.
    Lease(ResourceKey, Option<String>),
    /// That revisions up to this one may be given.
    Reserve(u64),
    /// Whether a process uses the file.
    InUse(bool),
}

struct Job {
    operation: Operation,
    committed: Option<oneshot::Sender<bool>>,
}

/// The way to the writer.
///
/// Its queue has no limit of its own: a request in flight has one job in it, and a swap forgets few records.
pub(super) struct Writer {
    jobs: Sender<Job>,
    /// The last revision that is reserved in the file.
    reserved: Arc<AtomicU64>,
    /// The last one that it was asked to reserve.
    requested: AtomicU64,
}

/// What is not in the file yet, and what is reserved there.
struct Backlog {
    database: Database,
    /// The last word on each lease: one that could not be committed is tried again with the next.
    leases: BTreeMap<ResourceKey, Option<String>>,
    reserve: Option<u64>,
    in_use: Option<bool>,
    reserved: Arc<AtomicU64>,
}

impl Writer {
    /// Starts the thread. It ends with the last of its writers.
    pub(super) fn start(database: Database, reserved: u64) -> io::Result<Self> {
        let (jobs, queue) = channel();
        let reserved = Arc::new(AtomicU64::new(reserved));
        let requested = AtomicU64::new(reserved.load(Ordering::Relaxed));
        let (leases, backlog_reserved) = (BTreeMap::new(), Arc::clone(&reserved));
        let mut backlog = Backlog { database, leases, reserve: None, in_use: None, reserved: backlog_reserved };
        thread::Builder::new().name("ifmatch-store".to_owned()).spawn(move || backlog.write_all(&queue))?;
        Ok(Self { jobs, reserved, requested })
    }

    /// Has the first revisions reserved, and the file marked as in use.
    pub(super) fn begin(&self) -> Committed {
        drop(self.send(Operation::InUse(true)));
        self.reserve_next()
    }

    /// Has the file marked as given back in good order.
    pub(super) fn give_back(&self) -> Committed {
        self.send(Operation::InUse(false))
    }

    fn reserve_next(&self) -> Committed {
        let next = self.requested.fetch_add(RESERVED_AT_ONCE, Ordering::Relaxed) + RESERVED_AT_ONCE;
        self.send(Operation::Reserve(next))
    }

    fn send(&self, operation: Operation) -> Committed {
        let (committed, answer) = oneshot::channel();
        let job = Job { operation, committed: Some(committed) };
        // Without a writer the answer's other end is gone with the job: that is a commit that was not made.
        let _ = self.jobs.send(job);
        answer
    }
}

impl Journal for Writer {
    type Entry = Vec<Committed>;

    /// A grant is written before it is answered, and so is its end. All else is gone with the process.
    fn swapped(&self, key: &ResourceKey, before: &Record, after: &Snapshot) -> Vec<Committed> {
        let mut awaited = Vec::new();
        let revision = after.revision.0;
        if revision + RESERVED_AT_ONCE / 2 > self.requested.load(Ordering::Relaxed) {
            drop(self.reserve_next());
        }
        if revision > self.reserved.load(Ordering::Acquire) {
            awaited.push(self.send(Operation::Reserve(self.requested.load(Ordering::Relaxed))));
        }
        let lasting = lasting(&after.record);
        if self::lasting(before) != lasting {
            let text = lasting.map(|(lease, fence)| {
                let record = Record { lease: Some(lease.clone()), fence, ..Record::absent(Revision(0)) };
                encoding::encode(&record, after.now)
            });
            awaited.push(self.send(Operation::Lease(key.clone(), text)));
        }
        awaited
    }

    /// Most records have no lease, and nothing in the file that a commit would have to take out.
    fn forgotten(&self, key: &ResourceKey, record: &Record) {
        if lasting(record).is_some() {
            drop(self.send(Operation::Lease(key.clone(), None)));
        }
    }
}

/// What of a record must survive: a lease and its fence.
///
/// A write under way that takes an ended lease from its holder takes it here at its beginning. Otherwise a crash
/// before its end would bring the lease back, and a renewal would prove that nothing was written.
fn lasting(record: &Record) -> Option<(&Lease, Stamp)> {
    let mut marks = record.claim.iter().chain(&record.unclaimed);
    let lease = record.lease.as_ref().filter(|_| marks.all(|mark| mark.leaves_lease))?;
    Some((lease, record.fence))
}

/// What goes into one commit: what has come, and what still comes of those who were answered together, with no longer
/// gaps than this and within this time. Without that they would come in two halves, each of which waits for the commit of
/// the other.
fn batch(first: Job, queue: &Receiver<Job>, (gap, patience): (Duration, Duration)) -> Vec<Job> {
    let end = Instant::now() + patience;
    let mut jobs = vec![first];
    loop {
        jobs.extend(queue.try_iter().take(BATCH_MAX - jobs.len()));
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || jobs.len() == BATCH_MAX {
            return jobs;
        }
        match queue.recv_timeout(left.min(gap)) {
            Ok(job) => jobs.push(job),
            Err(_) => return jobs,
        }
    }
}

impl Backlog {
    fn write_all(&mut self, queue: &Receiver<Job>) {
        let mut last = Duration::ZERO;
        while let Ok(first) = queue.recv() {
            let jobs = batch(first, queue, (COMPANY_GAP, last / COMPANY_WAIT));
            let waiting: Vec<_> = jobs.into_iter().filter_map(|job| self.add(job)).collect();
            let began = Instant::now();
            let committed = match self.commit() {
                Ok(()) => true,
                Err(error) => {
                    tracing::error!(%error, "leases cannot be written; they are refused until they can");
                    false
                }
            };
            // Whoever was alone is not waited for.
            last = if waiting.len() > 1 { began.elapsed() } else { Duration::ZERO };
            for waiter in waiting {
                // Who has gone does not care.
                let _ = waiter.send(committed);
            }
        }
    }

    fn add(&mut self, job: Job) -> Option<oneshot::Sender<bool>> {
        match job.operation {
            Operation::Lease(key, text) => {
                self.leases.insert(key, text);
            }
            Operation::Reserve(revision) => self.reserve = Some(self.reserve.unwrap_or_default().max(revision)),
            Operation::InUse(in_use) => self.in_use = Some(in_use),
        }
        job.committed
    }

    /// Writes what there is, and waits until the disk has it.
    fn commit(&mut self) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut leases = transaction.open_table(LEASES)?;
            for (key, text) in &self.leases {
                match text {
                    Some(text) => leases.insert(key.as_str(), text.as_bytes()).map(drop)?,
                    None => leases.remove(key.as_str()).map(drop)?,
                }
            }
            let mut numbers = transaction.open_table(NUMBERS)?;
            if let Some(revision) = self.reserve {
                numbers.insert(RESERVED, revision)?;
            }
            if let Some(in_use) = self.in_use {
                numbers.insert(IN_USE, u64::from(in_use))?;
            }
        }
        // The engine's default: durable when this returns.
        transaction.commit()?;
        self.leases.clear();
        self.in_use = None;
        if let Some(revision) = self.reserve.take() {
            self.reserved.fetch_max(revision, Ordering::Release);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        Job { operation: Operation::InUse(true), committed: None }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_has_come_goes_into_one_commit_and_nobody_else_is_waited_for() {
        let (jobs, queue) = channel();
        for _ in 0..3 {
            jobs.send(job()).expect("the queue is there");
        }
        assert_eq!(batch(job(), &queue, (LONG, Duration::ZERO)).len(), 4);
    }

    #[test]
    fn who_comes_a_little_later_is_waited_for() {
        let (jobs, queue) = channel();
        let later = thread::spawn(move || jobs.send(job()).expect("the queue is there"));
        assert_eq!(batch(job(), &queue, (LONG, LONG)).len(), 2);
        later.join().expect("it was sent");
    }

    #[test]
    fn a_commit_has_an_end_however_many_come() {
        let (jobs, queue) = channel();
        for _ in 0..BATCH_MAX + 5 {
            jobs.send(job()).expect("the queue is there");
        }
        assert_eq!(batch(job(), &queue, (LONG, LONG)).len(), BATCH_MAX);
        assert_eq!(queue.try_iter().count(), 6);
    }
}
