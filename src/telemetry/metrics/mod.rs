//! Metrics: one registry for OTLP and for Prometheus, and the instruments of the whole program.
//!
//! # Design
//!
//! *Why are the instruments global?* They belong to the process, like its log: a probe deep in the guard counts
//! itself, and no function has to pass them on. If metrics have no reader there are no instruments ([`get`] returns
//! `None`), and a request pays for one look at a flag.
//!
//! *Why bound instruments?* Looking up a measurement by its attributes costs several times as much as the measurement.
//! Each thread looks up the instruments that every request needs only once ([`requests`]).

use std::sync::OnceLock;

use opentelemetry::{
    KeyValue,
    metrics::{BoundHistogram, Counter, Histogram, Meter, MeterProvider as _},
};
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkError,
    metrics::{PeriodicReader, SdkMeterProvider},
};
use prometheus::{Registry, TextEncoder};

use super::{decision::Decision, log_once::LogOnce};

mod bound;
pub mod definitions;
mod gauges;
pub mod requests;
pub mod store;

use definitions as define;
use definitions::{BOUNDARIES, Metric};

use crate::{
    config::Route,
    core::{lost_updates::LostUpdate, refusal::Code},
};

pub use gauges::{Gauged, LoadState, ServerState, watch};
pub use store::StoreOperation;

static METRICS: OnceLock<Metrics> = OnceLock::new();

/// The instruments of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Option<Registry>,
    provider: SdkMeterProvider,
    server_duration: Histogram<f64>,
    client_duration: Histogram<f64>,
    claim_wait: Histogram<f64>,
    store_durations: [BoundHistogram<f64>; 3],
    verdicts: Counter<u64>,
    observed: Counter<u64>,
    lost_updates: Counter<u64>,
    probes: Counter<u64>,
    doubts_made: Counter<u64>,
    doubts_resolved: Counter<u64>,
    lease_events: Counter<u64>,
    store_errors: Counter<u64>,
    unstable_tags: Counter<u64>,
    untrue_statements: Counter<u64>,
    untagged: Counter<u64>,
    connections_refused: Counter<u64>,
}

/// Returns the instruments, if metrics have a reader.
pub fn get() -> Option<&'static Metrics> {
    METRICS.get()
}

/// Returns all metrics in the text format of Prometheus, for `/metrics`; empty if nothing is measured.
pub fn prometheus_text() -> String {
    let Some(registry) = get().and_then(|metrics| metrics.registry.as_ref()) else { return String::new() };
    let text = TextEncoder::new().encode_to_string(&registry.gather());
    text.unwrap_or_else(|error| {
        tracing::error!(%error, "the metrics cannot be written");
        String::new()
    })
}

/// Starts the metrics: for Prometheus if they are `scraped`, and for OTLP if there is an exporter. Only the first call
/// in a process has an effect.
pub(super) fn start(
    resource: Resource,
    scraped: bool,
    exporter: Option<LogOnce<MetricExporter>>,
) -> Result<(), OTelSdkError> {
    let mut provider = SdkMeterProvider::builder().with_resource(resource);
    let registry = scraped.then(Registry::new);
    if let Some(registry) = &registry {
        let exporter = opentelemetry_prometheus::exporter().with_registry(registry.clone()).scope_info_enabled(false);
        provider = provider.with_reader(exporter.build()?);
    }
    if let Some(exporter) = exporter {
        // The reader exports at the interval of OTEL_METRIC_EXPORT_INTERVAL, by default a minute.
        provider = provider.with_reader(PeriodicReader::builder(exporter).build());
    }
    let _ = METRICS.set(Metrics::new(registry, provider.build()));
    Ok(())
}

impl Metrics {
    fn new(registry: Option<Registry>, provider: SdkMeterProvider) -> Self {
        let meter = provider.meter("ifmatch");
        gauges::observe(&meter);
        let store_duration = histogram(&meter, &define::STORE_DURATION);
        Self {
            server_duration: histogram(&meter, &define::SERVER_DURATION),
            client_duration: histogram(&meter, &define::CLIENT_DURATION),
            claim_wait: histogram(&meter, &define::CLAIM_WAIT),
            store_durations: StoreOperation::ALL
                .map(|operation| store_duration.bind(&[KeyValue::new(define::STORE_OPERATION, operation.word())])),
            verdicts: counter(&meter, &define::VERDICTS),
            observed: counter(&meter, &define::OBSERVED),
            lost_updates: counter(&meter, &define::LOST_UPDATES),
            probes: counter(&meter, &define::PROBES),
            doubts_made: counter(&meter, &define::DOUBTS_MADE),
            doubts_resolved: counter(&meter, &define::DOUBTS_RESOLVED),
            lease_events: counter(&meter, &define::LEASE_EVENTS),
            store_errors: counter(&meter, &define::STORE_ERRORS),
            unstable_tags: counter(&meter, &define::FLAPPING),
            untrue_statements: counter(&meter, &define::UNTRUE_STATEMENTS),
            untagged: counter(&meter, &define::UNTAGGED),
            connections_refused: counter(&meter, &define::CONNECTIONS_REFUSED),
            registry,
            provider,
        }
    }

    /// Returns the provider of all instruments, for the last export.
    pub(super) fn provider(&self) -> &SdkMeterProvider {
        &self.provider
    }

    /// Initializes to zero the counters whose first increment matters: Prometheus sees no growth in a series that
    /// begins with one.
    pub fn begin_at_zero<'a>(&self, routes: impl Iterator<Item = &'a Route>) {
        self.doubts_made.add(0, &[]);
        self.doubts_resolved.add(0, &[]);
        for reason in ["all", "client", "descriptors"] {
            self.connections_refused.add(0, &[KeyValue::new(define::REASON, reason)]);
        }
        for failure in store::failures() {
            self.store_errors.add(0, &failure);
        }
        for route in routes {
            let is_observed = route.guard.as_ref().is_some_and(|guard| guard.observe);
            let route = route_attribute(&route.name);
            self.unstable_tags.add(0, std::slice::from_ref(&route));
            for lost in LostUpdate::ALL.into_iter().filter(|_| is_observed) {
                self.lost_updates.add(0, &[route.clone(), KeyValue::new(define::REASON, lost.word())]);
            }
            self.lease_events.add(0, &[route.clone(), KeyValue::new(define::LEASE_EVENT, "lost")]);
            for limit in [Code::Overloaded, Code::StoreFull] {
                self.verdicts.add(0, &[route.clone(), KeyValue::new(define::VERDICT, limit.as_str())]);
            }
        }
    }

    /// Counts a probe and its result.
    pub fn probed(&self, route: &str, found: &'static str) {
        self.probes.add(1, &[route_attribute(route), KeyValue::new(define::FOUND, found)]);
    }

    /// Counts a write on a route with `observe`, and the verdict that it would have had.
    pub fn observed(&self, route: &str, verdict: Decision) {
        self.observed.add(1, &[route_attribute(route), KeyValue::new(define::VERDICT, verdict.word())]);
    }

    /// Counts an update that was lost on a route with `observe`.
    pub fn lost_update(&self, route: &str, lost: LostUpdate) {
        self.lost_updates.add(1, &[route_attribute(route), KeyValue::new(define::REASON, lost.word())]);
    }

    /// Counts an event in the life of a lease.
    pub fn lease(&self, route: &str, event: &'static str) {
        self.lease_events.add(1, &[route_attribute(route), KeyValue::new(define::LEASE_EVENT, event)]);
    }

    /// Counts a response whose tag differs from the one before, with no write between.
    pub fn flapped(&self, route: &str) {
        self.unstable_tags.add(1, &[route_attribute(route)]);
    }

    /// Counts a response that broke a statement of the configuration.
    pub fn untrue_statement(&self, route: &str, statement: &'static str) {
        self.untrue_statements.add(1, &[route_attribute(route), KeyValue::new(define::REASON, statement)]);
    }

    /// Counts a response that got no tag, and the reason.
    pub fn untagged(&self, route: &str, reason: &'static str) {
        self.untagged.add(1, &[route_attribute(route), KeyValue::new(define::REASON, reason)]);
    }

    /// Counts a connection that was closed at once, and the reason.
    pub fn connection_refused(&self, reason: &'static str) {
        self.connections_refused.add(1, &[KeyValue::new(define::REASON, reason)]);
    }

    /// Counts a write whose outcome cannot be known.
    pub fn doubt_made(&self) {
        self.doubts_made.add(1, &[]);
    }

    /// Counts a doubt that is over and is replaced by the next write.
    pub fn doubt_resolved(&self) {
        self.doubts_resolved.add(1, &[]);
    }
}

fn route_attribute(route: &str) -> KeyValue {
    KeyValue::new(define::ROUTE, route.to_owned())
}

fn counter(meter: &Meter, metric: &Metric) -> Counter<u64> {
    meter.u64_counter(metric.name).with_unit(metric.unit).with_description(metric.about).build()
}

fn histogram(meter: &Meter, metric: &Metric) -> Histogram<f64> {
    let builder = meter.f64_histogram(metric.name).with_unit(metric.unit).with_description(metric.about);
    builder.with_boundaries(BOUNDARIES.to_vec()).build()
}
