//! A client whose request the guard handles by itself, without a connection of the proxy.

use bytes::BytesMut;
use pingora::protocols::Stream;
use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};

use crate::{
    core::wire::head::{HeadScan, HeadState},
    downstream::{relay::Outgoing, session::ClientSession},
    guard::Guard,
    routing::GuardedRequest,
    service,
    telemetry::access::AccessEntry,
    wire::read_ahead,
};

/// The bytes that a client and the proxy may send before the other side reads.
const BUFFER_BYTES: usize = 1 << 16;

/// Returns a request with these first bytes, whose head has arrived, and the side of its client.
pub(crate) async fn arrived(bytes: &[u8]) -> (ClientSession, DuplexStream) {
    let (mut client, server) = duplex(bytes.len().max(BUFFER_BYTES));
    client.write_all(bytes).await.unwrap();
    let (mut stream, mut received): (Stream, _) = (Box::new(server), BytesMut::new());
    let mut scan = HeadScan::default();
    while scan.look(&received) != HeadState::Complete {
        read_ahead(&mut stream, &mut received).await.expect("a head");
    }
    let head = received.split_to(scan.end()).freeze();
    (ClientSession::of_http1(stream, &head, received).unwrap_or_else(|_stream| panic!("a well-formed head")), client)
}

/// Returns a PUT whose head and body have arrived, and the side of its client.
pub(crate) async fn put_arrived(body: &[u8]) -> (ClientSession, DuplexStream) {
    let head = format!("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    arrived(&[head.as_bytes(), body].concat()).await
}

/// Handles a request that has arrived, and sends its answer.
pub(crate) async fn answer(guard: &Guard, mut session: ClientSession, request: &GuardedRequest) -> pingora::Result<()> {
    let dialect = request.route.guard.as_ref().expect("a guarded route").dialect;
    let mut entry = AccessEntry::default();
    let answer = service::handle(guard, &mut session, request).await?;
    Outgoing::new(session.request(), answer, dialect, &mut entry)?.send(&mut session).await
}
