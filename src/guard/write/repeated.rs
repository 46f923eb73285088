//! Writes that are done already (`repeated_writes = "succeed"`): a PUT of the very bytes that are there succeeds, although
//! its tag is stale (RFC 9110 section 13.1.1).
//!
//! # Design
//!
//! *What is compared?* The bytes that a GET shows with those that the client has sent, and the `Content-*` fields of
//! both. If they agree, the state that the client wants is the current one, no matter who has made it.
//!
//! *Why only a settled state?* During a write the backend may show a state that will not stay.

use http::{HeaderMap, Method, StatusCode, header};
use tokio::time::{Instant, timeout_at};

use super::Writes;
use crate::{
    body::{Body, content_length},
    core::{
        cause::Reason,
        http::fields::describe_alike,
        policy::RepeatedWrites,
        refusal::{Code, Refusal},
        tags::entity_tag::EntityTag,
    },
    dialect::Response,
    guard::{
        Answer, Halt,
        probe::body_tag::{Keep, Tagged},
        request::Request,
    },
};

/// True if a refused write may be done already.
pub(super) fn may_be_done(request: &Request, refused: &Halt) -> bool {
    let is_stale = |refusal: &Refusal| {
        let reason = refusal.cause.as_ref().and_then(|cause| cause.reason);
        let stale = [Reason::StaleTag, Reason::ChangedSinceDate, Reason::AmbiguousDate];
        refusal.code == Code::PreconditionFailed && reason.is_some_and(|reason| stale.contains(&reason))
    };
    let length_max = request.rules().max_hash_size_bytes as u64;
    request.rules().repeated_writes == RepeatedWrites::Succeed
        && request.method == Method::PUT
        && matches!(refused, Halt::Refused(refusal) if is_stale(refusal))
        && content_length(&request.head.headers).is_none_or(|length| length <= length_max)
}

impl Writes {
    /// Answers a refused write: with success if it is done already.
    pub(super) async fn answer_if_done(&self, request: &Request, body: &Body, refused: Halt) -> Result<Answer, Halt> {
        let Some(tag) = self.tag_if_done(request, body).await? else { return Err(refused) };
        let fields = HeaderMap::from_iter([(header::ETAG, tag.to_header_value())]);
        Ok(Answer::local(Response { status: StatusCode::NO_CONTENT, fields, body: None }))
    }

    /// Returns the tag of the current state if it is settled, and is what a write has sent.
    async fn tag_if_done(&self, request: &Request, body: &Body) -> Result<Option<EntityTag>, Halt> {
        let snapshot = self.knowledge.record(request).await?;
        let end = Instant::now() + request.rules().probe.timeout;
        let asked = timeout_at(end, self.probes.ask(request, Method::GET, true, None)).await;
        let Ok(Ok(asked)) = asked else { return Ok(None) };
        let (mut exchange, selection) = (asked.exchange, asked.selection);
        let shown = exchange.head();
        if shown.status != StatusCode::OK || !describe_alike(&request.head.headers, &shown.headers) {
            exchange.discard().await;
            return Ok(None);
        }
        let wait = end.saturating_duration_since(Instant::now());
        let number = selection.number(request);
        let tagged = self.probes.tag_body(request.rules(), &mut exchange, (number, Keep::Nothing), wait).await;
        let Ok(Tagged::Whole { tag: Some(tag), digest, .. }) = tagged else { return Ok(None) };
        exchange.finish().await;
        let is_settled = snapshot.has_no_pending_writes() && self.knowledge.is_untouched(request, &snapshot).await;
        if digest != body.digest() || !is_settled {
            return Ok(None);
        }
        let tag = self.knowledge.issue(request, &self.knowledge.spelling(request, Some(&snapshot)), &tag);
        if let Some(tag) = &tag {
            self.knowledge.was_given_out(request, tag, &snapshot, selection);
        }
        Ok(tag)
    }
}
