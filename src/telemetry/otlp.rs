//! Metrics, traces and logs on their way to a collector, over OTLP (gRPC).
//!
//! # Design
//!
//! *What if the collector is slow, or gone?* Spans and records wait in queues of bounded size, in threads of their own;
//! what does not fit, or is not taken within `otlp.timeout`, is dropped. No request waits for any of it. That it fails
//! is said once, and once more when it works again.
//!
//! *Which runtime carries the connections?* One of its own, with a single thread: the workers' are for requests, and the
//! main one is busy with the end of the process when the last batches leave.
//!
//! *What of the environment?* The variables of OpenTelemetry win over the file, as they do everywhere: whoever deploys
//! the program knows the collector, and often the file is not theirs to change.

use std::env;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{ExporterBuildError, LogExporter, MetricExporter, SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    logs::SdkLoggerProvider,
    trace::{Sampler, SdkTracerProvider},
};
use thiserror::Error;
use tokio::runtime::Runtime;

use super::quiet::Quiet;
use crate::config::{Otlp, Signal, Telemetry};

/// Why nothing can be sent.
#[derive(Debug, Error)]
pub enum OtlpError {
    /// An exporter cannot be made of the settings.
    #[error("otlp: {0}")]
    Exporter(#[from] ExporterBuildError),
    /// There can be no thread for it.
    #[error("otlp: no thread")]
    Thread(#[source] std::io::Error),
}

/// What goes to the collector.
#[derive(Debug, Default)]
pub(super) struct Sending {
    pub(super) metrics: Option<Quiet<MetricExporter>>,
    pub(super) traces: Option<SdkTracerProvider>,
    pub(super) logs: Option<SdkLoggerProvider>,
    /// Carries the connections.
    pub(super) runtime: Option<Runtime>,
}

/// What the program is called, and what tells it from others.
pub(super) fn resource(settings: &Telemetry) -> Resource {
    let named = settings.resource.iter().map(|(name, value)| KeyValue::new(name.clone(), value.clone()));
    let of_file = [
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.name", settings.service_name.clone()),
    ];
    // The detectors of the builder know the variables of the environment. What is added last wins.
    let of_environment = Resource::builder().build();
    let has_name = is_set("OTEL_SERVICE_NAME")
        || env::var("OTEL_RESOURCE_ATTRIBUTES").is_ok_and(|attributes| attributes.contains("service.name="));
    let of_environment = of_environment
        .iter()
        .filter(|(name, _)| has_name || name.as_str() != "service.name")
        .map(|(name, value)| KeyValue::new(name.clone(), value.clone()))
        .collect::<Vec<_>>();
    Resource::builder_empty().with_attributes(of_file.into_iter().chain(named).chain(of_environment)).build()
}

/// Connects what is to be sent with a collector, if there is one.
pub(super) fn open(settings: &Telemetry, resource: &Resource) -> Result<Sending, OtlpError> {
    let wanted = |signal| goes(&settings.otlp, signal);
    let mut sending = Sending::default();
    if is_disabled() || ![Signal::Traces, Signal::Metrics, Signal::Logs].into_iter().any(wanted) {
        return Ok(sending);
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime =
        runtime.worker_threads(1).thread_name("ifmatch-otlp").enable_all().build().map_err(OtlpError::Thread)?;
    // Connections are made of the runtime that they are configured in.
    let entered = runtime.enter();
    if wanted(Signal::Metrics) && settings.metrics {
        let exporter = MetricExporter::builder().with_tonic();
        sending.metrics = Some(Quiet::new(configured(exporter, &settings.otlp, "METRICS").build()?, "metrics"));
    }
    if wanted(Signal::Traces) {
        let exporter = configured(SpanExporter::builder().with_tonic(), &settings.otlp, "TRACES").build()?;
        let exporter = Quiet::new(exporter, "traces");
        let mut provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.clone());
        // Without a word here it is that of the environment.
        if !is_set("OTEL_TRACES_SAMPLER") {
            let root = Sampler::TraceIdRatioBased(settings.sampling);
            provider = provider.with_sampler(Sampler::ParentBased(Box::new(root)));
        }
        sending.traces = Some(provider.build());
    }
    if wanted(Signal::Logs) {
        let exporter = configured(LogExporter::builder().with_tonic(), &settings.otlp, "LOGS").build()?;
        let exporter = Quiet::new(exporter, "logs");
        let provider = SdkLoggerProvider::builder().with_batch_exporter(exporter).with_resource(resource.clone());
        sending.logs = Some(provider.build());
    }
    drop(entered);
    sending.runtime = Some(runtime);
    Ok(sending)
}

/// An exporter with what the file says, where the environment says nothing.
fn configured<T: WithExportConfig>(exporter: T, otlp: &Otlp, signal: &str) -> T {
    let says = |what: &str| {
        is_set(&format!("OTEL_EXPORTER_OTLP_{what}")) || is_set(&format!("OTEL_EXPORTER_OTLP_{signal}_{what}"))
    };
    let exporter = if says("TIMEOUT") { exporter } else { exporter.with_timeout(otlp.timeout) };
    match &otlp.endpoint {
        Some(endpoint) if !says("ENDPOINT") => exporter.with_endpoint(endpoint.clone()),
        _ => exporter,
    }
}

/// Whether this kind of telemetry goes to a collector.
fn goes(otlp: &Otlp, signal: Signal) -> bool {
    let name = match signal {
        Signal::Traces => "TRACES",
        Signal::Metrics => "METRICS",
        Signal::Logs => "LOGS",
    };
    let has_collector = otlp.endpoint.is_some()
        || is_set("OTEL_EXPORTER_OTLP_ENDPOINT")
        || is_set(&format!("OTEL_EXPORTER_OTLP_{name}_ENDPOINT"));
    match env::var(format!("OTEL_{name}_EXPORTER")).as_deref() {
        Ok("none") => false,
        Ok("otlp") => true,
        _ => has_collector && otlp.signals.contains(&signal),
    }
}

/// Whether the environment forbids all of it.
fn is_disabled() -> bool {
    env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.eq_ignore_ascii_case("true"))
}

/// An empty variable is as good as none, by the specification of OpenTelemetry.
fn is_set(variable: &str) -> bool {
    env::var(variable).is_ok_and(|value| !value.trim().is_empty())
}
