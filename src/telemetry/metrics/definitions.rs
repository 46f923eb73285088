//! Every metric, defined once: its name, unit and attributes. `docs/telemetry.md` lists the same, and a test compares.
//!
//! Names follow the semantic conventions of OpenTelemetry where these have one. Values of attributes come from the
//! configuration or from a fixed list of words: never from a request's key, path or fields.

/// What kind of instrument a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// How often a value was in each range.
    Histogram,
    /// What something is now.
    Gauge,
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in OpenTelemetry.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its unit, as UCUM writes it.
    pub unit: &'static str,
    /// Its attributes.
    pub attributes: &'static [&'static str],
    /// What it tells.
    pub about: &'static str,
}

/// The method of a request, of the known ones.
pub const METHOD: &str = "http.request.method";
/// The status of a response.
pub const STATUS: &str = "http.response.status_code";
/// The path of a route, as the configuration has it.
pub const HTTP_ROUTE: &str = "http.route";
/// `http` or `https`.
pub const SCHEME: &str = "url.scheme";
/// The status of a failure of the server, or what has failed.
pub const ERROR: &str = "error.type";
/// The host of a server, as the configuration has it.
pub const SERVER: &str = "server.address";
/// The port of a server.
pub const PORT: &str = "server.port";
/// The name of an upstream.
pub const UPSTREAM: &str = "ifmatch.upstream";
/// The name of a route.
pub const ROUTE: &str = "ifmatch.route";
/// What was decided of a request: the code of a refusal, or a word of the access log.
pub const VERDICT: &str = "ifmatch.verdict";
/// What a probe has found.
pub const FOUND: &str = "ifmatch.probe.found";
/// What was done to a lease.
pub const LEASE_EVENT: &str = "ifmatch.lease.event";
/// The state of a lease.
pub const LEASE_STATE: &str = "ifmatch.lease.state";
/// Why something was refused.
pub const REASON: &str = "ifmatch.reason";
/// What a store was asked for.
pub const STORE_OPERATION: &str = "ifmatch.store.operation";
/// What is waited for.
pub const QUEUE: &str = "ifmatch.queue";
/// Where a body is kept.
pub const PLACE: &str = "ifmatch.body.place";

const fn metric(
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    attributes: &'static [&'static str],
    about: &'static str,
) -> Metric {
    Metric { name, kind, unit, attributes, about }
}

/// How long requests took.
pub const SERVER_DURATION: Metric = metric(
    "http.server.request.duration",
    Kind::Histogram,
    "s",
    &[METHOD, SCHEME, STATUS, HTTP_ROUTE, ROUTE, ERROR],
    "From the end of a request's head to the end of its answer",
);
/// Requests that are being handled.
pub const ACTIVE_REQUESTS: Metric =
    metric("http.server.active_requests", Kind::Gauge, "{request}", &[], "Requests that are being handled");
/// How long exchanges with servers took.
pub const CLIENT_DURATION: Metric = metric(
    "http.client.request.duration",
    Kind::Histogram,
    "s",
    &[METHOD, SCHEME, STATUS, SERVER, PORT, ERROR],
    "From connecting to a server to the head of its response; probes too",
);
/// Whether servers are well.
pub const UPSTREAM_UP: Metric = metric(
    "ifmatch.upstream.up",
    Kind::Gauge,
    "{server}",
    &[UPSTREAM, SERVER, PORT],
    "1 for a server that gets requests, 0 for one whose health checks fail",
);
/// What is under way with servers.
pub const UPSTREAM_ACTIVE: Metric = metric(
    "ifmatch.upstream.active_requests",
    Kind::Gauge,
    "{request}",
    &[UPSTREAM, SERVER, PORT],
    "Exchanges that are under way with a server",
);
/// What waits for servers.
pub const UPSTREAM_WAITERS: Metric = metric(
    "ifmatch.upstream.waiters",
    Kind::Gauge,
    "{request}",
    &[UPSTREAM, SERVER, PORT],
    "Requests that wait because a server has as many exchanges as it may",
);
/// What was decided.
pub const VERDICTS: Metric =
    metric("ifmatch.verdicts", Kind::Counter, "{request}", &[ROUTE, VERDICT], "What was decided of requests");
/// What would have been decided.
pub const OBSERVED: Metric = metric(
    "ifmatch.observed.verdicts",
    Kind::Counter,
    "{request}",
    &[ROUTE, VERDICT],
    "What would have been decided of writes on routes that only watch",
);
/// How long writes waited.
pub const CLAIM_WAIT: Metric = metric(
    "ifmatch.claim.wait",
    Kind::Histogram,
    "s",
    &[ROUTE],
    "How long a write waited for other writes on its resource; 0 where nothing was in its way",
);
/// Writes and grants that wait.
pub const WAITERS: Metric = metric(
    "ifmatch.waiters",
    Kind::Gauge,
    "{request}",
    &[QUEUE],
    "Requests that wait for their turn at a claim or a lease",
);
/// Probes.
pub const PROBES: Metric = metric(
    "ifmatch.probes",
    Kind::Counter,
    "{probe}",
    &[ROUTE, FOUND],
    "Questions to upstreams for the current state of a resource",
);
/// Writes whose outcome cannot be known.
pub const DOUBTS_MADE: Metric = metric(
    "ifmatch.doubts.made",
    Kind::Counter,
    "{doubt}",
    &[],
    "Writes that ended without a known outcome, as this process recorded them",
);
/// Doubts that are over.
pub const DOUBTS_RESOLVED: Metric = metric(
    "ifmatch.doubts.resolved",
    Kind::Counter,
    "{doubt}",
    &[],
    "Doubts that were over when this process put the next write in their place",
);
/// Doubts that hold a resource.
pub const DOUBTS: Metric =
    metric("ifmatch.doubts", Kind::Gauge, "{doubt}", &[], "Doubts that hold a resource now, in the whole store");
/// Records.
pub const RECORDS: Metric = metric("ifmatch.records", Kind::Gauge, "{record}", &[], "Records in the store");
/// What they take.
pub const RECORD_BYTES: Metric = metric(
    "ifmatch.records.size",
    Kind::Gauge,
    "By",
    &[],
    "Memory of this process that records take, where the store is in it; `store.max_size` is the most",
);
/// Leases.
pub const LEASES: Metric =
    metric("ifmatch.leases", Kind::Gauge, "{lease}", &[LEASE_STATE], "Leases in the store that are held or remembered");
/// What became of leases.
pub const LEASE_EVENTS: Metric = metric(
    "ifmatch.lease.events",
    Kind::Counter,
    "{event}",
    &[ROUTE, LEASE_EVENT],
    "What was done to leases by this process; `lost` counts requests whose lease had ended",
);
/// How long a store took.
pub const STORE_DURATION: Metric = metric(
    "ifmatch.store.duration",
    Kind::Histogram,
    "s",
    &[STORE_OPERATION],
    "How long operations of the store took, failed ones too",
);
/// What a store did not do.
pub const STORE_ERRORS: Metric = metric(
    "ifmatch.store.errors",
    Kind::Counter,
    "{operation}",
    &[STORE_OPERATION, ERROR],
    "Operations of the store that failed",
);
/// Tags that changed by themselves.
pub const FLAPPING: Metric = metric(
    "ifmatch.tags.flapping",
    Kind::Counter,
    "{response}",
    &[ROUTE],
    "Responses whose tag had changed with no write between",
);
/// What bodies take.
pub const BODY_BYTES: Metric = metric(
    "ifmatch.body.held",
    Kind::Gauge,
    "By",
    &[PLACE],
    "What bodies take of body_memory_total and of spool_total",
);
/// Connections that were closed for what their clients do.
pub const CONNECTIONS_REFUSED: Metric = metric(
    "ifmatch.connections.refused",
    Kind::Counter,
    "{connection}",
    &[REASON],
    "Connections that were closed for what their clients do (docs/floods.md)",
);
/// Log lines that were not written.
pub const LINES_DROPPED: Metric = metric(
    "ifmatch.log.dropped",
    Kind::Counter,
    "{line}",
    &[],
    "Log lines that were dropped because standard error took no more",
);

/// All of them, in the order of the documentation.
pub const ALL: &[Metric] = &[
    SERVER_DURATION,
    ACTIVE_REQUESTS,
    CLIENT_DURATION,
    UPSTREAM_UP,
    UPSTREAM_ACTIVE,
    UPSTREAM_WAITERS,
    VERDICTS,
    OBSERVED,
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
    BODY_BYTES,
    CONNECTIONS_REFUSED,
    LINES_DROPPED,
];

/// The upper bounds of the ranges of all histograms, in seconds: those of the conventions, with finer ones below, where
/// answers from memory are, and one above, where waits for a claim end by default.
pub const BOUNDARIES: [f64; 19] = [
    0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    30.0,
];
