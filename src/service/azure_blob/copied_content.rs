//! The content of a response as that of a write: received like the body of a request, within the same limits.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use http::{Method, header};
use pingora::{
    ErrorType,
    http::{RequestHeader, ResponseHeader},
};

use crate::{
    body::{Bodies, Body, BoxFuture, Client, ReceiveError},
    guard::{Halt, Relayed, refusals},
    upstream::{Exchange, Failure},
};

/// The content of a response that is on its way.
pub(crate) struct CopiedContent {
    /// A request that announces it.
    head: Arc<RequestHeader>,
    begun: VecDeque<Bytes>,
    rest: Option<Exchange>,
    failure: Option<Failure>,
}

impl CopiedContent {
    /// Receives the content of a response, and returns it with the head.
    pub(crate) async fn receive(bodies: &Bodies, relayed: Relayed) -> Result<(Box<ResponseHeader>, Body), Halt> {
        let Relayed { head, begun, rest } = relayed;
        let mut announced = RequestHeader::build(Method::PUT, b"/", None)?;
        if let Some(length) = head.headers.get(header::CONTENT_LENGTH) {
            announced.insert_header(header::CONTENT_LENGTH, length.clone())?;
        }
        let begun = begun.chunks().iter().cloned().collect();
        let mut content = Self { head: Arc::new(announced), begun, rest, failure: None };
        let received = bodies.receive(&mut content).await;
        match (received, content.failure) {
            (Ok(body), _) => {
                if let Some(exchange) = content.rest {
                    exchange.finish().await;
                }
                Ok((head, body))
            }
            (Err(_), Some(failure)) => Err(refusals::of_read(failure).into()),
            (Err(ReceiveError::TimedOut), None) => {
                Err(refusals::of_read(Failure::Abandoned { timed_out: true }).into())
            }
            (Err(error), None) => Err(refusals::of_body(error)),
        }
    }
}

impl Client for CopiedContent {
    fn head(&self) -> &Arc<RequestHeader> {
        &self.head
    }

    fn has_content(&mut self) -> bool {
        true
    }

    fn certificate(&self) -> Option<&[u8]> {
        None
    }

    fn invite_content(&mut self) -> BoxFuture<'_, pingora::Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn next_chunk(&mut self) -> BoxFuture<'_, pingora::Result<Option<Bytes>>> {
        Box::pin(async {
            if let Some(chunk) = self.begun.pop_front() {
                return Ok(Some(chunk));
            }
            let Some(exchange) = &mut self.rest else { return Ok(None) };
            exchange.next_chunk().await.map_err(|failure| {
                self.failure = Some(failure);
                pingora::Error::explain(ErrorType::ReadError, "the source of a copy has failed")
            })
        })
    }

    fn gone(&mut self) -> BoxFuture<'_, Box<pingora::Error>> {
        Box::pin(std::future::pending())
    }

    fn has_gone(&mut self) -> bool {
        false
    }
}
