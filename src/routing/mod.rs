//! Pure decisions on where a request goes: its route, its resource, and whether it is refused, forwarded or guarded.

#[cfg(test)]
mod alias_tests;
pub mod door;
mod guarded;
#[cfg(test)]
mod query_name_tests;
pub mod table;
#[cfg(test)]
mod watch_tests;

pub use guarded::{Facet, GuardedDestination, GuardedRequest, Tunnel};
