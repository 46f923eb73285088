//! The measurements of store operations: their durations and failures.

use std::time::Duration;

use opentelemetry::KeyValue;

use super::{Metrics, definitions as define};

/// The name in metrics of a store that cannot be reached or does not answer in time.
pub const UNAVAILABLE: &str = "unavailable";
/// The name in metrics of a store without room.
pub const FULL: &str = "full";

/// An operation of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOperation {
    /// Returns the store's time.
    Now,
    /// Reads a record.
    Read,
    /// Replaces a record.
    Swap,
}

impl StoreOperation {
    /// All operations, each at the index of its discriminant.
    pub(super) const ALL: [Self; 3] = [Self::Now, Self::Read, Self::Swap];

    /// Returns the name in metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Read => "read",
            Self::Swap => "swap",
        }
    }
}

impl Metrics {
    /// Measures how long an operation took.
    pub fn store_answered(&self, operation: StoreOperation, took: Duration) {
        if let Some(duration) = self.store_durations.get(operation as usize) {
            duration.record(took.as_secs_f64());
        }
    }

    /// Counts an operation that failed with this error.
    pub fn store_failed(&self, operation: StoreOperation, error: &'static str) {
        self.store_errors.add(1, &failure(operation, error));
    }
}

fn failure(operation: StoreOperation, word: &'static str) -> [KeyValue; 2] {
    [KeyValue::new(define::STORE_OPERATION, operation.word()), KeyValue::new(define::ERROR, word)]
}

/// Returns the attributes of every failure that can occur.
pub(super) fn failures() -> impl Iterator<Item = [KeyValue; 2]> {
    let unavailable = StoreOperation::ALL.map(|operation| failure(operation, UNAVAILABLE));
    unavailable.into_iter().chain([failure(StoreOperation::Swap, FULL)])
}
