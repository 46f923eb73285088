//! The pace at which listeners accept: no faster than the connections are examined.
//!
//! # Design
//!
//! *Why a pace?* An accepted connection holds a descriptor, but another task examines it, often on another thread. After
//! a burst the listener accepted its whole backlog first. That took the reserve, and even all descriptors: then pingora
//! accepts nothing for a second, and requests in flight cannot reach their upstream.
//!
//! *Why a limit on the wait?* If pingora cannot set a socket's options, it drops the connection without a word. A few
//! such connections would stop the listener without end.

use std::{net::SocketAddr, time::Duration};

use async_trait::async_trait;
use pingora::listeners::ConnectionFilter;
use pingora_timeout::timeout;
use tokio::sync::Semaphore;

/// The maximum number of accepted connections that wait for their examination.
const UNEXAMINED_MAX: usize = 8;
/// How long a listener waits for one of them. An examination takes microseconds.
const PATIENCE: Duration = Duration::from_millis(100);

/// Room for connections between their listener and their examination.
#[derive(Debug)]
pub(super) struct AcceptPace {
    room: Semaphore,
}

impl AcceptPace {
    /// Creates a pace with all of its room free.
    pub(super) fn new() -> Self {
        Self { room: Semaphore::new(UNEXAMINED_MAX) }
    }

    /// Makes room for one more connection: an accepted one has been examined.
    pub(super) fn examined(&self) {
        self.free(1);
    }

    /// Frees room, but never more than there is.
    fn free(&self, connections: usize) {
        let taken = UNEXAMINED_MAX.saturating_sub(self.room.available_permits());
        self.room.add_permits(connections.min(taken));
    }
}

#[async_trait]
impl ConnectionFilter for AcceptPace {
    /// Waits for room. Accepts every connection: whether it may stay is decided by its examination.
    async fn should_accept(&self, _client: Option<&SocketAddr>) -> bool {
        match timeout(PATIENCE, self.room.acquire()).await {
            Ok(Ok(room)) => room.forget(),
            Ok(Err(_)) | Err(_) => self.free(UNEXAMINED_MAX),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, poll};

    use super::*;

    #[tokio::test]
    async fn a_listener_waits_for_the_examination() {
        let pace = AcceptPace::new();
        for _ in 0..UNEXAMINED_MAX {
            assert_eq!(pace.should_accept(None).now_or_never(), Some(true));
        }
        let mut next = pace.should_accept(None);
        assert!(poll!(&mut next).is_pending());
        pace.examined();
        assert!(poll!(&mut next).is_ready());
    }

    #[tokio::test]
    async fn connections_that_are_never_examined_stop_nothing() {
        let pace = AcceptPace::new();
        for _ in 0..UNEXAMINED_MAX {
            pace.should_accept(None).await;
        }
        assert!(pace.should_accept(None).await, "after a wait");
        assert_eq!(pace.should_accept(None).now_or_never(), Some(true), "all the room is free again");
    }

    #[test]
    fn there_is_never_more_room_than_at_first() {
        let pace = AcceptPace::new();
        pace.examined();
        assert_eq!(pace.room.available_permits(), UNEXAMINED_MAX);
    }
}
