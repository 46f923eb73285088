//! The heads of messages: their fields, credentials and ranges, and the readings of a request (DESIGN, section 3, rules 14
//! and 18).

pub mod client_address;
pub mod cors;
pub mod credentials;
pub mod expectation;
pub mod fields;
pub mod forwarded;
pub mod own_fields;
pub mod path_mapping;
pub mod preferences;
pub mod range;
pub mod readings;
pub mod request_target;
pub mod via;
