//! The metadata of a resource that is written: the exchanges besides that of the content, under the same claim.
//!
//! # Design
//!
//! *In which order?* The document with the metadata never exists without its resource: it is written after the content,
//! and removed before the resource. So a resource that is created again has no metadata of its predecessor, whenever a
//! process may have crashed.
//!
//! *What if only one of the two succeeds?* Then the write is half done, and neither applied nor refused. The client gets
//! an error and the resource a new version, so no tag that was issued before passes any more. If the upstream may still
//! apply the other half, the write is in doubt, as it is without an answer to its only part.

use http::{Method, StatusCode};

use super::{Writes, idempotency::KeyedWrite, parts::Part};
use crate::{
    core::{
        refusal::{Code, Refusal},
        steps::Outcome,
        validators::tells_absence,
    },
    guard::{answer::Answer, claim::Claim, request::Request},
    upstream::{BufferedBody, fields::response_head},
};

impl Writes {
    /// Removes the metadata of a resource that is about to be removed. Returns whether there were any. If this fails,
    /// the resource stays, and the answer is that of the upstream.
    pub(super) async fn remove_metadata(
        &self,
        request: &Request,
        claim: Claim,
        removal: Option<Part>,
        attempt: &mut KeyedWrite,
    ) -> Result<(Claim, bool), Answer> {
        let Some(Part { head, body }) = removal else { return Ok((claim, false)) };
        let (mut exchange, claim) = self.send(request, claim, (head, &body), Outcome::NotApplied).await?;
        let status = exchange.head().status;
        match Outcome::of_status(status) {
            Outcome::Applied => {
                exchange.discard().await;
                Ok((claim, true))
            }
            _ if tells_absence(status) => {
                exchange.discard().await;
                Ok((claim, false))
            }
            outcome => {
                claim.settle(outcome, None).await;
                if status.is_success() {
                    exchange.discard().await;
                    return Err(not_told(status).into());
                }
                attempt.answered(status);
                let head = response_head(exchange.take_head());
                Err(Answer::read_so_far(head, BufferedBody::unread(), exchange).await?)
            }
        }
    }

    /// Changes the metadata of a resource whose content has been replaced. If this fails, the write is settled.
    pub(super) async fn change_metadata(
        &self,
        request: &Request,
        claim: Claim,
        Part { head, body }: Part,
    ) -> Result<Claim, Refusal> {
        let is_removal = head.method == Method::DELETE;
        let (exchange, claim) =
            self.send(request, claim, (head, &body), Outcome::Unclear).await.map_err(half_written)?;
        let status = exchange.head().status;
        exchange.discard().await;
        match Outcome::of_status(status) {
            Outcome::Applied => Ok(claim),
            _ if is_removal && tells_absence(status) => Ok(claim),
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

/// Returns the outcome of the removal of a resource whose content had this outcome. `was_described`: whether its metadata
/// were removed before.
pub(super) fn of_removal(outcome: Outcome, was_described: bool) -> Outcome {
    if was_described && outcome != Outcome::Applied { half_done(outcome) } else { outcome }
}

/// The refusal of a write to whose metadata the upstream has given this answer.
fn not_told(status: StatusCode) -> Refusal {
    let detail = format!("the upstream answered {} to the change of the metadata", status.as_u16());
    Refusal::new(Code::UpstreamFailed, detail)
}

/// Tells the client what has become of its write, whatever has become of the metadata.
fn half_written(refusal: Refusal) -> Refusal {
    half(refusal, "the content was written, but perhaps not its metadata: read the resource, and write it again")
}

/// Tells the client what has become of its removal, if the metadata of the resource were removed before its content.
pub(super) fn half_removed(refusal: Refusal, was_described: bool) -> Refusal {
    let detail = "the metadata were removed, but perhaps not the content: read the resource, and remove it again";
    if was_described { half(refusal, detail) } else { refusal }
}

/// The refusal of a write of which only one half was applied for certain. Whatever has kept back the other half, the
/// client must not take its write for one that did nothing, and send it again as it is.
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
            assert_eq!((half_done(other), of_removal(other, true)), (expected, expected), "{other:?}");
            assert_eq!(of_removal(other, false), other, "nothing was removed before");
        }
        assert_eq!(of_removal(Outcome::Applied, true), Outcome::Applied);
    }

    #[test]
    fn no_client_is_asked_to_send_a_write_again_that_is_half_done() {
        let told = |refusal: Refusal| (refusal.code, refusal.retry_after);
        let failed = (Code::UpstreamFailed, None);
        assert_eq!(told(half_written(refusals::too_late_to_begin())), failed);
        assert_eq!(told(half_removed(refusals::too_late_to_begin(), true)), failed);
        let untouched = told(half_removed(refusals::too_late_to_begin(), false));
        assert_eq!(untouched, told(refusals::too_late_to_begin()), "nothing was removed before");
        let late = refusals::of_write(Failure::Abandoned { timed_out: true }, Duration::from_secs(5));
        assert_eq!(told(half_written(late.clone())), told(late), "its late half keeps other writes away");
    }
}
