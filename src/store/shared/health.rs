//! The health of an engine, and the attempts at a question before it counts as unavailable.
//!
//! One line is logged when an engine fails, and one when it answers again. It is queried thousands of times a second.

use std::{
    fmt::Display,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};

use crate::store::StoreError;

/// The number of attempts that one question has time for. The last one is often cut short. With several members, the
/// next attempt often reaches another one.
const ATTEMPTS: u32 = 3;

/// The pause between two attempts, as a divisor of the time for all of them. It is short, but does not flood a server
/// that is down.
const PAUSES: u32 = 40;

/// The health of an engine: whether it answers.
pub(super) struct EngineHealth {
    engine: &'static str,
    /// The time that an operation has.
    timeout: Duration,
    is_failing: AtomicBool,
}

/// The attempts at one question.
pub(super) struct Attempts<'a> {
    health: &'a EngineHealth,
    end: Instant,
    /// True if an earlier attempt got no answer. It may have been carried out before the next one or after it.
    pub(super) are_repeated: bool,
}

impl EngineHealth {
    pub(super) fn of(engine: &'static str, timeout: Duration) -> Self {
        Self { engine, timeout, is_failing: AtomicBool::new(false) }
    }

    /// Begins the attempts at a question.
    pub(super) fn attempts(&self) -> Attempts<'_> {
        // A part of the time is left to the caller.
        Attempts { health: self, end: Instant::now() + self.timeout * 9 / 10, are_repeated: false }
    }

    fn fails(&self, error: &dyn Display) {
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            tracing::error!(%error, "{} does not answer: guarded writes are refused until it does", self.engine);
        }
    }

    fn answers(&self) {
        if self.is_failing.load(Ordering::Relaxed) && self.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!("{} answers again", self.engine);
        }
    }
}

impl Attempts<'_> {
    /// Makes an attempt. `None` if there was no answer and the question may be asked again. Fails if no time is left.
    pub(super) async fn make<T, E: Display>(
        &mut self,
        attempt: impl Future<Output = Result<T, E>>,
    ) -> Result<Option<T>, StoreError> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(StoreError::Unavailable);
        }
        match timeout(left.min(self.health.timeout / ATTEMPTS), attempt).await {
            Ok(Ok(answer)) => {
                self.health.answers();
                return Ok(Some(answer));
            }
            Ok(Err(error)) => self.health.fails(&error),
            Err(elapsed) => self.health.fails(&elapsed),
        }
        self.are_repeated = true;
        Ok(None)
    }

    /// Waits before the next attempt.
    pub(super) async fn pause(&self) {
        sleep(self.health.timeout / PAUSES).await;
    }
}
