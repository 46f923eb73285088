//! The known validators of the current representation of a resource (RFC 9110 section 8.8).

use http::{
    HeaderMap, StatusCode,
    header::{DATE, ETAG, HeaderName, LAST_MODIFIED},
};

use super::{
    entity_tag::{EntityTag, MalformedTag},
    told_dates::FirstDate,
};
use crate::core::tags::http_date::{HttpDate, single_date};

/// A modification date and how far it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Modified {
    /// The `Last-Modified` date.
    pub date: HttpDate,
    /// True if it is strong by RFC 9110 section 8.8.2.2: at least a second older than the response that carried it.
    pub strong: bool,
    /// The first date that counts, by the record and by the response.
    pub first: FirstDate,
}

impl Modified {
    /// The modification date of a response.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let date = single_date(headers, &LAST_MODIFIED)?;
        let sent = single_date(headers, &DATE);
        // No response shows a date after its own `Date`.
        let first = sent.map_or(FirstDate::NONE, FirstDate::at);
        Some(Self { date, strong: sent.is_some_and(|sent| date < sent), first })
    }

    /// Returns the date together with the knowledge of the record about earlier ones.
    #[must_use]
    pub fn by_record(self, first: FirstDate) -> Self {
        Self { first: self.first.min(first), ..self }
    }

    /// Returns the date as a record keeps it: what counts follows from the record that it is read from.
    #[must_use]
    pub fn kept(self) -> Self {
        Self { first: FirstDate::NONE, ..self }
    }

    /// True if a state with this date is unmodified since another date, which no earlier state can have had. An equal
    /// date counts only if it is strong; a later one is later in any case.
    pub fn admits(self, since: HttpDate) -> bool {
        if since == self.date { self.names_state(since) } else { since > self.date && self.first.is_before(since) }
    }

    /// True if a date names the state with this date, and no other state.
    pub fn names_state(self, date: HttpDate) -> bool {
        date == self.date && self.strong && self.first.may_be(date)
    }

    /// Returns the later of two dates. If they are equal, the result is as weak as the weaker one.
    #[must_use]
    pub fn later(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.date > self.date => Self { first: self.first, ..other },
            Some(other) if other.date == self.date => Self { strong: self.strong && other.strong, ..self },
            _ => self,
        }
    }

    /// The date for clients that expect one in every answer.
    ///
    /// A date that is not older than its answer may name two states: the resource may change again within that second
    /// and keep the date. If-Unmodified-Since with that date would then let a client overwrite a state that it has not
    /// seen (RFC 9110 section 8.8.2.2). So clients get the second before instead: a condition with it is false at
    /// worst, and the next read shows the true date.
    pub fn told(self) -> HttpDate {
        if self.strong {
            return self.date;
        }
        HttpDate::from_unix_seconds(self.date.unix_seconds().saturating_sub(1))
    }
}

/// The modification date of a response that the clients of a route get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldDate {
    /// The one in the response, be it a date or none.
    AsItIs,
    /// Another date.
    Instead(HttpDate),
    /// No date.
    Withheld,
}

/// Returns the modification date that clients get for a response with these fields.
///
/// Clients of a storage service read it in every answer ([`Modified::told`]). Others need none, and get none that may
/// name two states: a date that is a second too early looks strong to intermediaries in front of ifmatch. A cache
/// there, or another ifmatch, would take both states of that second for one, by If-Range or If-Unmodified-Since.
/// Without a `Date` the age of the response is unknown, and its date stays.
pub fn told_date(always_dated: bool, response: &HeaderMap) -> ToldDate {
    match Modified::from_headers(response) {
        Some(modified) if !modified.strong && response.contains_key(DATE) => {
            if always_dated {
                // A date in the future is no older than the answer either.
                let sent = single_date(response, &DATE).map_or(modified.told(), |sent| sent.min(modified.date));
                ToldDate::Instead(modified.told().min(Modified { date: sent, ..modified }.told()))
            } else {
                ToldDate::Withheld
            }
        }
        _ => ToldDate::AsItIs,
    }
}

/// The validators of one representation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Validators {
    /// The entity-tag, if the representation has one.
    pub tag: Option<EntityTag>,
    /// The modification date, if it has one.
    pub modified: Option<Modified>,
}

/// The knowledge about the current representation of a resource. The three cases are never the same thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Representation {
    /// Nothing is known: only the upstream can tell.
    #[default]
    Unknown,
    /// The resource has no representation.
    Absent,
    /// The resource has one, with these validators (perhaps none).
    Present(Validators),
}

/// True if a response with this status says that its resource has no representation.
pub fn tells_absence(status: StatusCode) -> bool {
    matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE)
}

/// True if a response with this status to a write says that its backend demands or judges preconditions.
pub fn judges_preconditions(status: StatusCode) -> bool {
    matches!(status, StatusCode::PRECONDITION_FAILED | StatusCode::PRECONDITION_REQUIRED)
}

/// The reason why the `ETag` field of a response gives no tag although it is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableTag {
    /// The field cannot be read.
    #[error("the ETag field cannot be read: {0}")]
    Malformed(#[from] MalformedTag),
    /// The field occurs several times with different values.
    #[error("several ETag fields contradict one another")]
    Contradictory,
}

impl Validators {
    /// The validators that a response carries, and why its `ETag` field was not among them.
    ///
    /// Identical `ETag` lines count as one, and missing quotes are added. A modification date needs exactly one
    /// readable `Last-Modified` line. It is strong if exactly one readable `Date` line is at least a second later.
    pub fn from_headers(headers: &HeaderMap) -> (Self, Option<UnusableTag>) {
        let modified = Modified::from_headers(headers);
        match tag(headers) {
            Ok(tag) => (Self { tag, modified }, None),
            Err(reason) => (Self { tag: None, modified }, Some(reason)),
        }
    }
}

/// The tag that another field of a response stands for (`etag = "header:NAME"`): its value if that is an entity-tag,
/// else a strong tag of it ([`EntityTag::of_text`]). `None` if the field is absent, or occurs with different values.
pub fn tag_from_field(headers: &HeaderMap, name: &HeaderName) -> Option<EntityTag> {
    let mut lines = headers.get_all(name).iter().map(|line| line.as_bytes().trim_ascii());
    let value = lines.next().filter(|value| !value.is_empty())?;
    let tag = EntityTag::of_text(value)?;
    lines.all(|line| line == value).then_some(tag)
}

fn tag(headers: &HeaderMap) -> Result<Option<EntityTag>, UnusableTag> {
    let mut lines = headers.get_all(ETAG).iter();
    let Some(first) = lines.next() else { return Ok(None) };
    let tag = EntityTag::parse_unquoted(first.as_bytes())?;
    for line in lines {
        if EntityTag::parse_unquoted(line.as_bytes())? != tag {
            return Err(UnusableTag::Contradictory);
        }
    }
    Ok(Some(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(HeaderName, &'static str)]) -> (Validators, Option<UnusableTag>) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, value.parse().unwrap());
        }
        Validators::from_headers(&headers)
    }

    #[test]
    fn one_tag_and_its_repetitions_are_the_tag() {
        let tag = Some(EntityTag::weak("a").unwrap());
        for lines in [1, 2] {
            let fields = vec![(ETAG, "W/\"a\""); lines];
            assert_eq!(read(&fields), (Validators { tag: tag.clone(), modified: None }, None), "{lines} lines");
        }
    }

    #[test]
    fn a_tag_without_quotes_gets_them() {
        let tag = Some(EntityTag::strong("a").unwrap());
        for fields in [&[(ETAG, "a")][..], &[(ETAG, "\"a\""), (ETAG, "a")]] {
            assert_eq!(read(fields), (Validators { tag: tag.clone(), modified: None }, None), "{fields:?}");
        }
    }

    #[test]
    fn a_tag_that_cannot_be_trusted_is_left_out_with_its_reason() {
        let malformed = UnusableTag::Malformed;
        for (fields, reason) in [
            (&[(ETAG, "")][..], malformed(MalformedTag::Unquoted)),
            (&[(ETAG, "\"a\", \"b\"")], malformed(MalformedTag::Trailing)),
            (&[(ETAG, "\"a\""), (ETAG, "b")], UnusableTag::Contradictory),
            (&[(ETAG, "\"a\""), (ETAG, "\"b\"")], UnusableTag::Contradictory),
            (&[(ETAG, "\"a\""), (ETAG, "W/\"a\"")], UnusableTag::Contradictory),
        ] {
            assert_eq!(read(fields), (Validators::default(), Some(reason)), "{fields:?}");
        }
    }

    #[test]
    fn another_field_is_quoted_where_it_is_not_a_tag() {
        let field = HeaderName::from_static("x-version");
        for (lines, expected) in [
            (&["7"][..], Some("\"7\"")),
            (&["\"7\""], Some("\"7\"")),
            (&["W/\"7\""], Some("W/\"7\"")),
            (&["7", "7"], Some("\"7\"")),
            (&["7", "8"], None),
            (&["a b"], Some("\"a%20b\"")),
            (&["\"a"], None),
            (&[""], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(&field, line.parse().unwrap());
            }
            let expected = expected.map(|tag| EntityTag::parse(tag.as_bytes()).unwrap());
            assert_eq!(tag_from_field(&headers, &field), expected, "{lines:?}");
        }
    }

    /// RFC 9110 section 8.8.2.2.
    #[test]
    fn a_modification_date_is_strong_from_one_second_before_the_response() {
        let at = |second| ["Sun, 06 Nov 1994 08:49:36 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"][second];
        for (modified, sent, strong) in [
            (at(0), Some(at(1)), true),
            (at(0), Some(at(0)), false),
            (at(1), Some(at(0)), false),
            (at(0), Some("yesterday"), false),
            (at(0), None, false),
        ] {
            let mut fields = vec![(LAST_MODIFIED, modified)];
            fields.extend(sent.map(|sent| (DATE, sent)));
            let date = HttpDate::parse(modified.as_bytes()).unwrap();
            let read = read(&fields).0.modified.map(|modified| (modified.date, modified.strong));
            assert_eq!(read, Some((date, strong)), "{fields:?}");
        }
    }

    /// RFC 9110 section 8.8.2.2.
    #[test]
    fn a_date_that_may_stand_for_two_states_is_told_as_the_second_before_or_not_at_all() {
        let at = HttpDate::from_unix_seconds;
        let fields = |sent: Option<u64>| {
            let modified = (LAST_MODIFIED, at(1_000).to_string().parse().unwrap());
            let sent = sent.map(|sent| (DATE, at(sent).to_string().parse().unwrap()));
            [modified].into_iter().chain(sent).collect::<HeaderMap>()
        };
        let early = ToldDate::Instead(at(999));
        for (sent, expected) in [
            (Some(1_001), [ToldDate::AsItIs; 2]),
            (Some(1_000), [ToldDate::Withheld, early]),
            (Some(990), [ToldDate::Withheld, ToldDate::Instead(at(989))]),
            (None, [ToldDate::AsItIs; 2]),
        ] {
            let told = [false, true].map(|always_dated| told_date(always_dated, &fields(sent)));
            assert_eq!(told, expected, "{sent:?}");
        }
        assert_eq!(told_date(true, &HeaderMap::new()), ToldDate::AsItIs);
        let dated = |strong| Modified { date: at(1_000), strong, first: FirstDate::ANY };
        assert_eq!(dated(true).told(), at(1_000));
        assert_eq!(dated(false).told(), at(999));
    }

    #[test]
    fn the_later_of_two_dates_is_no_stronger_than_both() {
        let at = |seconds, strong| {
            let date = HttpDate::from_unix_seconds(seconds);
            Modified { date, strong, first: FirstDate::ANY }
        };
        assert_eq!(at(1, true).later(None), at(1, true));
        assert_eq!(at(1, true).later(Some(at(2, false))), at(2, false));
        assert_eq!(at(2, true).later(Some(at(1, false))), at(2, true));
        assert_eq!(at(1, true).later(Some(at(1, false))), at(1, false));
        assert_eq!(at(1, false).later(Some(at(1, true))), at(1, false));
    }

    #[test]
    fn a_modification_date_that_is_unreadable_or_repeated_is_none() {
        for fields in [
            &[(LAST_MODIFIED, "1994-11-06")][..],
            &[(LAST_MODIFIED, "Sun, 06 Nov 1994 08:49:37 GMT"), (LAST_MODIFIED, "Sun, 06 Nov 1994 08:49:37 GMT")],
        ] {
            assert_eq!(read(fields).0.modified, None, "{fields:?}");
        }
    }
}
