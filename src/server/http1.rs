//! Connections that speak HTTP/1.1, one request after the other.

use bytes::BytesMut;
use pingora::{protocols::Stream, server::ShutdownWatch};

use super::{
    connections::Connections,
    head::{NoHead, ReceivedHead},
};
use crate::{
    box_future::box_future,
    core::{
        refusal::{Code, Refusal},
        wire::request_line::fault_of_target,
    },
    downstream::session::ClientSession,
    proxy::{Served, malformed_request},
};

/// The advice to a client whose first bytes begin no request.
const NO_REQUEST: &str = "begin with a method, a target and a version of HTTP; TLS has a port of its own";

/// Serves a connection to its end. By then, all answers have been written.
pub(super) async fn serve(connections: &Connections, mut stream: Stream, shutdown: &ShutdownWatch) {
    let mut ends = connections.ends();
    let mut ahead = BytesMut::new();
    loop {
        let read = connections.heads.read(&mut stream, ahead, &mut ends).await;
        let ReceivedHead { mut bytes, length, held } = match read {
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
        let head = bytes.split_to(length).freeze();
        let session = match ClientSession::of_http1(stream, &head, bytes) {
            Ok(session) => session,
            Err(stream) => {
                return Box::pin(connections.gateway.refuse_unread(stream, &head, malformed_request())).await;
            }
        };
        drop(head);
        // Boxed, so that a connection without a request need not make room for one.
        // The answer may take hours to send. By then, the room for finding it is given back.
        let kept = match box_future(|| connections.gateway.serve(session, *shutdown.borrow())).await {
            Served::Done(kept) => kept,
            Served::Sending(sending) => sending.await,
        };
        drop(held);
        let Some(kept) = kept else { return };
        (stream, ahead) = kept;
    }
}
