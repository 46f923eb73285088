//! Requests that cannot be read, or that no route could ever take: here, all of them are answered, logged and counted.
//!
//! # Design
//!
//! *What is missing over HTTP/2?* The library resets a malformed stream itself, and the proxy never learns of it. A
//! stream that is rejected here gets a bare 400, seldom a reset, and its line shows neither method nor path.

use http::Method;
use pingora::protocols::Stream;

use super::{Gateway, context::Context, entry, target};
use crate::{
    core::{
        policy::Dialect,
        refusal::Refusal,
        wire::request_line::{ShownLine, shown},
    },
    downstream::{
        local_answer::LocalAnswer,
        peer::ClientPeer,
        respond::{self, respond_unread},
        session::ClientSession,
    },
    telemetry::{
        self,
        access::{AccessEntry, ClientExchange},
    },
};

impl Gateway {
    /// Answers a request of HTTP/1.1 that cannot be read, of which these bytes have come, and ends its connection.
    pub(crate) async fn refuse_unread(&self, stream: Stream, received: &[u8], refusal: Refusal) {
        let (client, ShownLine { method, path }) = (ClientPeer::of(&stream), shown(received));
        let method = Method::from_bytes(method).ok();
        let mut entry = AccessEntry { client_address: client.ip(), ..AccessEntry::default() };
        telemetry::begin(&mut entry, &http::HeaderMap::new(), false);
        let Ok(answer) = LocalAnswer::unread(method.as_ref(), path, refusal, &mut entry) else { return };
        let told = Told { method: method.as_ref(), path, status: answer.status().as_u16(), sent: answer.sent_bytes() };
        self.tell_unread(&mut entry, &client, &told);
        respond_unread(stream, answer).await;
    }

    /// Records a request of HTTP/2 that was rejected before its head was handed on.
    pub(crate) fn tell_rejected(&self, client: &ClientPeer) {
        let mut entry = AccessEntry::default();
        telemetry::begin(&mut entry, &http::HeaderMap::new(), false);
        let mut refusal = entry::malformed_request();
        telemetry::refused(&mut entry, &mut refusal);
        let told = Told { method: None, path: b"", status: refusal.code.status().as_u16(), sent: 0 };
        self.tell_unread(&mut entry, client, &told);
    }

    /// Answers a CONNECT over HTTP/2, which has no target that the door could read.
    pub(crate) async fn refuse_tunnel(&self, mut session: ClientSession) {
        let mut context = Context::new(self.live.in_flight().enter(), self.live.serving());
        telemetry::begin(&mut context.entry, &session.request().headers, false);
        let answered = respond::refuse(&mut session, target::no_tunnel(), Dialect::default(), &mut context.entry).await;
        self.leave(&mut session, answered.err().as_deref(), &mut context).await;
    }

    fn tell_unread(&self, entry: &mut AccessEntry, client: &ClientPeer, told: &Told<'_>) {
        let exchange = ClientExchange {
            method: told.method,
            target: told.path,
            status: told.status,
            received_bytes: 0,
            sent_bytes: told.sent,
            client: client.address,
            is_tls: client.is_tls(),
        };
        telemetry::end(entry, &exchange, self.activity.as_deref());
    }
}

/// The known facts about an unread request and its answer.
struct Told<'a> {
    method: Option<&'a Method>,
    path: &'a [u8],
    status: u16,
    sent: usize,
}
