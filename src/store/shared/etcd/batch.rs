//! Batches of swaps for etcd: those of one process that came while others were on their way.
//!
//! # Design
//!
//! *Why batches?* A transaction costs etcd about three times the CPU time of a put, however small it is. One with many
//! swaps costs little more.
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

use etcd_client::{Txn, TxnResponse};
use tokio::{
    sync::{
        Mutex,
        mpsc::{Receiver, Sender, channel},
        oneshot,
    },
    task::AbortHandle,
    time::timeout,
};

use super::{client::EtcdClient, txn};
use crate::{
    core::{record::Revision, resource::ResourceKey},
    store::StoreError,
};

/// The number of transactions in flight. With fewer, a distant etcd is not kept busy. With more, batches are small.
const SENDERS: usize = 4;

/// The most swaps in one transaction. By default etcd accepts 128 operations, including nested ones.
const BATCH_MAX: usize = 64;

/// The approximate limit for the bytes of all records in one transaction. By default etcd accepts requests of 1.5 MiB.
const BATCH_BYTES_MAX: usize = 512 * 1024;

/// The most swaps that wait for a sender. Further callers wait until there is room in the queue.
const WAITING_MAX: usize = 1_024;

/// The queue and the senders for all swaps of this process.
pub(super) struct Swaps {
    waiting: Sender<Job>,
    timeout: Duration,
    senders: Vec<AbortHandle>,
}

/// The answer to the transaction of one swap.
pub(super) struct Answered {
    pub(super) response: TxnResponse,
    /// The store's revision at that time. If the record was put, this is its revision.
    pub(super) at: Revision,
    /// Whether an earlier attempt got no answer. It may have been carried out before this one or after it.
    pub(super) is_repeated: bool,
}

struct Job {
    key: ResourceKey,
    swap: Txn,
    bytes: usize,
    answer: oneshot::Sender<Result<Answered, StoreError>>,
}

impl Swaps {
    /// Starts the senders, which end when this is dropped.
    pub(super) fn start(engine: &Arc<EtcdClient>, timeout: Duration) -> Self {
        let (waiting, queue) = channel(WAITING_MAX);
        let queue = Arc::new(Mutex::new(queue));
        let sender = |_| tokio::spawn(send_all(Arc::clone(engine), Arc::clone(&queue))).abort_handle();
        Self { waiting, timeout, senders: (0..SENDERS).map(sender).collect() }
    }

    /// Carries out the transaction of a swap on this resource. The record has this many bytes.
    pub(super) async fn carry_out(&self, key: &ResourceKey, swap: Txn, bytes: usize) -> Result<Answered, StoreError> {
        let (answer, answered) = oneshot::channel();
        let job = Job { key: key.clone(), swap, bytes, answer };
        let carried_out = async {
            self.waiting.send(job).await.ok()?;
            answered.await.ok()
        };
        // After the timeout the caller gets an error, and a swap that was not sent by then is never sent.
        timeout(self.timeout, carried_out).await.ok().flatten().unwrap_or(Err(StoreError::Unavailable))
    }
}

impl Drop for Swaps {
    fn drop(&mut self) {
        self.senders.iter().for_each(AbortHandle::abort);
    }
}

/// Sends all waiting swaps, and then those that have come meanwhile, forever.
async fn send_all(engine: Arc<EtcdClient>, queue: Arc<Mutex<Receiver<Job>>>) {
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
        send(&engine, batch).await;
    }
}

/// Takes the swaps that may go together: a transaction puts no key twice. Drops the swaps whose callers have gone.
fn next_batch(left: &mut VecDeque<Job>) -> Vec<Job> {
    let (mut keys, mut bytes) = (HashSet::new(), 0);
    let (mut batch, mut later) = (Vec::new(), VecDeque::new());
    for job in left.drain(..).filter(|job| !job.answer.is_closed()) {
        bytes += job.bytes;
        let has_room = batch.is_empty() || bytes <= BATCH_BYTES_MAX;
        if has_room && keys.insert(job.key.clone()) {
            batch.push(job);
        } else {
            later.push_back(job);
        }
    }
    *left = later;
    batch
}

async fn send(engine: &EtcdClient, batch: Vec<Job>) {
    let (mut swaps, waiting): (Vec<Txn>, Vec<_>) = batch.into_iter().map(|job| (job.swap, job.answer)).unzip();
    let is_alone = swaps.len() == 1;
    let Some(question) = (if is_alone { swaps.pop() } else { (!swaps.is_empty()).then(|| txn::together(swaps)) })
    else {
        return;
    };
    let answered = engine.ask(question).await;
    let mut responses = match &answered {
        Ok(answer) if is_alone => vec![answer.response.clone()],
        Ok(answer) => txn::each(&answer.response),
        Err(_) => Vec::new(),
    }
    .into_iter();
    for waiter in waiting {
        let answer = match (&answered, responses.next()) {
            (Ok(whole), Some(response)) => {
                let at = txn::revision_of(&whole.response).unwrap_or_default();
                Ok(Answered { response, at, is_repeated: whole.is_repeated })
            }
            _ => Err(StoreError::Unavailable),
        };
        // A caller that has gone needs no answer.
        let _ = waiter.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Answers = Vec<oneshot::Receiver<Result<Answered, StoreError>>>;

    /// Creates swaps of these resources, with records of this many bytes.
    fn jobs(swaps: &[(&str, usize)]) -> (VecDeque<Job>, Answers) {
        let job = |&(key, bytes): &(&str, usize)| {
            let (answer, answered) = oneshot::channel();
            (Job { key: ResourceKey::from_text(key), swap: Txn::new(), bytes, answer }, answered)
        };
        swaps.iter().map(job).unzip()
    }

    fn taken(left: &mut VecDeque<Job>) -> Vec<String> {
        next_batch(left).iter().map(|job| job.key.as_str().to_owned()).collect()
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
