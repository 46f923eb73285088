//! `ifmatch doctor` against real gateways and caches in front of ifmatch, and odd backends behind it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod behind;
mod diagnosis;
mod front;
mod gateways;
#[path = "../proxy/support/mod.rs"]
mod support;
