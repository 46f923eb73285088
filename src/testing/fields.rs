//! Fields of a message.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Returns these fields. Their names are in lower case.
pub(crate) fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
}
