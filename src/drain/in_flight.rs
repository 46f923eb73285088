//! The number of requests in flight, or of open connections, and a way to wait until there are none.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;

use crate::telemetry::metrics::{Gauged, watch};

/// A count of requests, or of connections.
#[derive(Clone, Debug, Default)]
pub struct InFlight(Arc<Counter>);

#[derive(Debug, Default)]
struct Counter {
    requests: AtomicUsize,
    idle: Notify,
}

/// One counted request, until this is dropped.
#[derive(Debug)]
pub struct InFlightGuard(Arc<Counter>);

impl InFlight {
    /// Counts a request.
    pub fn enter(&self) -> InFlightGuard {
        self.0.requests.fetch_add(1, Ordering::SeqCst);
        InFlightGuard(Arc::clone(&self.0))
    }

    /// Shows the count in the metrics.
    pub fn show(&self) {
        watch(&self.0);
    }

    /// True if no request is counted.
    pub fn is_idle(&self) -> bool {
        self.count() == 0
    }

    /// The number of counted requests.
    pub fn count(&self) -> usize {
        self.0.requests.load(Ordering::SeqCst)
    }

    /// Waits until no request is counted.
    pub async fn idle(&self) {
        let notified = self.0.idle.notified();
        tokio::pin!(notified);
        loop {
            // Registered before the check, so that the last request cannot end unnoticed in between.
            notified.as_mut().enable();
            if self.is_idle() {
                return;
            }
            notified.as_mut().await;
            notified.set(self.0.idle.notified());
        }
    }
}

impl Gauged for Counter {
    fn active_requests(&self) -> u64 {
        u64::try_from(self.requests.load(Ordering::Relaxed)).unwrap_or(u64::MAX)
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        if self.0.requests.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn idle_waits_for_the_last_request() {
        let in_flight = InFlight::default();
        let (first, second) = (in_flight.enter(), in_flight.enter());
        drop(first);
        let waiting = tokio::spawn({
            let in_flight = in_flight.clone();
            async move { in_flight.idle().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "one request is in flight");
        drop(second);
        tokio::time::timeout(Duration::from_secs(5), waiting).await.expect("idle").expect("no panic");
    }
}
