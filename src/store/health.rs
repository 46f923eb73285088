//! One line in the log when an engine fails, and one when it answers again: it is asked thousands of times a second.

use std::{
    fmt::Display,
    sync::atomic::{AtomicBool, Ordering},
};

/// Whether an engine answers.
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
            tracing::error!(%error, "{} does not answer: while it does not, guarded writes are refused", self.engine);
        }
    }

    pub(super) fn answers(&self) {
        if self.is_failing.load(Ordering::Relaxed) && self.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!("{} answers again", self.engine);
        }
    }
}
