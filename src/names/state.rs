//! The knowledge about one name, and whether it may be used. Pure: the caller brings the time.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::core::address::Address;

/// How long addresses are used without another look-up: short enough to follow a service that moves.
const FRESH: Duration = Duration::from_secs(5);
/// The pause after a look-up that failed. Who asks in between gets what the last one has left.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the first look-up that hangs is waited for if there are old addresses. A resolver that answers takes
/// milliseconds.
const PATIENCE: Duration = Duration::from_millis(500);

/// One name.
#[derive(Debug, Default)]
pub(super) struct NameState {
    /// The last addresses, unless a later look-up has said that the name is unknown.
    addresses: Option<Arc<[Address]>>,
    last: Option<LookedUp>,
    begun: Option<Instant>,
}

/// A look-up that has ended.
#[derive(Debug)]
struct LookedUp {
    ended: Instant,
    failure: Option<(io::ErrorKind, String)>,
}

/// The next step of a caller that needs the addresses.
#[derive(Debug)]
pub(super) enum Advice {
    Use(Arc<[Address]>),
    Fail(io::Error),
    /// Waits for the look-up that is in flight, until then at most.
    Wait(Instant),
}

impl NameState {
    pub(super) fn is_under_way(&self) -> bool {
        self.begun.is_some()
    }

    pub(super) fn has_addresses(&self) -> bool {
        self.addresses.is_some()
    }

    /// True if another look-up must begin.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.begun.is_none() && !self.last.as_ref().is_some_and(|last| last.is_recent(now))
    }

    pub(super) fn begins(&mut self, now: Instant) {
        self.begun = Some(now);
    }

    pub(super) fn ends(&mut self, now: Instant, found: io::Result<Vec<SocketAddr>>) {
        let found =
            found.and_then(|found| if found.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) });
        let failure = match found {
            Ok(found) => {
                self.addresses = Some(found.into_iter().map(Address::Tcp).collect());
                None
            }
            Err(error) => {
                if says_unknown(&error) {
                    self.addresses = None;
                }
                Some((error.kind(), error.to_string()))
            }
        };
        (self.last, self.begun) = (Some(LookedUp { ended: now, failure }), None);
    }

    /// Returns the next step of a caller that waits until `end` at most. A look-up is in flight unless none is due.
    pub(super) fn step(&self, now: Instant, end: Instant) -> Advice {
        let failure = self.last.as_ref().and_then(|last| last.failure.as_ref());
        match (&self.addresses, self.begun) {
            (Some(addresses), None) => Advice::Use(Arc::clone(addresses)),
            // After a failure no caller waits: the next look-up may hang as well.
            (Some(addresses), Some(begun)) if failure.is_some() || now >= end.min(begun + PATIENCE) => {
                Advice::Use(Arc::clone(addresses))
            }
            (Some(_), Some(begun)) => Advice::Wait(end.min(begun + PATIENCE)),
            (None, Some(_)) if now < end => Advice::Wait(end),
            (None, Some(_)) => Advice::Fail(io::ErrorKind::TimedOut.into()),
            (None, None) => Advice::Fail(
                failure
                    .map_or_else(|| io::ErrorKind::NotFound.into(), |(kind, text)| io::Error::new(*kind, text.clone())),
            ),
        }
    }
}

impl LookedUp {
    fn is_recent(&self, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.ended);
        age < if self.failure.is_some() { PAUSE } else { FRESH }
    }
}

/// True if the answer is that there is no such name, or that it has no address: `EAI_NONAME` and `EAI_NODATA`. The
/// standard library tells them apart from a resolver that fails by their texts alone, which are those of the GNU
/// library and of musl.
fn says_unknown(error: &io::Error) -> bool {
    let text = error.to_string();
    error.kind() == io::ErrorKind::NotFound
        || ["not known", "No address associated", "does not resolve"].iter().any(|words| text.contains(words))
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
