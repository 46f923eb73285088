//! Requests in progress: gates, counts of requests in flight, and the end of answers that would last.

mod end;
mod gate;
mod in_flight;

pub use end::GenerationEnd;
pub use gate::{Gate, Gates, Pass, Retired, new_gates};
pub use in_flight::{InFlight, InFlightGuard};
