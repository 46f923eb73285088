//! Signals of the operating system as requests to stop.

use std::{io, sync::Arc};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use super::Stop;
use crate::reload::Reloader;

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

/// Watches for SIGTERM, SIGINT and SIGQUIT on the current runtime. The first drains, the second ends at once.
///
/// SIGQUIT means to pingora that a new process takes the listeners over; here it is one more way to say SIGTERM.
/// The same may be asked for by whoever holds the sender.
pub fn watch() -> io::Result<watch::Sender<Stop>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let sender = watch::Sender::new(Stop::Not);
    let asked = sender.clone();
    tokio::spawn(async move {
        for stop in [Stop::Drain, Stop::Now] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = quit.recv() => {}
            }
            asked.send_replace(stop);
            tracing::info!(?stop, "asked to stop");
        }
    });
    Ok(sender)
}
