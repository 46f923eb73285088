//! `ifmatch`: a reverse proxy that stops lost updates.

pub mod clock;
pub mod core;
pub mod entropy;
pub mod store;
