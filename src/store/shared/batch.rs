//! Batches of swaps for an engine: those of one process that came while others were on their way.
//!
//! # Design
//!
//! *Why batches?* A transaction costs an engine several times as much as a change within one, and waits for the disk
//! once. One with many swaps costs little more than one with a single swap.
//!
//! *Does a swap wait for others?* No. If a sender is free, the swap goes at once, alone if no other has come. Swaps
//! that come while all senders wait for answers go with the next free sender.
//!
//! *What do the swaps of a batch share?* They share the transport. A transaction without an answer is sent again
//! unchanged, and each of its swaps learns from its own label whether it was carried out before. They do not share the
//! verdict: each swap makes its own comparison.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{
        Mutex,
        mpsc::{Receiver, Sender, channel},
        oneshot,
    },
    task::JoinSet,
    time::timeout,
};

use super::engine::{EngineAnswer, Swap, SwapOutcome};
use crate::store::StoreError;

/// The number of transactions in flight. With fewer, a distant engine is not kept busy. With more, batches are small.
pub(super) const SENDERS: usize = 4;

/// The most swaps in one transaction. By default etcd accepts 128 operations, including nested ones.
const BATCH_MAX: usize = 64;

/// The approximate limit for the bytes of all records in one transaction. By default etcd accepts requests of 1.5 MiB.
const BATCH_BYTES_MAX: usize = 512 * 1024;

/// The most swaps that wait for a sender. Further callers wait until there is room in the queue.
const WAITING_MAX: usize = 1_024;

/// Carries swaps to an engine.
pub(super) trait Carrier: Send + Sync + 'static {
    /// Carries out swaps of different records in one transaction. Returns their answers in the same order.
    fn carry_out(
        &self,
        swaps: Vec<Swap>,
    ) -> impl Future<Output = Result<Vec<EngineAnswer<SwapOutcome>>, StoreError>> + Send;
}

/// The queue and the senders for all swaps of this process.
pub(super) struct Swaps {
    waiting: Sender<Job>,
    timeout: Duration,
    _senders: JoinSet<()>,
}

struct Job {
    swap: Swap,
    answer: oneshot::Sender<Result<EngineAnswer<SwapOutcome>, StoreError>>,
}

impl Swaps {
    /// Starts the senders, which end when this is dropped.
    pub(super) fn start(engine: &Arc<impl Carrier>, timeout: Duration) -> Self {
        let (waiting, queue) = channel(WAITING_MAX);
        let queue = Arc::new(Mutex::new(queue));
        let senders = (0..SENDERS).map(|_| send_all(Arc::clone(engine), Arc::clone(&queue))).collect();
        Self { waiting, timeout, _senders: senders }
    }

    /// Carries out a swap.
    pub(super) async fn carry_out(&self, swap: Swap) -> Result<EngineAnswer<SwapOutcome>, StoreError> {
        let (answer, answered) = oneshot::channel();
        let carried_out = async {
            self.waiting.send(Job { swap, answer }).await.ok()?;
            answered.await.ok()
        };
        // After the timeout the caller gets an error, and a swap that was not sent by then is never sent.
        timeout(self.timeout, carried_out).await.ok().flatten().unwrap_or(Err(StoreError::Unavailable))
    }
}

/// Sends all waiting swaps, and then those that have come meanwhile, forever.
async fn send_all(engine: Arc<impl Carrier>, queue: Arc<Mutex<Receiver<Job>>>) {
    let mut left = VecDeque::new();
    loop {
        if left.is_empty() {
            let mut come = Vec::new();
            if queue.lock().await.recv_many(&mut come, BATCH_MAX).await == 0 {
                return;
            }
            left.extend(come);
        }
        let batch = next_batch(&mut left);
        if !batch.is_empty() {
            send(&*engine, batch).await;
        }
    }
}

/// Takes the swaps that may go together: a transaction changes no record twice. Drops the swaps whose callers have
/// gone.
fn next_batch(left: &mut VecDeque<Job>) -> Vec<Job> {
    let (mut keys, mut bytes) = (HashSet::new(), 0);
    let (mut batch, mut later) = (Vec::new(), VecDeque::new());
    for job in left.drain(..).filter(|job| !job.answer.is_closed()) {
        bytes += job.swap.text.len();
        let has_room = batch.is_empty() || bytes <= BATCH_BYTES_MAX;
        if has_room && keys.insert(job.swap.key.clone()) {
            batch.push(job);
        } else {
            later.push_back(job);
        }
    }
    *left = later;
    batch
}

async fn send(engine: &impl Carrier, batch: Vec<Job>) {
    let (swaps, waiting): (Vec<_>, Vec<_>) = batch.into_iter().map(|job| (job.swap, job.answer)).unzip();
    let mut answers = engine.carry_out(swaps).await.unwrap_or_default().into_iter();
    for waiter in waiting {
        // A caller that has gone needs no answer.
        let _ = waiter.send(answers.next().ok_or(StoreError::Unavailable));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::core::{records::record::Revision, resource::ResourceKey};

    type Answers = Vec<oneshot::Receiver<Result<EngineAnswer<SwapOutcome>, StoreError>>>;

    /// Creates swaps of these resources, with records of this many bytes.
    fn jobs(swaps: &[(&str, usize)]) -> (VecDeque<Job>, Answers) {
        let job = |&(key, bytes): &(&str, usize)| {
            let (answer, answered) = oneshot::channel();
            let (key, text) = (ResourceKey::from_text(key), "r".repeat(bytes));
            let swap = Swap { key, expected: Revision::default(), text, idle_from: None, may_create: true };
            (Job { swap, answer }, answered)
        };
        swaps.iter().map(job).unzip()
    }

    fn taken(left: &mut VecDeque<Job>) -> Vec<String> {
        next_batch(left).iter().map(|job| job.swap.key.as_str().to_owned()).collect()
    }

    #[test]
    fn swaps_of_one_resource_go_one_after_the_other() {
        let (mut left, _answers) = jobs(&[("a", 1), ("b", 1), ("a", 1), ("c", 1)]);
        assert_eq!(taken(&mut left), ["a", "b", "c"]);
        assert_eq!(taken(&mut left), ["a"]);
        assert!(taken(&mut left).is_empty());
    }

    #[test]
    fn a_large_record_goes_alone() {
        let (mut left, _answers) = jobs(&[("a", 2 * BATCH_BYTES_MAX), ("b", BATCH_BYTES_MAX / 2), ("c", 1)]);
        assert_eq!(taken(&mut left), ["a"]);
        assert_eq!(taken(&mut left), ["b", "c"]);
    }

    /// A caller that has gone counts the outcome as unknown, so the swap must not happen long after that.
    #[test]
    fn what_nobody_waits_for_is_not_sent() {
        let (mut left, mut answers) = jobs(&[("a", 1), ("b", 1)]);
        drop(answers.remove(0));
        assert_eq!(taken(&mut left), ["b"]);
    }
}
