//! Connections that speak HTTP/1.1, one request after the other.

use std::time::Duration;

use bytes::BytesMut;
use pingora::{
    apps::HttpServerApp as _,
    protocols::{Stream, http::ServerSession},
    server::ShutdownWatch,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

use super::{
    chunked,
    connections::Connections,
    head::{NoHead, ReceivedHead},
};
use crate::{
    box_future::box_future,
    core::{
        refusal::{Code, Refusal},
        request_line::fault_of_target,
    },
    downstream::respond,
    proxy::Served,
};

/// The keep-alive time set before the first request. `proxy::entry` sets the configured one with each request.
const KEEPALIVE_SECONDS: u64 = 60;
/// How long a refused client may go on sending before its connection is closed, so that it sees the answer.
const LINGER: Duration = Duration::from_secs(2);
/// The number of bytes that the client may send in that time.
const LINGER_BYTES: usize = 256 * 1024;

/// Serves a connection to its end. By then, all answers have been written.
pub(super) async fn serve(connections: &Connections, mut stream: Stream, shutdown: &ShutdownWatch) {
    let mut ends = connections.ends();
    // The direct path declines what it cannot serve. A look at the head saves it the next such request.
    let mut was_served_directly = true;
    loop {
        let ReceivedHead { mut bytes, length, held } = match connections.heads.read(&mut stream, &mut ends).await {
            Ok(head) => head,
            Err(NoHead::Gone) => return,
            Err(NoHead::Refused(refusal)) => return Box::pin(refuse(stream, &refusal)).await,
        };
        if let Some(detail) = fault_of_target(&bytes) {
            return Box::pin(refuse(stream, &Refusal::new(Code::MalformedRequest, detail))).await;
        }
        let stream_of_body = chunked::watch(stream, &mut bytes, length);
        let head = bytes.get(..length).unwrap_or_default();
        let served = if was_served_directly || connections.gateway.may_serve(head) {
            let direct = || connections.gateway.serve(stream_of_body, bytes.clone(), *shutdown.borrow());
            // Boxed, so that a connection without a request need not make room for one.
            let served = box_future(direct).await;
            was_served_directly = !matches!(served, Served::Declined(_));
            match served {
                Served::Kept(stream) => Some(stream),
                Served::Ended => None,
                Served::Declined(stream) => box_future(|| serve_by_pingora(connections, stream, bytes, shutdown)).await,
            }
        } else {
            box_future(|| serve_by_pingora(connections, stream_of_body, bytes, shutdown)).await
        };
        drop(held);
        let Some(kept) = served else { return };
        stream = chunked::unwatch(kept);
    }
}

/// Serves one request by pingora's own proxying. Returns the connection if it may bring another request.
async fn serve_by_pingora(
    connections: &Connections,
    stream: Stream,
    received: BytesMut,
    shutdown: &ShutdownWatch,
) -> Option<Stream> {
    let mut session = ServerSession::new_http1(stream);
    session.set_keepalive((!*shutdown.borrow()).then_some(KEEPALIVE_SECONDS));
    session.set_pipelined_prefix(received);
    let reused = connections.proxy.process_new_http(session, shutdown).await?;
    Some(reused.consume().0)
}

/// Answers a head that is not read to its end, and closes. A client that is still sending sees the answer and no
/// reset.
async fn refuse(stream: Stream, refusal: &Refusal) {
    let mut session = ServerSession::new_http1(stream);
    let answered = respond::refuse_unread(&mut session, refusal).await;
    let ServerSession::H1(session) = session else { return };
    let mut stream = session.into_inner();
    if answered.is_ok() && stream.shutdown().await.is_ok() {
        let _ = timeout(LINGER, forget(&mut stream)).await;
    }
}

async fn forget(stream: &mut Stream) {
    let mut left = LINGER_BYTES;
    let mut bytes = [0; 4 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut bytes).await
        && left > count
    {
        left -= count;
    }
}
