//! What the program tells its operator: logs on standard error, and one line a request.

use std::io::IsTerminal as _;

use tracing_subscriber::{EnvFilter, util::TryInitError};

pub mod access;

/// What is logged of pingora: what it holds for a fault of the server. Its warnings are about single clients, which the
/// access log has. Its connectors have one error to report, and it is none: a pooled connection that another task
/// still looks at is left alone, and a fresh one is made.
const PINGORA: &str = "pingora_core=error,pingora_proxy=error,pingora_core::connectors=off";

/// What shows the proxy's own credentials: the text that is signed, and the head that goes to an upstream. Neither is
/// logged, whatever is asked for.
const SECRETS: [&str; 2] = ["aws_sigv4=off", "pingora_core::protocols::http::v1::client=debug"];

/// Sends our records from this level on, and those of pingora, to standard error; `RUST_LOG` overrides it.
///
/// It fails where the process has a logger already.
pub fn init(level: &str) -> Result<(), TryInitError> {
    use tracing_subscriber::util::SubscriberInitExt as _;
    let default = || EnvFilter::new(format!("{level},{PINGORA}"));
    let mut filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| default());
    for silence in SECRETS.iter().filter_map(|directive| directive.parse().ok()) {
        filter = filter.add_directive(silence);
    }
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // A log that cannot be written must not end requests: by default the complaint about it panics.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .finish()
        .try_init()
}
