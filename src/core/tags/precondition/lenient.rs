//! Conditions of clients that write tags otherwise than RFC 9110 demands (`lenient_tags`).

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::core::tags::entity_tag::{EntityTag, trim_start};

/// Returns the value of `If-Match` or `If-None-Match` with the quotes that its tags lack. `weakens` adds the weak form of
/// each strong tag. Returns `None` if the field needs neither, or holds something else than tags.
pub fn well_written(headers: &HeaderMap, name: &HeaderName, weakens: bool) -> Option<HeaderValue> {
    let (mut tags, mut is_changed) = (Vec::new(), false);
    for line in headers.get_all(name) {
        let mut rest = trim_start(line.as_bytes());
        while !rest.is_empty() {
            let (tag, after, lacks_quotes) = member(rest)?;
            is_changed |= lacks_quotes;
            tags.extend(tag);
            rest = trim_start(after.strip_prefix(b",").unwrap_or(after));
        }
    }
    if weakens {
        let strong = tags.iter().filter(|tag| !tag.is_weak());
        let weak: Vec<EntityTag> = strong.filter_map(|tag| EntityTag::weak(tag.opaque()).ok()).collect();
        is_changed |= !weak.is_empty();
        tags.extend(weak);
    }
    let values: Vec<HeaderValue> = tags.iter().map(EntityTag::to_header_value).collect();
    let list = values.iter().map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b", "[..]);
    HeaderValue::from_bytes(&list).ok().filter(|_| is_changed)
}

/// Reads the member of a list that a line begins with: its tag unless it is empty, the rest of the line, and whether it
/// lacks quotes. An asterisk is no tag, at any place.
fn member(line: &[u8]) -> Option<(Option<EntityTag>, &[u8], bool)> {
    if line.starts_with(b",") {
        return Some((None, line, false));
    }
    if let Ok((tag, after)) = EntityTag::take(line) {
        let after = trim_start(after);
        return (after.is_empty() || after.starts_with(b",")).then_some((Some(tag), after, false));
    }
    let end = line.iter().position(|octet| *octet == b',').unwrap_or(line.len());
    let (text, after) = line.split_at_checked(end)?;
    let tag = EntityTag::parse_unquoted(text).ok().filter(|tag| tag.opaque() != b"*")?;
    Some((Some(tag), after, true))
}

#[cfg(test)]
mod tests {
    use http::header::IF_MATCH;

    use super::*;

    fn written(lines: &[&str], weakens: bool) -> Option<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(IF_MATCH, line.parse().unwrap());
        }
        Some(well_written(&headers, &IF_MATCH, weakens)?.to_str().unwrap().to_owned())
    }

    #[test]
    fn tags_get_the_quotes_that_they_lack() {
        for (lines, expected) in [
            (&["3"][..], "\"3\""),
            (&["W/3"], "W/\"3\""),
            (&["\"a\", b ,, W/c"], "\"a\", \"b\", W/\"c\""),
            (&["a", "\"b,c\""], "\"a\", \"b,c\""),
            (&["5d-4e"], "\"5d-4e\""),
        ] {
            assert_eq!(written(lines, false).as_deref(), Some(expected), "{lines:?}");
        }
    }

    #[test]
    fn a_strong_tag_stands_for_its_weak_form_too() {
        for (lines, expected) in [
            (&["\"3\""][..], Some("\"3\", W/\"3\"")),
            (&["3, W/\"4\""], Some("\"3\", W/\"4\", W/\"3\"")),
            (&["W/\"3\""], None),
        ] {
            assert_eq!(written(lines, true).as_deref(), expected, "{lines:?}");
        }
    }

    /// Lines that the proxy cannot read stay as they are, and are refused.
    #[test]
    fn nothing_else_changes() {
        for lines in [
            &[][..],
            &["*"],
            &["3, *"],
            &["\"a\""],
            &["\"a\" \"b\""],
            &["\"a"],
            &["a b"],
            &["w/\"a\""],
            &["W/"],
            &[","],
        ] {
            assert_eq!(written(lines, false), None, "{lines:?}");
            assert!(!lines.contains(&"*") || written(lines, true).is_none(), "{lines:?}");
        }
    }
}
