//! The proxy as its users meet it: the real program between raw clients and backends that do as they are told.
//!
//! One binary for all scenarios, because linking is the slow part. `support` has the clients and the backends;
//! read its page first.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod aborted_heads;
mod admin_access;
mod admin_command;
mod admin_health;
mod admin_leases;
mod azure_conditions;
mod azure_files;
mod azure_leases;
mod azure_missing;
mod azure_operations;
mod azure_ranges;
mod azure_sdk;
mod bad_input;
mod balancing;
mod clients_gone;
mod coarse_races;
mod coarse_tags;
mod collected;
mod connection_fields;
mod console;
mod cors;
mod dates;
mod denied_states;
mod disk_crashes;
mod doubts;
mod draining;
mod early_answers;
mod early_verdicts;
mod example_files;
mod example_tables;
mod flapping_tags;
mod forwarded_clients;
mod forwarded_conditions;
mod hosts;
mod http_behaviour;
mod idempotency;
mod large_bodies;
mod lease_auth;
mod lease_limits;
mod lease_races;
mod lease_reads;
mod lease_uses;
mod lease_waiting;
mod leases;
mod lifecycle;
mod limits;
mod local_verdicts;
mod mutated_input;
mod observe;
mod open_input;
mod outcomes;
mod overlaps;
mod path_prefixes;
mod preconditions;
mod probes;
mod races;
mod ranges;
mod reads;
mod refusal_form;
mod refusals;
mod refused_untouched;
mod related;
mod reload;
mod requirements;
mod s3;
mod scraped;
mod sent_fields;
mod server_health;
mod shared_keys;
mod shared_store;
mod signed_requests;
mod slow_uploads;
mod smuggling;
mod store_outage;
mod supervisor;
mod support;
mod support_works;
mod tag_sources;
mod tags_after_writes;
mod tags_on_the_way;
mod tls_listeners;
mod tls_upstreams;
mod turns;
mod unclaimed_writes;
mod unguarded;
mod unguarded_streams;
mod unreachable_upstream;
mod variants;
mod variants_written;
mod websockets;
mod weighed;
mod worker_pool;
