//! The path of a route: literal segments, `{name}` for one segment, `{name}.json` for one with that end, and `{*name}`
//! for the rest.

use std::{borrow::Cow, fmt};

use super::{
    super::http::request_target::{KeptInNames, NormalPath, normal_segment, normalize},
    PatternProblem,
    batch::is_batch,
    segment::{LiteralText, Segment},
};

/// The maximum number of segments of a pattern: more than any interface has, and few enough to compare patterns often.
const SEGMENTS_MAX: usize = 64;

/// The paths that a route matches: `/`, `/documents/{id}`, `/documents/{id}.json`, `/files/{*rest}`.
///
/// Paths are matched in normal form, so a trailing slash makes no difference. `{*rest}` also matches no segment at all:
/// `/files/{*rest}` takes `/files` and `/files/`, and `/{*rest}` takes every path. A `;` in a literal segment
/// is an ordinary character; on a route that refuses path parameters it never matches. The same is true of `%2F`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathPattern {
    segments: Vec<Segment>,
    ignores_case: bool,
}

impl PathPattern {
    /// The pattern that a configuration spells.
    pub fn parse(spelled: &str) -> Result<Self, PatternProblem> {
        if let Some(problem) = other_spelling(spelled) {
            return Err(problem);
        }
        let Some(relative) = spelled.strip_prefix('/') else {
            return Err(PatternProblem::new("a path begins with \"/\"").hint(format!("write \"/{spelled}\"")));
        };
        let mut pattern = Self { segments: Vec::new(), ignores_case: false };
        if relative.is_empty() {
            return Ok(pattern);
        }
        if let Some(parent) = spelled.strip_suffix('/') {
            return Err(PatternProblem::new("a path is matched without its trailing slash")
                .hint(format!("write {parent:?} for that one, or \"{parent}/{{*rest}}\" for all below it too")));
        }
        for part in relative.split('/') {
            pattern.append(parse_segment(part)?)?;
        }
        Ok(pattern)
    }

    /// The names of the pattern's captures, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(Segment::name)
    }

    /// The text of each segment, in order: whether it begins with a capture, and its literal text or end.
    pub fn texts(&self) -> impl Iterator<Item = (bool, &str)> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Literal(text) => Some((false, text.as_str())),
            Segment::Capture { suffix, .. } => Some((true, suffix.as_str())),
            Segment::Rest(_) => None,
        })
    }

    /// Whether a literal segment names a batch.
    pub fn names_batch(&self) -> bool {
        self.texts().any(|(is_capture, text)| !is_capture && is_batch(text))
    }

    /// The same paths in any letter case.
    #[must_use]
    pub fn ignoring_case(&self) -> Self {
        Self { segments: self.segments.iter().map(Segment::ignoring_case).collect(), ignores_case: true }
    }

    /// True if the paths match in any letter case.
    pub fn ignores_case(&self) -> bool {
        self.ignores_case
    }

    /// True if any number of segments may follow.
    pub fn is_open(&self) -> bool {
        matches!(self.segments.last(), Some(Segment::Rest(_)))
    }

    /// The same paths below another path in normal form: `/documents/{id}` under `/.leases` is
    /// `/.leases/documents/{id}`.
    #[must_use]
    pub fn under(&self, prefix: &NormalPath) -> Self {
        let literals = prefix.segments().map(|segment| self.literal(segment));
        Self { segments: literals.chain(self.segments.iter().cloned()).collect(), ..*self }
    }

    /// The paths below these.
    #[must_use]
    pub fn below(&self) -> Self {
        let mut segments = self.segments.clone();
        if !self.is_open() {
            let any = Segment::Capture { name: String::new(), suffix: LiteralText::exact("") };
            segments.extend([any, Segment::Rest(String::new())]);
        }
        Self { segments, ..*self }
    }

    /// The paths that have these as members: `/notes` for `/notes/{id}`. `None` if the last segment is no name of a member,
    /// or nothing before it is literal.
    pub fn collection(&self) -> Option<Self> {
        let (last, before) = self.segments.split_last()?;
        let is_named = before.iter().any(|segment| matches!(segment, Segment::Literal(_)));
        let is_member = matches!(last, Segment::Capture { .. });
        (is_member && is_named).then(|| Self { segments: before.to_vec(), ..*self })
    }

    /// The same paths without this beginning; `None` if not all of them have it.
    pub fn without(&self, prefix: &NormalPath) -> Option<Self> {
        let mut segments = self.segments.iter();
        for text in prefix.segments() {
            if segments.next() != Some(&self.literal(text)) {
                return None;
            }
        }
        Some(Self { segments: segments.cloned().collect(), ..*self })
    }

    fn literal(&self, text: &str) -> Segment {
        let literal = Segment::Literal(LiteralText::exact(text));
        if self.ignores_case { literal.ignoring_case() } else { literal }
    }

    /// Returns the path that matches if its captures have these values, in normal form.
    pub(super) fn filled<'v>(&self, mut value: impl FnMut(&str) -> Option<Cow<'v, str>>) -> Option<NormalPath> {
        let mut path = String::new();
        for segment in &self.segments {
            path.push('/');
            match segment {
                Segment::Literal(text) => path.push_str(text.as_str()),
                Segment::Capture { name, suffix } => path.extend([&*value(name)?, suffix.as_str()]),
                Segment::Rest(name) => path.push_str(&value(name)?),
            }
        }
        let path = if path.is_empty() { "/" } else { &path };
        normalize(path.as_bytes(), KeptInNames::ALL).ok()
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    fn append(&mut self, segment: Segment) -> Result<(), PatternProblem> {
        if let Some(Segment::Rest(name)) = self.segments.last() {
            return Err(PatternProblem::new(format!("nothing can follow {{*{name}}}"))
                .hint(format!("write {{{name}}} for one segment, or move it to the end")));
        }
        if let Some(name) = segment.name()
            && self.names().any(|taken| taken == name)
        {
            return Err(PatternProblem::new(format!("the name {name:?} is used twice"))
                .hint("give each capture a name of its own"));
        }
        if self.segments.len() == SEGMENTS_MAX {
            return Err(PatternProblem::new(format!("a path has at most {SEGMENTS_MAX} segments")));
        }
        self.segments.push(segment);
        Ok(())
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments.is_empty() {
            formatter.write_str("/")?;
        }
        for segment in &self.segments {
            match segment {
                Segment::Literal(text) => write!(formatter, "/{}", text.as_str())?,
                Segment::Capture { name, suffix } => write!(formatter, "/{{{name}}}{}", suffix.as_str())?,
                Segment::Rest(name) => write!(formatter, "/{{*{name}}}")?,
            }
        }
        Ok(())
    }
}

fn parse_segment(part: &str) -> Result<Segment, PatternProblem> {
    let capture = part.strip_prefix('{').and_then(|inner| inner.split_once('}'));
    if let Some((name, suffix)) = capture.filter(|(name, suffix)| !name.contains('{') && !suffix.contains(['{', '}'])) {
        let Some(rest) = name.strip_prefix('*') else {
            return Ok(Segment::Capture { name: checked_name(name)?, suffix: literal(suffix)? });
        };
        if !suffix.is_empty() {
            return Err(PatternProblem::new(format!("nothing can follow {{*{rest}}}"))
                .hint(format!("write \"{{{rest}}}{suffix}\" for one segment with that end")));
        }
        return Ok(Segment::Rest(checked_name(rest)?));
    }
    if part.contains(['{', '}']) {
        return Err(PatternProblem::new("a capture begins its segment, and is the only one in it")
            .hint("write \"/{name}\" or \"/{name}.json\", and braces that are meant literally as %7B and %7D"));
    }
    if matches!(part, "" | "." | "..") {
        return Err(PatternProblem::new("a path is matched without dot segments and doubled slashes")
            .hint("write the path that it leads to"));
    }
    Ok(Segment::Literal(literal(part)?))
}

/// Reads literal text.
fn literal(spelled: &str) -> Result<LiteralText, PatternProblem> {
    let normal = normal_segment(spelled.as_bytes(), KeptInNames::ALL);
    Ok(LiteralText::exact(normal.map_err(|ambiguity| PatternProblem::new(ambiguity.to_string()))?))
}

/// Returns the problem with a path that is spelled as other routers spell theirs: `/docs/:id`, `/docs/*`, `^/docs/.*$`.
/// Read as literal text, such a path would match no request.
fn other_spelling(spelled: &str) -> Option<PatternProblem> {
    let inner = spelled.strip_prefix('^').unwrap_or(spelled);
    let inner = inner.strip_suffix('$').unwrap_or(inner);
    let translated = inner.split('/').map(translated_segment).collect::<Vec<_>>().join("/");
    let what = if inner != spelled {
        "a path is no regular expression"
    } else if translated != inner {
        "a path spells its captures as {name} and {*rest}"
    } else {
        return None;
    };
    Some(PatternProblem::new(what).hint(format!("write {translated:?}")))
}

fn translated_segment(part: &str) -> Cow<'_, str> {
    match part.strip_prefix(':') {
        Some(name) if !name.is_empty() => Cow::Owned(format!("{{{name}}}")),
        _ if matches!(part, "*" | "**" | ".*" | "(.*)") => Cow::Borrowed("{*rest}"),
        _ => Cow::Borrowed(part),
    }
}

/// Checks the name of a capture.
fn checked_name(name: &str) -> Result<String, PatternProblem> {
    let is_word = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'_';
    if name.is_empty() || !name.bytes().all(is_word) {
        return Err(PatternProblem::new("the name of a capture is made of letters, digits and \"_\"")
            .hint("write \"{id}\", or \"{*rest}\" for all that follows"));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{super::super::http::request_target::normalize, *};

    #[test]
    fn patterns_are_shown_in_normal_form() {
        let cases = [
            ("/", "/"),
            ("/documents/{id}", "/documents/{id}"),
            ("/files/{*rest}", "/files/{*rest}"),
            ("/{a}/x/{b_2}", "/{a}/x/{b_2}"),
            ("/%61%2d/é%2c", "/a-/%C3%A9,"),
            ("/a;b/%7Bid%7D", "/a;b/%7Bid%7D"),
            ("/items/{id}.json", "/items/{id}.json"),
            ("/items/{id}%2ejs%c3%a9/{*rest}", "/items/{id}.js%C3%A9/{*rest}"),
            ("/a%2fb", "/a%2Fb"),
        ];
        for (spelled, shown) in cases {
            assert_eq!(PathPattern::parse(spelled).unwrap().to_string(), shown, "{spelled}");
        }
    }

    #[test]
    fn a_pattern_can_be_put_below_a_path() {
        let prefix = normalize(b"/.leases/v1", KeptInNames::NOTHING).unwrap();
        for (spelled, shown) in [("/", "/.leases/v1"), ("/documents/{id}", "/.leases/v1/documents/{id}")] {
            assert_eq!(PathPattern::parse(spelled).unwrap().under(&prefix).to_string(), shown);
        }
    }

    #[test]
    fn a_pattern_can_be_taken_from_below_a_path() {
        let prefix = normalize(b"/api", KeptInNames::NOTHING).unwrap();
        let without = |spelled| PathPattern::parse(spelled).unwrap().without(&prefix).map(|left| left.to_string());
        assert_eq!(without("/api/documents/{id}").as_deref(), Some("/documents/{id}"));
        assert_eq!(without("/api").as_deref(), Some("/"));
        for spelled in ["/apis/{id}", "/{api}/x", "/{*rest}", "/"] {
            assert_eq!(without(spelled), None, "{spelled}");
        }
    }

    #[test]
    fn members_have_a_collection_if_its_path_has_a_name() {
        let collection = |spelled| PathPattern::parse(spelled).unwrap().collection().map(|path| path.to_string());
        for (spelled, path) in
            [("/notes/{id}", "/notes"), ("/notes/{id}.json", "/notes"), ("/{team}/notes/{id}", "/{team}/notes")]
        {
            assert_eq!(collection(spelled).as_deref(), Some(path), "{spelled}");
        }
        for spelled in ["/", "/notes", "/{id}", "/{team}/{id}", "/notes/{*rest}", "/notes/{id}/text"] {
            assert_eq!(collection(spelled), None, "{spelled}");
        }
    }

    #[test]
    fn names_are_given_in_order() {
        let pattern = PathPattern::parse("/{tenant}/x/{id}/{*rest}").unwrap();
        assert_eq!(pattern.names().collect::<Vec<_>>(), ["tenant", "id", "rest"]);
    }

    #[test]
    fn what_is_no_path_pattern_is_a_problem() {
        let cases = [
            ("", "a path begins with \"/\""),
            ("documents", "a path begins with \"/\""),
            ("/documents/", "a path is matched without its trailing slash"),
            ("//", "a path is matched without its trailing slash"),
            ("/a//b", "a path is matched without dot segments and doubled slashes"),
            ("/a/../b", "a path is matched without dot segments and doubled slashes"),
            ("/a-{id}", "a capture begins its segment, and is the only one in it"),
            ("/{id", "a capture begins its segment, and is the only one in it"),
            ("/{id}-{part}", "a capture begins its segment, and is the only one in it"),
            ("/{*rest}.json", "nothing can follow {*rest}"),
            ("/{}", "the name of a capture is made of letters, digits and \"_\""),
            ("/{a.b}", "the name of a capture is made of letters, digits and \"_\""),
            ("/{**rest}", "the name of a capture is made of letters, digits and \"_\""),
            ("/:id", "a path spells its captures as {name} and {*rest}"),
            ("^/documents/.*$", "a path is no regular expression"),
            ("/{id}/{id}", "the name \"id\" is used twice"),
            ("/{*rest}/a", "nothing can follow {*rest}"),
            ("/a b", "the path holds a space; encode it as %20"),
            ("/a?b", "a path begins with \"/\" and ends before its query"),
        ];
        for (spelled, message) in cases {
            assert_eq!(PathPattern::parse(spelled).unwrap_err().message, message, "{spelled:?}");
        }
    }

    #[test]
    fn the_spelling_of_another_router_is_translated() {
        for (spelled, meant) in [
            ("/users/:user/posts/:id", "/users/{user}/posts/{id}"),
            ("/static/*", "/static/{*rest}"),
            ("/static/**", "/static/{*rest}"),
            ("^/static/.*$", "/static/{*rest}"),
            ("^/users/(.*)", "/users/{*rest}"),
            ("/users$", "/users"),
        ] {
            assert_eq!(PathPattern::parse(spelled).unwrap_err().hint.unwrap(), format!("write {meant:?}"), "{spelled}");
        }
        for literal in ["/users/a:b", "/a*b", "/%3Aid", "/a$b", "/users/%24"] {
            assert!(PathPattern::parse(literal).is_ok(), "{literal}");
        }
    }

    #[test]
    fn a_trailing_slash_is_answered_with_what_may_be_meant() {
        let problem = PathPattern::parse("/files/").unwrap_err();
        assert_eq!(problem.hint.unwrap(), "write \"/files\" for that one, or \"/files/{*rest}\" for all below it too");
    }

    #[test]
    fn the_number_of_segments_is_bounded() {
        assert!(PathPattern::parse(&"/a".repeat(SEGMENTS_MAX)).is_ok());
        assert_eq!(
            PathPattern::parse(&"/a".repeat(SEGMENTS_MAX + 1)).unwrap_err().message,
            "a path has at most 64 segments"
        );
    }
}
