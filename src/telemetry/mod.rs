//! What the program tells its operator: logs on standard error, and one line a request.

use std::io::IsTerminal as _;

use tracing_subscriber::{EnvFilter, util::TryInitError};

pub mod access;

/// What is logged unless `RUST_LOG` says otherwise: our own records, and what pingora holds for a fault of the server.
/// Pingora's warnings are about single clients; the access log has them.
const DEFAULT_FILTER: &str = "info,pingora_core=error,pingora_proxy=error";

/// Sends our records, and those of pingora, to standard error; `RUST_LOG` chooses them.
///
/// It fails where the process has a logger already.
pub fn init() -> Result<(), TryInitError> {
    use tracing_subscriber::util::SubscriberInitExt as _;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // A log that cannot be written must not end requests: by default the complaint about it panics.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .finish()
        .try_init()
}
