//! The place where a write names the version that it is based on, if not in `If-Match` (`precondition`).

use std::fmt;

use super::json::JsonPointer;

const JSON_FORM: &str = "json:";
const QUERY_FORM: &str = "query:";

/// A place where a write names the version that it is based on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionSource {
    /// A member of a JSON body.
    Json(JsonPointer),
    /// A parameter of the query.
    Query(String),
}

impl VersionSource {
    /// Reads `json:/pointer` or `query:NAME`.
    pub fn parse(text: &str) -> Option<Self> {
        match (text.strip_prefix(JSON_FORM), text.strip_prefix(QUERY_FORM)) {
            (Some(pointer), _) => JsonPointer::parse(pointer).map(Self::Json),
            (None, Some(name)) => (!name.is_empty()).then(|| Self::Query(name.to_owned())),
            (None, None) => None,
        }
    }

    /// The member of the body, if it is one.
    pub const fn member(&self) -> Option<&JsonPointer> {
        if let Self::Json(pointer) = self { Some(pointer) } else { None }
    }

    /// The parameter of the query, if it is one.
    pub const fn parameter(&self) -> Option<&String> {
        if let Self::Query(name) = self { Some(name) } else { None }
    }

    /// The place as a refusal names it.
    pub fn phrase(&self) -> String {
        match self {
            Self::Json(pointer) => format!("the member {pointer} of the body"),
            Self::Query(name) => format!("the parameter {name} of the query"),
        }
    }
}

impl fmt::Display for VersionSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(pointer) => write!(formatter, "{JSON_FORM}{pointer}"),
            Self::Query(name) => write!(formatter, "{QUERY_FORM}{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_member_or_a_parameter() {
        for text in ["json:/_rev", "json:/metadata/resourceVersion", "query:rev"] {
            assert_eq!(VersionSource::parse(text).map(|source| source.to_string()).as_deref(), Some(text));
        }
        for text in ["", "rev", "json:_rev", "query:", "header:X"] {
            assert_eq!(VersionSource::parse(text), None, "{text}");
        }
    }
}
