//! The description of a resource that is written: the exchanges besides that of the content, under the same claim.
//!
//! # Design
//!
//! *In which order?* The document never exists without its resource: it is written after the content, and removed before
//! the resource. So a resource that is created again has no description of its predecessor, whenever a process may have
//! crashed. A checksum in the document is removed before the content is replaced.
//!
//! *Why is the document read first?* The parts of a description are replaced apart from each other. A resource that never had
//! a document then needs no removal of it, and a read costs less than a write.
//!
//! *What if only one of the two succeeds?* Then the write is half done, and neither applied nor refused. The client gets
//! an error and the resource a new version, so no tag that was issued before passes any more. If the upstream may still
//! apply the other half, the write is in doubt, as it is without an answer to its only part.

use http::{Method, StatusCode};
use pingora::http::RequestHeader;

use super::{
    Writes,
    exchange::{Bases, Sent},
    idempotency::KeyedWrite,
    parts::{DocumentParts, Part},
};
use crate::{
    body::Body,
    core::{
        records::{attempt_end::Reached, steps::Outcome},
        refusal::{Code, Refusal},
        tags::{told_dates::WriteEnd, validators::tells_absence},
    },
    dialect::description::DescriptionUse,
    guard::{Halt, Relayed, claim::Held, request::Request},
    upstream::{BufferedBody, fields::response_head},
};

impl Writes {
    /// Sends all parts of a write with a description, in their order, and reads the answer to the main one.
    pub(super) async fn send_described(
        &self,
        request: &Request,
        (claim, bases): (Held, Bases<'_>),
        (head, body, mut parts): (Box<RequestHeader>, &Body, DocumentParts),
        attempt: &mut KeyedWrite,
    ) -> Result<Sent, Halt> {
        let (claim, document_head) = self.complete(request, claim, &mut parts).await?;
        let mut head = document_head.unwrap_or(head);
        bases.forward_conditions(&mut head, request)?;
        parts.heads().chain([&mut head]).try_for_each(|head| bases.send_fence(head))?;
        let DocumentParts { before, document, after } = parts;
        let (claim, has_changed) = self.change_before(request, claim, before, attempt).await?;
        let main = (head, document.as_ref().unwrap_or(body), after_change(Outcome::NotApplied, has_changed));
        let sent = self.send_main(request, (claim, bases), main).await;
        let mut sent = sent.map_err(|refusal| half_changed(refusal, has_changed))?;
        sent.outcome = after_change(sent.outcome, has_changed);
        if let Some(change) = after.filter(|_| sent.outcome == Outcome::Applied) {
            attempt.reached(Reached::Part);
            (sent.claim, sent.end) = self.change_after(request, sent.claim, change, sent.end).await?;
        }
        if sent.outcome == Outcome::Applied || !has_changed {
            attempt.answered(sent.exchange.head());
        }
        Ok(sent)
    }

    /// Completes the parts of a write that depend on the document beside its resource. If this fails, nothing was
    /// written.
    async fn complete(
        &self,
        request: &Request,
        claim: Held,
        parts: &mut DocumentParts,
    ) -> Result<(Held, Option<Box<RequestHeader>>), Halt> {
        if !request.content.description.as_ref().is_some_and(DescriptionUse::depends_on_old) {
            return Ok((claim, None));
        }
        let completed = match self.probes.kept_document(request).await {
            Ok(kept) => parts.complete(request, kept),
            Err(refusal) => Err(refusal.into()),
        };
        match completed {
            Ok(head) => Ok((claim, head)),
            Err(answer) => {
                claim.settle(Outcome::NotApplied, None).await;
                Err(answer)
            }
        }
    }

    /// Changes the document of a resource that is about to be written. Returns whether it has changed. If this fails,
    /// the resource stays, and the answer is that of the upstream.
    async fn change_before(
        &self,
        request: &Request,
        claim: Held,
        before: Option<Part>,
        attempt: &mut KeyedWrite,
    ) -> Result<(Held, bool), Halt> {
        let Some(Part { head, body }) = before else { return Ok((claim, false)) };
        let is_removal = head.method == Method::DELETE;
        let (mut exchange, claim) = self.send(request, claim, (head, &body), Outcome::NotApplied).await?;
        let status = exchange.head().status;
        match Outcome::of_status(status) {
            Outcome::Applied => {
                attempt.reached(Reached::Part);
                exchange.discard().await;
                Ok((claim, true))
            }
            _ if is_removal && tells_absence(status) => {
                exchange.discard().await;
                Ok((claim, false))
            }
            outcome => {
                claim.settle(outcome, None).await;
                if status.is_success() {
                    attempt.reached(Reached::Part);
                    exchange.discard().await;
                    return Err(not_told(status).into());
                }
                attempt.answered(exchange.head());
                let head = response_head(exchange.take_head());
                Err(Halt::Denied(Relayed::read_so_far(head, BufferedBody::unread(), exchange).await?))
            }
        }
    }

    /// Changes the document of a resource whose content has been replaced. Returns the end of the whole write. If this
    /// fails, the write is settled.
    async fn change_after(
        &self,
        request: &Request,
        claim: Held,
        Part { head, body }: Part,
        end: Option<WriteEnd>,
    ) -> Result<(Held, Option<WriteEnd>), Refusal> {
        let is_removal = head.method == Method::DELETE;
        let (exchange, claim) =
            self.send(request, claim, (head, &body), Outcome::Unclear).await.map_err(half_written)?;
        let status = exchange.head().status;
        let end = end.and_then(|end| end.with_answer(&exchange.head().headers));
        exchange.discard().await;
        match Outcome::of_status(status) {
            Outcome::Applied => Ok((claim, end)),
            _ if is_removal && tells_absence(status) => Ok((claim, end)),
            outcome => {
                let outcome = half_done(outcome);
                claim.settle(outcome, None).await;
                let refusal = half_written(not_told(status));
                let late_write_window = request.upstream().late_write_window;
                Err(if outcome == Outcome::Doubt { refusal.retry_after(late_write_window).in_doubt() } else { refusal })
            }
        }
    }
}

/// Returns the outcome of a write of which one part was applied, and whose other part had this outcome.
const fn half_done(other: Outcome) -> Outcome {
    match other {
        Outcome::Doubt => Outcome::Doubt,
        Outcome::Applied | Outcome::NotApplied | Outcome::NotAppliedAsKnown | Outcome::Unclear => Outcome::Unclear,
    }
}

/// Returns the outcome of a write whose main part had this outcome. `has_changed`: whether the document has changed
/// before.
fn after_change(outcome: Outcome, has_changed: bool) -> Outcome {
    if has_changed && outcome != Outcome::Applied { half_done(outcome) } else { outcome }
}

/// The refusal of a write to whose description the upstream has given this answer.
fn not_told(status: StatusCode) -> Refusal {
    let detail = format!("the upstream answered {} to the change of the description", status.as_u16());
    Refusal::new(Code::UpstreamFailed, detail)
}

/// Reports the outcome of its write to the client, no matter how the write of the description ended.
fn half_written(refusal: Refusal) -> Refusal {
    half(refusal, "the content was written, but perhaps not its description: read the resource, and write it again")
}

/// Tells the client what has become of its write, if the document of the resource was changed before its content.
fn half_changed(refusal: Refusal, has_changed: bool) -> Refusal {
    let detail =
        "the description was changed, but perhaps not the content: read the resource, and send the request again";
    if has_changed { half(refusal, detail) } else { refusal }
}

/// The refusal of a write of which only one half was applied for certain. The client must not take its write for one
/// that did nothing, and send it again unchanged.
fn half(refusal: Refusal, detail: &'static str) -> Refusal {
    let (code, retry_after) =
        if refusal.in_doubt { (refusal.code, refusal.retry_after) } else { (Code::UpstreamFailed, None) };
    Refusal { code, retry_after, detail: detail.into(), ..refusal }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{guard::refusals, upstream::Failure};

    #[test]
    fn a_write_is_applied_only_if_both_halves_are() {
        for (other, expected) in [
            (Outcome::NotApplied, Outcome::Unclear),
            (Outcome::NotAppliedAsKnown, Outcome::Unclear),
            (Outcome::Unclear, Outcome::Unclear),
            (Outcome::Doubt, Outcome::Doubt),
        ] {
            assert_eq!((half_done(other), after_change(other, true)), (expected, expected), "{other:?}");
            assert_eq!(after_change(other, false), other, "nothing was changed before");
        }
        assert_eq!(after_change(Outcome::Applied, true), Outcome::Applied);
    }

    #[test]
    fn no_client_is_asked_to_send_a_write_again_that_is_half_done() {
        let told = |refusal: Refusal| (refusal.code, refusal.retry_after);
        let failed = (Code::UpstreamFailed, None);
        assert_eq!(told(half_written(refusals::too_late_to_begin())), failed);
        assert_eq!(told(half_changed(refusals::too_late_to_begin(), true)), failed);
        let untouched = told(half_changed(refusals::too_late_to_begin(), false));
        assert_eq!(untouched, told(refusals::too_late_to_begin()), "nothing was changed before");
        let late = refusals::of_write(Failure::Abandoned { timed_out: true }, Duration::from_secs(5));
        assert_eq!(told(half_written(late.clone())), told(late), "its late half keeps other writes away");
    }
}
