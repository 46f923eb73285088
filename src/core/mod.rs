//! The pure core: decisions over plain data.
//!
//! Nothing in here waits, reads a clock, draws random numbers, logs, or touches the network or the disk;
//! `tests/architecture` enforces this. The caller passes in what a function needs, such as the store's time.

pub mod address;
pub mod cause;
pub mod digits;
pub mod http;
pub mod lease;
pub mod lost_updates;
pub mod members;
pub mod objects;
pub mod policy;
pub mod quirks;
pub mod records;
pub mod refusal;
pub mod resource;
pub mod rights;
pub mod route;
pub mod shares;
pub mod tags;
pub mod time;
pub mod verdict;
pub mod watch;
pub mod wire;
