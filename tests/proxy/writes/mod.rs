//! Writes: their preconditions, their order, their outcomes, and what is known after them.

mod clients_gone;
mod coarse_races;
mod collections;
mod denied_states;
mod doubts;
mod early_answers;
mod early_verdicts;
mod expectations;
mod forwarded_conditions;
mod head_answers;
mod idempotency;
mod idempotency_owners;
mod named_by_body;
mod outcomes;
mod overlaps;
mod preconditions;
mod probes;
pub mod races;
mod related;
mod requirements;
mod slow_uploads;
mod suited_backends;
mod tags_after_writes;
mod turns;
mod unclaimed_writes;
mod unreachable_upstream;
mod variants_written;
