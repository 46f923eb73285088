//! `ifmatch`: a reverse proxy that stops lost updates.
//!
//! # The crate's map: the request path in ten steps
//!
//! 1. A connection is accepted ([`server`]), and `downstream/session.rs` reads a request. `proxy/serve.rs` is the way
//!    of each request, over either protocol: `proxy/entry.rs` sets limits on the connection, `proxy/target.rs` brings
//!    the target into origin-form, and `proxy/arrival.rs` asks the door.
//! 2. The door ([`routing::door`]), a pure function, finds the route by the normal form of the path
//!    ([`core::http::request_target`], [`core::route`]). It refuses any target that can be read in two ways, and makes
//!    the resource key ([`core::resource`]).
//! 3. An unguarded request goes straight to a server (`proxy/forward.rs`), and both bodies flow at a time
//!    (`downstream/relay.rs`). So does a request on a route that only observes, with a verdict computed alongside
//!    (`proxy/observe.rs`). Their path ends here.
//! 4. A guarded request ([`routing::GuardedRequest`]) goes to [`service::handle`], which reads it as the route's
//!    [`dialect`] spells it, with its preconditions ([`core::tags::precondition`]). [`guard::Guard`] takes one of four
//!    paths: `guard/read/mod.rs`, `guard/write/mod.rs`, `guard/write/unclaimed.rs`, or `guard/lease/mod.rs` for an
//!    operation on a lease ([`core::lease`]). `guard/lease/usage.rs` judges what a lease means for reads and writes. If
//!    the dialect is a list of operations, `service/operation.rs` takes one path or several, and brings the answers
//!    into its words.
//! 5. The guard first looks in memory: at the record ([`core::records::record`], from the [`store`]) and at the
//!    remembered responses (`guard/knowledge/responses.rs`), as far as the principal may see them
//!    (`guard/knowledge/principal.rs`). A read may end here with 304 or 412, and a write with a refusal
//!    ([`core::verdict`]).
//! 6. The body of a write is received completely, in memory and then in a spool file (`body/receive.rs`). The write
//!    then waits for its turn among those on the same resource (`guard/claim/queue.rs`).
//! 7. The write is judged from memory or by a probe of the upstream (`guard/write/admit.rs`, `guard/probe/judge.rs`).
//!    Its mark is swapped in against the exact revision that it was judged at (`guard/claim/mark.rs`,
//!    [`core::records::steps`]). The write now holds the claim.
//! 8. The proxy makes one exchange with the upstream ([`upstream`]). The exchange of a write (`guard/write/send.rs`) is
//!    never repeated once a byte of it was sent.
//! 9. The response to a read gets its tag (`guard/read/label.rs`), spelled so that it names one state
//!    ([`core::tags::coarse_tag`]). After a write the proxy learns the new state (`guard/write/new_state.rs`) and
//!    settles the claim as applied, not applied, unclear, or in doubt.
//! 10. The answer goes out through `downstream/relay.rs`. A refusal ([`core::refusal`]) becomes a
//!     `downstream/local_answer.rs`. [`downstream::respond`] is the only writer of those. The access log gets its line
//!     ([`telemetry::access`]).
//!
//! One generation of the configuration serves steps 2 to 10. [`generation`] hands it to each request as a whole, and
//! [`reload`] brings in the next one.
//!
//! [`admin`] answers operators. At the start, [`cli`] reads the command line, [`config`] the configuration file, and
//! [`tls`] the certificates. [`clock`] is the time source of a store, and [`entropy`] the only source of random
//! numbers.
//!
//! # The life of a guarded write
//!
//! Ten files, from the head to the answer. An arrow to the right leaves the request with a refusal, before one byte
//! reaches the upstream.
//!
//! ```text
//!  head ─► routing/door.rs ───────────────► 400 404 405 421
//!             │ route, key, method
//!          guard/mod.rs ──────────────────► 400  (the dialect reads the head)
//!             │ intent, conditions, lease id
//!  body ─► guard/write/mod.rs ────────────► 409 412 428  by memory, before the body is asked for
//!             │ body, whole              ─► 408 413 503
//!          guard/claim/turn.rs ───────────► 409  claim.max_wait is over
//!             │ first of the line
//!       ┌► guard/write/admit.rs ──────────► 412 428  by the record or the upstream, at revision r
//!       │     │ judged        ◄─► guard/probe/judge.rs
//!       │  guard/claim/mark.rs
//!       └─────┤ swap at r: another revision, so judge again
//!             │ the claim is held
//!          guard/write/send.rs ───────────► 502 504  nothing was sent: the claim is given back
//!             │ one exchange, sent once  ─► 502 504  in doubt: a byte was sent, and no answer came
//!          guard/write/new_state.rs
//!             │ tag learned, claim settled: applied, not applied, or in doubt
//!          downstream/relay.rs ───────────► the answer
//! ```
//!
//! If the future of the write is dropped anywhere below the swap, its claim becomes a doubt (`guard/claim/mark.rs`).
//!
//! # Modules
//!
//! Each module imports only modules that are listed before it:
//!
//! | module | contents |
//! |---|---|
//! | [`core`] | decisions: pure functions over plain data |
//! | [`clock`], [`entropy`], [`supervisor`] | services of the machine: time, random numbers, the service manager |
//! | `threads`, `names` | threads for work that blocks, and the addresses of servers |
//! | [`dialect`] | how clients spell requests and read answers, pure |
//! | [`tls`] | certificates, for both sides |
//! | [`config`] | the configuration: its types, and a check that reports all problems of a file at once |
//! | [`telemetry`] | logs, metrics, traces |
//! | [`store`] | records and their swaps |
//! | [`body`] | request bodies, in memory and in spool files |
//! | [`routing`] | where a request goes, pure |
//! | [`openapi`] | what OpenAPI documents tell of resources, pure |
//! | [`upstream`] | one exchange with a server |
//! | [`drain`] | requests in progress, and how they end |
//! | [`guard`] | guarded requests, from head to answer |
//! | [`generation`] | the configuration in service |
//! | [`downstream`] | the client's side of a request |
//! | [`proxy`] | pingora's hooks, and unguarded requests |
//! | [`reload`], [`server`], [`admin`], [`cli`] | the next configuration, connections, operators, the command line |
//!
//! # Boundaries
//!
//! A test (`tests/architecture`) enforces this order, forbids circular imports between files, and checks these rules:
//!
//! * [`core`], [`dialect`] and [`openapi`] are pure. They wait for nothing, read no clock, draw no random numbers, log nothing, and
//!   touch neither network nor disk. Every decision is a function there, over plain data.
//! * [`store`] deals with records, their time and their swaps, and not with HTTP.
//! * pingora is named only in [`body`], [`upstream`], [`guard`], [`service`], [`downstream`], [`proxy`], [`server`], [`admin`] and
//!   [`cli`].
//! * Only [`downstream`] writes responses. The guard returns its answer and names no session.
//!
//! No lock is held across an exchange: a claim is data in a record.

pub mod admin;
pub mod body;
mod box_future;
mod change_count;
pub mod cli;
pub mod clock;
pub mod config;
pub mod core;
mod counted;
pub mod dialect;
pub mod downstream;
pub mod drain;
pub mod entropy;
pub mod error_causes;
pub mod generation;
pub mod guard;
mod names;
pub mod openapi;
mod patience;
pub mod proxy;
pub mod reload;
pub mod routing;
pub mod server;
pub mod service;
pub mod store;
pub mod supervisor;
pub mod telemetry;
#[cfg(test)]
mod testing;
mod threads;
pub mod tls;
pub mod upstream;
mod wire;
