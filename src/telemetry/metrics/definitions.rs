//! Every metric, defined once with its name, unit and attributes. A test compares them with `docs/telemetry.md`.
//!
//! Names follow the semantic conventions of OpenTelemetry if these define one. The values of attributes come from the
//! configuration or from a fixed list of words, never from a request's key, path or fields.

/// The kind of instrument of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// The number of values in each range.
    Histogram,
    /// A current value.
    Gauge,
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name in OpenTelemetry.
    pub name: &'static str,
    /// The kind of instrument.
    pub kind: Kind,
    /// The unit, in UCUM notation.
    pub unit: &'static str,
    /// The names of the attributes.
    pub attributes: &'static [&'static str],
    /// The description.
    pub about: &'static str,
}

/// The method of a request, if it is a known one.
pub const METHOD: &str = "http.request.method";
/// The status of a response.
pub const STATUS: &str = "http.response.status_code";
/// The path of a route, as in the configuration.
pub const HTTP_ROUTE: &str = "http.route";
/// The scheme, `http` or `https`.
pub const SCHEME: &str = "url.scheme";
/// The status of a server failure, or the kind of the failure.
pub const ERROR: &str = "error.type";
/// The host of a server, as in the configuration.
pub const SERVER: &str = "server.address";
/// The port of a server.
pub const PORT: &str = "server.port";
/// The name of an upstream.
pub const UPSTREAM: &str = "ifmatch.upstream";
/// The name of a route.
pub const ROUTE: &str = "ifmatch.route";
/// The verdict on a request: the code of a refusal, or a word of the access log.
pub const VERDICT: &str = "ifmatch.verdict";
/// The result of a probe.
pub const FOUND: &str = "ifmatch.probe.found";
/// The event in the life of a lease.
pub const LEASE_EVENT: &str = "ifmatch.lease.event";
/// The state of a lease.
pub const LEASE_STATE: &str = "ifmatch.lease.state";
/// The path of a certificate file, as in the configuration.
pub const CERTIFICATE: &str = "ifmatch.certificate";
/// The reason for a refusal.
pub const REASON: &str = "ifmatch.reason";
/// The operation of a store.
pub const STORE_OPERATION: &str = "ifmatch.store.operation";
/// The queue in which a request waits.
pub const QUEUE: &str = "ifmatch.queue";
/// The place where a body is kept.
pub const PLACE: &str = "ifmatch.body.place";

type Attributes = &'static [&'static str];

const fn counter(name: &'static str, unit: &'static str, attributes: Attributes, about: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, unit, attributes, about }
}

const fn gauge(name: &'static str, unit: &'static str, attributes: Attributes, about: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, unit, attributes, about }
}

const fn seconds(name: &'static str, attributes: Attributes, about: &'static str) -> Metric {
    Metric { name, kind: Kind::Histogram, unit: "s", attributes, about }
}

/// The duration of requests.
pub const SERVER_DURATION: Metric = seconds(
    "http.server.request.duration",
    &[METHOD, SCHEME, STATUS, HTTP_ROUTE, ROUTE, ERROR],
    "From the end of a request's head to the end of its answer",
);
/// The number of requests that are being handled.
pub const ACTIVE_REQUESTS: Metric =
    gauge("http.server.active_requests", "{request}", &[], "Requests that are being handled");
/// The duration of exchanges with servers.
pub const CLIENT_DURATION: Metric = seconds(
    "http.client.request.duration",
    &[METHOD, SCHEME, STATUS, SERVER, PORT, ERROR],
    "From connecting to a server to the head of its response; probes too",
);
/// The health of servers.
pub const UPSTREAM_UP: Metric = gauge(
    "ifmatch.upstream.up",
    "{server}",
    &[UPSTREAM, SERVER, PORT],
    "1 for a server that gets requests, 0 for one whose health checks fail",
);
/// The number of exchanges in flight with servers.
pub const UPSTREAM_ACTIVE: Metric = gauge(
    "ifmatch.upstream.active_requests",
    "{request}",
    &[UPSTREAM, SERVER, PORT],
    "Exchanges in flight with a server",
);
/// The number of requests that wait for servers.
pub const UPSTREAM_WAITERS: Metric = gauge(
    "ifmatch.upstream.waiters",
    "{request}",
    &[UPSTREAM, SERVER, PORT],
    "Requests that wait because a server has as many exchanges as it may",
);
/// The verdicts on requests.
pub const VERDICTS: Metric =
    counter("ifmatch.verdicts", "{request}", &[ROUTE, VERDICT], "What was decided of requests");
/// The verdicts that routes with `observe` would have given.
pub const OBSERVED: Metric = counter(
    "ifmatch.observed.verdicts",
    "{request}",
    &[ROUTE, VERDICT],
    "What would have been decided of writes on routes that only watch",
);
/// The updates that were lost on routes with `observe`.
pub const LOST_UPDATES: Metric = counter(
    "ifmatch.observed.lost_updates",
    "{update}",
    &[ROUTE, REASON],
    "A lower bound of the updates that other clients replaced unread on routes that only watch",
);
/// The time for which writes waited for their claims.
pub const CLAIM_WAIT: Metric = seconds(
    "ifmatch.claim.wait",
    &[ROUTE],
    "How long a request waited for other writes on its resource; 0 where nothing was in its way",
);
/// The number of requests that wait.
pub const WAITERS: Metric = gauge(
    "ifmatch.waiters",
    "{request}",
    &[QUEUE],
    "Requests that wait for a claim, for a lease, or as reads for the end of writes",
);
/// The number of probes.
pub const PROBES: Metric =
    counter("ifmatch.probes", "{probe}", &[ROUTE, FOUND], "Questions to upstreams for the current state of a resource");
/// The number of writes whose outcome cannot be known.
pub const DOUBTS_MADE: Metric = counter(
    "ifmatch.doubts.made",
    "{doubt}",
    &[],
    "Writes that ended without a known outcome, as this process recorded them",
);
/// The number of doubts that are over.
pub const DOUBTS_RESOLVED: Metric = counter(
    "ifmatch.doubts.resolved",
    "{doubt}",
    &[],
    "Doubts that were over when this process put the next write in their place",
);
/// The number of doubts that hold a resource.
pub const DOUBTS: Metric =
    gauge("ifmatch.doubts", "{doubt}", &[], "Doubts that hold a resource now, in the whole store");
/// The number of records.
pub const RECORDS: Metric = gauge("ifmatch.records", "{record}", &[], "Records in the store");
/// The memory that records take.
pub const RECORD_BYTES: Metric = gauge(
    "ifmatch.records.size",
    "By",
    &[],
    "Memory of this process that records take, where the store is in it; `store.max_size` is the most",
);
/// The number of leases.
pub const LEASES: Metric =
    gauge("ifmatch.leases", "{lease}", &[LEASE_STATE], "Leases in the store that are held or remembered");
/// The number of lease events.
pub const LEASE_EVENTS: Metric = counter(
    "ifmatch.lease.events",
    "{event}",
    &[ROUTE, LEASE_EVENT],
    "What was done to leases by this process; `lost` counts requests whose lease had ended",
);
/// The duration of store operations.
pub const STORE_DURATION: Metric =
    seconds("ifmatch.store.duration", &[STORE_OPERATION], "How long operations of the store took, failed ones too");
/// The number of failed store operations.
pub const STORE_ERRORS: Metric =
    counter("ifmatch.store.errors", "{operation}", &[STORE_OPERATION, ERROR], "Operations of the store that failed");
/// The number of responses whose tag changed without a write.
pub const FLAPPING: Metric =
    counter("ifmatch.tags.flapping", "{response}", &[ROUTE], "Responses whose tag had changed with no write between");
/// The number of responses that broke a statement of the configuration.
pub const UNTRUE_STATEMENTS: Metric = counter(
    "ifmatch.statements.untrue",
    "{response}",
    &[ROUTE, REASON],
    "Responses that broke a statement of the configuration: `unique-tags` or `delegate`",
);
/// The memory and spool space that bodies take.
pub const BODY_BYTES: Metric =
    gauge("ifmatch.body.held", "By", &[PLACE], "What bodies take of max_body_memory_total and of max_spool_size");
/// The number of responses on guarded routes that got no tag.
pub const UNTAGGED: Metric = counter(
    "ifmatch.responses.untagged",
    "{response}",
    &[ROUTE, REASON],
    "Responses to reads on guarded routes that got no tag",
);
/// The number of connections that were closed because of their clients' behaviour.
pub const CONNECTIONS_REFUSED: Metric = counter(
    "ifmatch.connections.refused",
    "{connection}",
    &[REASON],
    "Connections that were closed for what their clients do (docs/floods.md)",
);
/// The number of log lines that were not written.
pub const LINES_DROPPED: Metric =
    counter("ifmatch.log.dropped", "{line}", &[], "Log lines that were dropped because standard error took no more");

/// The time at which the process started.
pub const START_TIME: Metric = gauge("ifmatch.process.start.time", "s", &[], "Unix time at which the process started");
/// The success of the last reload.
pub const RELOAD_SUCCESSFUL: Metric = gauge(
    "ifmatch.config.last_reload_successful",
    "{reload}",
    &[],
    "1 if the last reload succeeded or there was none, 0 if it was refused and the old configuration stays",
);
/// The time at which the configuration in effect was loaded.
pub const LOAD_TIME: Metric =
    gauge("ifmatch.config.load.time", "s", &[], "Unix time at which the configuration in effect was loaded");
/// The time at which a certificate expires.
pub const CERTIFICATE_EXPIRY: Metric = gauge(
    "ifmatch.certificate.expiry.time",
    "s",
    &[CERTIFICATE],
    "Unix time at which a certificate of a TLS listener expires",
);

/// All metrics, in the order of the documentation.
pub const ALL: &[Metric] = &[
    SERVER_DURATION,
    ACTIVE_REQUESTS,
    CLIENT_DURATION,
    UPSTREAM_UP,
    UPSTREAM_ACTIVE,
    UPSTREAM_WAITERS,
    VERDICTS,
    OBSERVED,
    LOST_UPDATES,
    CLAIM_WAIT,
    WAITERS,
    PROBES,
    DOUBTS_MADE,
    DOUBTS_RESOLVED,
    DOUBTS,
    RECORDS,
    RECORD_BYTES,
    LEASES,
    LEASE_EVENTS,
    STORE_DURATION,
    STORE_ERRORS,
    FLAPPING,
    UNTRUE_STATEMENTS,
    BODY_BYTES,
    CONNECTIONS_REFUSED,
    LINES_DROPPED,
    UNTAGGED,
    START_TIME,
    RELOAD_SUCCESSFUL,
    LOAD_TIME,
    CERTIFICATE_EXPIRY,
];

/// The upper bounds of the ranges of all histograms, in seconds. Some are finer than those of the conventions, for
/// answers from memory. One is greater, for the default time limit of waits for a claim.
pub const BOUNDARIES: [f64; 19] = [
    0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    30.0,
];
