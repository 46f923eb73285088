//! Connections that speak HTTP/1.1, one request after the other.

use std::time::Duration;

use pingora::{
    apps::HttpServerApp,
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
    core::{
        refusal::{Code, Refusal},
        request_line::fault_of_target,
    },
    downstream::respond,
};

/// The keep-alive time set before the first request. `proxy::entry` sets the configured one with each request.
const KEEPALIVE_SECONDS: u64 = 60;
/// How long a refused client may go on sending before its connection is closed, so that it sees the answer.
const LINGER: Duration = Duration::from_secs(2);
/// The number of bytes that the client may send in that time.
const LINGER_BYTES: usize = 256 * 1024;

/// Serves a connection to its end. By then, all answers have been written.
pub(super) async fn serve<A>(connections: &Connections<A>, mut stream: Stream, shutdown: &ShutdownWatch)
where
    A: HttpServerApp + Send + Sync + 'static,
{
    let mut ends = connections.ends();
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
        let mut session = ServerSession::new_http1(stream_of_body);
        session.set_keepalive((!*shutdown.borrow()).then_some(KEEPALIVE_SECONDS));
        session.set_pipelined_prefix(bytes);
        let reused = connections.application.process_new_http(session, shutdown).await;
        drop(held);
        let Some(reused) = reused else { return };
        stream = chunked::unwatch(reused.consume().0);
    }
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
