//! The response bytes that an HTTP/2 connection has not read. They stay in memory until it does.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;

tokio::task_local! {
    /// The counter of the connection whose request is being handled.
    pub(crate) static UNREAD: Arc<Unread>;
}

/// The bytes of all responses that are being sent on one connection.
#[derive(Debug)]
pub(crate) struct Unread {
    bytes: AtomicUsize,
    bytes_max: usize,
    more: Notify,
}

/// The bytes of one response, until it is sent.
#[derive(Debug)]
pub(crate) struct UnreadBytes {
    unread: Arc<Unread>,
    bytes: usize,
}

impl Unread {
    /// Creates a count of zero, with a limit of `bytes_max`.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), bytes_max, more: Notify::new() }
    }

    /// True if the client has too many unread bytes.
    pub(crate) fn is_too_much(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.bytes_max
    }

    /// Waits until there are too many unread bytes.
    pub(crate) async fn changed(&self) {
        self.more.notified().await;
    }
}

/// Counts these bytes of a response while they are being sent. Returns `None` if the connection is not watched.
pub(crate) fn sending(bytes: usize) -> Option<UnreadBytes> {
    let unread = UNREAD.try_with(Arc::clone).ok()?;
    let before = unread.bytes.fetch_add(bytes, Ordering::Relaxed);
    if before <= unread.bytes_max && unread.is_too_much() {
        unread.more.notify_one();
    }
    Some(UnreadBytes { unread, bytes })
}

impl Drop for UnreadBytes {
    fn drop(&mut self) {
        self.unread.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
