//! Connections that speak HTTP/2: concurrent requests, within the limits of one connection.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use h2::{
    Reason, RecvStream,
    server::{Builder, Connection, Handshake, SendResponse},
};
use http::{Method, Response, StatusCode, header};
use pingora::{
    http::{
        RequestHeader,
        authority::{RawTargetAuthority, raw_target_authority},
    },
    protocols::{Stream, http::authority::validate_request_authority},
    server::ShutdownWatch,
};
use pingora_runtime::current_handle;
use pingora_timeout::{sleep, timeout};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Notify,
};

use super::{connections::Connections, places::ConnectionPlace};
use crate::{
    box_future::box_future,
    core::wire::received_body::declared_length,
    downstream::{peer::ClientPeer, session::ClientSession, unread::UNREAD},
};

mod tapped;
mod watched;

use tapped::Tapped;
use watched::{ConnectionEnd, FrameWatch};

/// The number of concurrent requests on one HTTP/2 connection (RFC 9113 section 6.5.2 recommends at least 100).
const STREAMS: u32 = 128;
/// The number of bytes that one HTTP/2 stream may send ahead. The protocol's 64 KiB slow down uploads over long
/// distances.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// The number of bytes that all streams of a connection may send ahead, and therefore hold in memory.
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// The number of streams that a client may reset before they are handled (rapid reset attacks).
const PENDING_RESETS: usize = 32;
/// The number of streams that this side may have to reset because of the client's errors.
const ERROR_RESETS: usize = 128;
/// The number of malformed requests on one connection that are rejected before it ends.
const MALFORMED: usize = 32;
/// The number of response bytes that one stream may hold between its request and the socket.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// How long the last frames to a client that is cut off may take.
const LAST_FRAMES: Duration = Duration::from_secs(1);

/// Returns the settings of an HTTP/2 connection at its beginning.
pub(super) fn options(header_bytes_max: usize) -> Builder {
    let mut options = Builder::new();
    options
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(header_bytes_max).unwrap_or(u32::MAX))
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(Some(ERROR_RESETS))
        .max_send_buffer_size(SEND_BUFFER_BYTES);
    options
}

/// Serves a connection to its end. By then, all answers have been written.
pub(super) async fn serve(
    connections: &Connections,
    stream: Stream,
    place: &ConnectionPlace,
    shutdown: &ShutdownWatch,
) {
    let client = ClientPeer::of(&stream);
    let (watch, handshake) = begin(stream, &options(connections.heads.bytes_max));
    let Ok(Ok(mut connection)) = timeout(connections.heads.time_max, handshake).await else { return };
    let running = Arc::new(Running::default());
    let (mut is_ending, mut malformed) = (false, 0);
    let mut ending = pin!(ended(shutdown.clone()));
    let mut end = pin!(watch.end(connections.heads.time_max));
    loop {
        let next = next(&mut connection, &watch, &running);
        // Requests come first: each read of the connection ends in a wait, and nothing else is looked at before.
        let accepted = tokio::select! {
            biased;
            accepted = next => accepted,
            () = &mut ending, if !is_ending => {
                connection.graceful_shutdown();
                is_ending = true;
                continue;
            }
            end = &mut end => return cut_off(&mut connection, end, place).await,
            // No client is left to notify: the socket is closed.
            () = running.idle_for(connections.heads.silence_max), if !is_ending => return,
        };
        let Some(Ok((request, mut response))) = accepted else { return };
        let (head, body) = request.into_parts();
        let head = RequestHeader::from(head);
        if let Some(rejection) = rejection(&head) {
            reject(&mut response, rejection);
            connections.gateway.tell_rejected(&client);
            malformed += 1;
            if malformed > MALFORMED {
                return cut_off(&mut connection, ConnectionEnd::Malformed, place).await;
            }
            continue;
        }
        let Some(admitted) = connections.admit(place, &head) else {
            // Nothing was done with the request: the client may send it again (RFC 9113 section 8.7).
            response.send_reset(Reason::REFUSED_STREAM);
            continue;
        };
        let (gateway, request) = (connections.gateway.clone(), running.enter());
        let session = ClientSession::of_http2(head, body, response, client.clone());
        let handled = async move {
            let _running = (request, admitted);
            if session.request().method == Method::CONNECT {
                gateway.refuse_tunnel(session).await;
            } else {
                gateway.serve_stream(session).await;
            }
        };
        // Boxed, because the runtime moves a task several times.
        current_handle().spawn(box_future(|| UNREAD.scope(Arc::clone(&watch.unread), handled)));
    }
}

/// A connection whose frames are watched.
type WatchedConnection<S = Stream> = Tapped<S, Arc<FrameWatch>>;

/// Begins a connection, whose frames are watched.
fn begin<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    options: &Builder,
) -> (Arc<FrameWatch>, Handshake<WatchedConnection<S>, Bytes>) {
    let watch = Arc::new(FrameWatch::new());
    let handshake = options.handshake(Tapped::new(stream, Arc::clone(&watch)));
    (watch, handshake)
}

/// The rejection of a request that has two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rejection {
    /// It gets a bare 400.
    Answer,
    /// Its stream is reset: no part of it would be safe to forward.
    Reset,
}

/// Returns the rejection of a request that is malformed, or names two hosts or two lengths (RFC 9113 sections 8.1.1 and
/// 8.3.1).
fn rejection(request: &RequestHeader) -> Option<Rejection> {
    let target = request.raw_path();
    let is_forbidden = |octet: &u8| matches!(octet, b'\0' | b'\n' | b'\r' | b' ');
    if target.iter().any(is_forbidden) || declared_length(&request.headers).is_err() {
        return Some(Rejection::Reset);
    }
    // A CONNECT has no target, and is refused in any case.
    let is_connect = request.method == Method::CONNECT;
    let is_unnamed = request.uri.authority().is_none() && !request.headers.contains_key(header::HOST);
    let is_ambiguous =
        || raw_target_authority(target) != RawTargetAuthority::None || validate_request_authority(request).is_err();
    (is_unnamed || !is_connect && is_ambiguous()).then_some(Rejection::Answer)
}

fn reject(response: &mut SendResponse<Bytes>, rejection: Rejection) {
    let mut head = Response::new(());
    *head.status_mut() = StatusCode::BAD_REQUEST;
    match rejection {
        Rejection::Reset => response.send_reset(Reason::PROTOCOL_ERROR),
        // A client that is gone need not know.
        Rejection::Answer => drop(response.send_response(head, true)),
    }
}

/// Waits for the signal that the process ends.
async fn ended(mut shutdown: ShutdownWatch) {
    // If the sender of the signal is gone, the process has ended.
    let _ = shutdown.wait_for(|ends| *ends).await;
}

/// Returns the next request of a connection that does not have too many in flight. Requests that the client gave up
/// count, because work begun for them goes on.
async fn next<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<WatchedConnection<S>, Bytes>,
    watch: &FrameWatch,
    running: &Running,
) -> Option<Result<Accepted, h2::Error>> {
    while running.count() >= STREAMS as usize {
        tokio::select! {
            _closed = poll_fn(|context| watch.gathering(|| connection.poll_closed(context))) => return None,
            () = running.ended.notified() => {}
        }
    }
    poll_fn(|context| watch.gathering(|| connection.poll_accept(context))).await
}

/// A request, and the place of its response.
type Accepted = (http::Request<RecvStream>, SendResponse<Bytes>);

/// Notifies a client that it exceeds its limits, and closes everything that it has under way.
async fn cut_off(connection: &mut Connection<WatchedConnection, Bytes>, end: ConnectionEnd, place: &ConnectionPlace) {
    place.tell_end(end.word());
    connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
    let _ = timeout(LAST_FRAMES, poll_fn(|context| connection.poll_closed(context))).await;
}

/// The requests of one connection that are being handled.
#[derive(Debug, Default)]
struct Running {
    count: AtomicUsize,
    ended: Notify,
}

/// One of the requests of a connection, until it is dropped.
struct OpenStream(Arc<Running>);

impl Running {
    fn enter(self: &Arc<Self>) -> OpenStream {
        self.count.fetch_add(1, Ordering::Relaxed);
        OpenStream(Arc::clone(self))
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits until no request has been running for this long.
    async fn idle_for(&self, silence: Duration) {
        while self.count() != 0 {
            self.ended.notified().await;
        }
        sleep(silence).await;
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
        // There is only one waiter at a time: for fewer requests, or for none.
        self.0.ended.notify_one();
    }
}

#[cfg(test)]
#[path = "joined_tests.rs"]
mod tests;
