//! `ifmatch`: a reverse proxy that stops lost updates.

pub mod cli;
pub mod config;
pub mod core;
pub mod exchange;
pub mod proxy;
pub mod server;
pub mod telemetry;
