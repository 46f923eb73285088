//! The access log: one line a request, on the target `ifmatch::access`.
//!
//! A line never holds a query, a field value or a lease id: credentials travel in all three.
//!
//! # Design
//!
//! *Why is the line not a record of `tracing` like all others?* Its fields are known, so it is formatted directly, at a
//! fifth of the cost of a record. It may also wait for other lines before it is written. Only if logs go to a collector
//! too, the line is made again as a record.

use std::{
    cell::RefCell,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, SystemTime},
};

use http::Method;

use super::{
    decision::Decision,
    form::{LineWriter, field_name as name},
    lines::{self, Haste},
    stream_info::{RequestClient, StreamInfo, Times},
    timestamp::Timestamp,
};
use crate::{
    config::{LogForm as Form, Route, Word as _},
    core::{
        address,
        cause::{Reason, RequestId, Untagged},
        refusal::Code,
        resource::ResourceKey,
    },
};

/// The facts about a finished request that do not come from its connection.
#[derive(Debug, Default)]
pub struct AccessEntry {
    /// The route that the request took.
    pub route: Option<Arc<Route>>,
    /// The resource of the request, on a guarded route.
    pub key: Option<ResourceKey>,
    /// The verdict, unless the request was refused.
    pub verdict: Option<Decision>,
    /// The code of the refusal, if the request was refused.
    pub refused: Option<Code>,
    /// The reason for the refusal, if the code has several.
    pub reason: Option<Reason>,
    /// The id of the request, if it was refused.
    pub request_id: Option<RequestId>,
    /// The address of the client, behind any trusted proxies; `None` over a Unix socket.
    pub client_address: Option<IpAddr>,
    /// The server that received the request, the last one if there were several.
    pub server: Option<address::Address>,
    /// The notes on the request, if any are made.
    pub info: Option<Arc<StreamInfo>>,
    /// How long the request took; set at its end, before it is logged and measured.
    pub total: Duration,
    /// How long the parts of the request took; set at its end.
    pub times: Times,
}

impl AccessEntry {
    /// Returns the refusal, else the verdict.
    pub fn decided(&self) -> Option<Decision> {
        self.refused.map(Decision::Refused).or(self.verdict)
    }

    /// Returns the known facts about the client.
    pub(super) fn client(&self) -> RequestClient {
        let principal = self.info.as_ref().and_then(|info| info.principal());
        RequestClient { address: self.client_address, principal }
    }

    /// Returns why the answer has no tag, if a guarded read lacks one.
    fn untagged(&self) -> Option<Untagged> {
        self.info.as_ref()?.untagged()
    }
}

/// The facts about a request that come from its connection.
#[derive(Clone, Copy, Debug)]
pub struct ClientExchange<'a> {
    /// The method as received; `None` if it could not be read.
    pub method: Option<&'a Method>,
    /// The target as received, up to the part that could be read.
    pub target: &'a [u8],
    /// The status of the answer; 0 if none was sent.
    pub status: u16,
    /// The size of the request body in bytes.
    pub received_bytes: usize,
    /// The size of the answer's body in bytes.
    pub sent_bytes: usize,
    /// The address of the client; `None` if the request came over a Unix socket.
    pub client: Option<SocketAddr>,
    /// True if the request came over TLS.
    pub is_tls: bool,
}

/// The target of access log lines.
pub(super) const TARGET: &str = "ifmatch::access";

/// The output of lines: 0 for none, [`TEXT`] or [`JSON`], plus [`RECORDS`] if they are also made as records.
static LINES: AtomicU8 = AtomicU8::new(0);
const TEXT: u8 = 1;
const JSON: u8 = 2;
const RECORDS: u8 = 4;

/// Starts the output of lines in this form, and of records if a collector receives them.
pub(super) fn start(form: Form, records: bool) {
    let lines = if form == Form::Json { JSON } else { TEXT };
    LINES.store(lines | if records { RECORDS } else { 0 }, Ordering::Relaxed);
}

/// Returns whether `write` would write anything.
pub fn enabled() -> bool {
    LINES.load(Ordering::Relaxed) != 0
}

thread_local! {
    static LINE: RefCell<(Vec<u8>, Timestamp)> = RefCell::default();
}

/// Writes the line of one request.
pub(super) fn write(entry: &AccessEntry, exchange: &ClientExchange<'_>) {
    let lines = LINES.load(Ordering::Relaxed);
    let write_line = if lines & !RECORDS == JSON { write_line::<true> } else { write_line::<false> };
    write_line(entry, exchange);
    if lines & RECORDS != 0 {
        record(entry, exchange);
    }
}

fn write_line<const IS_JSON: bool>(entry: &AccessEntry, exchange: &ClientExchange<'_>) {
    LINE.with_borrow_mut(|(line, timestamp)| {
        line.clear();
        let mut writer = LineWriter::<IS_JSON>::begin(line, timestamp, SystemTime::now());
        add_fields(&mut writer, entry, exchange);
        writer.end();
        lines::push(line, Haste::Patient);
    });
}

/// Adds the fields of a line, in order.
fn add_fields<const IS_JSON: bool>(
    line: &mut LineWriter<'_, IS_JSON>,
    entry: &AccessEntry,
    exchange: &ClientExchange<'_>,
) {
    if let Some(method) = exchange.method {
        line.word(name!("method"), method.as_str());
    }
    line.path(name!("path"), path(exchange.target));
    if let Some(route) = entry.route.as_deref() {
        line.text(name!("route"), &route.name);
        line.word(name!("policy"), route.policy.word());
    }
    if let Some(key) = &entry.key {
        line.text(name!("key"), key.as_str());
    }
    line.count(name!("status"), exchange.status.into());
    if let Some(verdict) = entry.decided() {
        line.word(name!("verdict"), verdict.word());
    }
    if let Some(reason) = entry.reason {
        line.word(name!("reason"), reason.word());
    }
    if let Some(untagged) = entry.untagged() {
        line.word(name!("untagged"), untagged.word());
    }
    if let Some(id) = entry.request_id {
        line.id(name!("request_id"), &id.0.to_be_bytes());
    }
    match &entry.server {
        Some(address::Address::Tcp(address)) => line.address(name!("server"), *address),
        Some(unix) => line.text(name!("server"), &unix.to_string()),
        None => {}
    }
    line.time(name!("milliseconds"), entry.total);
    if let Some(time) = entry.times.upstream {
        line.time(name!("upstream_milliseconds"), time);
    }
    if let Some(time) = entry.times.probe {
        line.time(name!("probe_milliseconds"), time);
    }
    if let Some(time) = entry.times.claim {
        line.time(name!("claim_milliseconds"), time);
    }
    if let Some(time) = entry.times.store {
        line.time(name!("store_milliseconds"), time);
    }
    line.count(name!("received_bytes"), exchange.received_bytes as u64);
    line.count(name!("sent_bytes"), exchange.sent_bytes as u64);
    if let Some(client) = exchange.client {
        line.address(name!("client"), client);
    }
    if let Some(id) = entry.info.as_ref().and_then(|info| info.trace.id()) {
        line.id(name!("trace_id"), &id);
    }
}

/// Makes a record of `tracing` with the same fields.
fn record(entry: &AccessEntry, exchange: &ClientExchange<'_>) {
    let route = entry.route.as_deref();
    tracing::info!(
        target: "ifmatch::access",
        method = exchange.method.map(Method::as_str),
        path = %path(exchange.target).escape_ascii(),
        route = route.map(|route| route.name.as_str()),
        policy = route.map(|route| route.policy.word()),
        key = entry.key.as_ref().map(ResourceKey::as_str),
        status = exchange.status,
        verdict = entry.decided().map(Decision::word),
        reason = entry.reason.map(Reason::word),
        untagged = entry.untagged().map(Untagged::word),
        request_id = entry.request_id.map(tracing::field::display),
        server = entry.server.as_ref().map(tracing::field::display),
        milliseconds = milliseconds(entry.total),
        upstream_milliseconds = entry.times.upstream.map(milliseconds),
        probe_milliseconds = entry.times.probe.map(milliseconds),
        claim_milliseconds = entry.times.claim.map(milliseconds),
        store_milliseconds = entry.times.store.map(milliseconds),
        received_bytes = exchange.received_bytes,
        sent_bytes = exchange.sent_bytes,
        client = exchange.client.map(tracing::field::display),
        trace_id = entry.info.as_ref().and_then(|info| info.trace_id()),
    );
}

/// Returns a target without its query.
pub(super) fn path(target: &[u8]) -> &[u8] {
    target.split(|&octet| octet == b'?').next().unwrap_or_default()
}

/// Converts a duration to milliseconds, rounded to a microsecond.
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
