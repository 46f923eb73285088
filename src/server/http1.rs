//! Connections that speak HTTP/1.1, one request after the other.

use bytes::BytesMut;
use pingora::{
    apps::HttpServerApp as _,
    protocols::{Stream, http::ServerSession},
    server::ShutdownWatch,
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
        request_line::{fault_of_target, is_connect},
    },
    proxy::{Served, look_at, malformed_request},
};

/// The keep-alive time set before the first request. `proxy::entry` sets the configured one with each request.
const KEEPALIVE_SECONDS: u64 = 60;
/// The advice to a client whose first bytes begin no request.
const NO_REQUEST: &str = "begin with a method, a target and a version of HTTP; TLS has a port of its own";

/// Serves a connection to its end. By then, all answers have been written.
pub(super) async fn serve(connections: &Connections, mut stream: Stream, shutdown: &ShutdownWatch) {
    let mut ends = connections.ends();
    // The direct path declines what it cannot serve. A look at the head saves it the next such request.
    let mut was_served_directly = true;
    loop {
        let ReceivedHead { mut bytes, length, held } = match connections.heads.read(&mut stream, &mut ends).await {
            Ok(head) => head,
            Err(NoHead::Gone) => return,
            Err(NoHead::Refused(refusal, received)) => {
                return Box::pin(connections.gateway.refuse_unread(stream, &received, refusal)).await;
            }
        };
        let fault = if length == 0 { Some(NO_REQUEST) } else { fault_of_target(&bytes) };
        if let Some(detail) = fault {
            let refusal = Refusal::new(Code::MalformedRequest, detail);
            return Box::pin(connections.gateway.refuse_unread(stream, &bytes, refusal)).await;
        }
        let stream_of_body = chunked::watch(stream, &mut bytes, length);
        let head = bytes.get(..length).unwrap_or_default();
        // Boxed, so that a connection without a request need not make room for one.
        let served = if was_served_directly || connections.gateway.may_serve(head) || is_connect(head) {
            let direct = || connections.gateway.serve(stream_of_body, bytes.clone(), *shutdown.borrow());
            let served = box_future(direct).await;
            was_served_directly = !matches!(served, Served::Declined(_));
            served
        } else {
            box_future(|| look_at(stream_of_body, bytes.clone())).await
        };
        let served = match served {
            Served::Kept(stream) => Some(stream),
            Served::Ended => None,
            Served::Unreadable(stream) => {
                return Box::pin(connections.gateway.refuse_unread(stream, &bytes, malformed_request())).await;
            }
            Served::Declined(stream) => box_future(|| serve_by_pingora(connections, stream, bytes, shutdown)).await,
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
