//! What is known of the current representation of a resource (RFC 9110 section 8.8).

use http::{
    HeaderMap,
    header::{DATE, ETAG, HeaderName, LAST_MODIFIED},
};

use super::{
    entity_tag::{EntityTag, MalformedTag},
    http_date::HttpDate,
};

/// A modification date and how far it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Modified {
    /// The `Last-Modified` date.
    pub date: HttpDate,
    /// Whether it is strong by RFC 9110 section 8.8.2.2: at least a second older than the response that carried it.
    pub strong: bool,
}

/// The validators of one representation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Validators {
    /// The entity-tag, if the representation has one.
    pub tag: Option<EntityTag>,
    /// The modification date, if it has one.
    pub modified: Option<Modified>,
}

/// What is known of a resource's current representation. The three are never the same thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Representation {
    /// Nothing: only the upstream can tell.
    #[default]
    Unknown,
    /// There is none.
    Absent,
    /// There is one, with these validators (perhaps none).
    Present(Validators),
}

/// Why the `ETag` field of a response gives no tag although it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableTag {
    /// It cannot be read.
    #[error("the ETag field cannot be read: {0}")]
    Malformed(#[from] MalformedTag),
    /// It occurs several times with different values.
    #[error("several ETag fields contradict one another")]
    Contradictory,
}

impl Validators {
    /// The validators that a response carries, and why its `ETag` field was not among them.
    ///
    /// `ETag` lines that are all the same are one. A modification date needs exactly one readable `Last-Modified`
    /// line, and is strong where exactly one readable `Date` line is at least a second later.
    pub fn from_headers(headers: &HeaderMap) -> (Self, Option<UnusableTag>) {
        let modified = single_date(headers, &LAST_MODIFIED)
            .map(|date| Modified { date, strong: single_date(headers, &DATE).is_some_and(|sent| date < sent) });
        match tag(headers) {
            Ok(tag) => (Self { tag, modified }, None),
            Err(reason) => (Self { tag: None, modified }, Some(reason)),
        }
    }
}

fn tag(headers: &HeaderMap) -> Result<Option<EntityTag>, UnusableTag> {
    let mut lines = headers.get_all(ETAG).iter();
    let Some(first) = lines.next() else { return Ok(None) };
    let tag = EntityTag::parse(first.as_bytes())?;
    for line in lines {
        if EntityTag::parse(line.as_bytes())? != tag {
            return Err(UnusableTag::Contradictory);
        }
    }
    Ok(Some(tag))
}

/// The date of a field that occurs exactly once; `None` where it cannot be read.
pub(super) fn single_date(headers: &HeaderMap, name: &HeaderName) -> Option<HttpDate> {
    let mut lines = headers.get_all(name).iter();
    let (only, None) = (lines.next()?, lines.next()) else { return None };
    HttpDate::parse(only.as_bytes())
}
