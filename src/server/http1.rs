//! Connections that speak HTTP/1.1, one request after the other.

use pingora::{protocols::Stream, server::ShutdownWatch};

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
    proxy::{Served, malformed_request},
};

/// The advice to a client whose first bytes begin no request.
const NO_REQUEST: &str = "begin with a method, a target and a version of HTTP; TLS has a port of its own";

/// Serves a connection to its end. By then, all answers have been written.
pub(super) async fn serve(connections: &Connections, mut stream: Stream, shutdown: &ShutdownWatch) {
    let mut ends = connections.ends();
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
        // Boxed, so that a connection without a request need not make room for one.
        let serve = || connections.gateway.serve(stream_of_body, bytes.clone(), *shutdown.borrow());
        let served = match box_future(serve).await {
            Served::Kept(stream) => Some(stream),
            Served::Ended => None,
            Served::Unreadable(stream) => {
                return Box::pin(connections.gateway.refuse_unread(stream, &bytes, malformed_request())).await;
            }
        };
        drop(held);
        let Some(kept) = served else { return };
        stream = chunked::unwatch(kept);
    }
}
