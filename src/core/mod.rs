//! The pure core: decisions over plain data.
//!
//! Nothing in here waits, reads a clock, draws random numbers, logs, or touches the network or the disk;
//! `tests/architecture` enforces this. The caller passes in what a function needs, such as the store's time.

pub mod address;
pub mod attempt_steps;
pub mod bare_tags;
pub mod blocks;
pub mod cause;
pub mod checksum;
pub mod chunks;
pub mod client_address;
pub mod coarse_tag;
pub mod cors;
pub mod counts;
pub mod credentials;
pub mod entity_tag;
pub mod fields;
pub mod first_attempt;
pub mod folders;
pub mod forwarded;
pub mod head;
pub mod http2_frames;
pub mod http_date;
pub mod idempotency;
pub mod issued_tag;
pub mod json;
pub mod lease;
pub mod metadata;
pub mod parts_hash;
pub mod path_mapping;
pub mod policy;
pub mod precondition;
pub mod quirks;
pub mod range;
pub mod record;
pub mod refusal;
pub mod request_line;
pub mod resource;
pub mod revision;
pub mod route;
pub mod settled;
pub mod steps;
pub mod target;
pub mod time;
pub mod validators;
pub mod verdict;
pub mod waiting;
