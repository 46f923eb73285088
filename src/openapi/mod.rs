//! OpenAPI documents (3.0 and 3.1): a configuration made of one, an overlay that tells clients of preconditions and leases,
//! and the operations that no route guards.
//!
//! All of it is pure: a text becomes a [`ApiDocument`], its paths become [`Paths`], and these become texts again.

mod classify;
mod configuration;
mod coverage;
mod document;
mod facts;
#[cfg(test)]
mod generated_tests;
mod overlay;
mod paths;
mod place;
mod problem;
mod reference;
mod schema;
mod security;
mod server;
mod tag;
mod template;
mod written;

pub use configuration::configuration;
pub use coverage::{Coverage, Uncovered, coverage};
pub use document::{ApiDocument, SIZE_MAX_BYTES};
pub use overlay::overlay;
pub use paths::Paths;
pub use problem::{DocumentProblem, DocumentProblems};
