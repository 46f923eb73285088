//! What the supervisor of the process is told (systemd's `Type=notify-reload`): nothing, where there is none.

use sd_notify::NotifyState;
use tokio::{runtime::Handle, time};

/// The process serves, as the text says.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// It loads its configuration again; [`ready`] ends that.
pub fn reloading() {
    // The moment tells the supervisor which request to reload this belongs to.
    match NotifyState::monotonic_usec_now() {
        Ok(moment) => tell(&[NotifyState::Reloading, moment, NotifyState::Status("loading the configuration")]),
        Err(error) => tracing::warn!(%error, "the supervisor cannot be told of a reload"),
    }
}

/// It ends when the requests in flight have ended.
pub fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("ending: waiting for requests in flight")]);
}

/// Tells the supervisor that the process lives, twice in the time that it is given, as long as `workers` do what they
/// are asked to. Without a watchdog it does nothing.
pub async fn stay_alive(workers: Handle) {
    let Some(deadline) = sd_notify::watchdog_enabled().filter(|deadline| !deadline.is_zero()) else { return };
    let mut ticks = time::interval(deadline / 2);
    loop {
        ticks.tick().await;
        if workers.spawn(std::future::ready(())).await.is_ok() {
            tell(&[NotifyState::Watchdog]);
        }
    }
}

/// The longest text that is shown.
const STATUS_BYTES_MAX: usize = 500;

/// A text of one line, for [`ready`].
pub fn one_line(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    while line.len() > STATUS_BYTES_MAX {
        line.pop();
    }
    line
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the supervisor cannot be told how the process is");
    }
}
