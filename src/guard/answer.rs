//! What the client of a guarded request is to get.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode, header};
use pingora::http::{RequestHeader, ResponseHeader};

use crate::{
    config::Route,
    core::{
        coarse_tag::Spelling,
        entity_tag::EntityTag,
        policy::{GuardRules, TagSource},
        refusal::Refusal,
        validators::{ToldDate, Validators, told_date},
    },
    upstream::{BodyPrefix, BufferedBody, Exchange, references::rewrite_references},
};

/// The end of a guarded request, before a byte of it is written.
pub enum Answer {
    /// ifmatch answers instead of the backend.
    Refused(Refusal),
    /// ifmatch answers, and it is no refusal.
    Local(Box<ResponseHeader>, Option<Bytes>),
    /// The client's copy is current.
    NotModified(Box<ResponseHeader>),
    /// The upstream's response, changed in its head at the most.
    Relayed(Box<Relayed>),
    /// The client is gone, or does not speak HTTP.
    Broken(Box<pingora::Error>),
}

/// A response of the upstream on its way.
pub struct Relayed {
    /// Its head as the client gets it.
    pub head: Box<ResponseHeader>,
    /// The part of its body that was read already.
    pub begun: BodyPrefix,
    /// Where the rest comes from, if there is one.
    pub rest: Option<Exchange>,
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Box<pingora::Error>> for Answer {
    fn from(error: Box<pingora::Error>) -> Self {
        Self::Broken(error)
    }
}

impl Answer {
    /// A response whose body was read up to some point. Where that was the end its length is known.
    pub(crate) async fn read_so_far(
        mut head: Box<ResponseHeader>,
        whole: BufferedBody,
        exchange: Exchange,
    ) -> Result<Self, Self> {
        let (begun, rest) = match whole {
            BufferedBody::Complete(body) => {
                exchange.finish().await;
                if !head.headers.contains_key(header::CONTENT_LENGTH) && may_have_length(&head) {
                    head.insert_header(header::CONTENT_LENGTH, body.len())?;
                }
                (body, None)
            }
            BufferedBody::TooLarge(begun) | BufferedBody::TooSlow(begun) => (begun, Some(exchange)),
        };
        Ok(Self::Relayed(Box::new(Relayed { head, begun, rest })))
    }

    /// Says the tag that it carries in the route's second field too.
    pub(crate) fn mirror_tag(&mut self, rules: &GuardRules) -> pingora::Result<()> {
        let Some(mirror) = &rules.intermediaries.mirror else { return Ok(()) };
        match self {
            Self::Relayed(relayed) => mirror_tag(&mut relayed.head, mirror),
            Self::Local(head, _) | Self::NotModified(head) => mirror_tag(head, mirror),
            Self::Refused(_) | Self::Broken(_) => Ok(()),
        }
    }

    /// Makes what it refers to what the client knows it by.
    pub(crate) fn rewrite_references(&mut self, route: &Route, client: &RequestHeader) -> pingora::Result<()> {
        match self {
            Self::Relayed(relayed) => rewrite_references(&mut relayed.head, route, client),
            Self::NotModified(head) => rewrite_references(head, route, client),
            Self::Local(..) | Self::Refused(_) | Self::Broken(_) => Ok(()),
        }
    }

    /// Tells what may be told of the modification date. Where the upstream judges, dates are its own matter.
    pub(crate) fn tell_date(&mut self, rules: &GuardRules) -> pingora::Result<()> {
        let Self::Relayed(relayed) = self else { return Ok(()) };
        if rules.etag == TagSource::Delegate {
            return Ok(());
        }
        match told_date(rules.quirks.always_dated, &relayed.head.headers) {
            ToldDate::AsItIs => Ok(()),
            ToldDate::Instead(date) => relayed.head.insert_header(header::LAST_MODIFIED, date.to_string()),
            ToldDate::Withheld => {
                relayed.head.remove_header(&header::LAST_MODIFIED);
                Ok(())
            }
        }
    }

    /// A 304 with these fields ([`not_modified_head`]).
    pub(crate) fn not_modified(fields: &HeaderMap) -> Self {
        Self::NotModified(not_modified_head(fields))
    }
}

/// The head of a 304 with these fields, those of a 304 alone (see
/// [`not_modified_fields`](super::knowledge::responses::not_modified_fields)).
pub(crate) fn not_modified_head(fields: &HeaderMap) -> Box<ResponseHeader> {
    let (mut head, ()) = http::Response::new(()).into_parts();
    head.status = StatusCode::NOT_MODIFIED;
    head.headers = fields.clone();
    Box::new(head.into())
}

/// Says the tag of a response in the route's second field too, which nobody on the way changes (`mirror_header`), and
/// nothing else there.
fn mirror_tag(head: &mut ResponseHeader, mirror: &HeaderName) -> pingora::Result<()> {
    head.remove_header(mirror);
    let Some(tag) = head.headers.get(header::ETAG).cloned() else { return Ok(()) };
    head.insert_header(mirror.clone(), tag)?;
    if head.headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN) {
        head.append_header(header::ACCESS_CONTROL_EXPOSE_HEADERS, mirror.as_str())?;
    }
    Ok(())
}

/// A status that comes without a body by its nature has no length to state.
fn may_have_length(head: &ResponseHeader) -> bool {
    !matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Takes away a tag that is not of the route's source: clients could not use it here. Another is spelled as it is issued.
pub(crate) fn withhold_foreign_tag(
    head: &mut ResponseHeader,
    rules: &GuardRules,
    spelling: &Spelling,
) -> pingora::Result<()> {
    let own = rules.etag.is_upstreams_own().then(|| Validators::from_headers(&head.headers).0.tag).flatten();
    set_tag(head, own.and_then(|tag| spelling.issued(&tag)).as_ref())
}

/// Puts a tag, or none, in the place of whatever tags a response has: exactly one leaves us.
pub(crate) fn set_tag(head: &mut ResponseHeader, tag: Option<&EntityTag>) -> pingora::Result<()> {
    let Some(tag) = tag else {
        head.remove_header(&header::ETAG);
        return Ok(());
    };
    head.insert_header("ETag", tag.to_header_value())
}
