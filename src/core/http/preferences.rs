//! The preferences of a client for the answer (`Prefer`, RFC 7240).

use http::{HeaderMap, HeaderName};

/// The field with the preferences of a client.
pub const PREFER: HeaderName = HeaderName::from_static("prefer");
/// The field with the preferences that an answer follows.
pub const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
/// The preference for the current representation (section 4.2).
pub const RETURN_REPRESENTATION: &str = "return=representation";

/// Returns the name and the value of each preference, without quotes and parameters.
pub fn preferences(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let lines = headers.get_all(&PREFER).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|preference| {
        let preference = preference.split(';').next().unwrap_or_default();
        let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
        (name.trim(), value.trim().trim_matches('"'))
    })
}

/// True if a client wants the current representation in the answer to its write. The first value counts (section 2).
pub fn wants_representation(headers: &HeaderMap) -> bool {
    let first = preferences(headers).find(|(name, _)| name.eq_ignore_ascii_case("return"));
    first.is_some_and(|(_, value)| value.eq_ignore_ascii_case("representation"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_representation_is_wanted_if_the_first_return_says_so() {
        for (lines, expected) in [
            (&["return=representation"][..], true),
            (&["respond-async, Return = \"Representation\"; x=1"], true),
            (&["wait=5", "return=representation"], true),
            (&["return=minimal, return=representation"], false),
            (&["return"], false),
            (&["x-return=representation"], false),
            (&[], false),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(PREFER, line.parse().unwrap());
            }
            assert_eq!(wants_representation(&headers), expected, "{lines:?}");
        }
    }
}
