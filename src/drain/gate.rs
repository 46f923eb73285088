//! The gate of a route. It counts the writes in progress, and holds new ones back while a reload changes the rules that
//! decide which writes exclude each other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
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
    /// True if callers behind the gate that wait for something else must give up.
    waiters_are_cancelled: AtomicBool,
    changed: Notify,
    /// The latest time at which a write with unknown outcome may still be applied, if no record shows that doubt.
    in_doubt_until: Mutex<Option<Instant>>,
}

/// The gates of a configuration's routes, in the order of the routes.
pub type Gates = Arc<[Arc<Gate>]>;

/// Creates gates that no write has passed yet.
pub fn new_gates(routes: usize) -> Gates {
    (0..routes).map(|_| Arc::default()).collect()
}

/// The error of a gate whose route is now served by other rules. The caller turns to the live generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the route is served by other rules now")]
pub struct Retired;

/// A write in progress, until this is dropped.
#[derive(Debug)]
pub struct Pass {
    gate: Arc<Gate>,
    _ticket: InFlightGuard,
    /// How long after its end the write may still be applied, unless its outcome becomes known.
    late_write_window: Option<Duration>,
}

impl Gate {
    /// Admits a write that marks its resource, so that the record shows its outcome. Waits while the gate is closed.
    pub async fn enter(self: &Arc<Self>) -> Result<Pass, Retired> {
        self.pass(None).await
    }

    /// Admits a write that marks nothing. Unless its outcome becomes known, it counts for `late_write_window` beyond its end.
    pub async fn enter_unmarked(self: &Arc<Self>, late_write_window: Duration) -> Result<Pass, Retired> {
        self.pass(Some(late_write_window)).await
    }

    /// Admits a write that marks its resource, unless the gate is closed or retired.
    pub fn enter_at_once(self: &Arc<Self>) -> Option<Pass> {
        // Counted before the state is read, as in `pass`.
        let ticket = self.writes.enter();
        let is_open = self.state.load(Ordering::SeqCst) == OPEN;
        is_open.then(|| Pass { gate: Arc::clone(self), _ticket: ticket, late_write_window: None })
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

    /// Waits for an output. Returns `None` as soon as callers must give up: the route gets other rules, or the process ends.
    pub async fn unless_cancelled<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            output = wait => Some(output),
            () = self.waiters_cancelled() => None,
        }
    }

    async fn waiters_cancelled(&self) {
        loop {
            let changed = self.changed.notified();
            if self.has_cancelled_waiters() {
                return;
            }
            changed.await;
        }
    }

    /// True if callers must stop waiting.
    pub fn has_cancelled_waiters(&self) -> bool {
        self.waiters_are_cancelled.load(Ordering::SeqCst)
    }

    /// Makes callers that wait for something else give up.
    pub(crate) fn cancel_waiters(&self) {
        self.waiters_are_cancelled.store(true, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Holds back all writes that have not entered, until the gate is opened or retired.
    pub(crate) fn close(&self) {
        self.turn(CLOSED);
    }

    /// Admits writes again, unless the gate is retired.
    pub(crate) fn open(&self) {
        let _ = self.state.compare_exchange(CLOSED, OPEN, Ordering::SeqCst, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Turns away all waiting and future callers.
    pub(crate) fn retire(&self) {
        self.waiters_are_cancelled.store(true, Ordering::SeqCst);
        self.turn(RETIRED);
    }

    /// Waits until no write is in progress, and none is in doubt without a record that shows it.
    pub(crate) async fn quiet(&self) {
        self.writes.idle().await;
        while let Some(until) = self.doubt() {
            sleep_until(until).await;
        }
    }

    /// True if no write is in progress, and none is in doubt without a record that shows it.
    pub(crate) fn is_quiet(&self) -> bool {
        self.writes.is_idle() && self.doubt().is_none()
    }

    /// The number of writes in progress.
    pub(crate) fn under_way(&self) -> usize {
        self.writes.count()
    }

    async fn pass(self: &Arc<Self>, late_write_window: Option<Duration>) -> Result<Pass, Retired> {
        loop {
            // Counted before the state is read: either the closer sees this write, or this write sees the closed gate.
            let ticket = self.writes.enter();
            if self.state.load(Ordering::SeqCst) == OPEN {
                return Ok(Pass { gate: Arc::clone(self), _ticket: ticket, late_write_window });
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
        let until = *self.in_doubt_until.lock();
        until.filter(|until| Instant::now() < *until)
    }
}

impl Pass {
    /// Notes that the outcome of the write is known: it cannot be applied after its end.
    pub fn is_known(&mut self) {
        self.late_write_window = None;
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(late_write_window) = self.late_write_window {
            let until = Instant::now() + late_write_window;
            let mut in_doubt = self.gate.in_doubt_until.lock();
            *in_doubt = Some(in_doubt.map_or(until, |before| before.max(until)));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{task::yield_now, time::timeout};

    use super::*;

    const LATE_WRITE_WINDOW: Duration = Duration::from_secs(5);

    async fn is_ready(future: impl Future) -> bool {
        timeout(Duration::ZERO, future).await.is_ok()
    }

    #[tokio::test]
    async fn a_closed_gate_lets_out_but_not_in() {
        let gate = Arc::new(Gate::default());
        let inside = gate.enter().await.unwrap();
        gate.close();
        assert!(!gate.is_quiet() && !is_ready(gate.quiet()).await, "one write is in progress");
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
    async fn what_cannot_enter_at_once_does_not_count() {
        let gate = Arc::new(Gate::default());
        let inside = gate.enter_at_once();
        assert_eq!((inside.is_some(), gate.under_way()), (true, 1));
        drop(inside);
        gate.close();
        assert_eq!((gate.enter_at_once().is_some(), gate.is_quiet()), (false, true));
        gate.retire();
        assert!(gate.enter_at_once().is_none());
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
        let mut known = gate.enter_unmarked(LATE_WRITE_WINDOW).await.unwrap();
        known.is_known();
        drop(known);
        assert!(gate.is_quiet());
        drop(gate.enter_unmarked(LATE_WRITE_WINDOW).await.unwrap());
        let begin = Instant::now();
        gate.quiet().await;
        assert_eq!(begin.elapsed(), LATE_WRITE_WINDOW);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_of_several_doubts_counts() {
        let gate = Arc::new(Gate::default());
        let begin = Instant::now();
        for late_write_window in [LATE_WRITE_WINDOW, LATE_WRITE_WINDOW / 5] {
            drop(gate.enter_unmarked(late_write_window).await.unwrap());
        }
        gate.quiet().await;
        assert_eq!(begin.elapsed(), LATE_WRITE_WINDOW);
    }
}
