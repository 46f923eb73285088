//! Reloads on SIGHUP.

use std::{io, sync::Arc};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Reloader;

/// The SIGHUP signals to this process. One that arrives before a task waits for it is not lost, and does not end the
/// process.
#[derive(Debug)]
pub struct Hangups(Signal);

impl Hangups {
    /// Watches for the signals from now on. Must be called on a runtime.
    pub fn watch() -> io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }
}

/// Reloads on each SIGHUP, for as long as the current runtime runs. A signal that arrives during a reload is handled
/// after it.
pub async fn reload_on_hangup(mut hangups: Hangups, reloader: Arc<Reloader>) {
    while hangups.0.recv().await.is_some() {
        // The result is in the log; a signal has no answer.
        let _ = reloader.reload(false).await;
    }
}
