//! What the program tells its operator: logs, one line a request, metrics and traces (`docs/telemetry.md`).
//!
//! Everything here is the process's own and is started once, by [`init`]. What is not asked for costs a request one look
//! at a flag ([`is_on`]).

use std::{
    io::IsTerminal as _,
    sync::atomic::{AtomicBool, Ordering},
};

use opentelemetry_sdk::Resource;
use thiserror::Error;
use tracing::{Level, Metadata};
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
mod end;
pub mod exchange;
mod form;
mod lines;
pub mod metrics;
pub mod traces;
pub mod trail;

pub use end::{begin, end};
pub use lines::flush;
pub use traces::Step;

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

/// Why there is no telemetry.
#[derive(Debug, Error)]
pub enum InitError {
    /// The process has a logger already.
    #[error("no logs")]
    Logger(#[from] TryInitError),
    /// Metrics cannot be kept.
    #[error("no metrics")]
    Metrics(#[from] opentelemetry_sdk::error::OTelSdkError),
}

/// Begins to log, to measure and to trace as a configuration says; metrics are `scraped` where an admin listener serves
/// them.
pub fn init(settings: &config::Telemetry, scraped: bool) -> Result<(), InitError> {
    log(settings.level.word(), settings.log)?;
    let has_access_log = settings.access_log && tracing::enabled!(target: "ifmatch::access", Level::INFO);
    access::start(Some(settings.log).filter(|_| has_access_log), false);
    let measures = settings.metrics && scraped;
    if measures {
        metrics::start(Resource::builder().build(), scraped, None)?;
    }
    IS_ON.store(has_access_log || measures || scraped, Ordering::Relaxed);
    Ok(())
}

/// Sends our records from this level on, and those of pingora, to standard error; `RUST_LOG` overrides it.
pub fn log(level: &str, form: LogForm) -> Result<(), TryInitError> {
    let default = || EnvFilter::new(format!("{level},{PINGORA}"));
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| default());
    lines::start();
    let lines = fmt::layer()
        .with_writer(lines::Records)
        // A log that cannot be written must not end requests: by default the complaint about it panics.
        .log_internal_errors(false)
        .with_ansi(form == LogForm::Text && std::io::stderr().is_terminal());
    let lines = match form {
        LogForm::Text => lines.boxed(),
        LogForm::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    };
    // Lines of the access log are put together without it.
    let lines = lines.with_filter(filter_fn(|record| record.target() != "ifmatch::access"));
    registry().with(filter).with(filter_fn(|record| !shows_credentials(record))).with(lines).try_init()
}

/// Whether a record may show the proxy's own credentials: the text that is signed, or the head that goes to an
/// upstream. Neither is logged, whatever is asked for.
fn shows_credentials(record: &Metadata<'_>) -> bool {
    let writes_heads = record.target() == "pingora_core::protocols::http::v1::client";
    record.target().starts_with("aws_sigv4") || writes_heads && *record.level() == Level::TRACE
}
