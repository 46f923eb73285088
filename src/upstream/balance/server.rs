//! One server of an upstream: its health, and the exchanges in flight with it.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::places::PlacesAtServer;

/// How long a server that could not be connected to comes after all others. Long enough that a lost server costs few
/// requests a second attempt, and short enough that a recovered one soon gets its share.
const LAST_AFTER_FAILURE: Duration = Duration::from_secs(2);

/// The approximate time at which the process began.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The state of a server, shared by all configurations that name it.
#[derive(Debug)]
pub(super) struct UpstreamServer {
    pub(super) name: String,
    /// True if the server's health checks failed.
    down: AtomicBool,
    /// The time until which the server comes last, in milliseconds since the start. 0 for never.
    last_until: AtomicU64,
    /// The number of consecutive check answers that contradict the server's current state.
    pub(super) streak: AtomicUsize,
    pub(super) places: Arc<PlacesAtServer>,
}

impl UpstreamServer {
    pub(super) fn new(name: &str, max: usize) -> Self {
        Self {
            name: name.to_owned(),
            down: AtomicBool::new(false),
            last_until: AtomicU64::new(0),
            streak: AtomicUsize::new(0),
            places: PlacesAtServer::new(max),
        }
    }

    pub(super) fn is_down(&self) -> bool {
        self.down.load(Ordering::Relaxed)
    }

    /// Notes the result of the server's health checks. Returns true if the state changed.
    pub(super) fn set_down(&self, down: bool) -> bool {
        self.down.swap(down, Ordering::Relaxed) != down
    }

    /// True if a connection to the server failed a moment ago.
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
}

fn since_start() -> u64 {
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_refused_comes_last_until_it_takes_a_connection() {
        let server = UpstreamServer::new("a:1", 1);
        server.connected(false);
        assert!(server.comes_last());
        server.connected(true);
        assert!(!server.comes_last());
    }
}
