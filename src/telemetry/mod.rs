//! What the program tells its operator: logs, one line a request, metrics and traces (`docs/telemetry.md`).
//!
//! Everything here is the process's own and is started once, by [`init`]. What is not asked for costs a request one look
//! at a flag (`is_on`).

use std::{
    io::IsTerminal as _,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::{error::OTelSdkError, logs::SdkLoggerProvider};
use thiserror::Error;
use tokio::runtime::Runtime;
use tracing::{Level, Metadata, subscriber::with_default};
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
mod end;
pub mod exchange;
mod form;
mod lines;
mod log_once;
pub mod metrics;
mod otlp;
mod seldom;
mod step;
pub mod stream_info;
pub mod traces;

pub use end::{begin, end};
pub use lines::flush;
use otlp::Exporters;
pub use otlp::OtlpError;
pub use seldom::Seldom;
pub use step::Step;

/// What is logged of pingora: what it holds for a fault of the server. Its warnings are about single clients, which the
/// access log has. Its connectors have one error to report, and it is none: a pooled connection that another task
/// still looks at is left alone, and a fresh one is made.
const PINGORA: &str = "pingora_core=error,pingora_proxy=error,pingora_core::connectors=off";

/// Whether anything is noted of requests.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Whether anything is noted of requests.
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// How long the end of the process waits for the last batches of each kind.
const LAST_BATCHES: Duration = Duration::from_secs(2);

/// Why there is no telemetry.
#[derive(Debug, Error)]
pub enum InitError {
    /// The process has a logger already.
    #[error("no logs")]
    Logger(#[from] TryInitError),
    /// Metrics cannot be kept.
    #[error("no metrics")]
    Metrics(#[from] OTelSdkError),
    /// Nothing can be sent.
    #[error(transparent)]
    Otlp(#[from] OtlpError),
}

/// What is to be brought to its end with the process.
#[derive(Debug, Default)]
#[must_use = "what is left is sent and written when it is dropped"]
pub struct TelemetryEnd {
    logs: Option<SdkLoggerProvider>,
    /// Carries the connections to the collector.
    runtime: Option<Runtime>,
}

/// Begins to log, to measure and to trace as a configuration says; metrics are `scraped` where an admin listener serves
/// them.
pub fn init(settings: &config::Telemetry, scraped: bool) -> Result<TelemetryEnd, InitError> {
    let resource = otlp::resource(settings);
    let Exporters { metrics, traces, logs, runtime } = otlp::open(settings, &resource)?;
    log(settings, logs.as_ref())?;
    let has_access_log = settings.access_log && wants_access_lines(settings);
    if has_access_log {
        access::start(settings.log, logs.is_some());
    }
    let measures = settings.metrics && (scraped || metrics.is_some());
    if measures {
        metrics::start(resource, scraped, metrics)?;
    }
    let is_on = has_access_log || scraped || measures || traces.is_some();
    if let Some(provider) = traces {
        traces::start(provider);
    }
    IS_ON.store(is_on, Ordering::Relaxed);
    Ok(TelemetryEnd { logs, runtime })
}

impl Drop for TelemetryEnd {
    /// Sends and writes what is left, within a few seconds. It blocks, which a runtime does not allow.
    fn drop(&mut self) {
        // What fails was told of by its exporter.
        let _ = metrics::get().map(|metrics| metrics.provider().shutdown_with_timeout(LAST_BATCHES));
        let _ = traces::provider().map(|provider| provider.shutdown_with_timeout(LAST_BATCHES));
        let _ = self.logs.take().map(|provider| provider.shutdown_with_timeout(LAST_BATCHES));
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        flush();
    }
}

/// Sends our records from the configured level on, and those of pingora, to standard error, and to a collector if there is
/// one; `RUST_LOG` overrides the level.
fn log(settings: &config::Telemetry, collector: Option<&SdkLoggerProvider>) -> Result<(), TryInitError> {
    lines::start();
    let lines = fmt::layer()
        .with_writer(lines::LineBuffers)
        // A log that cannot be written must not end requests: by default the complaint about it panics.
        .log_internal_errors(false)
        .with_ansi(settings.log == LogForm::Text && std::io::stderr().is_terminal());
    let lines = match settings.log {
        LogForm::Text => lines.boxed(),
        LogForm::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    };
    // Lines of the access log are put together without it.
    let lines = lines.with_filter(filter_fn(|record| record.target() != access::TARGET));
    let collected = collector.map(|provider| {
        // What the exporter itself says would be sent in its turn.
        OpenTelemetryTracingBridge::new(provider).with_filter(filter_fn(|record| !is_of_exporter(record.target())))
    });
    let secret = filter_fn(|record| !shows_credentials(record));
    registry().with(filter(settings)).with(secret).with(lines).with(collected).try_init()
}

/// What is logged: what `RUST_LOG` says, else what the configuration does.
fn filter(settings: &config::Telemetry) -> EnvFilter {
    let default = || EnvFilter::new(format!("{},{PINGORA}", settings.level.word()));
    EnvFilter::try_from_default_env().unwrap_or_else(|_| default())
}

/// Whether lines of the access log are among that. Asked of a filter alone: the question would leave its answer behind in
/// the filters of single layers, for the next record.
fn wants_access_lines(settings: &config::Telemetry) -> bool {
    with_default(registry().with(filter(settings)), || tracing::enabled!(target: "ifmatch::access", Level::INFO))
}

/// Whether a record is of what carries records to a collector.
fn is_of_exporter(target: &str) -> bool {
    ["opentelemetry", "tonic", "h2", "hyper", "tower"].iter().any(|library| target.starts_with(library))
}

/// Whether a record may show the proxy's own credentials: the text that is signed, or the head that goes to an
/// upstream. Neither is logged, whatever is asked for.
fn shows_credentials(record: &Metadata<'_>) -> bool {
    let writes_heads = record.target() == "pingora_core::protocols::http::v1::client";
    record.target().starts_with("aws_sigv4") || writes_heads && *record.level() == Level::TRACE
}
