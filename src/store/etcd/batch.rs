//! Swaps that go to etcd together, those of one process that have come while others were on their way.
//!
//! # Design
//!
//! *Why?* A transaction costs etcd some three times the CPU time of a put, however little is in it; one with many swaps
//! in it costs not much more.
//!
//! *Who waits for company?* Nobody. A swap goes at once where a sender has nothing to do, and alone if no other has come.
//! What comes while all senders wait for answers goes with the next of them that has one.
//!
//! *What do they share?* The way: a transaction that no answer came to is sent again as it is, and each of its swaps
//! finds out by its own label whether it was carried out before. Not the verdict: each compares for itself.

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

/// Transactions on their way at a time: with fewer a distant etcd is not kept busy, with more they are small.
const SENDERS: usize = 4;

/// Swaps in one transaction: etcd takes 128 operations by default, those inside others counted in.
const BATCH_MAX: usize = 64;

/// Bytes of all records in one transaction, about: etcd takes requests of 1.5 MiB by default.
const BATCH_BYTES_MAX: usize = 512 * 1024;

/// Swaps that wait for a sender; whoever finds no room among them waits before them.
const WAITING_MAX: usize = 1_024;

/// The way of all swaps of this process.
pub(super) struct Swaps {
    waiting: Sender<Job>,
    timeout: Duration,
    senders: Vec<AbortHandle>,
}

/// What the transaction of one swap came to.
pub(super) struct Answered {
    pub(super) response: TxnResponse,
    /// The store's revision at that moment: that of the record, if it was put.
    pub(super) at: Revision,
    /// Whether an earlier attempt got no answer: it may have been carried out, before this one or after.
    pub(super) is_repeated: bool,
}

struct Job {
    key: ResourceKey,
    swap: Txn,
    bytes: usize,
    answer: oneshot::Sender<Result<Answered, StoreError>>,
}

impl Swaps {
    /// Starts the senders, which end with this.
    pub(super) fn start(engine: &Arc<EtcdClient>, timeout: Duration) -> Self {
        let (waiting, queue) = channel(WAITING_MAX);
        let queue = Arc::new(Mutex::new(queue));
        let sender = |_| tokio::spawn(send_all(Arc::clone(engine), Arc::clone(&queue))).abort_handle();
        Self { waiting, timeout, senders: (0..SENDERS).map(sender).collect() }
    }

    /// Carries out the transaction of a swap of this resource, whose record has this many bytes.
    pub(super) async fn carry_out(&self, key: &ResourceKey, swap: Txn, bytes: usize) -> Result<Answered, StoreError> {
        let (answer, answered) = oneshot::channel();
        let job = Job { key: key.clone(), swap, bytes, answer };
        let carried_out = async {
            self.waiting.send(job).await.ok()?;
            answered.await.ok()
        };
        // Who was waited for in vain is told so, and what was not sent by then never is.
        timeout(self.timeout, carried_out).await.ok().flatten().unwrap_or(Err(StoreError::Unavailable))
    }
}

impl Drop for Swaps {
    fn drop(&mut self) {
        self.senders.iter().for_each(AbortHandle::abort);
    }
}

/// Sends whatever waits, and then what has come meanwhile, for ever.
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

/// Takes those that may go together: a transaction puts no key twice. Nobody waits for the answers to some any more.
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
        // Who has gone does not care.
        let _ = waiter.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Answers = Vec<oneshot::Receiver<Result<Answered, StoreError>>>;

    /// Swaps of these resources, with records of as many bytes.
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

    /// Its outcome is unknown to whoever went away: it must not happen long after that.
    #[test]
    fn what_nobody_waits_for_is_not_sent() {
        let (mut left, mut answers) = jobs(&[("a", 1), ("b", 1)]);
        drop(answers.remove(0));
        assert_eq!(taken(&mut left), ["b"]);
    }
}
