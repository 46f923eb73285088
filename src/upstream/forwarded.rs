//! Exchanges of unguarded reads, whose responses are read one by one.

use pingora::http::{RequestHeader, ResponseHeader};
use pingora_timeout::timeout;

use super::{
    Connected, Exchange,
    balance::Slot,
    connection::{Link, Lost},
};

/// A read that was sent, and waits for its responses.
pub(crate) struct ForwardedRead {
    link: Box<Link>,
    server: usize,
}

impl Connected {
    /// Makes the exchange hold this slot.
    pub(crate) fn occupying(mut self: Box<Self>, slot: Option<Slot>) -> Box<Self> {
        self.slot = slot;
        self
    }

    /// Sends a request without a body. Unlike [`Connected::send`] it adds no field and watches nothing.
    pub(crate) async fn forward(self: Box<Self>, head: Box<RequestHeader>) -> Result<ForwardedRead, Lost> {
        let server = self.server;
        let mut link = Box::new(Link::of(*self, false));
        link.write_head(head, true).await?;
        link.session.finish_request_body().await?;
        link.request_complete = true;
        Ok(ForwardedRead { link, server })
    }
}

impl ForwardedRead {
    /// Reads the head of the next response, which may be an interim one. May be dropped and called again: what has
    /// arrived is kept.
    pub(crate) async fn next_head(&mut self) -> Result<&ResponseHeader, Lost> {
        match timeout(self.link.upstream.longest_wait(), self.link.next_head()).await {
            Ok(head) => head,
            Err(_elapsed) => Err(Lost::timed_out()),
        }
    }

    /// Returns the exchange, once its final response has begun.
    pub(crate) fn into_exchange(self) -> Result<Exchange, Lost> {
        self.link.into_exchange(self.server)
    }
}
