//! Leases: their grants, their terms, the clients that wait for them, and their effect on reads and writes.

mod delete_pending;
mod late_delete;
mod lease_auth;
mod lease_end;
mod lease_limits;
mod lease_races;
mod lease_reads;
mod lease_uses;
mod lease_waiting;
mod native;
pub mod next_member;
mod shared_keys;
mod shared_leases;
mod streams;
mod untold_grants;
mod vanished;
