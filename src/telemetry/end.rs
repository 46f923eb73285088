//! The beginning and the end of a request in telemetry.

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use http::{HeaderMap, Method};
use opentelemetry::KeyValue;

use super::{
    access::{self, AccessEntry, ClientExchange},
    activity::Activity,
    is_on,
    metrics::{
        self, definitions as define,
        requests::{EndedRequest, known},
    },
    refusal_log::{self, KeptRefusal, RefusedRequest},
    stream_info::StreamInfo,
    traces::{Description, Trace},
};
use crate::{
    config::Word as _,
    core::{
        cause::{Reason, RequestId},
        refusal::{Code, Refusal},
    },
    entropy::number_of_request,
};

/// Begins the notes on a request with these header fields, if there is a reader for them: an operator, or its client.
pub fn begin(entry: &mut AccessEntry, headers: &HeaderMap, tells_client: bool) {
    if is_on() || tells_client {
        entry.info = Some(Arc::new(StreamInfo::new(Trace::begin(headers))));
    }
}

/// Records the refusal of a request, before its client gets it. The refusal gets the id of the request.
pub fn refused(entry: &mut AccessEntry, refusal: &mut Refusal) {
    let id = RequestId(number_of_request());
    refusal.request_id = Some(id);
    entry.request_id = Some(id);
    entry.refused = Some(refusal.code);
    entry.reason = refusal.cause.as_ref().and_then(|cause| cause.reason);
}

/// Keeps the refusal of a request with this method and target for an operator, before its client can ask about it.
pub fn keep_refusal(entry: &AccessEntry, refusal: Refusal, method: Option<&Method>, target: &[u8]) {
    let (Some(log), Some(id)) = (refusal_log::get(), refusal.request_id) else { return };
    let route = entry.route.as_deref();
    let request = RefusedRequest {
        method,
        path: access::path(target),
        route: route.map(|route| route.name.as_str()),
        policy: route.map(|route| route.policy.word()),
        key: entry.key.as_ref(),
        trace_id: entry.info.as_ref().and_then(|info| info.trace.id()),
        client: entry.client(),
    };
    log.keep(KeptRefusal::new(id, SystemTime::now(), &request, refusal));
}

/// Records the end of a request in its entry, the recent activity, the metrics, its span and the log.
pub fn end(entry: &mut AccessEntry, exchange: &ClientExchange<'_>, activity: Option<&Activity>) {
    let Some(info) = entry.info.clone() else { return };
    let now = Instant::now();
    entry.total = now.saturating_duration_since(info.started);
    entry.times = info.times();
    entry.server = entry.server.take().or_else(|| info.server());
    if let Some(activity) = activity {
        activity.ended(entry, exchange.method, exchange.status, now);
    }
    if let Some(metrics) = metrics::get() {
        metrics.request(&EndedRequest {
            method: exchange.method.map_or("_OTHER", known),
            is_tls: exchange.is_tls,
            status: exchange.status,
            route: entry.route.as_ref(),
            verdict: entry.decided(),
            duration: entry.total,
            claim_wait: entry.times.claim,
        });
        if let (Some(Code::LeaseLost), Some(route)) = (entry.refused, &entry.route) {
            metrics.lease(&route.name, "lost");
        }
    }
    info.trace.end(|| describe(entry, exchange));
    if access::enabled() {
        access::write(entry, exchange);
    }
}

/// Describes a request with the attributes of the semantic conventions and those of ifmatch.
fn describe(entry: &AccessEntry, exchange: &ClientExchange<'_>) -> Description {
    let method = exchange.method.map_or("_OTHER", known);
    let path = String::from_utf8_lossy(access::path(exchange.target)).into_owned();
    let mut attributes = vec![
        KeyValue::new(define::METHOD, method),
        KeyValue::new(define::SCHEME, if exchange.is_tls { "https" } else { "http" }),
        KeyValue::new("url.path", path),
        KeyValue::new(define::STATUS, i64::from(exchange.status)),
    ];
    if let Some(original) = exchange.method.filter(|_| method == "_OTHER") {
        attributes.push(KeyValue::new("http.request.method_original", original.as_str().to_owned()));
    }
    let failed = exchange.status >= 500;
    if failed {
        attributes.push(KeyValue::new(define::ERROR, exchange.status.to_string()));
    }
    attributes.extend(exchange.client.map(|client| KeyValue::new("client.address", client.ip().to_string())));
    attributes.extend(entry.decided().map(|verdict| KeyValue::new(define::VERDICT, verdict.word())));
    attributes.extend(entry.reason.map(Reason::word).map(|reason| KeyValue::new(define::REASON, reason)));
    attributes.extend(entry.request_id.map(|id| KeyValue::new("ifmatch.request.id", id.to_string())));
    // The name of a span has HTTP for an unknown method.
    let verb = if method == "_OTHER" { "HTTP" } else { method };
    let Some(route) = &entry.route else { return Description { name: verb.to_owned(), attributes, failed } };
    let template = route.path.to_string();
    let name = format!("{verb} {template}");
    attributes.push(KeyValue::new(define::HTTP_ROUTE, template));
    attributes.push(KeyValue::new(define::ROUTE, route.name.clone()));
    attributes.push(KeyValue::new("ifmatch.policy", route.policy.word()));
    Description { name, attributes, failed }
}
