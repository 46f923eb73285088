//! `ifmatch`: a reverse proxy that stops lost updates.

pub mod exchange;
