//! Pure decisions on where a request goes: its route, its resource, and whether it is refused, passed on or guarded.

pub mod door;
mod guarded;
pub mod method;
pub mod table;

pub use guarded::{GuardedRequest, Tunnel};
