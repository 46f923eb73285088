//! From field lines to [`Preconditions`].

use http::{
    HeaderMap,
    header::{HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE},
};

use super::{Combination, ConditionField, Preconditions, RangeCondition, TagCondition};
use crate::core::tags::{
    entity_tag::{EntityTag, MalformedTag, trim_start},
    http_date::{HttpDate, single_date},
};

/// The maximum number of tags in a list. Each is compared with the current one.
const TAGS_MAX: usize = 1_000;

/// A field that cannot be read. The message names the field and what to send, and repeats nothing of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} cannot be read: {reason}")]
pub struct MalformedPrecondition {
    /// The field.
    pub field: ConditionField,
    /// The reason.
    pub reason: MalformedList,
}

/// The reason why a value is neither `*` nor a list of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedList {
    /// A member is not a tag.
    #[error(transparent)]
    Tag(#[from] MalformedTag),
    /// The list has no members.
    #[error("it names no entity-tag")]
    Empty,
    /// `*` is one of several members.
    #[error("* must stand alone and only once, without entity-tags")]
    AnyInList,
    /// The list has more members than are compared.
    #[error("it names more than {TAGS_MAX} entity-tags")]
    TooManyTags,
}

impl Preconditions {
    /// Reads the conditional fields of a guarded write: a list of tags that cannot be read is an error.
    ///
    /// A date that cannot be read or that is given more than once is ignored, as RFC 9110 sections 13.1.3 and 13.1.4
    /// demand. [`requirement`](super::requirement) does not count it.
    pub fn parse(headers: &HeaderMap) -> Result<Self, MalformedPrecondition> {
        let malformed = |field| move |reason| MalformedPrecondition { field, reason };
        Ok(Self {
            if_match: tag_condition(headers, &IF_MATCH).map_err(malformed(ConditionField::IfMatch))?,
            if_none_match: tag_condition(headers, &IF_NONE_MATCH).map_err(malformed(ConditionField::IfNoneMatch))?,
            ..Self::parse_dates(headers)
        })
    }

    /// Reads the conditional fields of a read: a list of tags that cannot be read is dropped.
    ///
    /// The date that this list overrules is dropped with it. It must be ignored if the list's field is present at all
    /// (RFC 9110 sections 13.1.3 and 13.1.4).
    pub fn parse_for_read(headers: &HeaderMap) -> Self {
        let mut conditions = Self::parse_dates(headers);
        match tag_condition(headers, &IF_MATCH) {
            Ok(condition) => conditions.if_match = condition,
            Err(_malformed) => conditions.if_unmodified_since = None,
        }
        match tag_condition(headers, &IF_NONE_MATCH) {
            Ok(condition) => conditions.if_none_match = condition,
            Err(_malformed) => conditions.if_modified_since = None,
        }
        conditions
    }

    /// True if there is nothing to judge. `If-Range` decides only about a part of the response and does not count.
    pub fn is_empty(&self) -> bool {
        self.if_match.is_none()
            && self.if_none_match.is_none()
            && self.if_modified_since.is_none()
            && self.if_unmodified_since.is_none()
    }

    fn parse_dates(headers: &HeaderMap) -> Self {
        Self {
            if_match: None,
            if_none_match: None,
            if_modified_since: single_date(headers, &IF_MODIFIED_SINCE),
            if_unmodified_since: single_date(headers, &IF_UNMODIFIED_SINCE),
            has_unreadable_date: headers.contains_key(IF_UNMODIFIED_SINCE)
                && single_date(headers, &IF_UNMODIFIED_SINCE).is_none(),
            if_range: range_condition(headers),
            lease_suffices: false,
            combination: Combination::Rfc9110,
        }
    }
}

/// Reads several field lines as one list (RFC 9110 section 5.3). No tag can reach from one line into the next, because
/// the joining `, ` contains a space. So the lines are read one by one.
fn tag_condition(headers: &HeaderMap, name: &HeaderName) -> Result<Option<TagCondition>, MalformedList> {
    let mut lines = headers.get_all(name).iter();
    let Some(first) = lines.next() else { return Ok(None) };
    if let (Some(b""), None) = (trim_start(first.as_bytes()).strip_prefix(b"*").map(trim_start), lines.next()) {
        return Ok(Some(TagCondition::Any));
    }
    let mut tags = Vec::new();
    for line in headers.get_all(name) {
        read_tags(line.as_bytes(), &mut tags)?;
    }
    if tags.is_empty() { Err(MalformedList::Empty) } else { Ok(Some(TagCondition::Tags(tags))) }
}

/// Appends the tags of one line; empty members are skipped (RFC 9110 section 5.6.1.2).
fn read_tags(line: &[u8], tags: &mut Vec<EntityTag>) -> Result<(), MalformedList> {
    let mut rest = trim_start(line);
    loop {
        rest = match rest {
            [] => return Ok(()),
            [b',', after @ ..] => trim_start(after),
            [b'*', ..] => return Err(MalformedList::AnyInList),
            _ if tags.len() == TAGS_MAX => return Err(MalformedList::TooManyTags),
            _ => {
                let (tag, after) = EntityTag::take(rest)?;
                tags.push(tag);
                match trim_start(after) {
                    after @ ([] | [b',', ..]) => after,
                    _ => return Err(MalformedTag::Trailing.into()),
                }
            }
        }
    }
}

/// Reads a value as a tag, else as a date: no value can be both.
fn range_condition(headers: &HeaderMap) -> Option<RangeCondition> {
    let mut lines = headers.get_all(IF_RANGE).iter();
    let value = lines.next()?.as_bytes();
    let condition = match (lines.next(), EntityTag::parse(value), HttpDate::parse(value)) {
        (None, Ok(tag), _) => RangeCondition::Tag(tag),
        (None, _, Some(date)) => RangeCondition::Date(date),
        _ => RangeCondition::Malformed,
    };
    Some(condition)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(HeaderName, &str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    fn if_match(lines: &[&str]) -> Result<Option<TagCondition>, MalformedList> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(IF_MATCH, line.parse().unwrap());
        }
        Preconditions::parse(&headers).map(|conditions| conditions.if_match).map_err(|error| error.reason)
    }

    fn tags(opaque: &[&'static str]) -> TagCondition {
        TagCondition::Tags(opaque.iter().map(|opaque| EntityTag::strong(*opaque).unwrap()).collect())
    }

    /// RFC 9110 sections 5.3, 5.6.1.2 and 13.1.1.
    #[test]
    fn well_formed_lists_are_read() {
        for (lines, expected) in [
            (&["*"][..], TagCondition::Any),
            (&["\t* "], TagCondition::Any),
            (&["\"*\""], tags(&["*"])),
            (&["\"a\""], tags(&["a"])),
            (&["\"a,b\",\"c\\\" ,\t\"\""], tags(&["a,b", "c\\", ""])),
            (&[",, \"a\" ,, \"b\","], tags(&["a", "b"])),
            (&["\"a\"", "", "\"b\", \"c\""], tags(&["a", "b", "c"])),
        ] {
            assert_eq!(if_match(lines), Ok(Some(expected)), "{lines:?}");
        }
    }

    /// RFC 9110 section 13.1.1.
    #[test]
    fn malformed_lists_are_refused_with_their_reason() {
        for (lines, reason) in [
            (&[""][..], MalformedList::Empty),
            (&[" , ", ""], MalformedList::Empty),
            (&["*, \"a\""], MalformedList::AnyInList),
            (&["\"a\", *"], MalformedList::AnyInList),
            (&["*", "\"a\""], MalformedList::AnyInList),
            (&["*", "*"], MalformedList::AnyInList),
            (&["*,"], MalformedList::AnyInList),
            (&["**"], MalformedList::AnyInList),
            (&["\"a\" \"b\""], MalformedTag::Trailing.into()),
            (&["\"a\"b"], MalformedTag::Trailing.into()),
            (&["\"a\", b"], MalformedTag::Unquoted.into()),
            (&["\"a\", \"b"], MalformedTag::Unterminated.into()),
            (&["\"a", "b\""], MalformedTag::Unterminated.into()),
            (&["w/\"a\""], MalformedTag::LowerCaseMark.into()),
        ] {
            assert_eq!(if_match(lines), Err(reason), "{lines:?}");
        }
    }

    #[test]
    fn a_list_is_bounded_over_all_lines() {
        let line = vec!["\"a\""; TAGS_MAX / 2].join(",");
        assert_eq!(if_match(&[&line, &line]), Ok(Some(tags(&["a"; TAGS_MAX]))));
        assert_eq!(if_match(&[&line, &line, "\"a\""]), Err(MalformedList::TooManyTags));
    }

    #[test]
    fn the_message_names_field_and_remedy() {
        let error = Preconditions::parse(&headers(&[(IF_NONE_MATCH, "secret")])).unwrap_err();
        let expected = "If-None-Match cannot be read: an entity-tag is enclosed in double quotes: \"abc\"";
        assert_eq!(error.to_string(), expected);
    }

    /// RFC 9110 sections 13.1.3 and 13.1.4: a date is ignored if the field of tags before it is present.
    #[test]
    fn a_read_drops_a_malformed_list_and_the_date_behind_it() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let (if_match, if_none_match) = ((IF_MATCH, "a"), (IF_NONE_MATCH, "a"));
        let dates = [(IF_UNMODIFIED_SINCE, date), (IF_MODIFIED_SINCE, date)];
        let read = |list| Preconditions::parse_for_read(&headers(&[list, dates[0].clone(), dates[1].clone()]));
        let date = HttpDate::parse(date.as_bytes());
        assert_eq!(read(if_match), Preconditions { if_modified_since: date, ..Preconditions::default() });
        assert_eq!(read(if_none_match), Preconditions { if_unmodified_since: date, ..Preconditions::default() });
    }

    /// RFC 9110 section 13.1.5.
    #[test]
    fn if_range_alone_leaves_nothing_to_judge() {
        let conditions = Preconditions::parse(&headers(&[(IF_RANGE, "\"a\"")])).unwrap();
        assert_eq!(conditions.if_range, Some(RangeCondition::Tag(EntityTag::strong("a").unwrap())));
        assert!(conditions.is_empty());
    }
}
