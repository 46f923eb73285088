//! The problems of a configuration. Each is one message with the line that it refers to.

use std::{fmt, ops::Range};

/// A text and its name in reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    /// The path of the file, or another name for the origin of the text.
    pub(super) name: &'a str,
    /// The text.
    pub(super) text: &'a str,
}

/// One text of the file whose variables were replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    /// The position of the text.
    pub(super) span: Range<usize>,
    /// The text as the file has it.
    pub(super) written: String,
    /// The text with the values of its variables; `None` if one of them has no value.
    pub(super) value: Option<String>,
}

/// One problem, with a hint that helps to solve it. It prints as
///
/// ```text
/// ifmatch.toml:14:12: max_hash_size is 10GiB, the limit is 256MiB
///    |
/// 14 | max_hash_size = "10GiB"
///    |            ^^^^^^^
///    hint: larger bodies get no content tag; use etag = "version"
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    source: String,
    place: Option<TextPosition>,
    message: String,
    hint: Option<String>,
}

/// A position in a text. Lines and columns start from 1; columns count characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TextPosition {
    line: usize,
    column: usize,
    /// The number of characters that are marked, at least one.
    width: usize,
    excerpt: String,
}

impl Problem {
    /// Creates a problem with a text as a whole.
    pub fn of_source(source: &str, message: impl Into<String>) -> Self {
        Self { source: source.to_owned(), place: None, message: without_passwords(&message.into()), hint: None }
    }

    /// Adds a hint on how to solve the problem.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(without_passwords(&hint.into())), ..self }
    }

    /// Returns this problem without the values that came from the environment. A problem with such a value itself names
    /// the variables alone, because any other message could show a part of the value. `None` stands for a problem with a
    /// text that has no value.
    pub(super) fn hiding(self, source: Source<'_>, replaced: &[Replaced]) -> Option<Self> {
        let is_here = |each: &&Replaced| {
            let place = source.place(each.span.clone());
            self.place.as_ref().is_some_and(|own| (own.line, own.column) == (place.line, place.column))
        };
        if let Some(Replaced { written, value, .. }) = replaced.iter().find(is_here) {
            value.as_ref()?;
            let message = format!("the value of {written:?} is not valid here");
            let hint = "write the value itself in its place to see the reason".to_owned();
            return Some(Self { message, hint: Some(hint), ..self });
        }
        let hidden = |text: String| {
            let values = replaced.iter().filter_map(|each| Some((each.value.as_ref()?, &each.written)));
            values.fold(text, |text, (value, written)| text.replace(&format!("{value:?}"), &format!("{written:?}")))
        };
        Some(Self { message: hidden(self.message), hint: self.hint.map(hidden), ..self })
    }

    /// Returns the message alone.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl Source<'_> {
    /// Creates a problem with the bytes of `span`.
    pub(super) fn problem(&self, span: Range<usize>, message: impl Into<String>) -> Problem {
        Problem { place: Some(self.place(span)), ..Problem::of_source(self.name, message) }
    }

    /// Returns the line, from 1, that contains a byte.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.before(offset).matches('\n').count() + 1
    }

    fn place(&self, span: Range<usize>) -> TextPosition {
        let before = self.before(span.start);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let excerpt = self.text.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
        let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        // A span of several lines is marked to the end of its first line.
        let marked = self.text.get(span).unwrap_or_default().lines().next().unwrap_or_default();
        TextPosition {
            line: self.line(before.len()),
            column,
            width: marked.chars().count().max(1),
            excerpt: without_passwords(&printable(excerpt)),
        }
    }

    /// Returns the text before a byte, or before the character that contains the byte.
    fn before(&self, offset: usize) -> &str {
        let mut end = offset.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        self.text.get(..end).unwrap_or_default()
    }
}

/// Masks the passwords of URLs in a text without changing its length, because reports go to terminals and logs.
fn without_passwords(text: &str) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let is_end = |each: &char| each.is_whitespace() || matches!(each, '"' | '\'' | '`' | ',');
    let ends: Vec<usize> = (0..characters.len()).filter(|at| characters.get(*at) == Some(&'@')).collect();
    for end in ends {
        let before = characters.get(..end).unwrap_or_default();
        let url = before.iter().rposition(is_end).map_or(0, |at| at + 1);
        let authority = before.windows(3).rposition(|three| *three == [':', '/', '/']).map_or(0, |at| at + 3).max(url);
        let colon = before.iter().skip(authority).position(|each| *each == ':');
        let password = colon.map_or(end, |colon| authority + colon + 1);
        characters.iter_mut().take(end).skip(password).for_each(|each| *each = '*');
    }
    characters.into_iter().collect()
}

/// Replaces the characters that would move the cursor of a terminal.
fn printable(line: &str) -> String {
    line.chars().map(|each| if each == '\t' { ' ' } else { each }).map(replace_control).collect()
}

fn replace_control(each: char) -> char {
    if each.is_control() { char::REPLACEMENT_CHARACTER } else { each }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            None => write!(f, "{}: {}", self.source, self.message)?,
            Some(TextPosition { line, column, width, excerpt }) => {
                let margin = " ".repeat(line.to_string().len());
                let (indent, mark) = (" ".repeat(column - 1), "^".repeat(*width));
                writeln!(f, "{}:{line}:{column}: {}", self.source, self.message)?;
                writeln!(f, "{margin} |\n{line} | {excerpt}")?;
                write!(f, "{margin} | {indent}{mark}")?;
            }
        }
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n   hint: {hint}"))
    }
}

/// All problems of a configuration, in the order of its text; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub(super) Vec<Problem>);

impl Problems {
    /// Sorts the problems by their place in the text, and drops repetitions.
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|left, right| (&left.place, &left.message).cmp(&(&right.place, &right.message)));
        problems.dedup();
        Self(problems)
    }

    /// Returns an iterator over the problems.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

/// Prints the problems with an empty line between them, and their number.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.0 {
            writeln!(f, "{problem}\n")?;
        }
        match self.0.len() {
            1 => write!(f, "1 problem"),
            several => write!(f, "{several} problems"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_place_excerpt_mark_and_hint() {
        let text = "a = 1\n[x]\nttl_max = \"10d\" # why\n";
        let source = Source { name: "ifmatch.toml", text };
        let start = text.find("\"10d\"").expect("the value is in the text");
        let problem = source.problem(start..start + 5, "ttl_max is 10d, the limit is 24h").hint("renew instead");
        let expected = "ifmatch.toml:3:11: ttl_max is 10d, the limit is 24h\n  |\n3 | ttl_max = \"10d\" # why\n  |           \
                        ^^^^^\n   hint: renew instead";
        assert_eq!(problem.to_string(), expected);
    }

    #[test]
    fn counts_characters_and_replaces_what_would_move_the_cursor() {
        let text = "\tä\u{1b}x = 1";
        let start = text.find('x').expect("the key is in the text");
        let problem = Source { name: "f", text }.problem(start..start + 1, "no");
        assert_eq!(problem.to_string(), "f:1:4: no\n  |\n1 |  ä\u{fffd}x = 1\n  |    ^");
    }

    #[test]
    fn hides_the_passwords_of_urls() {
        for (text, shown) in [
            ("server \"http://app:s3cr:t/@docs:9000\" is", "server \"http://app:*******@docs:9000\" is"),
            ("servers = ['app:secret@docs:80', \"b:c@d\"]", "servers = ['app:******@docs:80', \"b:*@d\"]"),
            ("https://a:@b and u@c:80, [::1]:80", "https://a:@b and u@c:80, [::1]:80"),
            ("r\u{e4}tsel://x:\u{fc}@y", "r\u{e4}tsel://x:*@y"),
        ] {
            assert_eq!(without_passwords(text), shown);
            let problem = Source { name: "f", text }.problem(0..1, text).hint(text).to_string();
            assert_eq!(problem.matches(shown).count(), 3, "{problem}");
        }
    }

    #[test]
    fn marks_an_empty_span_at_the_end_of_the_text() {
        let problem = Source { name: "f", text: "x = " }.problem(4..4, "no value");
        assert_eq!(problem.to_string(), "f:1:5: no value\n  |\n1 | x = \n  |     ^");
    }

    #[test]
    fn marks_only_the_first_line_of_a_span() {
        let problem = Source { name: "f", text: "x = [\n1]" }.problem(4..8, "no list");
        assert_eq!(problem.to_string(), "f:1:5: no list\n  |\n1 | x = [\n  |     ^");
    }

    #[test]
    fn sorts_by_place_and_drops_repetitions() {
        let source = Source { name: "f", text: "a\nb" };
        let (first, second) = (source.problem(0..1, "one"), source.problem(2..3, "two"));
        let problems = Problems::new(vec![second.clone(), first.clone(), second.clone()]);
        assert_eq!(problems, Problems(vec![first, second]));
    }
}
