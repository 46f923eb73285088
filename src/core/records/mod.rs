//! The record of a resource, and every step on it (DESIGN, sections 2, 3 and 7).

pub mod attempt_end;
pub mod attempt_steps;
pub mod availability;
pub mod counts;
pub mod delete_steps;
pub mod first_attempt;
pub mod idempotency;
mod in_the_way;
pub mod owed;
pub mod pending_delete;
pub mod presence;
pub mod record;
pub mod revision;
pub mod settled;
pub mod steps;
pub mod tree_leases;
pub mod trees;
pub mod under_trees;
pub mod upload_turn;
pub mod waiting;
