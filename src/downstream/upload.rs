//! The client's part of an exchange that has begun: the rest of its request, or its departure.

use std::{future::pending, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use pingora::{Error, ErrorType};
use pingora_timeout::timeout;

use super::{PAUSE_MAX, session::ClientSession};

/// The size of a piece from which on nothing is added to it. Smaller ones cost more to send than to copy.
const PIECE_BYTES: usize = 8 * 1024;

/// How far the request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestProgress {
    /// More of it comes.
    Open,
    /// Its end came behind the last piece, and is to be reported.
    Ending,
    /// All of it was reported.
    Ended,
}

/// The client's part of an exchange.
pub(crate) struct ClientUpload {
    progress: RequestProgress,
    /// True if the departure of the client ends the exchange.
    watches: bool,
    pause_max: Option<Duration>,
}

impl ClientUpload {
    /// The part of a client whose request has no response yet.
    pub(crate) fn of(session: &ClientSession) -> Self {
        // A client of HTTP/1.1 that has closed its side may still wait for the end of its write. What it sends after a
        // handshake belongs to the tunnel.
        let watches = session.is_http2() || session.request().method.is_safe() && !session.asks_upgrade();
        let progress = if session.is_read() { RequestProgress::Ended } else { RequestProgress::Open };
        Self { progress, watches, pause_max: Some(PAUSE_MAX) }
    }

    /// The part of a client while its response, or a tunnel, is open. Its server bounds the silence of both.
    pub(crate) fn beside_response(session: &ClientSession) -> Self {
        Self { pause_max: None, ..Self::of(session) }
    }

    /// Limits the pauses again.
    pub(crate) fn after_response(&mut self) {
        self.pause_max = Some(PAUSE_MAX);
    }

    /// True if more of the request comes, or its end.
    pub(crate) fn is_open(&self) -> bool {
        self.progress != RequestProgress::Ended
    }

    /// True if all of the request has come, and its end is to be reported.
    pub(crate) fn is_ending(&self) -> bool {
        self.progress == RequestProgress::Ending
    }

    /// Returns what has arrived, or `None` if that is nothing.
    pub(crate) fn at_once(&mut self, session: &mut ClientSession) -> Option<pingora::Result<Option<Bytes>>> {
        if self.is_open() { self.read(session).now_or_never() } else { None }
    }

    /// Waits for the next bytes of the request, or `None` at its end, if they are wanted. Otherwise, waits for the
    /// departure of the client, which is an error. May be dropped and called again: no byte is lost.
    pub(crate) async fn next(
        &mut self,
        session: &mut ClientSession,
        is_wanted: bool,
    ) -> pingora::Result<Option<Bytes>> {
        match (self.is_open(), self.pause_max) {
            (true, Some(max)) if is_wanted => match timeout(max, self.read(session)).await {
                Ok(piece) => piece,
                Err(_elapsed) => Err(Error::new_down(ErrorType::ReadTimedout)),
            },
            (true, None) if is_wanted => self.read(session).await,
            (false, _) if self.watches => Err(session.gone().await),
            _ => pending().await,
        }
    }

    async fn read(&mut self, session: &mut ClientSession) -> pingora::Result<Option<Bytes>> {
        if self.progress == RequestProgress::Ending {
            self.progress = RequestProgress::Ended;
            return Ok(None);
        }
        let piece = loop {
            let piece = session.next_piece().await?;
            // HTTP/2 may end a body with an empty frame, which would be the end of a chunked one.
            if piece.as_ref().is_none_or(|piece| !piece.is_empty()) {
                break piece;
            }
        };
        match piece {
            Some(piece) if piece.len() < PIECE_BYTES => self.add_arrived(session, piece).map(Some),
            Some(piece) => Ok(Some(piece)),
            None => {
                self.progress = RequestProgress::Ended;
                Ok(None)
            }
        }
    }

    /// Adds what has arrived behind a small piece.
    fn add_arrived(&mut self, session: &mut ClientSession, piece: Bytes) -> pingora::Result<Bytes> {
        let mut whole = None;
        while let Some(more) = session.next_piece().now_or_never() {
            let Some(more) = more? else {
                self.progress = RequestProgress::Ending;
                break;
            };
            let whole = whole.get_or_insert_with(|| BytesMut::from(piece.as_ref()));
            whole.extend_from_slice(&more);
            if whole.len() >= PIECE_BYTES {
                break;
            }
        }
        Ok(whole.map_or(piece, BytesMut::freeze))
    }
}
