//! The proxy as its users meet it: the real program between raw clients and backends that obey the tests.
//!
//! One binary for all scenarios, because linking is the slow part. Each room holds the scenarios of one subject.
//! `support` has the clients and the backends; read its page first.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod dialects;
mod leases;
mod operations;
mod reads;
mod routing;
mod security;
mod stores;
mod support;
mod support_works;
mod tls;
mod watches;
mod writes;
