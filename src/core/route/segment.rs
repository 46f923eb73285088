//! The segments of a path pattern, and which texts they take.
//!
//! # Design
//!
//! *Why is text without case never marked?* `1` in any case is `1`. With two forms, a route that ignores case and one
//! that does not would differ where they take the same segments. The tree could then not find the more specific of the
//! two.

use std::borrow::Cow;

use super::super::http::request_target::{fold_normal, has_case};

/// One segment of a pattern, or its open end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Segment {
    /// Only this text.
    Literal(LiteralText),
    /// Any one segment that is longer than this end, which may be empty. The part before the end has the name.
    Capture {
        /// The name.
        name: String,
        /// The end.
        suffix: LiteralText,
    },
    /// Any number of segments, including none, under this name; only at the end.
    Rest(String),
}

/// Text of a pattern, in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LiteralText {
    /// The text, folded if it stands for all its letter cases.
    text: String,
    ignores_case: bool,
}

impl Segment {
    /// The name of a capture.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::Capture { name, .. } | Self::Rest(name) => Some(name),
        }
    }

    /// The same segment in any letter case.
    pub(super) fn ignoring_case(&self) -> Self {
        match self {
            Self::Literal(text) => Self::Literal(text.ignoring_case()),
            Self::Capture { name, suffix } => Self::Capture { name: name.clone(), suffix: suffix.ignoring_case() },
            Self::Rest(name) => Self::Rest(name.clone()),
        }
    }

    /// True if some segment matches both. A rest matches every segment.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rest(_), _) | (_, Self::Rest(_)) => true,
            (Self::Literal(one), Self::Literal(other)) => one.is_shared_with(other),
            (Self::Literal(text), Self::Capture { suffix, .. })
            | (Self::Capture { suffix, .. }, Self::Literal(text)) => suffix.may_end(text),
            (Self::Capture { suffix: one, .. }, Self::Capture { suffix: other, .. }) => one.meets(other),
        }
    }

    /// True if every segment that matches the other matches this one. A rest matches every segment.
    pub(super) fn contains(&self, inner: &Self) -> bool {
        match (self, inner) {
            (Self::Rest(_), _) => true,
            (_, Self::Rest(_)) | (Self::Literal(_), Self::Capture { .. }) => false,
            (Self::Literal(outer), Self::Literal(inner)) => outer.has_all_of(inner),
            (Self::Capture { suffix, .. }, Self::Literal(inner)) => suffix.ends_all_of(inner, false),
            (Self::Capture { suffix, .. }, Self::Capture { suffix: inner, .. }) => suffix.ends_all_of(inner, true),
        }
    }
}

impl LiteralText {
    /// This text alone.
    pub(super) fn exact(text: impl Into<String>) -> Self {
        Self { text: text.into(), ignores_case: false }
    }

    /// The text in any letter case.
    pub(super) fn ignoring_case(&self) -> Self {
        Self { text: fold_normal(&self.text).into_owned(), ignores_case: has_case(&self.text) }
    }

    /// The text, folded if it stands for all its letter cases.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// True if the text stands for all its letter cases.
    pub(super) fn ignores_case(&self) -> bool {
        self.ignores_case
    }

    /// The text in the one form of all its letter cases.
    pub(super) fn folded(&self) -> Cow<'_, str> {
        fold_normal(&self.text)
    }

    /// Returns the part of a segment before this end, if the segment has the end and something before it. `folded` is
    /// the segment in the form of all its letter cases.
    pub(super) fn is_end_of(&self, segment: &[u8], folded: &[u8]) -> bool {
        let segment = if self.ignores_case { folded } else { segment };
        before(segment, &self.text).is_some_and(|value| !value.is_empty())
    }

    /// Returns the part of a segment in normal form before this end, which the segment has.
    pub(super) fn cut_from<'t>(&self, segment: &'t str) -> &'t str {
        if !self.ignores_case {
            return segment.strip_suffix(&self.text).unwrap_or(segment);
        }
        // A letter and its fold can have encodings of different lengths.
        let mut cuts = (0..=segment.len()).rev().filter_map(|at| segment.split_at_checked(at));
        cuts.find(|(_, end)| fold_normal(end) == self.text).map_or(segment, |(value, _)| value)
    }

    fn is_shared_with(&self, other: &Self) -> bool {
        if self.ignores_case || other.ignores_case { self.folded() == other.folded() } else { self.text == other.text }
    }

    fn has_all_of(&self, inner: &Self) -> bool {
        if self.ignores_case { inner.folded() == self.text } else { !inner.ignores_case && inner.text == self.text }
    }

    /// True if some segment of a literal has this end, and something before it.
    pub(super) fn may_end(&self, literal: &Self) -> bool {
        self.end_of(literal).is_some_and(|is_whole| !is_whole)
    }

    /// True if some segment has both ends.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.end_of(other).is_some() || other.end_of(self).is_some()
    }

    /// `Some` if some form of a text ends with some form of this one: true if the end is all of the text.
    fn end_of(&self, text: &Self) -> Option<bool> {
        if self.ignores_case || text.ignores_case {
            before(text.folded().as_bytes(), &self.folded()).map(<[u8]>::is_empty)
        } else {
            before(text.text.as_bytes(), &self.text).map(<[u8]>::is_empty)
        }
    }

    /// True if every form of a text ends with this one. `whole` tells whether it may be all of the text.
    fn ends_all_of(&self, inner: &Self, whole: bool) -> bool {
        let text = if self.ignores_case { inner.folded() } else { Cow::Borrowed(inner.as_str()) };
        let is_end = before(text.as_bytes(), &self.text).is_some_and(|value| whole || !value.is_empty());
        is_end && (self.ignores_case || !inner.ignores_case || !has_case(&self.text))
    }
}

/// Returns the part of a text before an end, unless the end begins in the middle of an encoding.
fn before<'t>(text: &'t [u8], end: &str) -> Option<&'t [u8]> {
    let value = text.strip_suffix(end.as_bytes())?;
    let splits_encoding = matches!(value, [.., b'%'] | [.., b'%', _]);
    (end.is_empty() || !splits_encoding).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_cut_from_what_it_ends() {
        for (suffix, segment, value) in [
            (".json", "1.json", Some("1")),
            (".json", "a.b.json", Some("a.b")),
            (".json", ".json", None),
            (".json", "1.JSON", None),
            (".json", "1.json.gz", None),
            ("20", "a%20", None),
            ("0", "a%20", None),
            ("20", "a20", Some("a")),
            ("%C3%A9", "caf%C3%A9", Some("caf")),
            ("", "a%20", Some("a%20")),
        ] {
            let suffix = LiteralText::exact(suffix);
            let found = suffix.is_end_of(segment.as_bytes(), b"").then(|| suffix.cut_from(segment));
            assert_eq!(found, value, "{segment}");
        }
    }

    #[test]
    fn an_end_in_any_case_is_cut_at_its_own_length() {
        for (suffix, segment, value) in [
            (".JSON", "Ab.Json", Some("Ab")),
            ("-k", "1-%E2%84%AA", Some("1")),
            ("-\u{e9}", "1-%C3%89", Some("1")),
            (".json", ".JSON", None),
            ("20c", "a%20C", None),
        ] {
            let normal: String =
                percent_encoding::utf8_percent_encode(suffix, crate::core::http::request_target::ENCODED).collect();
            let suffix = LiteralText::exact(normal).ignoring_case();
            let folded = fold_normal(segment);
            let found = suffix.is_end_of(segment.as_bytes(), folded.as_bytes()).then(|| suffix.cut_from(segment));
            assert_eq!(found, value, "{segment}");
        }
    }

    #[test]
    fn text_without_case_has_one_form() {
        assert_eq!(LiteralText::exact("1-%20").ignoring_case(), LiteralText::exact("1-%20"));
        assert!(LiteralText::exact("v1").ignoring_case().ignores_case());
    }
}
