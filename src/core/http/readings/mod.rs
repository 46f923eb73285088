//! The readings of a request: what a backend may take a part of it for (DESIGN, section 3, rule 18).
//!
//! ifmatch reads a request in one way, and its backend may read it in another. These pure functions list the readings
//! that servers and libraries are known to have. The judge then takes the strictest, or refuses what has several.

pub mod body_method;
pub mod body_name;
pub mod collection;
pub mod content_type;
pub mod declared_json;
pub mod destination;
pub mod folding;
mod form;
pub mod json_field;
mod json_method;
pub mod method;
pub mod named_method;
pub mod query;
pub mod query_names;
pub mod version;
