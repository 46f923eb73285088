//! Key templates: `{host}`, `{path}`, `{NAME}`, `{query.NAME}`, `{header.NAME}`, `{header.NAME:json}`,
//! and literal text between them.

use std::fmt;

use http::HeaderName;

use super::super::{
    http::request_target::{fold_normal, is_segment_character},
    route::PatternProblem,
};

/// How similar a misspelled placeholder must be to the one that was meant, from 0 to 1.
const SIMILARITY_MIN: f64 = 0.6;

/// The end of a placeholder whose field holds JSON. The name of a field holds no colon.
const JSON: &str = ":json";

/// The character that stands for a parameter or field that is absent or empty. No value holds it.
pub(super) const ABSENT: u8 = b'?';

/// The template by which a route makes resource keys; `{path}` by default.
///
/// Two requests have equal keys only if the values of all placeholders are equal. To ensure this, the text after a
/// placeholder must begin with a character that its values cannot hold, as in `{resource}#{stage}`. Any other template
/// is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTemplate {
    pub(super) parts: Vec<TemplatePart>,
    /// True if keys that differ only in letter case are one.
    pub(super) ignores_case: bool,
}

/// One part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplatePart {
    /// Visible ASCII, as written.
    Literal(String),
    /// The host, without its port.
    Host,
    /// The path in normal form.
    Path,
    /// The text that the route's path pattern captured under this name.
    Capture {
        /// The name.
        name: String,
        /// True if the name could be a `{*rest}`, which holds slashes: only the last name of a path can.
        maybe_rest: bool,
    },
    /// A query parameter.
    Query(String),
    /// A header field.
    Header(HeaderName),
    /// A header field that holds a JSON value.
    JsonHeader(HeaderName),
}

impl KeyTemplate {
    /// The template that a configuration spells, for a route whose path pattern captures these names.
    pub fn parse(template: &str, path_names: &[&str]) -> Result<Self, PatternProblem> {
        let mut parts = Vec::new();
        let mut rest = template;
        while !rest.is_empty() {
            let literal = rest.split(['{', '}']).next().unwrap_or_default();
            if literal.is_empty() {
                let placeholder = rest.strip_prefix('{').and_then(|open| open.split_once('}'));
                let Some((name, following)) = placeholder else { return Err(stray_brace()) };
                parts.push(parse_placeholder(name, path_names)?);
                rest = following;
            } else {
                parts.push(checked_literal(literal)?);
                rest = rest.strip_prefix(literal).unwrap_or_default();
            }
        }
        if parts.is_empty() {
            return Err(PatternProblem::new("a key cannot be empty").hint("write \"{path}\""));
        }
        check_boundaries(&parts)?;
        Ok(Self { parts, ignores_case: false })
    }

    /// Returns the template of a backend that ignores letter case: all parts of the keys are folded. So keys from a
    /// path, from a query and from a field still meet.
    #[must_use]
    pub fn ignoring_case(self) -> Self {
        let fold = |part| match part {
            TemplatePart::Literal(text) => TemplatePart::Literal(fold_normal(&text).into_owned()),
            value => value,
        };
        Self { parts: self.parts.into_iter().map(fold).collect(), ignores_case: true }
    }

    /// True if captures of a path pattern name resources.
    pub fn needs_captures(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, TemplatePart::Capture { .. }))
    }

    /// True if the path alone names resources.
    pub fn is_path(&self) -> bool {
        self.parts == [TemplatePart::Path]
    }

    /// The header fields that name resources.
    pub fn fields(&self) -> impl Iterator<Item = &HeaderName> + Clone {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Header(field) | TemplatePart::JsonHeader(field) => Some(field),
            _ => None,
        })
    }

    /// True if the query names resources.
    pub fn needs_query(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, TemplatePart::Query(_)))
    }
}

/// Formats the template as a configuration spells it.
impl fmt::Display for KeyTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            TemplatePart::Literal(text) => formatter.write_str(text),
            TemplatePart::Host => formatter.write_str("{host}"),
            TemplatePart::Path => formatter.write_str("{path}"),
            TemplatePart::Capture { name, .. } => write!(formatter, "{{{name}}}"),
            TemplatePart::Query(parameter) => write!(formatter, "{{query.{parameter}}}"),
            TemplatePart::Header(field) => write!(formatter, "{{header.{field}}}"),
            TemplatePart::JsonHeader(field) => write!(formatter, "{{header.{field}{JSON}}}"),
        })
    }
}

fn stray_brace() -> PatternProblem {
    PatternProblem::new("a brace has no partner").hint("write placeholders as \"{path}\"; a key holds no other braces")
}

fn checked_literal(text: &str) -> Result<TemplatePart, PatternProblem> {
    if text.bytes().all(|octet| octet.is_ascii_graphic()) {
        return Ok(TemplatePart::Literal(text.to_owned()));
    }
    Err(PatternProblem::new("the text of a key is visible ASCII, without spaces").hint("separate values with \"#\""))
}

fn parse_placeholder(name: &str, path_names: &[&str]) -> Result<TemplatePart, PatternProblem> {
    match name.split_once('.') {
        None if path_names.contains(&name) => {
            Ok(TemplatePart::Capture { name: name.to_owned(), maybe_rest: path_names.last() == Some(&name) })
        }
        None if name == "host" => Ok(TemplatePart::Host),
        None if name == "path" => Ok(TemplatePart::Path),
        Some(("query", parameter)) if !parameter.is_empty() => Ok(TemplatePart::Query(parameter.to_owned())),
        Some(("header", field)) => match HeaderName::try_from(field.strip_suffix(JSON).unwrap_or(field)) {
            Ok(name) if field.ends_with(JSON) => Ok(TemplatePart::JsonHeader(name)),
            Ok(name) => Ok(TemplatePart::Header(name)),
            Err(_) => Err(PatternProblem::new(format!("{field:?} cannot be the name of a header field"))),
        },
        _ => Err(unknown_placeholder(name, path_names)),
    }
}

fn unknown_placeholder(name: &str, path_names: &[&str]) -> PatternProblem {
    let (family, member) = name.split_once('.').filter(|(_, member)| !member.is_empty()).unwrap_or((name, "NAME"));
    let whole = ["host", "path"].iter().chain(path_names).map(|known| (*known, (*known).to_owned()));
    let families = ["query", "header"].map(|known| (known, format!("{known}.{member}")));
    let nearest = whole
        .chain(families)
        .map(|(known, suggestion)| (strsim::jaro_winkler(family, known), suggestion))
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    let hint = match nearest {
        Some((similarity, suggestion)) if similarity >= SIMILARITY_MIN => format!("did you mean {{{suggestion}}}?"),
        _ => "known placeholders are {host}, {path}, the names in the route's path, {query.NAME} and {header.NAME}"
            .to_owned(),
    };
    PatternProblem::new(format!("{{{name}}} stands for nothing here")).hint(hint)
}

/// Checks that no value can be taken for the beginning of what follows it. The last value needs no end, because what
/// follows it has a fixed length.
fn check_boundaries(parts: &[TemplatePart]) -> Result<(), PatternProblem> {
    let last = parts.iter().rposition(|part| !matches!(part, TemplatePart::Literal(_))).unwrap_or_default();
    for (part, following) in parts.iter().zip(parts.iter().skip(1)).take(last) {
        let next = match following {
            TemplatePart::Literal(text) => text.bytes().next(),
            TemplatePart::Path => Some(b'/'),
            _ => None,
        };
        if part.can_hold(next) {
            return Err(PatternProblem::new(
                "two resources could get one key, because the key does not show where a value ends",
            )
            .hint("separate values with \"#\", as in \"{resource}#{stage}\""));
        }
    }
    Ok(())
}

impl TemplatePart {
    /// True if a value of this part can hold a character; `None` stands for any character. Literal text is not a
    /// value.
    fn can_hold(&self, character: Option<u8>) -> bool {
        let Some(octet) = character else { return !matches!(self, Self::Literal(_)) };
        let in_segment = is_segment_character(octet);
        match self {
            Self::Literal(_) => false,
            Self::Path | Self::Capture { maybe_rest: true, .. } => in_segment || octet == b'/',
            Self::Host | Self::Capture { maybe_rest: false, .. } | Self::JsonHeader(_) => in_segment,
            Self::Query(_) | Self::Header(_) => in_segment || octet == ABSENT,
        }
    }
}
