//! Exchanges whose requests are sent while they arrive.

use bytes::Bytes;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora_timeout::timeout;

use super::{
    Connected, Exchange,
    link::{Following, Link},
    lost::Lost,
};
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
        let link = Box::new(Link::on(self.opened, self.terms));
        let mut streamed = Streamed { link, server, watch, unsent: None };
        match streamed.write_head(&head, following).await {
            Ok(()) => Ok(streamed),
            Err(lost) => Err(streamed.lost(lost)),
        }
    }
}

impl Streamed {
    /// True if the server speaks HTTP/2, whose library hides interim responses.
    pub(crate) fn is_http2(&self) -> bool {
        self.link.is_http2()
    }

    async fn write_head(&mut self, head: &RequestHeader, following: Following) -> Result<(), Lost> {
        let begin = timeout(self.link.terms.body_wait, self.link.begin(head, following));
        begin.await.unwrap_or(Err(Lost::timed_out()))?;
        self.link.is_open = following != Following::Nothing;
        Ok(())
    }

    /// Sends the next bytes of the request or, with `None`, its end. If that fails, the next head tells why.
    pub(crate) async fn send(&mut self, piece: Option<Bytes>) {
        self.unsent = self.link.send_on(piece).await.err();
    }

    /// Reads the head of the next response. May be dropped and called again: what has arrived is kept.
    pub(crate) async fn next_head(&mut self) -> Result<StreamedHead, Lost> {
        let outcome = match timeout(self.link.terms.body_wait, self.link.next_head()).await {
            Ok(Ok(Some(head))) => return Ok(StreamedHead::Interim(head)),
            Ok(outcome) => outcome.map(drop),
            Err(_elapsed) => Err(Lost::timed_out()),
        };
        outcome.map_err(|lost| self.lost(lost))?;
        self.watch.answered(self.link.head.as_ref().map_or(0, |head| head.status.as_u16()));
        Ok(StreamedHead::Final)
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
