//! One server of an upstream: its health, and the number of exchanges under way with it.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError},
    time::timeout,
};

use crate::{config::ConnectionLimits, counted::Counted};

/// How long a server that could not be connected to comes after all others. Long enough that a lost server costs few
/// requests a second attempt, and short enough that a recovered one soon gets its share.
const LAST_AFTER_FAILURE: Duration = Duration::from_secs(2);

/// The approximate time at which the process began.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The state of a server, shared by all configurations that name it.
#[derive(Debug)]
pub(super) struct UpstreamServer {
    pub(super) name: String,
    /// Whether the server's health checks failed.
    down: AtomicBool,
    /// The time until which the server comes last, in milliseconds since the start. 0 for never.
    last_until: AtomicU64,
    /// The number of consecutive check answers that contradict the server's current state.
    pub(super) streak: AtomicUsize,
    pub(super) max: usize,
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// The right to have one exchange with a server. Dropping it ends the exchange's share.
#[derive(Debug)]
pub(crate) struct Slot(#[expect(dead_code, reason = "it is held, and dropped")] OwnedSemaphorePermit);

/// The error of a server that already has the maximum number of exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl UpstreamServer {
    pub(super) fn new(name: &str, max: usize) -> Self {
        let max = max.min(Semaphore::MAX_PERMITS);
        Self {
            name: name.to_owned(),
            down: AtomicBool::new(false),
            last_until: AtomicU64::new(0),
            streak: AtomicUsize::new(0),
            max,
            slots: Arc::new(Semaphore::new(max)),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Returns the number of exchanges under way.
    pub(super) fn in_use(&self) -> usize {
        self.max.saturating_sub(self.slots.available_permits())
    }

    /// Returns the number of requests that wait for a slot.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn is_down(&self) -> bool {
        self.down.load(Ordering::Relaxed)
    }

    /// Notes the result of the server's health checks. Returns true if the state changed.
    pub(super) fn set_down(&self, down: bool) -> bool {
        self.down.swap(down, Ordering::Relaxed) != down
    }

    /// Whether a connection to the server failed a moment ago.
    pub(super) fn comes_last(&self) -> bool {
        let until = self.last_until.load(Ordering::Relaxed);
        until != 0 && since_start() < until
    }

    /// Notes whether a connection to the server succeeded.
    pub(super) fn connected(&self, succeeded: bool) {
        if !succeeded {
            let until = since_start().saturating_add(u64::try_from(LAST_AFTER_FAILURE.as_millis()).unwrap_or(u64::MAX));
            self.last_until.store(until, Ordering::Relaxed);
        } else if self.last_until.load(Ordering::Relaxed) != 0 {
            self.last_until.store(0, Ordering::Relaxed);
        }
    }

    /// Returns a slot, if one is free.
    pub(super) fn try_slot(&self) -> Result<Slot, Full> {
        match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(permit) => Ok(Slot(permit)),
            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => Err(Full),
        }
    }

    /// Waits for a free slot. Requests get their slots in the order of arrival.
    pub(super) async fn slot(&self, limits: &ConnectionLimits) -> Result<Slot, Full> {
        if let Ok(slot) = self.try_slot() {
            return Ok(slot);
        }
        let waiter = Counted::up_to(limits.queue_max_waiters, &self.waiting).ok_or(Full)?;
        let permit = timeout(limits.queue_max_wait, Arc::clone(&self.slots).acquire_owned()).await;
        drop(waiter);
        match permit {
            Ok(Ok(permit)) => Ok(Slot(permit)),
            Ok(Err(_)) | Err(_) => Err(Full),
        }
    }
}

fn since_start() -> u64 {
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(queue_max_waiters: usize) -> ConnectionLimits {
        ConnectionLimits { queue_max_wait: Duration::from_millis(20), queue_max_waiters, ..ConnectionLimits::default() }
    }

    #[tokio::test]
    async fn a_slot_is_free_again_when_its_exchange_is_over() {
        let server = UpstreamServer::new("a:1", 1);
        let slot = server.slot(&limits(0)).await.expect("the server is idle");
        assert_eq!((server.in_use(), server.try_slot().err()), (1, Some(Full)));
        drop(slot);
        assert!(server.try_slot().is_ok());
    }

    #[tokio::test]
    async fn a_wait_for_a_slot_is_bounded() {
        let server = UpstreamServer::new("a:1", 1);
        let _slot = server.try_slot().expect("the server is idle");
        assert_eq!(server.slot(&limits(1)).await.err(), Some(Full));
        assert_eq!(server.waiting(), 0);
    }

    #[tokio::test]
    async fn who_waits_is_served_when_a_slot_is_free() {
        let server = UpstreamServer::new("a:1", 1);
        let limits = ConnectionLimits { queue_max_wait: Duration::from_secs(10), ..limits(1) };
        let slot = server.try_slot().expect("the server is idle");
        let (waited, ()) = tokio::join!(server.slot(&limits), async move { drop(slot) });
        assert!(waited.is_ok());
    }

    #[tokio::test]
    async fn nobody_waits_beyond_the_most_who_may() {
        let server = UpstreamServer::new("a:1", 1);
        let _slot = server.try_slot().expect("the server is idle");
        let limits = ConnectionLimits { queue_max_wait: Duration::from_secs(600), ..limits(0) };
        assert_eq!(server.slot(&limits).await.err(), Some(Full));
    }

    #[test]
    fn a_server_that_refused_comes_last_until_it_takes_a_connection() {
        let server = UpstreamServer::new("a:1", 1);
        server.connected(false);
        assert!(server.comes_last());
        server.connected(true);
        assert!(!server.comes_last());
    }
}
