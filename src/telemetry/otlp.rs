//! The export of metrics, traces and logs to a collector, over OTLP (gRPC).
//!
//! # Design
//!
//! *What happens if the collector is slow, or gone?* Spans and records wait in queues of bounded size, in separate
//! threads. Data that does not fit, or that the collector does not take within `otlp.timeout`, is dropped. No request
//! waits for any of it. A failure is logged once, and so is the recovery.
//!
//! *Which runtime carries the connections?* A separate one with a single thread. The runtimes of the workers are for
//! requests, and the main one is busy with the end of the process when the last batches leave.
//!
//! *What about the environment?* The variables of OpenTelemetry override the file, as in other programs: those who
//! deploy the program know the collector, and often cannot change the file.

use std::{env, fs, io, path::PathBuf};

use opentelemetry::KeyValue;
use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, MetricExporter, SpanExporter, WithExportConfig, WithTonicConfig,
    tonic_types::transport::{Certificate, ClientTlsConfig, Identity},
};
use opentelemetry_sdk::{
    Resource,
    logs::SdkLoggerProvider,
    trace::{Sampler, SdkTracerProvider},
};
use thiserror::Error;
use tokio::runtime::Runtime;

use super::{log_once::LogOnce, sampling::TraceIds, traces::Tracing};
use crate::{
    config::{Otlp, Signal, Telemetry},
    threads,
};

/// The reason why telemetry cannot be sent.
#[derive(Debug, Error)]
pub enum OtlpError {
    /// An exporter cannot be made from the settings.
    #[error("otlp: {0}")]
    Exporter(#[from] ExporterBuildError),
    /// The thread for the connections cannot be started.
    #[error("otlp: no thread")]
    Thread(#[source] io::Error),
    /// A certificate or a key cannot be read.
    #[error("otlp: {path}: {source}")]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The connections to the collector, by kind of telemetry.
#[derive(Debug, Default)]
pub(super) struct Exporters {
    pub(super) metrics: Option<LogOnce<MetricExporter>>,
    pub(super) traces: Option<Tracing>,
    pub(super) logs: Option<SdkLoggerProvider>,
    /// The runtime of the connections.
    pub(super) runtime: Option<Runtime>,
}

/// Returns the name of the program and the attributes that tell it from others.
pub(super) fn resource(settings: &Telemetry) -> Resource {
    let named = settings.resource.iter().map(|(name, value)| KeyValue::new(name.clone(), value.clone()));
    let of_file = [
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.name", settings.service_name.clone()),
    ];
    // The detectors of the builder read the variables of the environment. The attribute that is added last wins.
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

/// Connects the telemetry that is to be sent with a collector, if there is one.
pub(super) fn open(settings: &Telemetry, resource: &Resource) -> Result<Exporters, OtlpError> {
    let wanted = |signal| goes(&settings.otlp, signal);
    let mut sending = Exporters::default();
    if is_disabled() || ![Signal::Traces, Signal::Metrics, Signal::Logs].into_iter().any(wanted) {
        return Ok(sending);
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(1).thread_name("ifmatch-otlp").enable_all();
    let runtime = threads::build(&mut runtime).map_err(OtlpError::Thread)?;
    // Connections use the runtime in which they are configured.
    let entered = runtime.enter();
    if wanted(Signal::Metrics) && settings.metrics {
        let exporter = MetricExporter::builder().with_tonic();
        sending.metrics = Some(LogOnce::new(configured(exporter, &settings.otlp, "METRICS")?.build()?, "metrics"));
    }
    if wanted(Signal::Traces) {
        let exporter = configured(SpanExporter::builder().with_tonic(), &settings.otlp, "TRACES")?.build()?;
        let exporter = LogOnce::new(exporter, "traces");
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.clone());
        // If no sampler is set here, the SDK takes the one of the environment.
        let sampler = (!is_set("OTEL_TRACES_SAMPLER")).then_some(Sampler::TraceIdRatioBased(settings.sampling));
        let provider = match sampler.clone() {
            Some(root) => {
                provider.with_sampler(Sampler::ParentBased(Box::new(root))).with_id_generator(TraceIds::default())
            }
            None => provider,
        };
        sending.traces = Some(Tracing { provider: provider.build(), sampler });
    }
    if wanted(Signal::Logs) {
        let exporter = configured(LogExporter::builder().with_tonic(), &settings.otlp, "LOGS")?.build()?;
        let exporter = LogOnce::new(exporter, "logs");
        let provider = SdkLoggerProvider::builder().with_batch_exporter(exporter).with_resource(resource.clone());
        sending.logs = Some(provider.build());
    }
    drop(entered);
    sending.runtime = Some(runtime);
    Ok(sending)
}

/// Applies the settings of the file to an exporter, unless the environment has its own.
fn configured<T: WithExportConfig + WithTonicConfig>(exporter: T, otlp: &Otlp, signal: &str) -> Result<T, OtlpError> {
    let exporter = match said("TIMEOUT", signal) {
        Some(_) => exporter,
        None => exporter.with_timeout(otlp.timeout),
    };
    let of_environment = said("ENDPOINT", signal);
    let endpoint = of_environment.as_ref().or(otlp.endpoint.as_ref());
    let is_secure = endpoint.is_some_and(|url| url.starts_with("https://"));
    let exporter = if is_secure { exporter.with_tls_config(tls(otlp, signal)?) } else { exporter };
    Ok(match endpoint {
        Some(endpoint) if of_environment.is_none() => exporter.with_endpoint(endpoint.clone()),
        _ => exporter,
    })
}

/// Returns the trusted authorities and the certificate of this program.
fn tls(otlp: &Otlp, signal: &str) -> Result<ClientTlsConfig, OtlpError> {
    let file = |what: &str, of_file: Option<&PathBuf>| {
        let path = said(what, signal).map(PathBuf::from).or_else(|| of_file.cloned());
        path.map(|path| fs::read(&path).map_err(|source| OtlpError::File { path, source })).transpose()
    };
    let settings = otlp.tls.as_ref();
    let identity = settings.and_then(|tls| tls.identity.as_ref());
    let mut tls = ClientTlsConfig::new();
    tls = match file("CERTIFICATE", settings.and_then(|tls| tls.ca.as_ref()))? {
        Some(ca) => tls.ca_certificate(Certificate::from_pem(ca)),
        None => tls.with_native_roots(),
    };
    let certificate = file("CLIENT_CERTIFICATE", identity.map(|(certificate, _)| certificate))?;
    let key = file("CLIENT_KEY", identity.map(|(_, key)| key))?;
    Ok(match certificate.zip(key) {
        Some((certificate, key)) => tls.identity(Identity::from_pem(certificate, key)),
        None => tls,
    })
}

/// Returns the value of a variable of the environment, for one signal or for all.
fn said(what: &str, signal: &str) -> Option<String> {
    let variables = [format!("OTEL_EXPORTER_OTLP_{signal}_{what}"), format!("OTEL_EXPORTER_OTLP_{what}")];
    variables.iter().find(|variable| is_set(variable)).and_then(|variable| env::var(variable).ok())
}

/// Returns whether this kind of telemetry goes to a collector.
fn goes(otlp: &Otlp, signal: Signal) -> bool {
    let name = match signal {
        Signal::Traces => "TRACES",
        Signal::Metrics => "METRICS",
        Signal::Logs => "LOGS",
    };
    let has_collector = otlp.endpoint.is_some() || said("ENDPOINT", name).is_some();
    match env::var(format!("OTEL_{name}_EXPORTER")).as_deref() {
        Ok("none") => false,
        Ok("otlp") => true,
        _ => has_collector && otlp.signals.contains(&signal),
    }
}

/// Returns whether the environment disables all telemetry.
fn is_disabled() -> bool {
    env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Returns whether a variable is set. By the specification of OpenTelemetry, an empty one counts as unset.
fn is_set(variable: &str) -> bool {
    env::var(variable).is_ok_and(|value| !value.trim().is_empty())
}
