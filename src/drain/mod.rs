//! Requests in progress: gates, and counts of requests in flight.

mod gate;
mod in_flight;

pub use gate::{Gate, Gates, Pass, Retired, new_gates};
pub use in_flight::{InFlight, InFlightGuard};
