//! Signals of the operating system as requests to stop.

use std::io;

use rustix::process::Signal;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use super::Stop;

/// Watches for SIGTERM, SIGINT and SIGQUIT on the current runtime. The first drains, the second ends at once.
///
/// To pingora, SIGQUIT means that a new process takes over the listeners. Here it has the same effect as SIGTERM. Any
/// holder of the sender may request a stop too.
pub fn watch() -> io::Result<watch::Sender<Stop>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    // Without a handler, the system ends the process at a write beyond a limit of file sizes (`LimitFSIZE`, `ulimit -f`). With
    // one, that write fails, and its request alone is refused.
    let _ = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?;
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
