//! The gate of a route: counts the writes that are under way on it, and holds new ones back while a reload changes what
//! decides which writes exclude each other.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::{InFlight, InFlightGuard};

const OPEN: u8 = 0;
const CLOSED: u8 = 1;
const RETIRED: u8 = 2;

/// The gate of one route, shared by all generations in which the route excludes the same writes.
#[derive(Debug, Default)]
pub struct Gate {
    writes: InFlight,
    state: AtomicU8,
    /// Whether whoever waits for something else behind the gate is to give up.
    hurried: AtomicBool,
    changed: Notify,
    /// Until when a write whose outcome nobody knows may still be applied, and no record says so.
    in_doubt_until: Mutex<Option<Instant>>,
}

/// The gates of the routes of a configuration, in their order.
pub type Gates = Arc<[Arc<Gate>]>;

/// Gates through which no write has gone.
pub fn new_gates(routes: usize) -> Gates {
    (0..routes).map(|_| Arc::default()).collect()
}

/// The route of this gate is served by other rules now: whoever waited for it asks the generation that is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the route is served by other rules now")]
pub struct Retired;

/// A write under way, until it is dropped.
#[derive(Debug)]
pub struct Pass {
    gate: Arc<Gate>,
    _ticket: InFlightGuard,
    /// How long it may still be applied after its end, unless its outcome becomes known.
    late_max: Option<Duration>,
}

impl Gate {
    /// Lets a write in that marks its resource: what becomes of it is in the record. Waits while the gate is closed.
    pub async fn enter(self: &Arc<Self>) -> Result<Pass, Retired> {
        self.pass(None).await
    }

    /// Lets a write in that marks nothing: unless its outcome becomes known, it counts for `late_max` beyond its end.
    pub async fn enter_unmarked(self: &Arc<Self>, late_max: Duration) -> Result<Pass, Retired> {
        self.pass(Some(late_max)).await
    }

    /// Waits while the gate is closed.
    pub async fn opened(&self) -> Result<(), Retired> {
        loop {
            let changed = self.changed.notified();
            match self.state.load(Ordering::SeqCst) {
                OPEN => return Ok(()),
                RETIRED => return Err(Retired),
                _ => changed.await,
            }
        }
    }

    /// Waits until whoever waits for something else is to give up: because the route gets other rules, or the process
    /// ends.
    pub async fn hurried(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_hurried() {
                return;
            }
            changed.await;
        }
    }

    /// Whether nobody is to wait any more.
    pub fn is_hurried(&self) -> bool {
        self.hurried.load(Ordering::SeqCst)
    }

    /// Tells whoever waits for something else to give up.
    pub(crate) fn cancel_waiters(&self) {
        self.hurried.store(true, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Holds back all writes that have not entered, until the gate is opened or retired.
    pub(crate) fn close(&self) {
        self.turn(CLOSED);
    }

    /// Lets writes in again, unless it is retired.
    pub(crate) fn open(&self) {
        let _ = self.state.compare_exchange(CLOSED, OPEN, Ordering::SeqCst, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Sends away whoever waits, and whoever comes.
    pub(crate) fn retire(&self) {
        self.hurried.store(true, Ordering::SeqCst);
        self.turn(RETIRED);
    }

    /// Waits until no write is under way, and none in doubt that no record tells of.
    pub(crate) async fn quiet(&self) {
        self.writes.idle().await;
        while let Some(until) = self.doubt() {
            sleep_until(until).await;
        }
    }

    /// Whether no write is under way, and none in doubt that no record tells of.
    pub(crate) fn is_quiet(&self) -> bool {
        self.writes.is_idle() && self.doubt().is_none()
    }

    /// How many writes are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.writes.count()
    }

    async fn pass(self: &Arc<Self>, late_max: Option<Duration>) -> Result<Pass, Retired> {
        loop {
            // Counted before the look: whoever closes the gate sees this write, or this write sees that it is closed.
            let ticket = self.writes.enter();
            if self.state.load(Ordering::SeqCst) == OPEN {
                return Ok(Pass { gate: Arc::clone(self), _ticket: ticket, late_max });
            }
            drop(ticket);
            self.opened().await?;
        }
    }

    fn turn(&self, state: u8) {
        self.state.store(state, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    fn doubt(&self) -> Option<Instant> {
        let until = *self.in_doubt_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.filter(|until| Instant::now() < *until)
    }
}

impl Pass {
    /// The outcome of the write is known: it is over when it ends.
    pub fn is_known(&mut self) {
        self.late_max = None;
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(late_max) = self.late_max {
            let until = Instant::now() + late_max;
            let mut in_doubt = self.gate.in_doubt_until.lock().unwrap_or_else(PoisonError::into_inner);
            *in_doubt = Some(in_doubt.map_or(until, |before| before.max(until)));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{task::yield_now, time::timeout};

    use super::*;

    const LATE_MAX: Duration = Duration::from_secs(5);

    async fn is_ready(future: impl Future) -> bool {
        timeout(Duration::ZERO, future).await.is_ok()
    }

    #[tokio::test]
    async fn a_closed_gate_lets_out_but_not_in() {
        let gate = Arc::new(Gate::default());
        let inside = gate.enter().await.unwrap();
        gate.close();
        assert!(!gate.is_quiet() && !is_ready(gate.quiet()).await, "one is under way");
        let waiting = tokio::spawn({
            let gate = Arc::clone(&gate);
            async move { gate.enter().await.map(drop) }
        });
        yield_now().await;
        drop(inside);
        assert!(is_ready(gate.quiet()).await);
        assert!(!waiting.is_finished(), "it waits for the gate");
        gate.open();
        assert_eq!(waiting.await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn a_retired_gate_sends_away_whoever_waits_and_whoever_comes() {
        let gate = Arc::new(Gate::default());
        gate.close();
        let waiting = tokio::spawn({
            let gate = Arc::clone(&gate);
            async move { gate.opened().await }
        });
        yield_now().await;
        gate.retire();
        gate.open();
        assert_eq!(waiting.await.unwrap(), Err(Retired));
        assert_eq!(gate.enter().await.map(drop), Err(Retired));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_without_a_known_end_counts_for_as_long_as_it_may_be_applied() {
        let gate = Arc::new(Gate::default());
        let mut known = gate.enter_unmarked(LATE_MAX).await.unwrap();
        known.is_known();
        drop(known);
        assert!(gate.is_quiet());
        drop(gate.enter_unmarked(LATE_MAX).await.unwrap());
        let begin = Instant::now();
        gate.quiet().await;
        assert_eq!(begin.elapsed(), LATE_MAX);
    }
}
