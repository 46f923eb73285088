//! Sends a marked write: the last check of the clock, and the effect of a failure on the mark.

use http::header;
use pingora::http::{RequestHeader, ResponseHeader};

use super::{Writes, admit::Admitted};
use crate::{
    body::Body,
    core::{
        coarse_tag::Spelling, http_date::HttpDate, policy::TagSource, precondition::TagCondition, refusal::Refusal,
        steps::Outcome, told_dates::WriteEnd,
    },
    dialect::s3::Signature,
    guard::{
        answer::Halt,
        claim::Held,
        refusals,
        request::{Request, remove_conditions, show_tags},
    },
    upstream::{Exchange, Failure, Purpose, fields::request_head},
};

impl Writes {
    /// Connects and sends a part of a marked write, once. On failure the mark is settled: as `unsent` if no byte of the
    /// part was sent, as a doubt if a byte may have been.
    pub(crate) async fn send(
        &self,
        request: &Request,
        claim: Held,
        (head, body): (Box<RequestHeader>, &Body),
        unsent: Outcome,
    ) -> Result<(Exchange, Held), Refusal> {
        let upstream = request.upstream();
        let failure = match self.exchanger.connect(upstream, request.to_send(), Purpose::Write).await {
            Ok(_) if !claim.has_left(upstream.timeout).await => {
                claim.settle(unsent, None).await;
                return Err(refusals::too_late_to_begin());
            }
            Ok(connected) => {
                request.affinity.sent(connected.server());
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

/// Returns the end of a write with this answer, of a state with this date before. If the upstream judges, its dates are
/// told unchanged.
pub(crate) fn end_of(request: &Request, answer: &ResponseHeader, before: Option<HttpDate>) -> Option<WriteEnd> {
    let is_delegate = request.rules().etag == TagSource::Delegate;
    WriteEnd::of(&answer.headers, before).map(|end| end.with_weak_dates_told(is_delegate))
}

/// Whether all tags that a write names are of earlier states, as the record shows.
pub(crate) fn names_stale_tags(request: &Request, spelling: &Spelling) -> bool {
    match &request.conditions.if_match {
        Some(TagCondition::Tags(tags)) => tags.iter().all(|tag| spelling.is_stale(tag)),
        Some(TagCondition::Any) | None => false,
    }
}

/// Sets the preconditions that the upstream receives. If the upstream does not know our tags, it gets none. If the tags
/// are its own, it gets the client's preconditions, made exact by the judged tag (the last fence).
pub(crate) fn forward_conditions(
    head: &mut RequestHeader,
    request: &Request,
    admitted: &Admitted,
) -> pingora::Result<()> {
    if !request.rules().etag.is_upstreams_own() {
        remove_conditions(head);
        return Ok(());
    }
    let spelling = &admitted.spelling;
    let seen = spelling.conditions_of_write_at_backend(&request.conditions);
    if seen != request.conditions {
        show_tags(head, &seen);
    }
    let signature = Signature::of(request.head.raw_path(), &request.head.headers);
    let is_exact = matches!(&request.conditions.if_match, Some(TagCondition::Tags(tags)) if tags.len() == 1);
    match admitted.judged.tag.as_ref().map(|tag| spelling.at_backend(tag)) {
        // A field that the client has signed is left as it was sent, or the backend would refuse the request.
        Some(tag) if !is_exact && !tag.is_weak() && !signature.covers(&header::IF_MATCH) => {
            head.insert_header(header::IF_MATCH, tag.to_header_value())
        }
        _ => Ok(()),
    }
}
