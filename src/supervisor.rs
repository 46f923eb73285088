//! Notifications to the supervisor of the process (systemd's `Type=notify-reload`). Without one, nothing is sent.

use sd_notify::NotifyState;
use tokio::{runtime::Handle, time};

/// Reports that the process is serving, with this status text.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Reports that the process is reloading its configuration. [`ready`] reports the end of the reload.
pub fn reloading() {
    // The supervisor uses the time to match this notification with its request to reload.
    match NotifyState::monotonic_usec_now() {
        Ok(moment) => tell(&[NotifyState::Reloading, moment, NotifyState::Status("loading the configuration")]),
        Err(error) => tracing::warn!(%error, "cannot notify the supervisor of a reload"),
    }
}

/// Reports that the process will end as soon as the requests in flight have ended.
pub fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("stopping: waiting for requests in flight")]);
}

/// Sends a sign of life to the supervisor twice per watchdog period, as long as `workers` still run tasks. Does nothing
/// if there is no watchdog.
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

/// The longest status text, in bytes.
const STATUS_BYTES_MAX: usize = 500;

/// Joins a text into one line, for [`ready`].
pub fn one_line(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    while line.len() > STATUS_BYTES_MAX {
        line.pop();
    }
    line
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify the supervisor");
    }
}
