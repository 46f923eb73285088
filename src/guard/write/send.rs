//! Sends a marked write: the last check of the clock, and the effect of a failure on the mark.

use pingora::http::{RequestHeader, ResponseHeader};

use super::Writes;
use crate::{
    body::Body,
    core::{
        policy::TagSource,
        records::steps::Outcome,
        refusal::Refusal,
        tags::{http_date::HttpDate, told_dates::WriteEnd},
    },
    guard::{Halt, claim::Held, refusals, request::Request},
    upstream::{Exchange, Failure, Purpose, fields::request_head},
};

impl Writes {
    /// Connects and sends a part of a marked write, once. On failure the mark is settled: as `unsent` if no byte of the
    /// part was sent, as a doubt if a byte may have been.
    pub(crate) async fn send(
        &self,
        request: &Request,
        claim: Held,
        (mut head, body): (Box<RequestHeader>, &Body),
        unsent: Outcome,
    ) -> Result<(Exchange, Held), Refusal> {
        let upstream = request.upstream();
        let failure = match self.exchanger.connect(upstream, request.to_send(), Purpose::Write).await {
            Ok(_) if !claim.has_left(upstream.timeout).await => {
                claim.settle(unsent, None).await;
                return Err(refusals::too_late_to_begin());
            }
            Ok(connected) => {
                if request.sent_to(&mut head, connected.server()).is_err() {
                    claim.settle(unsent, None).await;
                    return Err(refusals::of_field());
                }
                match connected.send(head, body).await {
                    Ok(exchange) => return Ok((exchange, claim)),
                    Err(failure) => failure,
                }
            }
            Err(failure) => failure,
        };
        let outcome = match failure {
            Failure::NotSent { .. } | Failure::Insecure | Failure::Full => unsent,
            Failure::Abandoned { .. } => Outcome::Doubt,
        };
        claim.settle(outcome, None).await;
        Err(refusals::of_write(failure, upstream.late_write_window))
    }
}

/// Returns the head of a write for the upstream, with the target that the upstream knows the request by.
pub(crate) fn head_of_write(request: &Request, body: &Body) -> Result<Box<RequestHeader>, Halt> {
    let mut head = request_head(&request.head, body.len()).map_err(|error| refusals::of_head(&error))?;
    if let Some(target) = &request.place.forwarded_target {
        head.set_raw_path(target)?;
    }
    Ok(head)
}

/// Returns the end of a write with this answer, of a state with this date before. If the upstream judges, clients get
/// its dates unchanged.
pub(crate) fn end_of(request: &Request, answer: &ResponseHeader, before: Option<HttpDate>) -> Option<WriteEnd> {
    let is_delegate = request.rules().etag == TagSource::Delegate;
    WriteEnd::of(&answer.headers, before).map(|end| end.with_weak_dates_told(is_delegate))
}
