//! Requests under way: gates, and counts of what is in flight.

mod gate;
mod in_flight;

pub use gate::{Gate, Gates, Pass, Retired, new_gates};
pub use in_flight::{InFlight, InFlightGuard};
