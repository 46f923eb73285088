//! Path templates of OpenAPI as patterns of routes.
//!
//! # Design
//!
//! *Why are some templates widened?* A route has one name in a segment, at its beginning. A segment such as `{base}...{head}`
//! or `v{version}` becomes one name, which takes more than the template. A guard that takes more is safe, and one that takes
//! less loses updates.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::core::{http::request_target::RESERVED, route::PathPattern};

/// The characters that are encoded in literal text that stays readable.
const READABLE: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The pattern of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RoutePath {
    /// The pattern as a configuration spells it.
    pub(super) spelled: String,
    /// The pattern.
    pub(super) pattern: PathPattern,
    /// True if it takes more than the template.
    pub(super) is_wider: bool,
    /// True if it takes several segments in place of its last name.
    pub(super) is_open: bool,
}

impl RoutePath {
    /// The pattern of a template below the path of a server. `None` if no route has such paths.
    pub(super) fn of(base: &str, template: &str) -> Option<Self> {
        let path = template.split(['?', '#']).next().unwrap_or_default();
        let whole = format!("{base}{path}");
        let parts: Vec<&str> = whole.split('/').filter(|part| !part.is_empty()).collect();
        let mut names: Vec<String> = Vec::new();
        let (mut spelled, mut is_wider, mut is_open) = (String::new(), path != template, false);
        for (index, part) in parts.iter().enumerate() {
            let is_last = index + 1 == parts.len();
            let segment = SegmentOfTemplate::of(part);
            spelled.push('/');
            match segment {
                SegmentOfTemplate::Literal => spelled.push_str(&literal("/", part)),
                SegmentOfTemplate::Named { name, suffix, exact } => {
                    let name = free_name(&name, &mut names);
                    is_open = is_last && suffix.is_empty() && holds_slashes(&name);
                    let star = if is_open { "*" } else { "" };
                    spelled.extend(["{", star, &name, "}", &literal("/{name}", suffix)]);
                    is_wider |= !exact;
                }
            }
        }
        if spelled.is_empty() {
            spelled.push('/');
        }
        let pattern = PathPattern::parse(&spelled).ok()?;
        Some(Self { spelled, pattern, is_wider, is_open })
    }
}

/// One segment of a template.
enum SegmentOfTemplate<'a> {
    /// Text alone.
    Literal,
    /// A name and the text after it. `exact` tells whether the template has nothing else.
    Named { name: String, suffix: &'a str, exact: bool },
}

impl<'a> SegmentOfTemplate<'a> {
    fn of(part: &'a str) -> Self {
        let Some((before, rest)) = part.split_once('{') else { return Self::Literal };
        let Some((name, suffix)) = rest.split_once('}') else { return Self::Literal };
        let Some((inner, last)) = suffix.rsplit_once('}') else {
            return Self::Named { name: name.to_owned(), suffix, exact: before.is_empty() };
        };
        let other = inner.split(['{', '}']).nth(1).unwrap_or_default();
        Self::Named { name: format!("{name}_{other}"), suffix: last, exact: false }
    }
}

/// True if a name stands for a path of several segments, as in `/contents/{path}`.
fn holds_slashes(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with("path")
}

/// Literal text as a pattern spells it after this beginning.
fn literal(before: &str, part: &str) -> String {
    let readable = utf8_percent_encode(part, READABLE).to_string();
    // A percent sign that begins no encoding is text, and a dollar at the end is the sign of another router.
    let is_pattern = !part.ends_with('$') && PathPattern::parse(&format!("{before}{readable}")).is_ok();
    if is_pattern { readable } else { utf8_percent_encode(part, RESERVED).to_string() }
}

/// A name that the pattern does not have yet.
fn free_name(name: &str, names: &mut Vec<String>) -> String {
    let is_word = |each: char| each.is_ascii_alphanumeric() || each == '_';
    let word: String = name.chars().map(|each| if is_word(each) { each } else { '_' }).collect();
    let mut free = if word.is_empty() { "name".to_owned() } else { word };
    while names.contains(&free) {
        free.push('_');
    }
    names.push(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_become_patterns() {
        for (base, template, spelled, is_wider) in [
            ("", "/", "/", false),
            ("/api/v3", "/", "/api/v3", false),
            ("", "/pets/{petId}", "/pets/{petId}", false),
            ("/v1", "/pets/{pet-id}/", "/v1/pets/{pet_id}", false),
            ("", "/items/{id}.json", "/items/{id}.json", false),
            ("", "/items/{id}:cancel", "/items/{id}:cancel", false),
            ("", "/{id}/{id}", "/{id}/{id_}", false),
            ("", "/compare/{base}...{head}", "/compare/{base_head}", true),
            ("", "/{a}-{b}-{c}.json", "/{a_b}.json", true),
            ("", "/v{version}/x", "/{version}/x", true),
            ("", "/users/@{name}", "/users/{name}", true),
            ("", "/a b/c?x=1", "/a%20b/c", true),
            ("", "/a#part", "/a", true),
            ("", "/:id", "/%3Aid", false),
            ("", "/a/*", "/a/%2A", false),
            ("", "/a$", "/a%24", false),
            ("", "/users/me@x", "/users/me@x", false),
            ("", "/100%", "/100%25", false),
            ("", "/{}", "/{name}", false),
            ("", "/{a", "/%7Ba", false),
            ("", "/a//b", "/a/b", false),
            ("", "/contents/{filepath}", "/contents/{*filepath}", false),
            ("", "/contents/{path}/raw", "/contents/{path}/raw", false),
            ("", "/pets/{petId}{suffix}", "/pets/{petId_suffix}", true),
            ("", "/straße", "/stra%C3%9Fe", false),
        ] {
            let path = RoutePath::of(base, template).expect("a pattern");
            assert_eq!((path.spelled.as_str(), path.is_wider), (spelled, is_wider), "{template}");
            assert_eq!(path.is_open, spelled.contains('*') && spelled.ends_with('}'), "{template}");
        }
    }

    #[test]
    fn some_paths_are_no_routes() {
        assert_eq!(RoutePath::of("", "/a/../b"), None);
        assert_eq!(RoutePath::of("", &"/a".repeat(100)), None);
    }
}
