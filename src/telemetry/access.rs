//! The access log: one line a request, on the target `ifmatch::access`.
//!
//! A line never holds a query, a field value or a lease id: credentials travel in all three.

use std::{sync::Arc, time::Instant};

use tracing::Level;

use crate::{
    config::{Route, Word as _},
    core::{refusal::Code, resource::ResourceKey},
    exchange::Address,
};

/// What is known of a request by the time it is over, beside what its connection tells.
#[derive(Debug)]
pub struct Entry {
    /// When its head had been read.
    pub started: Instant,
    /// The route that it took.
    pub route: Option<Arc<Route>>,
    /// The resource that it acts on, on a guarded route.
    pub key: Option<ResourceKey>,
    /// What was decided of it: `passed`, or a word of the guard's.
    pub verdict: Option<&'static str>,
    /// Why it was refused.
    pub refused: Option<Code>,
    /// The server that it was sent to, the last one if there were several.
    pub server: Option<Address>,
}

impl Default for Entry {
    fn default() -> Self {
        Self { started: Instant::now(), route: None, key: None, verdict: None, refused: None, server: None }
    }
}

/// What its connection tells of a request.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// The method as received.
    pub method: &'a str,
    /// The target as received.
    pub target: &'a [u8],
    /// The status of the answer; 0 where none was sent.
    pub status: u16,
    /// Bytes of the request's body.
    pub received_bytes: usize,
    /// Bytes of the answer's body.
    pub sent_bytes: usize,
}

/// Whether [`write()`] would write anything.
pub fn enabled() -> bool {
    tracing::enabled!(target: "ifmatch::access", Level::INFO)
}

/// Writes the line of one request.
pub fn write(entry: &Entry, exchange: &Exchange<'_>) {
    let route = entry.route.as_deref();
    tracing::info!(
        target: "ifmatch::access",
        method = exchange.method,
        path = %path(exchange.target).escape_ascii(),
        route = route.map(|route| route.name.as_str()),
        policy = route.map(|route| route.policy.word()),
        key = entry.key.as_ref().map(ResourceKey::as_str),
        status = exchange.status,
        verdict = entry.refused.map(Code::as_str).or(entry.verdict),
        server = entry.server.as_ref().map(tracing::field::display),
        milliseconds = milliseconds(entry.started),
        received_bytes = exchange.received_bytes,
        sent_bytes = exchange.sent_bytes,
    );
}

/// A target without its query.
fn path(target: &[u8]) -> &[u8] {
    target.split(|&octet| octet == b'?').next().unwrap_or_default()
}

/// Milliseconds since then, in steps of a microsecond.
fn milliseconds(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_not_part_of_the_path() {
        assert_eq!(path(b"/docs/42?sig=secret&a=?"), b"/docs/42");
    }

    #[test]
    fn a_target_without_a_query_is_its_path() {
        assert_eq!(path(b"/docs/42"), b"/docs/42");
    }
}
