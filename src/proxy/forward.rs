//! Reads without content on unguarded routes, over HTTP/1.1: one function from the door to the answer.
//!
//! # Design
//!
//! *Why not pingora's proxying?* It lets two bodies flow at a time, through a channel and a loop for each direction. A
//! read without content needs neither: its head goes to the server, and then the response goes to the client. All other
//! unguarded requests take pingora's way.

use pingora::{
    Error, ErrorType,
    http::{RequestHeader, ResponseHeader},
    protocols::http::ServerSession,
};

use super::{
    Gateway,
    context::Context,
    entry,
    pass::{self, NextServer},
};
use crate::{
    core::fields::ends_at_hop,
    downstream::{
        relay::{Outgoing, relay_interim},
        session::gone,
    },
    guard::Relayed,
    upstream::{
        BodyPrefix, Connected, Exchange, Failure, Lost,
        fields::{FieldsOfHead as _, is_bodiless},
    },
};

impl Gateway {
    /// Sends a read that [`pass::is_plain_read`] accepts to a server, and returns its answer. If an idle connection
    /// turns out to be dead, the read is sent once more.
    pub(super) async fn forward(
        &self,
        session: &mut ServerSession,
        context: &mut Context,
    ) -> pingora::Result<Outgoing> {
        let mut is_repeated = false;
        loop {
            let connected = self.connect(session.req_header(), context, is_repeated).await?;
            let was_idle = connected.is_reused();
            match ask(session, context, connected).await? {
                Ok(exchange) => return self.answer(session, context, exchange).await,
                Err(lost) => {
                    context.watch.failed(lost.word());
                    if !(lost.connection_died && was_idle) {
                        return Err(Error::new_up(kind(&lost)));
                    }
                    pass::stay(context);
                    is_repeated = true;
                }
            }
        }
    }

    /// Connects to the next server of a request that can be reached.
    async fn connect(
        &self,
        request: &RequestHeader,
        context: &mut Context,
        is_fresh: bool,
    ) -> pingora::Result<Box<Connected>> {
        loop {
            let NextServer { upstream, server, address } = self.servers.next(request, context).await?;
            match self.forwards.connect(&upstream, server, address, is_fresh).await {
                Ok(connected) => {
                    context.connected = true;
                    pass::connected(context, true);
                    return Ok(connected.occupying(context.slot.take()));
                }
                Err(error) => {
                    pass::failed_to_connect(context, &error);
                    if !pass::may_connect_again(context) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Makes the answer of the exchange that has begun.
    async fn answer(
        &self,
        session: &mut ServerSession,
        context: &mut Context,
        mut exchange: Exchange,
    ) -> pingora::Result<Outgoing> {
        if self.live.ends() {
            entry::end_connection(session);
        }
        let mut head = exchange.take_head();
        context.watch.answered(head.status.as_u16());
        let is_bodiless = is_bodiless(&session.req_header().method, &head);
        pass::response_from_upstream(session.req_header(), context, &mut head)?;
        let rest = if is_bodiless {
            // Released first, so that the client's next request finds the connection and the slot.
            exchange.finish().await;
            None
        } else {
            Some(exchange)
        };
        Ok(Outgoing::Forwarded(Box::new(Relayed { head, begun: BodyPrefix::default(), rest })))
    }
}

/// Sends a read on a connection, and waits for its final response as long as the client does. Interim responses are
/// relayed. The outer error is one of the client.
async fn ask(
    session: &mut ServerSession,
    context: &mut Context,
    connected: Box<Connected>,
) -> pingora::Result<Result<Exchange, Lost>> {
    let mut head = Box::new(session.req_header().clone());
    head.remove_all(ends_at_hop);
    pass::request_to_upstream(session.req_header().version, context, &mut head)?;
    let mut read = match connected.forward(head).await {
        Ok(read) => read,
        Err(lost) => return Ok(Err(lost)),
    };
    loop {
        let head = tokio::select! {
            biased;
            head = read.next_head() => head.map(interim),
            gone = gone(session) => return Err(gone),
        };
        match head {
            Ok(Some(interim)) => relay_interim(session, interim).await?,
            Ok(None) => return Ok(read.into_exchange()),
            Err(lost) => return Ok(Err(lost)),
        }
    }
}

/// Returns a copy of the head of an interim response.
fn interim(head: &ResponseHeader) -> Option<Box<ResponseHeader>> {
    head.status.is_informational().then(|| Box::new(head.clone()))
}

/// Returns the error of an exchange that has no response, as pingora's proxying would name it.
fn kind(lost: &Lost) -> ErrorType {
    match lost.failure {
        Failure::Abandoned { timed_out: true } => ErrorType::ReadTimedout,
        Failure::NotSent { .. } => ErrorType::ConnectError,
        _ => ErrorType::ReadError,
    }
}
