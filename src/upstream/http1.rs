//! A connection of HTTP/1.1 to a server, while it carries one exchange.
//!
//! # Design
//!
//! *Why not pingora's own session?* It reads a head into a copy, and hands out another copy of it. It takes a chunk without
//! a size for the last one, so that a body which breaks off there would get a tag. Here a response is read once, into
//! fields and content that share the bytes that have arrived.

use std::mem::MaybeUninit;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{Method, StatusCode, Version, header};
use httparse::{ParserConfig, Response, Status};
use pingora::{
    http::{RequestHeader, ResponseHeader, header_value_from_raw},
    protocols::Stream,
};
use tokio::io::AsyncReadExt as _;

use super::{fields::FieldsOfHead as _, lost::Lost};
use crate::{
    core::{
        http::fields::wants_connection,
        wire::{
            head::{HeadScan, HeadState},
            received_body::{ReceivedBody, declared_length},
            sent_body::SentBody,
        },
    },
    wire::{AHEAD_BYTES_MAX, read_ahead, write_piece},
};

/// The longest head of a response, in bytes.
const HEAD_BYTES_MAX: usize = 1024 * 1024;
/// The number of fields that a head may have.
const FIELDS_MAX: usize = 256;
/// The room for the head of most requests.
const HEAD_BYTES: usize = 512;
/// The room for a body that comes fast.
const ROOM_BYTES: usize = 64 * 1024;

/// A connection.
pub(super) struct Http1Exchange {
    stream: Stream,
    /// The bytes that have arrived and were not read yet.
    arrived: BytesMut,
    /// The progress within the head of the next response.
    scan: HeadScan,
    /// The rest of the final response, once its head has been read.
    body: Option<ReceivedBody>,
    /// True if the last bytes filled the room of a patient reader.
    comes_fast: bool,
    /// The head of a request that is sent together with the beginning of its body.
    held: BytesMut,
    request: SentBody,
    awaited: Awaited,
    /// True if the server lets the connection carry another exchange.
    stays: bool,
}

/// The contents that a response may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Content,
    NoContent,
    ContentOrTunnel,
}

/// A head that cannot be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unwritable;

impl Http1Exchange {
    /// An exchange on this connection, which has carried complete ones alone.
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            arrived: BytesMut::new(),
            scan: HeadScan::default(),
            body: None,
            comes_fast: false,
            held: BytesMut::new(),
            request: SentBody::Length(0),
            awaited: Awaited::Content,
            stays: false,
        }
    }

    /// Begins a request. Its head is sent with the first piece of its body, or when it is flushed.
    pub(super) fn begin(&mut self, head: &RequestHeader) -> Result<(), Unwritable> {
        self.held = lines(head).ok_or(Unwritable)?;
        let length = declared_length(&head.headers).map_err(|_malformed| Unwritable)?;
        let is_chunked = head.headers.contains_key(header::TRANSFER_ENCODING);
        self.request = if is_chunked { SentBody::Chunks } else { SentBody::Length(length.unwrap_or(0)) };
        self.awaited = match head.method {
            Method::HEAD => Awaited::NoContent,
            _ if head.headers.contains_key(header::UPGRADE) => Awaited::ContentOrTunnel,
            _ => Awaited::Content,
        };
        Ok(())
    }

    /// Sends a head that is still held.
    pub(super) async fn flush(&mut self) -> Result<(), Lost> {
        self.write(Bytes::new(), b"").await
    }

    /// Sends a piece of the request's body or, with `None`, its end. Fails if more of it was announced.
    pub(super) async fn send(&mut self, piece: Option<Bytes>) -> Result<(), Lost> {
        let is_last = piece.is_none();
        let (piece, after) = self.request.frame(&mut self.held, piece.unwrap_or_default(), is_last);
        self.write(piece, after).await?;
        if is_last && self.request.lacks_bytes() { Err(Lost::abandoned()) } else { Ok(()) }
    }

    async fn write(&mut self, piece: Bytes, after: &'static [u8]) -> Result<(), Lost> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() && piece.is_empty() && after.is_empty() {
            return Ok(());
        }
        write_piece(&mut self.stream, held, piece, after).await.map_err(|error| Lost::broken(&error))
    }

    /// Reads the head of the next response. May be dropped and called again: what has arrived is kept.
    pub(super) async fn read_head(&mut self) -> Result<Box<ResponseHeader>, Lost> {
        loop {
            match self.scan.look(&self.arrived) {
                HeadState::Complete => break,
                HeadState::Unfinished if self.arrived.len() <= HEAD_BYTES_MAX => {}
                HeadState::Unfinished | HeadState::Hopeless => return Err(Lost::abandoned()),
            }
            if !self.read(AHEAD_BYTES_MAX).await? {
                return Err(Lost::closed());
            }
        }
        let bytes = self.arrived.split_to(self.scan.end()).freeze();
        self.scan = HeadScan::default();
        let mut head = parse(&bytes).ok_or(Lost::abandoned())?;
        let is_switch = head.status == StatusCode::SWITCHING_PROTOCOLS && head.version == Version::HTTP_11;
        if is_switch && self.awaited == Awaited::ContentOrTunnel {
            (self.body, self.request) = (Some(ReceivedBody::UntilClose), SentBody::UntilClose);
        } else if !head.status.is_informational() {
            self.await_body(&head)?;
        }
        let is_interim = head.status.is_informational();
        if is_interim || head.headers.contains_key(header::TRANSFER_ENCODING) {
            // A coding takes precedence over a length (RFC 9112 section 6.3).
            head.remove(&header::CONTENT_LENGTH);
        }
        if is_interim {
            // It ends with its head, and so does the switch to a tunnel (RFC 9110 section 15.2).
            head.remove(&header::TRANSFER_ENCODING);
        }
        Ok(head)
    }

    fn await_body(&mut self, head: &ResponseHeader) -> Result<(), Lost> {
        let body = ReceivedBody::of_response(head.status, self.awaited == Awaited::NoContent, &head.headers);
        let body = body.map_err(|_malformed| Lost::abandoned())?;
        let has_end = !matches!(body, ReceivedBody::UntilClose);
        self.stays = has_end && has_one_reading(head) && wants_connection(head.version, &head.headers);
        self.body = Some(body);
        Ok(())
    }

    /// True if the response has opened a tunnel.
    pub(super) fn is_tunnel(&self) -> bool {
        self.request == SentBody::UntilClose
    }

    /// Returns the next bytes of the response's body, never empty, or `None` at its end. May be dropped and called again: no
    /// byte is lost.
    pub(super) async fn next_piece(&mut self) -> Result<Option<Bytes>, Lost> {
        while let Some(body) = self.body.as_mut().filter(|body| !body.is_done()) {
            if let Some(piece) = body.take(&mut self.arrived).map_err(|_malformed| Lost::abandoned())? {
                return Ok(Some(piece));
            }
            if body.is_done() {
                break;
            }
            let (room, ends_with_connection) = (body.at_most(ROOM_BYTES), matches!(body, ReceivedBody::UntilClose));
            if !self.read(room).await? {
                if !ends_with_connection {
                    return Err(Lost::closed());
                }
                self.body = Some(ReceivedBody::Length(0));
            }
        }
        Ok(None)
    }

    /// True if the response is complete.
    pub(super) fn is_done(&self) -> bool {
        self.body.as_ref().is_some_and(ReceivedBody::is_done)
    }

    /// Reads what comes next. Returns false if the server has ended the connection. Only what comes fast gets much room, because
    /// a response may pause for hours.
    async fn read(&mut self, room: usize) -> Result<bool, Lost> {
        let read = if self.comes_fast && room > AHEAD_BYTES_MAX {
            self.arrived.reserve(room);
            self.stream.read_buf(&mut self.arrived).await
        } else {
            read_ahead(&mut self.stream, &mut self.arrived).await
        };
        let count = read.map_err(|error| Lost::broken(&error))?;
        self.comes_fast = count >= AHEAD_BYTES_MAX;
        Ok(count > 0)
    }

    /// Ends the exchange. Returns the connection if it may carry another one, and closes it otherwise.
    pub(super) fn into_idle(self) -> Option<Stream> {
        // Bytes behind the response belong to no request (RFC 9112 section 9.2).
        let is_idle = self.stays && self.is_done() && self.arrived.is_empty();
        is_idle.then_some(self.stream)
    }
}

/// True if a response ends at the same byte for each reader. HTTP/1.0 has no codings, a length beside a coding is another
/// end, and a 204 may be followed by the content that it announces (RFC 9112 sections 6.1 and 6.3).
fn has_one_reading(head: &ResponseHeader) -> bool {
    let has_coding = head.headers.contains_key(header::TRANSFER_ENCODING);
    if head.status == StatusCode::NO_CONTENT {
        return !has_coding && matches!(declared_length(&head.headers), Ok(None | Some(0)));
    }
    !has_coding || head.version == Version::HTTP_11 && !head.headers.contains_key(header::CONTENT_LENGTH)
}

/// The lines of the head of a request; `None` if it would have another meaning on the wire.
fn lines(head: &RequestHeader) -> Option<BytesMut> {
    let target = head.raw_path();
    if head.version != Version::HTTP_11 || target.iter().any(|octet| matches!(octet, b'\0' | b'\n' | b'\r' | b' ')) {
        return None;
    }
    let mut lines = BytesMut::with_capacity(HEAD_BYTES);
    for part in [head.method.as_str().as_bytes(), b" ", target, b" HTTP/1.1\r\n"] {
        lines.put_slice(part);
    }
    head.header_to_h1_wire(&mut lines);
    lines.put_slice(b"\r\n");
    Some(lines)
}

/// Reads the complete head of a response. Blanks before a colon, and fields in several lines, are accepted.
fn parse(bytes: &Bytes) -> Option<Box<ResponseHeader>> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut parsed = Response::new(&mut []);
    let mut parser = ParserConfig::default();
    parser.allow_spaces_after_header_name_in_responses(true).allow_obsolete_multiline_headers_in_responses(true);
    if parser.parse_response_with_uninit_headers(&mut parsed, bytes, &mut fields).ok()? != Status::Complete(bytes.len())
    {
        return None;
    }
    let mut head = Box::new(ResponseHeader::build(parsed.code?, Some(parsed.headers.len())).ok()?);
    head.set_version(if parsed.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 });
    head.set_reason_phrase(parsed.reason).ok()?;
    for field in &*parsed.headers {
        let value = header_value_from_raw(bytes.slice_ref(field.value));
        head.append_header(bytes.slice_ref(field.name.as_bytes()), value).ok()?;
    }
    Some(head)
}

#[cfg(test)]
#[path = "http1_reading_tests.rs"]
mod reading_tests;
#[cfg(test)]
#[path = "http1_tests.rs"]
mod tests;
