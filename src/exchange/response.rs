//! The response of an exchange.

use std::time::Duration;

use bytes::Bytes;
use pingora::http::ResponseHeader;
use pingora_timeout::timeout;
use tokio::time::Instant;

use super::{Failure, connection::Link, receive::content_length};

/// An exchange whose response has begun. Dropping it closes the connection; [`Exchange::finish`] keeps it.
pub struct Exchange {
    link: Box<Link>,
    head: ResponseHeader,
    /// The length of the body by the head.
    declared: Option<u64>,
    server: usize,
    /// A body that failed once never reaches an orderly end.
    failure: Option<Failure>,
}

impl Exchange {
    pub(super) fn begin(link: Box<Link>, server: usize) -> Option<Self> {
        let head = link.session.response_header()?.clone();
        let declared = content_length(&head.headers);
        Some(Self { link, head, declared, server, failure: None })
    }

    /// The head of the final response, as it came; without fields once it was taken.
    pub fn head(&self) -> &ResponseHeader {
        &self.head
    }

    /// Takes the head out, to be changed and sent on; [`Exchange::head`] keeps its status.
    pub fn take_head(&mut self) -> ResponseHeader {
        let (mut left, ()) = http::Response::new(()).into_parts();
        left.status = self.head.status;
        std::mem::replace(&mut self.head, left.into())
    }

    /// The index of the server that answered, in [`Upstream::servers`](crate::config::Upstream::servers).
    pub fn server(&self) -> usize {
        self.server
    }

    /// The next bytes of the body, never empty; `None` at its end, and at once where the response has none (to HEAD,
    /// 204, 304). Waits as long as the upstream's timeout. May be dropped and called again: no byte is lost.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        loop {
            let failure = match timeout(self.link.timeout, self.link.session.read_response_body()).await {
                Ok(Ok(Some(chunk))) if chunk.is_empty() => continue,
                Ok(Ok(chunk)) => return Ok(chunk),
                Ok(Err(error)) => {
                    tracing::debug!(error = error.etype().as_str(), "the body of an upstream's response broke off");
                    Failure::Abandoned { timed_out: false }
                }
                Err(_) => Failure::Abandoned { timed_out: true },
            };
            self.failure = Some(failure);
            return Err(failure);
        }
    }

    /// Ends the exchange. Where the body was read to its end the connection may carry another one.
    pub async fn finish(self) {
        if self.failure.is_none() {
            self.link.release().await;
        }
    }

    /// Whether the response's body has been read to its end, or there is none.
    fn is_complete(&mut self) -> bool {
        self.failure.is_none() && self.link.session.response_done()
    }
}

/// What [`read_whole`] got. Where it is not complete, the rest is still to be read from the exchange.
#[derive(Debug, PartialEq, Eq)]
pub enum Whole {
    /// The whole body.
    Complete(Vec<Bytes>),
    /// The body is larger than wanted, or says so; its beginning, which may be empty.
    TooLarge(Vec<Bytes>),
    /// The body did not arrive in time; its beginning, which may be empty.
    TooSlow(Vec<Bytes>),
}

/// Reads the body of a response if it has at most `max_bytes` and arrives within `wait`. No byte is dropped, so that
/// the caller can stream a body that has not.
pub async fn read_whole(exchange: &mut Exchange, max_bytes: usize, wait: Duration) -> Result<Whole, Failure> {
    let mut chunks = Vec::new();
    if exchange.is_complete() {
        return Ok(Whole::Complete(chunks));
    }
    if exchange.declared.is_some_and(|declared| declared > max_bytes as u64) {
        return Ok(Whole::TooLarge(chunks));
    }
    let (deadline, mut len) = (Instant::now() + wait, 0_usize);
    loop {
        match timeout(deadline.saturating_duration_since(Instant::now()), exchange.next_chunk()).await {
            Err(_) => return Ok(Whole::TooSlow(chunks)),
            Ok(chunk) => match chunk? {
                None => return Ok(Whole::Complete(chunks)),
                Some(chunk) => {
                    len += chunk.len();
                    chunks.push(chunk);
                    if len > max_bytes {
                        return Ok(Whole::TooLarge(chunks));
                    }
                }
            },
        }
    }
}

#[cfg(test)]
mod tests;
