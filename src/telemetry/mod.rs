//! What the program tells its operator: logs on standard error, and one line a request.

use std::io::IsTerminal as _;

use tracing::{Level, Metadata};
use tracing_subscriber::{
    EnvFilter,
    filter::filter_fn,
    fmt,
    layer::SubscriberExt as _,
    registry,
    util::{SubscriberInitExt as _, TryInitError},
};

pub mod access;
pub mod activity;

/// What is logged of pingora: what it holds for a fault of the server. Its warnings are about single clients, which the
/// access log has. Its connectors have one error to report, and it is none: a pooled connection that another task
/// still looks at is left alone, and a fresh one is made.
const PINGORA: &str = "pingora_core=error,pingora_proxy=error,pingora_core::connectors=off";

/// Sends our records from this level on, and those of pingora, to standard error; `RUST_LOG` overrides it.
///
/// It fails where the process has a logger already.
pub fn init(level: &str) -> Result<(), TryInitError> {
    let default = || EnvFilter::new(format!("{level},{PINGORA}"));
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| default());
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        // A log that cannot be written must not end requests: by default the complaint about it panics.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    registry().with(filter).with(filter_fn(|record| !shows_credentials(record))).with(lines).try_init()
}

/// Whether a record may show the proxy's own credentials: the text that is signed, or the head that goes to an
/// upstream. Neither is logged, whatever is asked for.
fn shows_credentials(record: &Metadata<'_>) -> bool {
    let writes_heads = record.target() == "pingora_core::protocols::http::v1::client";
    record.target().starts_with("aws_sigv4") || writes_heads && *record.level() == Level::TRACE
}
