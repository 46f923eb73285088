//! `ifmatch`: a reverse proxy that stops lost updates.
//!
//! # The crate's map: the request path in ten steps
//!
//! 1. A connection is accepted ([`server`]); pingora parses a request and calls the hooks of [`proxy::Gateway`].
//!    `proxy/entry.rs` sets limits on the connection, and `proxy/target.rs` brings the target into origin-form.
//! 2. The door ([`proxy::door`]), a pure function, finds the route by the normal form of the path ([`core::target`],
//!    [`core::route`]), refuses what has two readings, and makes the resource key ([`core::resource`]).
//! 3. An unguarded request goes on through pingora's own proxying (`proxy/pass.rs`); one on a route that only watches
//!    does too, with a verdict beside it (`proxy/observe.rs`). Their path ends here.
//! 4. A guarded one comes through [`proxy::guarded`] to [`guard::Guards`], which parses its preconditions
//!    ([`core::precondition`]) and takes one of four ways: `guard/read.rs`, `guard/write.rs`, `guard/unclaimed.rs`, or
//!    `guard/lease.rs` for an operation on a lease ([`dialect`], [`core::lease`]). What a lease says to reads and writes
//!    is judged in `guard/lease_use.rs`. A request in the azure dialect comes through `guard/azure.rs`, which brings it and
//!    its answer into that form.
//! 5. Memory is asked first: the record ([`core::record`], from the [`store`]) and the remembered responses
//!    (`guard/memory.rs`), as far as the principal may know (`guard/principal.rs`). A read may end here with 304 or
//!    412, and a write with a refusal ([`core::verdict`]).
//! 6. A write's body is received completely, in memory and then in a spool file (`exchange/receive.rs`), and the write
//!    waits for its turn among those on the same resource (`guard/queue.rs`).
//! 7. It is judged, by memory or by a probe of the upstream (`guard/admit.rs`, `guard/probe.rs`), and its mark is
//!    swapped in against the very revision that it was judged at (`guard/claim.rs`, [`core::steps`]): it holds the
//!    claim.
//! 8. One exchange with the upstream ([`exchange`]); that of a write (`guard/send.rs`) is never repeated once a byte of
//!    it was sent.
//! 9. The response to a read gets its tag (`guard/label.rs`), spelled so that it names one state ([`core::coarse_tag`]).
//!    After a write the new state is learned (`guard/new_state.rs`), and the claim is settled: applied, not applied,
//!    unclear, or in doubt.
//! 10. The answer goes out through `proxy/relay.rs`, a refusal ([`core::refusal`]) among them through
//!     [`proxy::answer`], the one writer of local responses. The access log gets its line ([`telemetry::access`]).
//!
//! Steps 2 to 10 are done by one generation of the configuration, which [`live`] hands to each request as a whole.
//! [`reload`] brings in the next one.
//!
//! Beside all that [`admin`] answers operators. Before it [`cli`] reads the command line and [`config`] the file, and
//! [`tls`] its certificates. [`clock`] is where a store takes its time
//! from, [`entropy`] the one source of random numbers.
//!
//! # The walls
//!
//! A test (`tests/architecture.rs`) keeps them:
//!
//! * [`core`] is pure: it waits for nothing, reads no clock, draws no random number, logs nothing, and touches neither
//!   network nor disk. Every decision is a function there, over plain data.
//! * [`store`] knows records, their time and their swaps; nothing of HTTP, and nothing of who uses it.
//! * pingora is named only in [`proxy`], [`exchange`], [`guard`], [`server`] and [`cli`].
//! * A response is written only in [`proxy`]; the guard gives its answer, and names no session.
//!
//! And no lock is held across an exchange: a claim is data in a record.

pub mod admin;
mod boxed;
pub mod cli;
pub mod clock;
pub mod config;
pub mod core;
pub mod dialect;
pub mod entropy;
pub mod exchange;
pub mod guard;
pub mod live;
mod patience;
pub mod proxy;
pub mod reload;
pub mod server;
pub mod store;
pub mod telemetry;
pub mod tls;
