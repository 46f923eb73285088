//! The packages of `clients/`, and every program in docs/clients.md and docs/own-client.md, run as it stands there: many at
//! once against one proxy with the real nginx behind it; and the package for pages in a real browser.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod browser;
mod counter;
mod document;
mod example;
mod lease;
mod packages;
mod program;
mod relay;
#[path = "../proxy/support/mod.rs"]
mod support;
mod watch;
