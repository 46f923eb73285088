//! The labels of this process's attempts to write, for stores that several processes share.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{entropy::random_u64, store::encoding::Label};

/// A source of labels that are all different.
pub(super) struct Labels {
    process: u64,
    attempts: AtomicU64,
}

impl Labels {
    /// Creates the labels of this process, which uses a random number as its name.
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        Ok(Self { process: random_u64()?, attempts: AtomicU64::new(0) })
    }

    /// Returns the next label.
    pub(super) fn next(&self) -> Label {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        Label { attempt: format!("{:016x}-{number}", self.process), unix_seconds: unix_time().as_secs() }
    }
}

/// True if a record with this label was written at least `age` ago, by the clocks of the machines.
pub(super) fn is_older(label: Option<&Label>, age: Duration) -> bool {
    label.is_none_or(|label| Duration::from_secs(label.unix_seconds).saturating_add(age) <= unix_time())
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
