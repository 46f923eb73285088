//! Requests that cannot be read, or that no route could ever take: here, all of them are answered, logged and counted.
//!
//! # Design
//!
//! *Why not leave them to pingora?* Its answer names pingora as the server, and has no document. No operator learns of it.
//!
//! *What is missing over HTTP/2?* The library below pingora resets a malformed stream by itself, and the proxy never hears
//! of it. Of a stream that pingora rejects, the proxy learns no more than that: it got a bare 400, seldom a reset.

use http::Method;
use pingora::protocols::{Stream, http::ServerSession};

use super::{Gateway, context::Context, entry, target};
use crate::{
    core::{
        policy::Dialect,
        refusal::Refusal,
        request_line::{ShownLine, shown},
    },
    downstream::{
        local_answer::LocalAnswer,
        respond::{self, respond_unread},
    },
    telemetry::{
        self,
        access::{AccessEntry, ClientExchange},
    },
};

/// The client of a connection, as the log shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnreadClient {
    /// The address; `None` over a Unix socket.
    pub(crate) address: Option<std::net::SocketAddr>,
    /// Whether it came over TLS.
    pub(crate) is_tls: bool,
}

impl UnreadClient {
    /// The client at the other end of a connection.
    pub(crate) fn of(stream: &Stream) -> Self {
        let socket = stream.get_socket_digest();
        let address = socket.as_ref().and_then(|digest| digest.peer_addr()).and_then(|peer| peer.as_inet().copied());
        Self { address, is_tls: stream.get_ssl_digest().is_some() }
    }
}

impl Gateway {
    /// Answers a request of HTTP/1.1 that cannot be read, of which these bytes have come, and ends its connection.
    pub(crate) async fn refuse_unread(&self, stream: Stream, received: &[u8], refusal: Refusal) {
        let (client, ShownLine { method, path }) = (UnreadClient::of(&stream), shown(received));
        let (method, mut entry) = (Method::from_bytes(method).ok(), AccessEntry::default());
        telemetry::begin(&mut entry, &http::HeaderMap::new());
        let Ok(answer) = LocalAnswer::unread(method.as_ref(), path, refusal, &mut entry) else { return };
        let told = Told { method: method.as_ref(), path, status: answer.status().as_u16(), sent: answer.sent_bytes() };
        self.tell_unread(&mut entry, client, &told);
        respond_unread(stream, answer).await;
    }

    /// Records a request of HTTP/2 that was rejected before its head was handed on.
    pub(crate) fn tell_rejected(&self, client: UnreadClient) {
        let mut entry = AccessEntry::default();
        telemetry::begin(&mut entry, &http::HeaderMap::new());
        let mut refusal = entry::malformed_request();
        telemetry::refused(&mut entry, &mut refusal);
        let told = Told { method: None, path: b"", status: refusal.code.status().as_u16(), sent: 0 };
        self.tell_unread(&mut entry, client, &told);
    }

    /// Answers a CONNECT over HTTP/2, which has no target that the door could read.
    pub(crate) async fn refuse_tunnel(&self, mut session: ServerSession) {
        let mut context = Context::new(self.live.in_flight().enter(), self.live.serving());
        entry::prepare(&mut session, context.serving.config.server.keepalive_timeout);
        telemetry::begin(&mut context.entry, &session.req_header().headers);
        let answered = respond::refuse(&mut session, target::no_tunnel(), Dialect::default(), &mut context.entry).await;
        self.leave(&mut session, answered.err().as_deref(), &mut context).await;
    }

    fn tell_unread(&self, entry: &mut AccessEntry, client: UnreadClient, told: &Told<'_>) {
        if let Some(activity) = &self.activity {
            activity.ended(entry, told.status);
        }
        let exchange = ClientExchange {
            method: told.method,
            target: told.path,
            status: told.status,
            received_bytes: 0,
            sent_bytes: told.sent,
            client: client.address,
            is_tls: client.is_tls,
        };
        telemetry::end(entry, &exchange);
    }
}

/// What is known of an unread request and its answer.
struct Told<'a> {
    method: Option<&'a Method>,
    path: &'a [u8],
    status: u16,
    sent: usize,
}
