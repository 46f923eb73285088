//! A lease on its way to a client that holds it by a stream (DESIGN, section 8, "A lease held by a stream").

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use pingora::http::RequestHeader;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::{
    Leases, Needs, Operated,
    keeper::{Keeping, LeaseKeeper},
};
use crate::{
    body::Client,
    box_future::BoxFuture,
    core::{
        lease::{Acquire, Action, KeeperName, KeptLease, LeaseId},
        policy::{LeaseAuth, LeaseRules},
        records::record::Snapshot,
    },
    dialect::LeaseOperation,
    guard::{Guard, Halt, claim::queue::LineMoment, request::Request},
};

/// The least time between two questions to the upstream about the right of one client, and the pause after a question
/// without an answer.
const RIGHT_LASTS_MIN: Duration = Duration::from_secs(1);

/// How often the place of a client that waits is looked at. A line may move many times a second.
const PLACE_SEEN_EACH: Duration = Duration::from_secs(1);

/// A client that wants to hold a lease by a stream.
#[derive(Clone)]
pub(crate) struct StreamedLease {
    leases: Arc<Leases>,
    request: Arc<Request>,
    path: Box<[u8]>,
    keeper: KeeperName,
}

/// The place of a client in the line for a lease. Lines of other processes do not count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeasePlace {
    arrival: LineMoment,
    /// The number of clients in the line up to this one, itself included.
    pub(crate) number: usize,
}

/// The acquisition of a lease, which may have to wait.
pub(crate) struct Acquisition {
    acquired: BoxFuture<'static, Result<Operated, Halt>>,
    waits: Arc<Notify>,
}

impl Guard {
    /// Prepares the lease of a request, for a client that knows its path as this.
    pub(crate) fn streamed_lease(&self, request: Request, path: &[u8], keeper: KeeperName) -> StreamedLease {
        StreamedLease { leases: Arc::clone(&self.leases), request: Arc::new(request), path: path.into(), keeper }
    }
}

impl StreamedLease {
    /// Begins to acquire the lease.
    pub(crate) fn acquire(&self, rules: &LeaseRules, wanted: Acquire, wait: Option<Duration>) -> Acquisition {
        let waits = Arc::<Notify>::default();
        let (leases, rules) = (Arc::clone(&self.leases), rules.clone());
        let mut client = WaitingClient { request: Arc::clone(&self.request), waits: Arc::clone(&waits) };
        let action = Action::Acquire(Acquire { keeper: Some(self.keeper), ..wanted });
        let request = Arc::clone(&self.request);
        let operation = LeaseOperation::Step { action, wait };
        let acquired = async move { leases.operate(&mut client, &request, &rules, operation).await };
        Acquisition { acquired: Box::pin(acquired), waits }
    }

    /// Keeps the lease that was just acquired with this id, or taken up again if it is not `is_new`.
    pub(crate) fn keep(
        &self,
        rules: &LeaseRules,
        (id, is_new): (LeaseId, bool),
        (snapshot, asked): (&Snapshot, Instant),
    ) -> LeaseKeeper {
        let granted = snapshot.leases().find(|lease| lease.id == id);
        let fence = granted.map_or(snapshot.revision, |lease| lease.fence.resolve(snapshot.revision));
        let lease = KeptLease { fence, keeper: self.keeper, max_hold_time: rules.max_hold_time };
        let (leases, request, path) = (Arc::clone(&self.leases), Arc::clone(&self.request), self.path.clone());
        Keeping { leases, request, path, lease, linger: rules.linger, is_new }.begin(snapshot, asked)
    }

    /// Completes when the upstream denies the client the resource, with its status. It is asked each `identity_ttl`. As
    /// long as it does not answer, the client keeps what it has.
    pub(crate) fn right_ends(&self) -> BoxFuture<'static, StatusCode> {
        let (leases, request) = (Arc::clone(&self.leases), Arc::clone(&self.request));
        Box::pin(async move {
            let Some(rules) = request.rules().lease.as_ref().filter(|rules| rules.auth == LeaseAuth::Probe) else {
                return std::future::pending().await;
            };
            loop {
                sleep(request.rules().identity_ttl.max(RIGHT_LASTS_MIN)).await;
                let needs = Needs { presence: false, tag: false };
                if let Err(Halt::Denied(relayed)) = leases.authorize(&request, rules, needs).await {
                    let status = relayed.head.status;
                    relayed.discard().await;
                    return status;
                }
            }
        })
    }

    /// Returns the place of a client that has begun to wait just now.
    pub(crate) fn place(&self) -> LeasePlace {
        let arrival = self.leases.queues.arrival();
        LeasePlace { arrival, number: self.leases.queues.came_before(&self.request.key, arrival) }
    }

    /// Waits until clients before this one have left the line. May be dropped and called again.
    pub(crate) async fn moves_up(&self, place: LeasePlace) -> LeasePlace {
        loop {
            sleep(PLACE_SEEN_EACH).await;
            let number = self.leases.queues.came_before(&self.request.key, place.arrival);
            // A client that has left the line itself is about to get its outcome.
            if (1..place.number).contains(&number) {
                return LeasePlace { number, ..place };
            }
        }
    }

    /// Returns the record that keeps the client waiting.
    pub(crate) async fn wait_seen(&self) -> Result<Snapshot, Halt> {
        Ok(self.leases.knowledge.record(&self.request).await?)
    }

    /// True if clients must stop waiting: their route gets other rules, or the process ends.
    pub(crate) fn is_wait_cancelled(&self) -> bool {
        self.request.place.gate.has_cancelled_waiters()
    }
}

impl Acquisition {
    /// Waits for the lease. May be dropped and called again until it has returned.
    pub(crate) async fn acquired(&mut self) -> Result<Operated, Halt> {
        (&mut self.acquired).await
    }

    /// The same, until the client has to wait for the lease or for a write: then there is no outcome yet.
    pub(crate) async fn acquired_at_once(&mut self) -> Option<Result<Operated, Halt>> {
        tokio::select! {
            biased;
            acquired = &mut self.acquired => Some(acquired),
            () = self.waits.notified() => None,
        }
    }
}

/// The client of an acquisition. It waits elsewhere, and learns here that it has to.
struct WaitingClient {
    request: Arc<Request>,
    waits: Arc<Notify>,
}

impl Client for WaitingClient {
    fn head(&self) -> &Arc<RequestHeader> {
        &self.request.head
    }

    fn has_content(&mut self) -> bool {
        false
    }

    fn certificate(&self) -> Option<&[u8]> {
        None
    }

    fn invite_content(&mut self) -> BoxFuture<'_, pingora::Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn next_chunk(&mut self) -> BoxFuture<'_, pingora::Result<Option<Bytes>>> {
        Box::pin(async { Ok(None) })
    }

    fn gone(&mut self) -> BoxFuture<'_, Box<pingora::Error>> {
        self.waits.notify_one();
        Box::pin(std::future::pending())
    }

    fn has_gone(&mut self) -> bool {
        false
    }
}
