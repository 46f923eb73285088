//! One contract, and every store against it, those outside the process on their real servers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod clock;
mod contract;
mod disk;
mod memory;
