//! `ifmatch`: a reverse proxy that stops lost updates.

pub mod cli;
pub mod clock;
pub mod config;
pub mod core;
pub mod dialect;
pub mod entropy;
pub mod exchange;
pub mod guard;
pub mod proxy;
pub mod server;
pub mod store;
pub mod telemetry;
