//! A client's request of HTTP/2: its stream, within a connection that others use too.

use std::future::poll_fn;

use bytes::Bytes;
use h2::{RecvStream, SendStream, server::SendResponse};
use http::{HeaderMap, HeaderName, Response, header};
use pingora::{Error, ErrorType, OrErr as _, http::ResponseHeader, protocols::http::date::get_cached_date};
use pingora_timeout::timeout;

use super::WRITE_TIMEOUT;
use crate::upstream::fields::FieldsOfHead as _;

/// The fields that HTTP/2 has no place for (RFC 9113 section 8.2.2).
static OF_CONNECTIONS: [HeaderName; 5] = [
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// A stream.
pub(super) struct Http2 {
    request: RecvStream,
    response: SendResponse<Bytes>,
    /// The body of the response, once its head is written.
    body: Option<SendStream<Bytes>>,
    is_ended: bool,
}

impl Http2 {
    pub(super) fn new(request: RecvStream, response: SendResponse<Bytes>) -> Self {
        Self { request, response, body: None, is_ended: false }
    }

    /// True if the request has ended.
    pub(super) fn is_done(&self) -> bool {
        self.request.is_end_stream()
    }

    /// Returns the next bytes of the request, or `None` at its end. May be dropped and called again: no byte is lost.
    pub(super) async fn next_piece(&mut self) -> pingora::Result<Option<Bytes>> {
        let broken = |error| Error::because(ErrorType::ReadError, "a request breaks off", error).into_down();
        let Some(piece) = self.request.data().await.transpose().map_err(broken)? else {
            // Unread trailers would keep the stream from its end.
            self.request.trailers().await.map_err(broken)?;
            return Ok(None);
        };
        let _ = self.request.flow_control().release_capacity(piece.len());
        Ok(Some(piece))
    }

    /// Waits until the client resets the stream, or leaves.
    pub(super) async fn gone(&mut self) -> Box<Error> {
        let _reason = match &mut self.body {
            Some(body) => poll_fn(|context| body.poll_reset(context)).await,
            None => poll_fn(|context| self.response.poll_reset(context)).await,
        };
        Error::new_down(ErrorType::ConnectionClosed)
    }

    /// Writes a head that is not the final one.
    pub(super) fn write_interim(&mut self, head: ResponseHeader) -> pingora::Result<()> {
        let sent = self.response.send_informational(for_stream(head));
        sent.or_err(ErrorType::WriteError, "an interim response")
    }

    /// Begins the final response, which `is_all` ends too.
    pub(super) fn begin(&mut self, mut head: Box<ResponseHeader>, is_all: bool) -> pingora::Result<()> {
        head.insert_header(header::DATE, get_cached_date())?;
        let sent = self.response.send_response(for_stream(*head), is_all);
        self.body = Some(sent.or_err(ErrorType::WriteError, "a response")?);
        self.is_ended = is_all;
        Ok(())
    }

    /// Writes a piece of the response's body.
    pub(super) async fn write_piece(&mut self, mut piece: Bytes, is_last: bool) -> pingora::Result<usize> {
        let length = piece.len();
        let Some(body) = self.body.as_mut().filter(|_| !self.is_ended) else { return Ok(0) };
        while !piece.is_empty() {
            body.reserve_capacity(piece.len());
            let room = timeout(WRITE_TIMEOUT, poll_fn(|context| body.poll_capacity(context))).await;
            let room = room.map_err(|_elapsed| Error::new_down(ErrorType::WriteTimedout))?;
            let room = room.ok_or_else(|| Error::new_down(ErrorType::ConnectionClosed))?;
            let room = room.map_err(|error| Error::because(ErrorType::WriteError, "a body", error).into_down())?;
            let part = piece.split_to(room.min(piece.len()));
            let ends = is_last && piece.is_empty();
            body.send_data(part, ends).or_err(ErrorType::WriteError, "a body")?;
        }
        if length == 0 && is_last {
            body.send_data(piece, true).or_err(ErrorType::WriteError, "the end of a body")?;
        }
        self.is_ended = is_last;
        Ok(length)
    }

    /// Ends the response with trailers.
    pub(super) fn write_trailers(&mut self, trailers: HeaderMap) -> pingora::Result<()> {
        let Some(body) = self.body.as_mut().filter(|_| !self.is_ended) else { return Ok(()) };
        self.is_ended = true;
        body.send_trailers(trailers).or_err(ErrorType::WriteError, "trailers")
    }
}

/// Returns a head without what ends at a connection.
fn for_stream(mut head: ResponseHeader) -> Response<()> {
    for name in &OF_CONNECTIONS {
        head.remove(name);
    }
    Response::from_parts(head.into(), ())
}
