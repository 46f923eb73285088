//! Telemetry for the operator: logs, one line a request, metrics and traces (`docs/telemetry.md`).
//!
//! All of it belongs to the process and is started once, by [`init`]. Telemetry that is switched off costs a request
//! one look at a flag (`is_on`).

use std::{
    io::IsTerminal as _,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::{error::OTelSdkError, logs::SdkLoggerProvider};
use thiserror::Error;
use tokio::runtime::Runtime;
use tracing::{Level, subscriber::with_default};
use tracing_subscriber::{
    EnvFilter, Layer as _,
    filter::filter_fn,
    fmt,
    layer::SubscriberExt as _,
    registry,
    util::{SubscriberInitExt as _, TryInitError},
};

use crate::config::{self, LogForm, Word as _};

pub mod access;
pub mod activity;
mod decision;
mod end;
pub mod ended_writes;
pub mod exchange;
mod form;
pub mod history;
mod lines;
mod log_once;
pub mod metrics;
mod otlp;
pub mod refusal_log;
mod sampling;
mod seldom;
mod step;
pub mod stream_info;
mod timestamp;
pub mod traces;

pub use decision::Decision;
pub use end::{begin, end, keep_refusal, refused};
pub use lines::flush;
use otlp::Exporters;
pub use otlp::OtlpError;
pub use seldom::{OncePerRoute, Seldom};
pub use step::Step;
pub use stream_info::{TimedPart, measuring, timing};

/// The filter for pingora's records: only those that pingora treats as faults of the server. Its warnings are about
/// single clients, which are in the access log. The only error of its connectors is not a fault: they leave a pooled
/// connection alone that another task still looks at, and make a new one.
const PINGORA: &str = "pingora_core=error,pingora_proxy=error,pingora_core::connectors=off";

/// True if telemetry about requests is collected.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Returns whether telemetry about requests is collected.
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// How long the end of the process waits for the last batches of each kind.
const LAST_BATCHES: Duration = Duration::from_secs(2);

/// The reason why telemetry could not be started.
#[derive(Debug, Error)]
pub enum InitError {
    /// The process already has a logger.
    #[error("no logs")]
    Logger(#[from] TryInitError),
    /// Metrics cannot be kept.
    #[error("no metrics")]
    Metrics(#[from] OTelSdkError),
    /// Nothing can be sent.
    #[error(transparent)]
    Otlp(#[from] OtlpError),
}

/// The parts of telemetry that have to be shut down with the process.
#[derive(Debug, Default)]
#[must_use = "dropping it sends and writes the remaining data"]
pub struct TelemetryEnd {
    logs: Option<SdkLoggerProvider>,
    /// The runtime of the connections to the collector.
    runtime: Option<Runtime>,
}

/// Starts logs, metrics and traces as the configuration says. Metrics are `scraped` if an admin listener serves them.
pub fn init(settings: &config::Telemetry, scraped: bool) -> Result<TelemetryEnd, InitError> {
    let resource = otlp::resource(settings);
    let Exporters { metrics, traces, logs, runtime } = otlp::open(settings, &resource)?;
    log(settings, logs.as_ref())?;
    let has_access_log = settings.access_log && wants_access_lines(settings);
    if has_access_log {
        access::start(settings.log_format, logs.is_some());
    }
    let measures = settings.metrics && (scraped || metrics.is_some());
    if measures {
        metrics::start(resource, scraped, metrics)?;
    }
    if scraped {
        refusal_log::start();
    }
    let is_on = has_access_log || scraped || measures || traces.is_some();
    if let Some(tracing) = traces {
        traces::start(tracing);
    }
    IS_ON.store(is_on, Ordering::Relaxed);
    Ok(TelemetryEnd { logs, runtime })
}

impl Drop for TelemetryEnd {
    /// Sends and writes the remaining data within a few seconds. This blocks, so it must not run on a runtime.
    fn drop(&mut self) {
        // The exporter has already logged a failure.
        let _ = metrics::get().map(|metrics| metrics.provider().shutdown_with_timeout(LAST_BATCHES));
        let _ = traces::provider().map(|provider| provider.shutdown_with_timeout(LAST_BATCHES));
        let _ = self.logs.take().map(|provider| provider.shutdown_with_timeout(LAST_BATCHES));
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        flush();
    }
}

/// Sends the records of ifmatch from the configured level on, and those of pingora, to standard error, and to a
/// collector if there is one. `RUST_LOG` overrides the level.
fn log(settings: &config::Telemetry, collector: Option<&SdkLoggerProvider>) -> Result<(), TryInitError> {
    lines::start();
    let lines = fmt::layer()
        .with_writer(lines::LineBuffer::default)
        // A failure to write the log must not end requests: by default the report of that failure panics.
        .log_internal_errors(false)
        .with_ansi(settings.log_format == LogForm::Text && std::io::stderr().is_terminal());
    let lines = match settings.log_format {
        LogForm::Text => lines.boxed(),
        LogForm::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    };
    // The access log formats its lines itself.
    let lines = lines.with_filter(filter_fn(|record| record.target() != access::TARGET));
    let collected = collector.map(|provider| {
        // The exporter's own records would cause further exports.
        OpenTelemetryTracingBridge::new(provider).with_filter(filter_fn(|record| !is_of_exporter(record.target())))
    });
    let secret = filter_fn(|record| !may_show_secrets(record.target(), *record.level()));
    registry().with(filter(settings)).with(secret).with(lines).with(collected).try_init()
}

/// Returns the filter of `RUST_LOG`, else that of the configuration.
fn filter(settings: &config::Telemetry) -> EnvFilter {
    let default = || EnvFilter::new(format!("{},{PINGORA}", settings.level.word()));
    EnvFilter::try_from_default_env().unwrap_or_else(|_| default())
}

/// Returns whether the filter passes lines of the access log. The filter is queried alone, because the filters of
/// single layers would keep the answer for the next record.
fn wants_access_lines(settings: &config::Telemetry) -> bool {
    with_default(registry().with(filter(settings)), || tracing::enabled!(target: "ifmatch::access", Level::INFO))
}

/// Returns whether a record comes from the libraries that carry records to a collector.
fn is_of_exporter(target: &str) -> bool {
    ["opentelemetry", "tonic", "h2", "hyper", "tower"].iter().any(|library| target.starts_with(library))
}

/// Returns whether a record may show secrets that no log contains: fields and queries of requests, and credentials.
/// Libraries write heads, frames, statements and texts to be signed at the levels for their own developers. No list of
/// them would stay complete, so none of these records is ever logged, with any filter.
fn may_show_secrets(target: &str, level: Level) -> bool {
    let is_own = target.strip_prefix("ifmatch").is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    !is_own && level > Level::INFO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_not_heard_below_info() {
        for (target, level, expected) in [
            ("pingora_core::protocols::http::v1::client", Level::DEBUG, true),
            ("h2::codec::framed_write", Level::TRACE, true),
            ("hyper_util::client", Level::DEBUG, true),
            ("aws_sigv4::http_request", Level::TRACE, true),
            ("ifmatchers", Level::DEBUG, true),
            ("pingora_core::apps", Level::INFO, false),
            ("tonic", Level::WARN, false),
            ("ifmatch::guard", Level::TRACE, false),
            ("ifmatch", Level::DEBUG, false),
        ] {
            assert_eq!(may_show_secrets(target, level), expected, "{target} {level}");
        }
    }
}
