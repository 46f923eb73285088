//! `ifmatch`: a reverse proxy that stops lost updates.
//!
//! # The crate's map: the request path in ten steps
//!
//! 1. A connection is accepted ([`server`]); pingora parses a request and calls the hooks of [`proxy::Gateway`].
//!    `proxy/entry.rs` sets limits on the connection, and `proxy/target.rs` brings the target into origin-form.
//! 2. The door ([`routing::door`]), a pure function, finds the route by the normal form of the path ([`core::target`],
//!    [`core::route`]), refuses what has two readings, and makes the resource key ([`core::resource`]).
//! 3. An unguarded request goes on through pingora's own proxying (`proxy/pass.rs`); one on a route that only watches
//!    does too, with a verdict beside it (`proxy/observe.rs`). Their path ends here.
//! 4. A guarded one ([`routing::GuardedRequest`]) goes to [`guard::Guard`], which parses its preconditions
//!    ([`core::precondition`]) and takes one of four ways: `guard/read/mod.rs`, `guard/write/mod.rs`, `guard/write/unclaimed.rs`, or
//!    `guard/lease/mod.rs` for an operation on a lease ([`dialect`], [`core::lease`]). What a lease says to reads and writes
//!    is judged in `guard/lease/usage.rs`. A request in the azure dialect comes through `guard/azure.rs`, which brings it and
//!    its answer into that form.
//! 5. Memory is asked first: the record ([`core::record`], from the [`store`]) and the remembered responses
//!    (`guard/knowledge/responses.rs`), as far as the principal may know (`guard/knowledge/principal.rs`). A read may end here with 304 or
//!    412, and a write with a refusal ([`core::verdict`]).
//! 6. A write's body is received completely, in memory and then in a spool file (`body/receive.rs`), and the write
//!    waits for its turn among those on the same resource (`guard/claim/queue.rs`).
//! 7. It is judged, by memory or by a probe of the upstream (`guard/write/admit.rs`, `guard/probe/mod.rs`), and its mark is
//!    swapped in against the very revision that it was judged at (`guard/claim/mod.rs`, [`core::steps`]): it holds the
//!    claim.
//! 8. One exchange with the upstream ([`upstream`]); that of a write (`guard/write/send.rs`) is never repeated once a byte of
//!    it was sent.
//! 9. The response to a read gets its tag (`guard/read/label.rs`), spelled so that it names one state ([`core::coarse_tag`]).
//!    After a write the new state is learned (`guard/write/new_state.rs`), and the claim is settled: applied, not applied,
//!    unclear, or in doubt.
//! 10. The answer goes out through `downstream/relay.rs`, a refusal ([`core::refusal`]) among them through
//!     [`downstream::respond`], the one writer of local responses. The access log gets its line ([`telemetry::access`]).
//!
//! Steps 2 to 10 are done by one generation of the configuration, which [`generation`] hands to each request as a whole.
//! [`reload`] brings in the next one.
//!
//! Beside all that [`admin`] answers operators. Before it [`cli`] reads the command line and [`config`] the file, and
//! [`tls`] its certificates. [`clock`] is where a store takes its time
//! from, [`entropy`] the one source of random numbers.
//!
//! # The rooms
//!
//! Each room imports only rooms that stand before it here:
//!
//! | room | what is in it |
//! |---|---|
//! | [`core`] | decisions: pure functions over plain data |
//! | [`clock`], [`entropy`], [`supervisor`] | what comes from the machine: time, random numbers, the service manager |
//! | [`dialect`] | how other systems spell requests and answers, pure |
//! | [`tls`] | certificates, for both sides |
//! | [`config`] | the configuration: types, and every problem of a file at once |
//! | [`telemetry`] | logs, metrics, traces |
//! | [`store`] | records and their swaps |
//! | [`body`] | request bodies, in memory and in spool files |
//! | [`routing`] | where a request goes, pure |
//! | [`upstream`] | one exchange with a server |
//! | [`drain`] | what is under way, and how it ends |
//! | [`guard`] | guarded requests, from a head to an answer |
//! | [`generation`] | the configuration that is served now |
//! | [`downstream`] | the client's side of a request |
//! | [`proxy`] | pingora's hooks, and unguarded requests |
//! | [`reload`], [`server`], [`admin`], [`cli`] | the next configuration, connections, operators, the command line |
//!
//! # The walls
//!
//! A test (`tests/architecture`) keeps that order, keeps files from importing each other in a circle, and:
//!
//! * [`core`] and [`dialect`] are pure: they wait for nothing, read no clock, draw no random number, log nothing, and touch
//!   neither network nor disk. Every decision is a function there, over plain data.
//! * [`store`] knows records, their time and their swaps; nothing of HTTP.
//! * pingora is named only in [`body`], [`upstream`], [`guard`], [`downstream`], [`proxy`], [`server`], [`admin`] and [`cli`].
//! * A response is written only in [`downstream`]; the guard gives its answer, and names no session.
//!
//! And no lock is held across an exchange: a claim is data in a record.

pub mod admin;
pub mod body;
mod box_future;
pub mod cli;
pub mod clock;
pub mod config;
pub mod core;
pub mod dialect;
pub mod downstream;
pub mod drain;
pub mod entropy;
pub mod generation;
pub mod guard;
mod patience;
pub mod proxy;
pub mod reload;
pub mod routing;
pub mod server;
pub mod store;
pub mod supervisor;
pub mod telemetry;
pub mod tls;
pub mod upstream;
