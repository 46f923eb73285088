//! The parts of a scenario.
//!
//! ```text
//! let backend = Backend::start().await;                     // keeps what is PUT; records all that it sees
//! let proxy = Proxy::to(backend.addr()).route("etag = \"content\"").start().await;
//! backend.put("/doc", "one");
//! let tag = get(proxy.addr(), "/doc").await.etag();
//!
//! let held = backend.hold("PUT", "/doc");                   // the next PUT of /doc waits for this test
//! let addr = proxy.addr();
//! let writer = tokio::spawn(async move { put_if_match(addr, "/doc", &tag, "two").await });
//! let mut write = held.arrived().await;                     // "the PUT has reached the backend"
//! write.apply().await;                                      // "now apply it"
//! write.answer(Answer::status(204)).await;                  // "now answer it"
//! assert_eq!(writer.await.unwrap().status, 204);
//! ```
//!
//! * [`proxy`] runs `ifmatch` as a child process, and prints its log when the test fails.
//! * [`raw`] and [`h2c`] are clients that can do what no decent client does.
//! * [`backend`] is an HTTP/1.1 server whose every step a test can order; [`apache`] and [`nginx`] are real ones.
//! * [`leases`] are operations on leases, in the native dialect.
//! * [`document`] takes documents apart, and runs what they show.
//! * [`admin`] speaks to the admin listener of a proxy.
//! * [`azure`] are requests in the azure dialect, and [`queues`] in that of its queues.
//! * [`engines`] are the real servers of stores that proxies share.
//! * [`scene`] is a proxy with a route for each way of knowing tags, for what must hold in all of them.
//! * [`terraform`] runs Terraform.
//! * [`random`] is chance that a seed repeats.
//! * [`tls`] is all of that over TLS.
//! * [`workers`] are processes that share work items by leases.
//! * [`wait`] and [`gate`] order events. Nothing sleeps for a fixed time, and nothing waits for ever.

#![allow(dead_code, reason = "support offers what scenarios need; not each helper has a user at every moment")]

pub mod admin;
pub mod apache;
pub mod azure;
pub mod backend;
#[path = "../../certificates/mod.rs"]
pub mod certificates;
pub mod child;
pub mod chromium;
pub mod clients;
pub mod collector;
pub mod curl;
pub mod document;
pub mod documents;
#[path = "../../engines/mod.rs"]
pub mod engines;
pub mod events;
pub mod file_servers;
pub mod frames;
pub mod gate;
pub mod git_lfs;
pub mod h2c;
pub mod leases;
pub mod message;
pub mod nginx;
pub mod ports;
pub mod proxy;
pub mod queues;
pub mod random;
pub mod raw;
pub mod response;
pub mod scene;
pub mod source;
pub mod tables;
pub mod terraform;
pub mod tls;
pub mod wait;
pub mod workers;
pub mod wsgidav;
