//! `ifmatch`: a reverse proxy that stops lost updates.

pub mod clock;
pub mod config;
pub mod core;
pub mod entropy;
pub mod exchange;
pub mod store;
