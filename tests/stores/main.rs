//! One contract, and every store against it, those outside the process on their real servers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

#[path = "../proxy/support/child.rs"]
mod child;
mod clock;
mod contract;
mod disk;
#[path = "../engines/mod.rs"]
mod engines;
mod etcd;
mod failures;
mod memory;
#[path = "../proxy/support/ports.rs"]
mod ports;
mod postgres;
mod redis;
mod relay;
mod secured;
#[path = "../proxy/support/wait.rs"]
mod wait;
