//! Pingora's session as the client that the guard serves.

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::StatusCode;
use pingora::{
    ErrorType,
    http::{RequestHeader, ResponseHeader},
    protocols::http::ServerSession,
};

use super::client;
use crate::{
    body::{BoxFuture, Client},
    box_future::box_future,
};

/// How much a client may send after a request and still be watched, in bytes. Each of them is read alone.
const STRAY_BYTES_MAX: usize = 1024;

impl Client for ServerSession {
    fn head(&self) -> &RequestHeader {
        self.req_header()
    }

    fn has_content(&mut self) -> bool {
        !self.is_body_empty()
    }

    fn certificate(&self) -> Option<&[u8]> {
        client::certificate(self)
    }

    fn invite_content(&mut self) -> BoxFuture<'_, pingora::Result<()>> {
        box_future(|| async {
            if self.response_written().is_some() {
                return Ok(());
            }
            write_interim(self, Box::new(ResponseHeader::build(StatusCode::CONTINUE, Some(0))?)).await
        })
    }

    fn next_chunk(&mut self) -> BoxFuture<'_, pingora::Result<Option<Bytes>>> {
        box_future(|| self.read_request_body())
    }

    /// Counts a client that only half-closes its side as gone, because over HTTP/1.1 it looks the same. A lease
    /// granted to a client that has gone would lock out all others.
    fn gone(&mut self) -> BoxFuture<'_, Box<pingora::Error>> {
        box_future(|| gone(self))
    }

    fn has_gone(&mut self) -> bool {
        gone(self).now_or_never().is_some()
    }
}

/// Writes a head that is not the final one.
pub(super) async fn write_interim(session: &mut ServerSession, head: Box<ResponseHeader>) -> pingora::Result<()> {
    // Writing any head before the body is read makes pingora close the connection afterwards.
    let keepalive_seconds = session.get_keepalive();
    session.write_response_header(head).await?;
    session.set_keepalive(keepalive_seconds);
    Ok(())
}

/// Waits until the client of a request without unread content has gone. Returns why.
///
/// A client that sends more has not gone (RFC 9112 sections 2.2 and 9.3.2). What was read of a next request is lost, so
/// the connection ends with this answer. A client that sends very much is no longer watched.
pub(crate) async fn gone(session: &mut ServerSession) -> Box<pingora::Error> {
    if !session.is_body_done() {
        return std::future::pending().await;
    }
    let watched = WatchedSession::of(session);
    if let Some(stream) = watched.0.watch_h2_stream_close() {
        let _ = stream.await;
        return pingora::Error::new_down(ErrorType::ConnectionClosed);
    }
    for _ in 0..STRAY_BYTES_MAX {
        match watched.0.read_body_or_idle(true).await {
            Err(error) if *error.etype() == ErrorType::ConnectError => watched.0.set_keepalive(None),
            Ok(_) => return pingora::Error::new_down(ErrorType::ConnectionClosed),
            Err(error) => return error.into_down(),
        }
    }
    std::future::pending().await
}

/// A session that reports its close as an error, until this is dropped.
struct WatchedSession<'a>(&'a mut ServerSession);

impl<'a> WatchedSession<'a> {
    fn of(session: &'a mut ServerSession) -> Self {
        session.set_abort_on_close(true);
        Self(session)
    }
}

impl Drop for WatchedSession<'_> {
    fn drop(&mut self) {
        self.0.set_abort_on_close(false);
    }
}
