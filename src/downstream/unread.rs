//! What of responses one HTTP/2 connection has not read: they are kept in memory until it does.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;

tokio::task_local! {
    /// That of the connection whose request is handled.
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
    /// Nothing; more than `bytes_max` is too much.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), bytes_max, more: Notify::new() }
    }

    /// Whether a client that does not read has too much to read.
    pub(crate) fn is_too_much(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.bytes_max
    }

    /// Waits until it has become too much.
    pub(crate) async fn changed(&self) {
        self.more.notified().await;
    }
}

/// A response of so many bytes is being sent; nothing where the connection is not looked at.
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
