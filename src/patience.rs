//! Waiting with a time limit.
//!
//! # Design
//!
//! *Why two clocks?* A wait for a connection has the timer of `pingora_timeout`, which is shared, rounded up to 10 ms, and
//! reads no clock. All that the simulation drives (`body`, `guard`, `store`) waits by tokio's clock, which the simulation
//! turns: [`within`] if the future is mostly ready at once, and tokio's own functions elsewhere.

/// Returns the output of a future if it is ready within a limit. A future that is ready at once costs neither a timer
/// nor a clock reading.
pub(crate) use pingora_timeout::tokio_timeout as within;
