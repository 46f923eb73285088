//! Routes: which requests a pattern matches, which of two patterns goes first, and the table that finds the one route
//! of a request (DESIGN, section 9). All functions are total, over plain types, and independent of what a route does.

use thiserror::Error;

mod batch;
mod host;
mod members;
mod path;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod reading_properties;
mod relation;
mod segment;
mod table;
mod touch;
mod tree;
mod writes_to;

pub use batch::is_batch;
pub(super) use host::host_name;
pub use host::{HostPattern, is_host};
pub use members::{MembersFolder, MembersTemplate};
pub use path::PathPattern;
pub use relation::{Relation, is_below, relation};
pub use table::{Captures, RouteMatch, RouteTable};
pub use touch::TouchTemplate;
pub use writes_to::WritesTo;

/// The fault of a pattern or a key template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct PatternProblem {
    /// The problem, as a fragment.
    pub message: String,
    /// The text to write instead, if it is known.
    pub hint: Option<String>,
}

impl PatternProblem {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
