//! Waiting for conditions, with one deadline for all.

use std::{future::Future, panic::Location, time::Duration};

use tokio::time::{Instant, sleep, timeout};

/// How long anything may take. Far more than needed, because machines that run tests are busy.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// How often a condition is looked at.
const INTERVAL: Duration = Duration::from_millis(3);

/// Waits until the condition holds.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) -> impl Future<Output = ()> {
    until_some(what, move || condition().then_some(()))
}

/// Waits until there is a value.
#[track_caller]
pub fn until_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(value) = look() {
                return value;
            }
            assert!(Instant::now() < end, "{}", late(what, caller));
            sleep(INTERVAL).await;
        }
    }
}

/// Waits for a future that must be done before the deadline.
#[track_caller]
pub fn within<F: Future>(what: &str, future: F) -> impl Future<Output = F::Output> {
    let caller = Location::caller();
    async move { timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("{}", late(what, caller))) }
}

fn late(what: &str, caller: &Location<'_>) -> String {
    format!("waited {} s for this and it did not happen: {what} (at {caller})", DEADLINE.as_secs())
}
