//! Header fields that cross the proxy, and the form in which they do (RFC 9110 section 7.6).
//!
//! A request goes from [`request_head`] to the upstream. A response goes from [`response_head`], through the changes of
//! the guard, to [`frame_response`] as the last step before the client.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use pingora::http::{
    RequestHeader, ResponseHeader,
    authority::{RawTargetAuthority, raw_target_authority},
};
use thiserror::Error;

use super::via::{via, via_of_request};
use crate::core::http::{
    fields::{ends_at_hop, is_for_guard, nominated},
    own_fields::{PROXY_STATUS, is_own, statuses_of_others},
};

/// The reason why a request cannot be given a head for the upstream.
#[derive(Debug, Error)]
pub enum HeadError {
    /// The body has a transfer coding other than `chunked`, which the proxy does not decode: 501 (RFC 9112 section
    /// 6.1).
    #[error("the transfer coding of the request is not supported")]
    TransferCoding,
    /// The target has no form that an origin server understands: 400.
    #[error("the request target is malformed")]
    Target,
    /// A field cannot be written: 400.
    #[error("a field of the request is malformed")]
    Field(#[from] Box<pingora::Error>),
}

/// Returns the head of a client's request as an upstream receives it over HTTP/1.1, with a body of `body_len` bytes.
///
/// The target is the one received, in origin form. Hop-by-hop fields are removed, with `TE` and `Trailer` among them
/// because no trailers are forwarded. The fields for the guard are removed too. Content-Length is right, and so is
/// Host if the client named one. Via names this proxy (RFC 9110 section 7.6.3).
pub fn request_head(client: &RequestHeader, body_len: u64) -> Result<Box<RequestHeader>, HeadError> {
    let mut head = head_without(client, is_for_guard)?;
    let sends_length = body_len > 0 || matches!(client.method, Method::PUT | Method::POST | Method::PATCH);
    if sends_length {
        head.insert_header(header::CONTENT_LENGTH, body_len)?;
    } else {
        head.remove(&header::CONTENT_LENGTH);
    }
    Ok(head)
}

/// Returns the head of a client's request with the fields as they came, if they do not end here or are unwanted.
/// Content of unknown length is chunked. Only a handshake for WebSocket keeps its `Upgrade`, and `TE` only asks for
/// trailers, if the server may send some.
pub(crate) fn forwarded_head(
    client: &RequestHeader,
    (has_content, may_send_trailers): (bool, bool),
    is_unwanted: impl Fn(&HeaderName) -> bool,
) -> Result<Box<RequestHeader>, HeadError> {
    let mut head = head_without(client, is_unwanted)?;
    if has_content && !head.headers.contains_key(header::CONTENT_LENGTH) {
        head.insert_header(header::TRANSFER_ENCODING, "chunked")?;
    }
    if may_send_trailers && accepts_trailers(client) {
        head.insert_header(header::TE, "trailers")?;
    }
    if opens_websocket(client) {
        head.insert_header(header::CONNECTION, "Upgrade")?;
        head.insert_header(header::UPGRADE, "websocket")?;
    }
    Ok(head)
}

/// True if a client accepts trailers (RFC 9110 section 10.1.4).
pub(crate) fn accepts_trailers(client: &RequestHeader) -> bool {
    let accepted =
        client.headers.get_all(header::TE).iter().flat_map(|line| line.as_bytes().split(|octet| *octet == b','));
    client.version != Version::HTTP_10
        && accepted.map(<[u8]>::trim_ascii).any(|coding| coding.eq_ignore_ascii_case(b"trailers"))
}

/// True if a request is a handshake for WebSocket (RFC 6455 section 4.1).
pub(crate) fn opens_websocket(client: &RequestHeader) -> bool {
    let protocol = client.headers.get(header::UPGRADE).filter(|_| client.version == Version::HTTP_11);
    protocol.is_some_and(|protocol| protocol.as_bytes().trim_ascii().eq_ignore_ascii_case(b"websocket"))
}

/// Returns the head of a client's request without the fields that end here, without the unwanted ones, and without its
/// framing but for the length.
fn head_without(
    client: &RequestHeader,
    is_unwanted: impl Fn(&HeaderName) -> bool,
) -> Result<Box<RequestHeader>, HeadError> {
    let codings = &mut client.headers.get_all(header::TRANSFER_ENCODING).iter();
    if codings.any(|coding| !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked")) {
        return Err(HeadError::TransferCoding);
    }
    let mut head = Box::new(client.clone());
    if let Some(target) = origin_form(client)? {
        head.set_raw_path(&target)?;
    }
    head.set_version(Version::HTTP_11);
    head.remove_all(|name| ends_at_hop(name) || is_unwanted(name) || name == header::TRANSFER_ENCODING);
    set_host(&mut head, client)?;
    join_cookies(&mut head)?;
    head.append_header("Via", via_of_request(client.version))?;
    Ok(head)
}

/// Returns the head of an upstream's response without the fields that end at this hop and those that only this proxy
/// writes, and with Via. Pingora writes Date and Connection. [`frame_response`] settles the framing once the final status and body are known.
pub fn response_head(mut head: Box<ResponseHeader>) -> Box<ResponseHeader> {
    end_hop(&mut head);
    remove_own(&mut head);
    head.remove(&header::TRANSFER_ENCODING);
    // This can fail only if the header map is full, and its size was bounded when it was read.
    let _ = head.append_header("Via", via(head.version));
    head
}

/// Makes the framing of a response right for the client's request (RFC 9112 section 6, RFC 9110 section 8.6). A body
/// of unknown length is chunked for an HTTP/1.1 client, and ends with the connection for an HTTP/1.0 client.
pub fn frame_response(head: &mut ResponseHeader, client: &RequestHeader) {
    head.set_version(Version::HTTP_11);
    head.remove(&header::TRANSFER_ENCODING);
    if head.status == StatusCode::NO_CONTENT {
        head.remove(&header::CONTENT_LENGTH);
    } else if let Some(length) = repeated_length(&head.headers) {
        let _ = head.insert_header(header::CONTENT_LENGTH, length);
    }
    let has_body =
        client.method != Method::HEAD && !never_has_body(head.status) && head.status != StatusCode::SWITCHING_PROTOCOLS;
    if has_body && client.version == Version::HTTP_11 && !head.headers.contains_key(header::CONTENT_LENGTH) {
        let _ = head.insert_header(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
}

/// True if a final response ends with its head, because it has no body.
pub fn is_bodiless(method: &Method, response: &ResponseHeader) -> bool {
    let is_empty = || response.headers.get(header::CONTENT_LENGTH).is_some_and(|length| length == "0");
    !response.status.is_informational() && (*method == Method::HEAD || never_has_body(response.status) || is_empty())
}

/// True if no final response with this status has a body, with any fields (RFC 9110 section 6.4.1).
pub fn never_has_body(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Returns the target in origin form (RFC 9112 section 3.2.1) if it was received in another form.
fn origin_form(client: &RequestHeader) -> Result<Option<Vec<u8>>, HeadError> {
    let received = client.raw_path();
    if received.starts_with(b"/") || received == b"*" {
        return Ok(None);
    }
    let path_and_query = match raw_target_authority(received) {
        RawTargetAuthority::Absolute { path_and_query, .. } => path_and_query,
        RawTargetAuthority::None if received.is_empty() || received.starts_with(b"?") => received,
        RawTargetAuthority::None | RawTargetAuthority::AmbiguousAuthority => return Err(HeadError::Target),
    };
    Ok(Some(match path_and_query.first() {
        Some(b'/') => path_and_query.to_vec(),
        None if client.method == Method::OPTIONS => b"*".to_vec(),
        _ => [b"/", path_and_query].concat(),
    }))
}

/// Sets Host to the authority of the target, which takes precedence (RFC 9112 section 3.2.2). Pingora has already
/// refused requests in which the two differ.
fn set_host(head: &mut RequestHeader, client: &RequestHeader) -> Result<(), HeadError> {
    let of_uri = client.uri.authority().map(|authority| authority.as_str().as_bytes());
    let authority = of_uri.or_else(|| raw_target_authority(client.raw_path()).authority());
    let received = client.headers.get(header::HOST);
    match authority {
        Some(authority) if received.is_none_or(|host| host.as_bytes() != authority) => {
            head.insert_header(header::HOST, authority)?;
        }
        // An HTTP/1.0 request may have no Host: the connection adds one.
        _ => {}
    }
    Ok(())
}

/// Joins the lines into which HTTP/2 may split Cookie, because HTTP/1.1 servers reject several (RFC 9113 section
/// 8.2.3).
fn join_cookies(head: &mut RequestHeader) -> Result<(), HeadError> {
    let lines = head.headers.get_all(header::COOKIE);
    if lines.iter().nth(1).is_none() {
        return Ok(());
    }
    // An empty line would leave a blank at one end, which some readers do not remove.
    let joined = lines.iter().map(HeaderValue::as_bytes).filter(|line| !line.is_empty());
    let joined = joined.collect::<Vec<_>>().join(&b"; "[..]);
    Ok(head.insert_header(header::COOKIE, joined)?)
}

/// Returns the single value of a Content-Length that was sent as a list of equal values (RFC 9110 section 8.6).
fn repeated_length(fields: &HeaderMap) -> Option<HeaderValue> {
    let mut lines = fields.get_all(header::CONTENT_LENGTH).iter();
    let first = lines.next()?.as_bytes();
    let value = first.split(|octet| *octet == b',').next()?.trim_ascii();
    (lines.next().is_some() || value.len() < first.len()).then(|| HeaderValue::from_bytes(value).ok())?
}

/// A head whose fields can be removed.
pub(crate) trait FieldsOfHead {
    /// Returns the fields.
    fn fields(&self) -> &HeaderMap;

    /// Returns the fields with their names as the message spells them. HTTP/2 has only lower case.
    fn spelled_fields(&self) -> impl Iterator<Item = (&str, &HeaderValue)>;

    /// Removes a field that is present.
    fn take_out(&mut self, name: &HeaderName);

    /// Removes a field that is usually absent: pingora alone would look it up twice.
    fn remove(&mut self, name: &HeaderName) {
        if self.fields().contains_key(name) {
            self.take_out(name);
        }
    }

    /// Removes the unwanted fields. A message has fewer fields than there are names to look up.
    fn remove_all(&mut self, is_unwanted: impl Fn(&HeaderName) -> bool) {
        let unwanted: Vec<HeaderName> = self.fields().keys().filter(|name| is_unwanted(name)).cloned().collect();
        for name in &unwanted {
            self.take_out(name);
        }
    }
}

macro_rules! fields_of {
    ($($head:ty)+) => {$(
        impl FieldsOfHead for $head {
            fn fields(&self) -> &HeaderMap {
                &self.headers
            }

            fn spelled_fields(&self) -> impl Iterator<Item = (&str, &HeaderValue)> {
                let lower = self.headers.iter().filter(|_| !self.has_case()).map(|(name, value)| (name.as_str(), value));
                let spelled = self.case_header_iter();
                spelled.filter_map(|(name, value)| Some((str::from_utf8(name.as_slice()).ok()?, value))).chain(lower)
            }

            fn take_out(&mut self, name: &HeaderName) {
                self.remove_header(name);
            }
        }
    )+};
}

fields_of! { RequestHeader ResponseHeader }

/// Removes the fields that end at this hop from a response, except for its framing.
pub(crate) fn end_hop(response: &mut ResponseHeader) {
    let is_framing = |name: &HeaderName| [header::TRANSFER_ENCODING, header::CONTENT_LENGTH].contains(name);
    take_out_nominated(response, |name| !is_framing(name));
    response.remove_all(ends_at_hop);
}

/// Removes what only this proxy says from a response of the upstream of a guarded route.
pub(crate) fn remove_own(response: &mut ResponseHeader) {
    response.remove_all(is_own);
    if let Some(left) = statuses_of_others(&response.headers) {
        response.remove(&PROXY_STATUS);
        for value in left {
            // As many were there before.
            let _ = response.append_header("Proxy-Status", value);
        }
    }
}

/// Removes the fields that a client's `Connection` names. From here on, the request is what the upstream receives.
/// Requests that name a protected field have been refused already.
pub(crate) fn end_nominated(request: &mut RequestHeader) {
    take_out_nominated(request, |_| true);
}

/// Reduces a request's length to one value (RFC 9110 section 8.6): some servers accept a list of equal lengths, others
/// fail.
pub(crate) fn say_length_once(request: &mut RequestHeader) -> pingora::Result<()> {
    repeated_length(&request.headers).map_or(Ok(()), |length| request.insert_header(header::CONTENT_LENGTH, length))
}

fn take_out_nominated(head: &mut impl FieldsOfHead, may: impl Fn(&HeaderName) -> bool) {
    if head.fields().contains_key(header::CONNECTION) {
        let named: Vec<HeaderName> = nominated(head.fields()).filter(may).collect();
        for name in &named {
            head.remove(name);
        }
    }
}

#[cfg(test)]
mod tests;
