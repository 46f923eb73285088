//! Writes with a key in the memory of this process, for the stores that no other process uses.
//!
//! The answers are remembered for a limited time and within bounds.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use moka::{Expiry, policy::EvictionPolicy, sync::Cache};
use parking_lot::Mutex;

use super::KeyName;
use crate::core::{
    first_attempt::{Fingerprint, Success},
    idempotency::{AttemptEnd, Progress},
};

/// The approximate bytes of all remembered answers: a hundred thousand without a body.
const MEMORY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The approximate bytes of a remembered answer besides its fields and its body.
const ENTRY_BYTES: usize = 300;

/// The writes that came with a key.
pub(crate) struct InProcess {
    /// The writes that have not ended: at most the number of requests in flight.
    in_flight: Mutex<HashMap<KeyName, Fingerprint>>,
    ended: Cache<KeyName, Arc<EndedWrite>>,
}

/// A write whose outcome a retry is answered with.
struct EndedWrite {
    fingerprint: Fingerprint,
    /// `None` while it is in doubt.
    success: Option<Success>,
    until: Instant,
}

/// Drops each ended write when its time is over.
struct AtItsEnd;

impl Expiry<KeyName, Arc<EndedWrite>> for AtItsEnd {
    fn expire_after_create(&self, _name: &KeyName, ended: &Arc<EndedWrite>, now: Instant) -> Option<Duration> {
        Some(ended.until.saturating_duration_since(now))
    }

    fn expire_after_update(
        &self,
        name: &KeyName,
        ended: &Arc<EndedWrite>,
        now: Instant,
        _left: Option<Duration>,
    ) -> Option<Duration> {
        self.expire_after_create(name, ended, now)
    }
}

/// The first attempt at a write. Dropping it without an end makes it a doubt.
pub(super) struct ProcessAttempt {
    writes: Arc<InProcess>,
    name: KeyName,
    fingerprint: Fingerprint,
    replay_for: Duration,
    late_write_window: Duration,
    has_ended: bool,
}

impl InProcess {
    /// Creates an empty memory.
    pub(super) fn new() -> Self {
        let weight = |_: &KeyName, ended: &Arc<EndedWrite>| {
            u32::try_from(ENTRY_BYTES + ended.success.as_ref().map_or(0, Success::bytes)).unwrap_or(u32::MAX)
        };
        // The oldest answer is evicted first: its client is the least likely to retry.
        let ended = Cache::builder().max_capacity(MEMORY_BYTES_MAX).weigher(weight);
        let ended = ended.eviction_policy(EvictionPolicy::lru()).expire_after(AtItsEnd).build();
        Self { in_flight: Mutex::default(), ended }
    }

    /// Whether there is a first attempt at this write.
    pub(super) fn has(&self, name: &KeyName) -> bool {
        self.first(name, &self.in_flight.lock()).is_some()
    }

    /// Begins the first attempt at a write. If there is one already, returns it instead.
    pub(super) fn begin(
        self: &Arc<Self>,
        name: KeyName,
        fingerprint: Fingerprint,
        replay_for: Duration,
        late_write_window: Duration,
    ) -> Result<ProcessAttempt, (Fingerprint, Progress)> {
        let mut in_flight = self.in_flight.lock();
        if let Some(first) = self.first(&name, &in_flight) {
            return Err(first);
        }
        in_flight.insert(name, fingerprint);
        let writes = Arc::clone(self);
        Ok(ProcessAttempt { writes, name, fingerprint, replay_for, late_write_window, has_ended: false })
    }

    /// Returns the first write of this name, and its progress.
    fn first(&self, name: &KeyName, in_flight: &HashMap<KeyName, Fingerprint>) -> Option<(Fingerprint, Progress)> {
        if let Some(fingerprint) = in_flight.get(name) {
            return Some((*fingerprint, Progress::InFlight));
        }
        let ended = self.ended.get(name)?;
        let in_doubt = || Progress::InDoubt(ended.until.saturating_duration_since(Instant::now()));
        Some((ended.fingerprint, ended.success.clone().map_or_else(in_doubt, Progress::Succeeded)))
    }
}

impl ProcessAttempt {
    /// Remembers the end of the write.
    pub(super) fn end(&mut self, end: AttemptEnd) {
        let ended = match end {
            AttemptEnd::Nothing => None,
            AttemptEnd::Doubt => Some((None, self.late_write_window)),
            AttemptEnd::Success(success) => Some((Some(success), self.replay_for)),
        };
        let mut in_flight = self.writes.in_flight.lock();
        if let Some((success, ttl)) = ended {
            let ended = EndedWrite { fingerprint: self.fingerprint, success, until: Instant::now() + ttl };
            self.writes.ended.insert(self.name, Arc::new(ended));
        }
        in_flight.remove(&self.name);
        self.has_ended = true;
    }
}

impl Drop for ProcessAttempt {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end(AttemptEnd::Doubt);
        }
    }
}

#[cfg(test)]
#[path = "in_process_tests.rs"]
mod tests;
