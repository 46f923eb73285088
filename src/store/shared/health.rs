//! Logs one line when an engine fails, and one when it answers again. It is queried thousands of times a second.

use std::{
    fmt::Display,
    sync::atomic::{AtomicBool, Ordering},
};

/// The health of an engine: whether it answers.
pub(super) struct EngineHealth {
    engine: &'static str,
    is_failing: AtomicBool,
}

impl EngineHealth {
    pub(super) fn of(engine: &'static str) -> Self {
        Self { engine, is_failing: AtomicBool::new(false) }
    }

    pub(super) fn fails(&self, error: &dyn Display) {
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            tracing::error!(%error, "{} does not answer: guarded writes are refused until it does", self.engine);
        }
    }

    pub(super) fn answers(&self) {
        if self.is_failing.load(Ordering::Relaxed) && self.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!("{} answers again", self.engine);
        }
    }
}
