//! The answer that the client of a guarded request gets.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode, header};
use pingora::http::{RequestHeader, ResponseHeader};

use crate::{
    body::Client,
    box_future::BoxFuture,
    config::Route,
    core::{
        policy::{GuardRules, TagSource},
        refusal::Refusal,
        tags::{
            coarse_tag::Spelling,
            entity_tag::EntityTag,
            validators::{ToldDate, Validators, told_date},
        },
    },
    dialect::Response,
    upstream::{BodyPrefix, BufferedBody, Exchange, fields::never_has_body, references::rewrite_references},
};

/// The answer to a guarded request that is not refused, before a byte of it is written.
pub enum Answer {
    /// An answer of ifmatch that is no refusal.
    Local(Box<ResponseHeader>, Option<Bytes>),
    /// A 304: the client's copy is current.
    NotModified(Box<ResponseHeader>),
    /// An answer of ifmatch that lasts: its content is made piece by piece.
    Lasting(Box<ResponseHeader>, Box<dyn Pieces>),
    /// The upstream's response or a part of it. Its head may have changed.
    Relayed(Box<Relayed>),
    /// A refusal whose client gets the current representation in place of a document.
    Current(Box<Refusal>, Box<Relayed>),
    /// A refusal that the protocol tells by an answer of its own.
    Told(Box<Refusal>, Box<ResponseHeader>, Option<Bytes>),
}

/// Content that is made while its client waits for it.
pub trait Pieces: Send {
    /// Waits for the next piece. `None` is the end. May be dropped and called again: no piece is lost.
    fn next(&mut self) -> BoxFuture<'_, Option<Bytes>>;
}

/// The reason why a request is not carried out.
pub(crate) enum Halt {
    /// ifmatch refuses it.
    Refused(Refusal),
    /// The upstream does not carry it out, or would not: it has given this answer to the request, or to a probe for it.
    Denied(Box<Relayed>),
    /// The client has gone, or does not speak HTTP.
    Broken(Box<pingora::Error>),
}

/// A response of the upstream on its way to the client.
pub struct Relayed {
    /// The head, as the client gets it.
    pub head: Box<ResponseHeader>,
    /// The part of the body that was already read.
    pub begun: BodyPrefix,
    /// The exchange that brings the rest of the body, if there is a rest.
    pub rest: Option<Exchange>,
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Box<pingora::Error>> for Halt {
    fn from(error: Box<pingora::Error>) -> Self {
        Self::Broken(error)
    }
}

impl Answer {
    /// Returns a response that ifmatch makes itself.
    pub(crate) fn local(response: Response) -> Self {
        Self::Local(head_of(response.status, response.fields), response.body.map(Into::into))
    }

    /// Returns a refusal that the client gets by this response.
    pub(crate) fn told(refusal: Refusal, response: Response) -> Self {
        Self::Told(Box::new(refusal), head_of(response.status, response.fields), response.body.map(Into::into))
    }

    /// Returns a response of ifmatch whose content is made piece by piece.
    pub(crate) fn lasting(fields: HeaderMap, pieces: Box<dyn Pieces>) -> Self {
        Self::Lasting(head_of(StatusCode::OK, fields), pieces)
    }

    /// A response whose body was read up to some point ([`Relayed::read_so_far`]).
    pub(crate) async fn read_so_far(
        head: Box<ResponseHeader>,
        whole: BufferedBody,
        exchange: Exchange,
    ) -> Result<Self, Halt> {
        Ok(Self::Relayed(Relayed::read_so_far(head, whole, exchange).await?))
    }

    /// Copies the tag of the answer to the route's second field (`mirror_header`), if the route has one.
    pub(crate) fn mirror_tag(&mut self, rules: &GuardRules) -> pingora::Result<()> {
        let Some(mirror) = &rules.mirror_header else { return Ok(()) };
        match self {
            Self::Relayed(relayed) | Self::Current(_, relayed) => mirror_tag(&mut relayed.head, mirror),
            Self::Local(head, _) | Self::Lasting(head, _) | Self::NotModified(head) => mirror_tag(head, mirror),
            Self::Told(..) => Ok(()),
        }
    }

    /// Rewrites references in the answer to the names that the client knows.
    pub(crate) fn rewrite_references(&mut self, route: &Route, client: &RequestHeader) -> pingora::Result<()> {
        match self {
            Self::Relayed(relayed) | Self::Current(_, relayed) => rewrite_references(&mut relayed.head, route, client),
            Self::NotModified(head) => rewrite_references(head, route, client),
            Self::Local(..) | Self::Lasting(..) | Self::Told(..) => Ok(()),
        }
    }

    /// Limits the modification date to what the client may get. If the upstream judges, the proxy leaves its dates
    /// unchanged.
    pub(crate) fn tell_date(&mut self, rules: &GuardRules) -> pingora::Result<()> {
        let (Self::Relayed(relayed) | Self::Current(_, relayed)) = self else { return Ok(()) };
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
    pub(crate) fn not_modified(fields: HeaderMap) -> Self {
        Self::NotModified(not_modified_head(fields))
    }
}

impl Relayed {
    /// A response whose body was read up to some point. If the body is complete, the response states its length.
    pub(crate) async fn read_so_far(
        mut head: Box<ResponseHeader>,
        whole: BufferedBody,
        exchange: Exchange,
    ) -> pingora::Result<Box<Self>> {
        let (begun, rest) = match whole {
            BufferedBody::Complete(body) => {
                exchange.finish().await;
                if !head.headers.contains_key(header::CONTENT_LENGTH) && !never_has_body(head.status) {
                    head.insert_header(header::CONTENT_LENGTH, body.len())?;
                }
                (body, None)
            }
            BufferedBody::TooLarge(begun) | BufferedBody::TooSlow(begun) => (begun, Some(exchange)),
        };
        Ok(Box::new(Self { head, begun, rest }))
    }

    /// Gives the response up.
    pub(crate) async fn discard(self) {
        if let Some(exchange) = self.rest {
            exchange.discard().await;
        }
    }
}

/// The head of a 304 with these fields, which must all belong to a 304 (see
/// [`not_modified_fields`](super::knowledge::responses::not_modified_fields)).
pub(crate) fn not_modified_head(fields: HeaderMap) -> Box<ResponseHeader> {
    head_of(StatusCode::NOT_MODIFIED, fields)
}

/// A head that takes the whole map of its fields. Pingora adds them one by one, at several times the cost.
fn head_of(status: StatusCode, fields: HeaderMap) -> Box<ResponseHeader> {
    let (mut head, ()) = http::Response::new(()).into_parts();
    head.status = status;
    head.headers = fields;
    Box::new(head.into())
}

/// Copies the tag of a response to the route's second field (`mirror_header`), which no intermediary changes. The
/// field holds nothing else.
fn mirror_tag(head: &mut ResponseHeader, mirror: &HeaderName) -> pingora::Result<()> {
    head.remove_header(mirror);
    let Some(tag) = head.headers.get(header::ETAG).cloned() else { return Ok(()) };
    head.insert_header(mirror.clone(), tag)?;
    if head.headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN) {
        head.append_header(header::ACCESS_CONTROL_EXPOSE_HEADERS, mirror.as_str())?;
    }
    Ok(())
}

/// Removes a tag that does not come from the route's source, because clients could not use it here. A tag from the
/// source gets the spelling in which it is issued.
pub(crate) fn withhold_foreign_tag(
    head: &mut ResponseHeader,
    rules: &GuardRules,
    spelling: &Spelling,
) -> pingora::Result<()> {
    let own = rules.etag.is_upstreams_own().then(|| Validators::from_headers(&head.headers).0.tag).flatten();
    set_tag(head, own.and_then(|tag| spelling.issued(&tag)).as_ref())
}

/// Replaces all tags of a response by this one, or removes them: at most one tag leaves the proxy.
pub(crate) fn set_tag(head: &mut ResponseHeader, tag: Option<&EntityTag>) -> pingora::Result<()> {
    let Some(tag) = tag else {
        head.remove_header(&header::ETAG);
        return Ok(());
    };
    head.insert_header("ETag", tag.to_header_value())
}

/// Removes the validators of a response that represents no single state: no condition can then name it.
pub(crate) fn remove_validators(head: &mut ResponseHeader) {
    head.remove_header(&header::ETAG);
    head.remove_header(&header::LAST_MODIFIED);
}

/// Waits for an output for as long as the client stays connected.
pub(crate) async fn while_client_waits<T>(client: &mut dyn Client, wait: impl Future<Output = T>) -> Result<T, Halt> {
    tokio::select! {
        biased;
        output = wait => Ok(output),
        gone = client.gone() => Err(Halt::Broken(gone)),
    }
}
