//! Exchanges whose requests are sent while they arrive.

use bytes::Bytes;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora_timeout::timeout;

use super::{Connected, Exchange, link::Link, lost::Lost};
use crate::telemetry::exchange::ExchangeWatch;

/// A request whose head was sent, and which waits for its responses.
pub(crate) struct Streamed {
    link: Box<Link>,
    server: usize,
    watch: ExchangeWatch,
    /// The reason why the rest of the request could not be sent. Its answer may tell more.
    unsent: Option<Lost>,
}

/// The head of a response.
pub(crate) enum StreamedHead {
    /// One that others follow.
    Interim(Box<ResponseHeader>),
    /// The last one.
    Final,
}

/// The content of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Following {
    /// The request has none.
    Nothing,
    /// All of it is here, and is sent together with the head.
    AtOnce,
    /// Some of it may come much later.
    Later,
}

impl Connected {
    /// Sends the head of a request.
    pub(crate) async fn begin(
        mut self: Box<Self>,
        mut head: Box<RequestHeader>,
        following: Following,
    ) -> Result<Streamed, Lost> {
        self.address_to_server(&mut head)?;
        self.terms.body_wait = self.terms.upstream.longest_wait();
        let server = self.server;
        let watch = std::mem::replace(&mut self.watch, ExchangeWatch::nothing());
        let link = Box::new(Link::begin_on(self.opened, self.terms, following == Following::AtOnce));
        let mut streamed = Streamed { link, server, watch, unsent: None };
        match streamed.write_head(head, following == Following::Nothing).await {
            Ok(()) => Ok(streamed),
            Err(lost) => Err(streamed.lost(lost)),
        }
    }
}

impl Streamed {
    /// True if the server speaks HTTP/2, whose library hides interim responses.
    pub(crate) fn is_http2(&self) -> bool {
        self.link.session.as_http2().is_some()
    }

    async fn write_head(&mut self, head: Box<RequestHeader>, is_all: bool) -> Result<(), Lost> {
        let wait = self.link.terms.body_wait;
        let link = &mut self.link;
        let write = async {
            link.begin(head, is_all).await?;
            if is_all { link.send_on(None).await } else { Ok(()) }
        };
        timeout(wait, write).await.unwrap_or(Err(Lost::timed_out()))?;
        self.link.is_open = !is_all;
        Ok(())
    }

    /// Sends the next bytes of the request or, with `None`, its end. If that fails, the next head tells why.
    pub(crate) async fn send(&mut self, piece: Option<Bytes>) {
        self.unsent = self.link.send_on(piece).await.err();
    }

    /// Reads the head of the next response. May be dropped and called again: what has arrived is kept.
    pub(crate) async fn next_head(&mut self) -> Result<StreamedHead, Lost> {
        let outcome = match timeout(self.link.terms.body_wait, self.link.next_head()).await {
            Ok(Ok(head)) if is_interim(head) => return Ok(StreamedHead::Interim(Box::new(head.clone()))),
            Ok(Ok(head)) => Ok(head.status.as_u16()),
            Ok(Err(lost)) => Err(lost),
            Err(_elapsed) => Err(Lost::timed_out()),
        };
        match outcome {
            Ok(status) => {
                self.watch.answered(status);
                Ok(StreamedHead::Final)
            }
            Err(lost) => Err(self.lost(lost)),
        }
    }

    /// True if the rest of the request is to be sent.
    pub(crate) fn is_open(&self) -> bool {
        self.link.is_open
    }

    fn lost(&mut self, lost: Lost) -> Lost {
        let lost = self.unsent.take().filter(|_| !lost.is_untouched()).unwrap_or(lost);
        self.watch.failed(lost.word());
        lost
    }

    /// Returns the exchange, once its final response has begun.
    pub(crate) fn into_exchange(self) -> Result<Exchange, Lost> {
        self.link.into_exchange(self.server)
    }
}

/// True if another response follows. After a 101, the bytes of a tunnel do.
fn is_interim(head: &ResponseHeader) -> bool {
    head.status.is_informational() && head.status != http::StatusCode::SWITCHING_PROTOCOLS
}
