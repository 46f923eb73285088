//! One request and its client, over either protocol: what the guard serves, and what an answer is written to.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use h2::{RecvStream, server::SendResponse};
use http::{HeaderMap, StatusCode, Version, header};
use pingora::{
    Error, ErrorType,
    http::{RequestHeader, ResponseHeader},
    protocols::Stream,
};
use pingora_timeout::timeout;

use super::{
    PAUSE_MAX,
    head::{self, ReadHead},
    http1::Http1,
    http2::Http2,
    peer::ClientPeer,
};
use crate::{
    body::{BoxFuture, Client},
    box_future::box_future,
};

/// A request whose head has arrived, and its client.
pub(crate) struct ClientSession {
    request: Arc<RequestHeader>,
    /// The client's side of the connection.
    pub(crate) peer: ClientPeer,
    wire: ClientWire,
    written: WrittenHead,
    /// The bytes of the request's body that were read.
    pub(crate) received_bytes: usize,
    /// The bytes of the response's body that were written.
    pub(crate) sent_bytes: usize,
}

enum ClientWire {
    Http1(Http1),
    Http2(Http2),
}

/// The part of the answer that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WrittenHead {
    Nothing,
    Interim,
    Head(StatusCode),
}

impl ClientSession {
    /// Reads the request of HTTP/1.1 with this complete head, behind which these bytes have come. The error is the
    /// connection of a request that cannot be read.
    pub(crate) fn of_http1(stream: Stream, bytes: &Bytes, ahead: BytesMut) -> Result<Self, Stream> {
        let Some(ReadHead { request, body, stays }) = head::read(bytes) else { return Err(stream) };
        let peer = ClientPeer::of(&stream);
        Ok(Self::new(request, peer, ClientWire::Http1(Http1::new(stream, ahead, body, stays))))
    }

    /// A request of HTTP/2.
    pub(crate) fn of_http2(
        request: RequestHeader,
        body: RecvStream,
        response: SendResponse<Bytes>,
        peer: ClientPeer,
    ) -> Self {
        Self::new(Arc::new(request), peer, ClientWire::Http2(Http2::new(body, response)))
    }

    fn new(request: Arc<RequestHeader>, peer: ClientPeer, wire: ClientWire) -> Self {
        Self { request, peer, wire, written: WrittenHead::Nothing, received_bytes: 0, sent_bytes: 0 }
    }

    /// The head of the request.
    pub(crate) fn request(&self) -> &RequestHeader {
        &self.request
    }

    /// The head of the request, to be changed.
    pub(crate) fn request_mut(&mut self) -> &mut RequestHeader {
        Arc::make_mut(&mut self.request)
    }

    /// Gives back the room for the fields of a request that is answered for long, and for the bytes that they came in.
    pub(super) fn forget_fields(&mut self) {
        // Some fields tell whether more of it comes.
        let is_done = match &mut self.wire {
            ClientWire::Http1(wire) => wire.give_back_room(),
            ClientWire::Http2(wire) => wire.is_done(),
        };
        let bare = RequestHeader::build_no_case(self.request.method.clone(), self.request.raw_path(), Some(0));
        if let (true, Ok(mut bare)) = (is_done, bare) {
            bare.set_version(self.request.version);
            self.request = Arc::new(bare);
        }
    }

    /// True if the request came over HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        matches!(self.wire, ClientWire::Http2(_))
    }

    /// True if the request asks for another protocol.
    pub(crate) fn asks_upgrade(&self) -> bool {
        self.request.version == Version::HTTP_11 && self.request.headers.contains_key(header::UPGRADE)
    }

    /// True if nothing more of the request is to be read.
    pub(crate) fn is_read(&self) -> bool {
        match &self.wire {
            ClientWire::Http1(wire) => wire.body.is_done(),
            ClientWire::Http2(wire) => wire.is_done() || self.declares_nothing(),
        }
    }

    /// True if the request has no content.
    pub(crate) fn is_empty(&self) -> bool {
        self.received_bytes == 0 && self.is_read()
    }

    fn declares_nothing(&self) -> bool {
        self.received_bytes == 0 && self.request.headers.get(header::CONTENT_LENGTH).is_some_and(|length| length == "0")
    }

    /// Returns the next bytes of the request, or `None` at its end. May be dropped and called again: no byte is lost.
    pub(crate) async fn next_piece(&mut self) -> pingora::Result<Option<Bytes>> {
        let piece = match &mut self.wire {
            ClientWire::Http1(wire) => wire.next_piece().await?,
            ClientWire::Http2(wire) => wire.next_piece().await?,
        };
        self.received_bytes += piece.as_ref().map_or(0, Bytes::len);
        Ok(piece)
    }

    /// Waits until the client of a request without unread content has gone. Returns why.
    ///
    /// A client that sends more has not gone (RFC 9112 sections 2.2 and 9.3.2).
    pub(crate) async fn gone(&mut self) -> Box<Error> {
        if !self.is_read() {
            return std::future::pending().await;
        }
        match &mut self.wire {
            ClientWire::Http1(wire) => wire.gone().await,
            ClientWire::Http2(wire) => wire.gone().await,
        }
    }

    /// The status of the answer, once its head was written.
    pub(crate) fn answered(&self) -> Option<StatusCode> {
        if let WrittenHead::Head(status) = self.written { Some(status) } else { None }
    }

    /// True if no head was written, not even an interim one.
    pub(crate) fn is_untold(&self) -> bool {
        self.written == WrittenHead::Nothing
    }

    /// True if the answer has opened a tunnel.
    pub(crate) fn is_tunnel(&self) -> bool {
        self.answered() == Some(StatusCode::SWITCHING_PROTOCOLS)
    }

    /// Makes the next answer the last one of its connection, and announces it (RFC 9112 section 9.6). This has no
    /// effect over HTTP/2, whose connection announces its own end.
    pub(crate) fn end_connection(&mut self) {
        if let ClientWire::Http1(wire) = &mut self.wire {
            wire.stays = false;
        }
    }

    /// True if the connection is one of HTTP/1.1 that stays.
    pub(crate) fn stays(&self) -> bool {
        matches!(&self.wire, ClientWire::Http1(wire) if wire.stays)
    }

    /// Lets the connection stay although its request is not read: the rest of it is small.
    pub(super) fn drain_after_answer(&mut self) {
        if let ClientWire::Http1(wire) = &mut self.wire {
            wire.drains = true;
        }
    }

    /// Writes a head that is not the final one.
    pub(super) async fn write_interim(&mut self, head: Box<ResponseHeader>) -> pingora::Result<()> {
        match &mut self.wire {
            ClientWire::Http1(wire) => wire.write_interim(&head).await?,
            ClientWire::Http2(wire) => wire.write_interim(*head)?,
        }
        self.written = WrittenHead::Interim;
        Ok(())
    }

    /// Begins the answer. Over HTTP/1.1, its head is sent with the first piece, or when it is flushed. `is_all` tells
    /// that no piece follows, which over HTTP/2 ends the answer.
    pub(super) fn begin(&mut self, head: Box<ResponseHeader>, is_all: bool) -> pingora::Result<()> {
        let status = head.status;
        match &mut self.wire {
            ClientWire::Http1(wire) => wire.begin(&self.request.method, head),
            ClientWire::Http2(wire) => wire.begin(head, is_all)?,
        }
        self.written = WrittenHead::Head(status);
        Ok(())
    }

    /// Sends the part of the answer that is held back.
    pub(super) async fn flush(&mut self) -> pingora::Result<()> {
        match &mut self.wire {
            ClientWire::Http1(wire) => wire.flush().await,
            ClientWire::Http2(_) => Ok(()),
        }
    }

    /// Writes a piece of the answer.
    pub(super) async fn write_piece(&mut self, piece: Bytes, is_last: bool) -> pingora::Result<()> {
        self.sent_bytes += match &mut self.wire {
            ClientWire::Http1(wire) => wire.write_piece(piece, is_last).await?,
            ClientWire::Http2(wire) => wire.write_piece(piece, is_last).await?,
        };
        Ok(())
    }

    /// Ends the answer with trailers.
    pub(super) async fn write_trailers(&mut self, trailers: HeaderMap) -> pingora::Result<()> {
        match &mut self.wire {
            ClientWire::Http1(wire) => wire.write_trailers(&trailers).await,
            ClientWire::Http2(wire) => wire.write_trailers(trailers),
        }
    }

    /// Writes a whole answer over HTTP/1.1 as bytes that `make` makes of whether the connection stays.
    pub(super) async fn write_at_once(
        &mut self,
        (status, sent_bytes): (StatusCode, usize),
        make: impl FnOnce(bool) -> BytesMut,
    ) -> pingora::Result<()> {
        let ClientWire::Http1(wire) = &mut self.wire else { return Ok(()) };
        let stays = wire.stays_after_answer();
        self.written = WrittenHead::Head(status);
        wire.write(make(stays)).await?;
        self.sent_bytes += sent_bytes;
        Ok(())
    }

    /// Closes this side of a connection of HTTP/1.1.
    pub(super) async fn close(&mut self) {
        if let ClientWire::Http1(wire) = &mut self.wire {
            wire.close().await;
        }
    }

    /// Ends the request. Returns whether its connection may carry another one.
    pub(crate) async fn finish(&mut self) -> bool {
        match &mut self.wire {
            ClientWire::Http1(wire) => wire.finish().await,
            ClientWire::Http2(_) => false,
        }
    }

    /// Returns the connection of HTTP/1.1 after its request, and what has arrived of the next one.
    pub(crate) fn into_connection(self) -> Option<(Stream, BytesMut)> {
        match self.wire {
            ClientWire::Http1(wire) => Some(wire.into_connection()),
            ClientWire::Http2(_) => None,
        }
    }
}

impl Client for ClientSession {
    fn head(&self) -> &Arc<RequestHeader> {
        &self.request
    }

    fn has_content(&mut self) -> bool {
        !self.is_empty()
    }

    fn certificate(&self) -> Option<&[u8]> {
        self.peer.certificate()
    }

    fn is_secure(&self) -> bool {
        self.peer.is_tls()
    }

    fn invite_content(&mut self) -> BoxFuture<'_, pingora::Result<()>> {
        box_future(|| async {
            if !self.is_untold() {
                return Ok(());
            }
            self.write_interim(Box::new(ResponseHeader::build(StatusCode::CONTINUE, Some(0))?)).await
        })
    }

    fn next_chunk(&mut self) -> BoxFuture<'_, pingora::Result<Option<Bytes>>> {
        box_future(|| async {
            let timed_out = |_elapsed| Error::new_down(ErrorType::ReadTimedout);
            timeout(PAUSE_MAX, self.next_piece()).await.map_err(timed_out)?
        })
    }

    /// Counts a client that only half-closes its side as gone, because over HTTP/1.1 it looks the same. A lease
    /// granted to a client that has gone would lock out all others.
    fn gone(&mut self) -> BoxFuture<'_, Box<pingora::Error>> {
        box_future(|| ClientSession::gone(self))
    }

    fn has_gone(&mut self) -> bool {
        ClientSession::gone(self).now_or_never().is_some()
    }
}
