//! Floods: the cost of clients without credentials, beside an honest client (DESIGN, section 3, rules 13 and 17).
//!
//! A test starts the real program, measures what it holds before, and lets the flood go on. It compares two values with
//! a ceiling: the most that the program held meanwhile, and the wait of the honest client. `make floods` does the same
//! with more of each.
//!
//! ```text
//! arena     a backend, the proxy before it, and the measure of a flood
//! measure   memory, descriptors and processor time of the proxy
//! honest    a client that reads and writes while others flood
//! rules     what a client must not do with frames, and what becomes of it
//! sockets   connections that come from an address of their choice
//! frames    an HTTP/2 client that sends any frames
//! others    the same floods against nginx and HAProxy
//! process   what a process holds, as the kernel tells it
//! requests  many requests from the address of floods
//! small_disk  a disk that is soon full
//! tls       a proxy that speaks TLS, and an HTTP/2 client of it
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod arena;
mod blocks;
mod bodies;
mod connections;
mod disks;
mod downloads;
mod frames;
mod heads;
mod health;
mod honest;
mod http2;
mod leases;
mod lines;
mod measure;
mod others;
#[path = "../load/process.rs"]
#[allow(dead_code, reason = "the load looks at more of a process")]
mod process;
mod records;
mod requests;
mod resolver;
mod rules;
mod small_disk;
mod sockets;
#[path = "../proxy/support/mod.rs"]
mod support;
mod tls;
mod uploads;
mod watches;
