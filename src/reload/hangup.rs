//! Reloads at SIGHUP.

use std::{io, sync::Arc};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Reloader;

/// The signals SIGHUP to this process. One that comes before somebody waits for it is not lost, and ends nothing.
#[derive(Debug)]
pub struct Hangups(Signal);

impl Hangups {
    /// Those from now on; to be called on a runtime.
    pub fn watch() -> io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }
}

/// Reloads at each SIGHUP, for as long as the current runtime runs. One that comes while another is handled is handled
/// after it.
pub async fn reload_on_hangup(mut hangups: Hangups, reloader: Arc<Reloader>) {
    while hangups.0.recv().await.is_some() {
        // What became of it is in the log: nobody waits for an answer.
        let _ = reloader.reload(false).await;
    }
}
