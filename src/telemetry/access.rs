//! The access log: one line a request, on the target `ifmatch::access`.
//!
//! A line never holds a query, a field value or a lease id: credentials travel in all three.
//!
//! # Design
//!
//! *Why is the line not a record of `tracing` like all others?* Its fields are known, so it is put together directly, for
//! a fifth of what a record costs; and it may wait for others on its way out. Only where logs go to a collector too it
//! is made once more, as a record.

use std::{
    cell::RefCell,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, SystemTime},
};

use http::Method;

use super::{
    form,
    lines::{self, Haste},
    stream_info::StreamInfo,
};
use crate::{
    config::{LogForm as Form, Route, Word as _},
    core::{address, refusal::Code, resource::ResourceKey},
};

/// What is known of a request by the time it is over, beside what its connection tells.
#[derive(Debug, Default)]
pub struct AccessEntry {
    /// The route that it took.
    pub route: Option<Arc<Route>>,
    /// The resource that it acts on, on a guarded route.
    pub key: Option<ResourceKey>,
    /// What was decided of it: `passed`, or a word of the guard's.
    pub verdict: Option<&'static str>,
    /// Why it was refused.
    pub refused: Option<Code>,
    /// The server that it was sent to, the last one if there were several.
    pub server: Option<address::Address>,
    /// What is noted of it on its way, where anything is.
    pub trail: Option<Arc<StreamInfo>>,
    /// How long it took: known at its end, before anybody is told of it.
    pub total: Duration,
    /// How long it waited for other writes on its resource, if it took a claim; known at its end.
    pub claim_wait: Option<Duration>,
    /// How long servers took to begin their answers, if any was asked; known at its end.
    pub upstream_time: Option<Duration>,
}

impl AccessEntry {
    /// What was decided, in one word: the code of the refusal, or what else became of it.
    pub fn decided(&self) -> Option<&'static str> {
        self.refused.map(Code::as_str).or(self.verdict)
    }
}

/// What its connection tells of a request.
#[derive(Clone, Copy, Debug)]
pub struct ClientExchange<'a> {
    /// The method as received.
    pub method: &'a Method,
    /// The target as received.
    pub target: &'a [u8],
    /// The status of the answer; 0 where none was sent.
    pub status: u16,
    /// Bytes of the request's body.
    pub received_bytes: usize,
    /// Bytes of the answer's body.
    pub sent_bytes: usize,
    /// Where the request came from, if not from a Unix socket.
    pub client: Option<SocketAddr>,
    /// Whether it came over TLS.
    pub is_tls: bool,
}

/// The target of its lines.
pub(super) const TARGET: &str = "ifmatch::access";

/// What becomes of the lines: 0 for nothing, 1 for text, 2 for JSON, and [`RECORDS`] more where they are records too.
static LINES: AtomicU8 = AtomicU8::new(0);
const RECORDS: u8 = 4;

/// Begins to write lines of this form, and to make records of them for a collector if there is one.
pub(super) fn start(form: Form, records: bool) {
    let lines = if form == Form::Json { 2 } else { 1 };
    LINES.store(lines | if records { RECORDS } else { 0 }, Ordering::Relaxed);
}

/// Whether `write` would write anything.
pub fn enabled() -> bool {
    LINES.load(Ordering::Relaxed) != 0
}

thread_local! {
    static LINE: RefCell<Vec<u8>> = RefCell::default();
}

/// Writes the line of one request.
pub(super) fn write(entry: &AccessEntry, exchange: &ClientExchange<'_>) {
    let lines = LINES.load(Ordering::Relaxed);
    let form = if lines & !RECORDS == 2 { Form::Json } else { Form::Text };
    LINE.with_borrow_mut(|line| {
        line.clear();
        form::begin(line, form, SystemTime::now());
        fields(entry, exchange, |name, value| form::field(line, form, name, value));
        form::end(line, form);
        lines::push(line, Haste::Patient);
    });
    if lines & RECORDS != 0 {
        record(entry, exchange);
    }
}

/// The fields of a line in their order.
fn fields(
    entry: &AccessEntry,
    exchange: &ClientExchange<'_>,
    mut field: impl FnMut(&'static str, form::FieldValue<'_>),
) {
    use form::FieldValue::{Address, Bytes, Count, Text, Time, Word};

    field("method", Text(exchange.method.as_str()));
    field("path", Bytes(path(exchange.target)));
    if let Some(route) = entry.route.as_deref() {
        field("route", Text(&route.name));
        field("policy", Word(route.policy.word()));
    }
    if let Some(key) = &entry.key {
        field("key", Text(key.as_str()));
    }
    field("status", Count(exchange.status.into()));
    if let Some(verdict) = entry.decided() {
        field("verdict", Word(verdict));
    }
    match &entry.server {
        Some(address::Address::Tcp(address)) => field("server", Address(*address)),
        Some(unix) => field("server", Text(&unix.to_string())),
        None => {}
    }
    field("milliseconds", Time(entry.total));
    if let Some(time) = entry.upstream_time {
        field("upstream_milliseconds", Time(time));
    }
    if let Some(wait) = entry.claim_wait {
        field("claim_milliseconds", Time(wait));
    }
    field("received_bytes", Count(exchange.received_bytes as u64));
    field("sent_bytes", Count(exchange.sent_bytes as u64));
    if let Some(client) = exchange.client {
        field("client", Address(client));
    }
    if let Some(id) = entry.trail.as_ref().and_then(|trail| trail.trace.id()) {
        field("trace_id", Word(&id));
    }
}

/// The same as a record of `tracing`.
fn record(entry: &AccessEntry, exchange: &ClientExchange<'_>) {
    let route = entry.route.as_deref();
    tracing::info!(
        target: "ifmatch::access",
        method = exchange.method.as_str(),
        path = %path(exchange.target).escape_ascii(),
        route = route.map(|route| route.name.as_str()),
        policy = route.map(|route| route.policy.word()),
        key = entry.key.as_ref().map(ResourceKey::as_str),
        status = exchange.status,
        verdict = entry.decided(),
        server = entry.server.as_ref().map(tracing::field::display),
        milliseconds = milliseconds(entry.total),
        upstream_milliseconds = entry.upstream_time.map(milliseconds),
        claim_milliseconds = entry.claim_wait.map(milliseconds),
        received_bytes = exchange.received_bytes,
        sent_bytes = exchange.sent_bytes,
        client = exchange.client.map(tracing::field::display),
        trace_id = entry.trail.as_ref().and_then(|trail| trail.trace.id()),
    );
}

/// A target without its query.
pub(super) fn path(target: &[u8]) -> &[u8] {
    target.split(|&octet| octet == b'?').next().unwrap_or_default()
}

/// Milliseconds in steps of a microsecond.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
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
