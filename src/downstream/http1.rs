//! A client's connection of HTTP/1.1, while it carries one request.

use std::io;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::{Method, StatusCode, header};
use pingora::{
    Error, ErrorType,
    http::ResponseHeader,
    protocols::{Stream, http::date::get_cached_date},
};
use pingora_timeout::timeout;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{SMALL_BODY_WAIT, WRITE_TIMEOUT};
use crate::{
    body::content_length,
    core::wire::{
        head::{HeadScan, HeadState},
        received_body::{Malformed, ReceivedBody},
        sent_body::SentBody,
    },
    upstream::fields::FieldsOfHead as _,
    wire::{AHEAD_BYTES_MAX, read_ahead, write_piece},
};

/// The room that is made for a body that arrives.
const ROOM_BYTES: usize = 32 * 1024;
/// The least room that one read needs.
const LEAST_ROOM_BYTES: usize = 4 * 1024;
/// The room for the head of most responses, with a short body.
const HEAD_BYTES: usize = 2 * 1024;

/// A connection.
pub(super) struct Http1 {
    stream: Stream,
    /// The bytes that have arrived and were not read yet.
    ahead: BytesMut,
    pub(super) body: ReceivedBody,
    response: SentBody,
    /// A head that is sent together with the first piece of its body.
    held: BytesMut,
    /// True if the connection may carry another request.
    pub(super) stays: bool,
    /// True if the connection stays although its request has not been read to the end.
    pub(super) drains: bool,
}

impl Http1 {
    /// A connection that has brought a head, and behind it these bytes.
    pub(super) fn new(stream: Stream, ahead: BytesMut, body: ReceivedBody, stays: bool) -> Self {
        Self { stream, ahead, body, response: SentBody::UntilClose, held: BytesMut::new(), stays, drains: false }
    }

    /// Returns the next bytes of the request, or `None` at its end. May be dropped and called again: no byte is lost.
    pub(super) async fn next_piece(&mut self) -> pingora::Result<Option<Bytes>> {
        loop {
            let taken = self.body.take(&mut self.ahead);
            // The answer may take long, and needs no room for more.
            self.give_back_room();
            let malformed = |Malformed| Error::explain(ErrorType::InvalidHTTPHeader, "a malformed body").into_down();
            if let Some(piece) = taken.map_err(malformed)? {
                return Ok(Some(piece));
            }
            if self.body.is_done() {
                return Ok(None);
            }
            let room = self.body.at_most(ROOM_BYTES);
            if self.ahead.capacity() - self.ahead.len() < room.min(LEAST_ROOM_BYTES) {
                self.ahead.reserve(room);
            }
            let read = self.stream.read_buf(&mut self.ahead).await;
            match read {
                Ok(0) if matches!(self.body, ReceivedBody::UntilClose) => return Ok(None),
                Ok(0) => return Err(Error::new_down(ErrorType::ConnectionClosed)),
                Ok(_) => {}
                Err(error) => {
                    return Err(Error::because(ErrorType::ReadError, "a request breaks off", error).into_down());
                }
            }
        }
    }

    /// Waits until the client closes its side. A client that sends very much of its next request is no longer watched.
    pub(super) async fn gone(&mut self) -> Box<Error> {
        while self.ahead.len() < AHEAD_BYTES_MAX {
            match read_ahead(&mut self.stream, &mut self.ahead).await {
                Ok(0) => {
                    self.stays = false;
                    return Error::new_down(ErrorType::ConnectionClosed);
                }
                Ok(_) => {}
                Err(error) => return Error::because(ErrorType::ReadError, "watching the client", error).into_down(),
            }
        }
        std::future::pending().await
    }

    /// Gives back the room for what has arrived, if all of it was read. Returns whether the request was.
    pub(super) fn give_back_room(&mut self) -> bool {
        if self.ahead.is_empty() && self.body.is_done() {
            self.ahead = BytesMut::new();
        }
        self.body.is_done()
    }

    /// Reads what has arrived behind a request while its answer was made.
    fn look_ahead(&mut self) {
        if self.stays && self.body.is_done() && self.ahead.is_empty() {
            let read = read_ahead(&mut self.stream, &mut self.ahead).now_or_never();
            self.stays = !matches!(read, Some(Ok(0) | Err(_)));
        }
    }

    /// True if an answer now lets the connection stay.
    pub(super) fn stays_after_answer(&mut self) -> bool {
        self.stays &= if self.body.is_done() { may_follow(&self.ahead) } else { self.drains };
        self.stays
    }

    /// Writes a head that is not the final one.
    pub(super) async fn write_interim(&mut self, head: &ResponseHeader) -> pingora::Result<()> {
        self.write(lines(head)).await
    }

    /// Begins the final response to a request with this method. Its head is sent with the first piece, or when it is
    /// flushed.
    pub(super) fn begin(&mut self, method: &Method, mut head: Box<ResponseHeader>) {
        let is_tunnel = head.status == StatusCode::SWITCHING_PROTOCOLS;
        self.response = match content_length(&head.headers) {
            _ if is_tunnel => SentBody::UntilClose,
            _ if *method == Method::HEAD => SentBody::Length(0),
            _ if matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) => SentBody::Length(0),
            _ if head.headers.contains_key(header::TRANSFER_ENCODING) => SentBody::Chunks,
            Some(length) => SentBody::Length(length),
            None => SentBody::UntilClose,
        };
        if is_tunnel {
            (self.body, self.stays) = (ReceivedBody::UntilClose, false);
        } else {
            self.look_ahead();
            self.stays &= self.response != SentBody::UntilClose;
            head.remove(&header::DATE);
            head.remove(&header::CONNECTION);
        }
        self.held = if is_tunnel { lines(&head) } else { ended_lines(&head, self.stays_after_answer()) };
    }

    /// Sends a head that is still held.
    pub(super) async fn flush(&mut self) -> pingora::Result<()> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() { Ok(()) } else { self.write(held).await }
    }

    /// Writes a piece of the response's body. Returns how many bytes of it belong to the body.
    pub(super) async fn write_piece(&mut self, piece: Bytes, is_last: bool) -> pingora::Result<usize> {
        let mut before = std::mem::take(&mut self.held);
        let (piece, after) = self.response.frame(&mut before, piece, is_last);
        self.stays &= !is_last || !self.response.lacks_bytes();
        let sent = piece.len();
        if !(before.is_empty() && piece.is_empty() && after.is_empty()) {
            in_time(write_piece(&mut self.stream, before, piece, after)).await?;
        }
        Ok(sent)
    }

    /// Ends a response with trailers, if its body can have some (RFC 9112 section 7.1.2).
    pub(super) async fn write_trailers(&mut self, trailers: &http::HeaderMap) -> pingora::Result<()> {
        if self.response != SentBody::Chunks {
            return self.write_piece(Bytes::new(), true).await.map(drop);
        }
        let mut end = std::mem::take(&mut self.held);
        end.put_slice(b"0\r\n");
        for (name, value) in trailers {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                end.put_slice(part);
            }
        }
        end.put_slice(b"\r\n");
        self.write(end).await
    }

    /// Writes bytes as they are.
    pub(super) async fn write(&mut self, bytes: BytesMut) -> pingora::Result<()> {
        in_time(write_piece(&mut self.stream, bytes, Bytes::new(), b"")).await
    }

    /// Closes this side of the connection.
    pub(super) async fn close(&mut self) {
        let _ = timeout(WRITE_TIMEOUT, self.stream.shutdown()).await;
    }

    async fn drain(&mut self) -> pingora::Result<()> {
        while self.next_piece().await?.is_some() {}
        Ok(())
    }

    /// Ends the request. Returns whether the connection may carry another one. If not, it is closed.
    pub(super) async fn finish(&mut self) -> bool {
        if !self.stays {
            self.close().await;
            return false;
        }
        self.body.is_done() || matches!(timeout(SMALL_BODY_WAIT, self.drain()).await, Ok(Ok(())))
    }

    /// Returns the connection after a request, and what has arrived of its next one.
    pub(super) fn into_connection(self) -> (Stream, BytesMut) {
        // Empty lines belong to no request (RFC 9112 section 2.2).
        let next = self.ahead.iter().position(|octet| !is_of_empty_line(*octet)).and_then(|at| self.ahead.get(at..));
        // Copied, because an idle connection keeps no room for a body.
        (self.stream, BytesMut::from(next.unwrap_or_default()))
    }
}

/// True if the bytes behind a request let its connection stay: none, empty lines, or the whole head of a next request.
/// Half a head, or other bytes, end the connection with the answer, so no client waits for the rest.
fn may_follow(ahead: &[u8]) -> bool {
    ahead.iter().copied().all(is_of_empty_line) || HeadScan::default().look(ahead) == HeadState::Complete
}

fn is_of_empty_line(octet: u8) -> bool {
    matches!(octet, b'\r' | b'\n')
}

/// Bounds the time that a client may take to receive something.
async fn in_time(write: impl Future<Output = io::Result<()>>) -> pingora::Result<()> {
    match timeout(WRITE_TIMEOUT, write).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Error::because(ErrorType::WriteError, "writing to the client", error).into_down()),
        Err(_elapsed) => Err(Error::new_down(ErrorType::WriteTimedout)),
    }
}

/// The lines of a head that has neither `Date` nor `Connection`, with both of them.
fn ended_lines(head: &ResponseHeader, stays: bool) -> BytesMut {
    let mut lines = begun_lines(head);
    end_lines(&mut lines, stays);
    lines
}

/// Ends the lines of a head that has neither `Date` nor `Connection`. `stays` announces whether the connection stays.
pub(super) fn end_lines(lines: &mut BytesMut, stays: bool) {
    lines.put_slice(b"Date: ");
    lines.put_slice(get_cached_date().as_bytes());
    lines.put_slice(if stays { b"\r\nConnection: keep-alive\r\n\r\n" } else { b"\r\nConnection: close\r\n\r\n" });
}

/// The lines of a head.
fn lines(head: &ResponseHeader) -> BytesMut {
    let mut lines = begun_lines(head);
    lines.put_slice(b"\r\n");
    lines
}

/// The lines of a head that goes on.
fn begun_lines(head: &ResponseHeader) -> BytesMut {
    let mut lines = BytesMut::with_capacity(HEAD_BYTES);
    let reason = head.get_reason_phrase().unwrap_or_default();
    for part in ["HTTP/1.1 ", head.status.as_str(), " ", reason, "\r\n"] {
        lines.put_slice(part.as_bytes());
    }
    head.header_to_h1_wire(&mut lines);
    lines
}

#[cfg(test)]
#[path = "http1_tests.rs"]
mod tests;
