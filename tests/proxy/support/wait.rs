//! Waiting for conditions, with one deadline for all.

use std::{fmt::Debug, future::Future, panic::Location, time::Duration};

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

/// Waits until at most this many are left. The deadline is that of each of them, not of all.
#[track_caller]
pub fn until_left(what: &str, most: usize, mut left: impl FnMut() -> usize) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let (mut before, mut end) = (left(), Instant::now() + DEADLINE);
        while before > most {
            assert!(Instant::now() < end, "{}: {before} are left", late(what, caller));
            sleep(INTERVAL).await;
            let now = left();
            if now < before {
                (before, end) = (now, Instant::now() + DEADLINE);
            }
        }
    }
}

/// Waits until a look gives this value.
#[track_caller]
pub fn until_equal<T: PartialEq + Debug>(
    what: &str,
    expected: T,
    mut look: impl FnMut() -> T,
) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let end = Instant::now() + DEADLINE;
        loop {
            let found = look();
            if found == expected {
                return;
            }
            assert!(Instant::now() < end, "{}: {found:?} in place of {expected:?}", late(what, caller));
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
