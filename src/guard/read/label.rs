//! The answer to a read from the upstream's response: its label, and the verdict on the client's conditions by that
//! label.

use http::{HeaderMap, StatusCode, header};
use pingora::http::ResponseHeader;

use super::{Reads, described::describe, ranges::whole_or_part};
use crate::{
    body::MemoryUse,
    core::{
        cause::Untagged,
        policy::{GuardRules, TagSource},
        records::record::Snapshot,
        refusal::Refusal,
        tags::{
            entity_tag::EntityTag,
            precondition::{Judgement, TagCondition, judge},
            told_dates::FirstDate,
            validators::Representation,
        },
        verdict::failed_read,
    },
    dialect::native::state_fields,
    guard::{
        Answer, Halt,
        answer::{set_tag, withhold_foreign_tag},
        knowledge::{
            evidence::match_rule,
            label::first_date,
            responses::{not_modified_fields, selecting_fields},
        },
        probe::description::Described,
        refusals,
        request::Request,
    },
    upstream::{BufferedBody, Exchange, fields::response_head, read_whole},
};

impl Reads {
    /// Labels the upstream's response, and judges the client's conditions by that label. The response represents the
    /// resource together with its description, if the read shows them.
    pub(super) async fn answer_read(
        &self,
        request: &Request,
        snapshot: Option<&Snapshot>,
        (mut exchange, described): (Exchange, Option<Result<Described, Refusal>>),
    ) -> Result<Answer, Halt> {
        let mut head = response_head(exchange.take_head());
        let spelling = self.knowledge.spelling(request, snapshot);
        if !is_labelled(request, head.status) {
            withhold_foreign_tag(&mut head, request.rules(), &spelling)?;
            return Answer::read_so_far(head, BufferedBody::unread(), exchange).await;
        }
        if let Some(described) = described {
            describe(&mut head, request, &described?)?;
        }
        let whole = self.read_for_tag(request, &head, &mut exchange).await?;
        let selecting = selecting_fields(&request.head.headers, &head.headers);
        let validators = self.knowledge.label(request, snapshot, &head, &whole, selecting.as_deref());
        self.knowledge.watch_tag(request, snapshot, &head, validators.tag.as_ref()).await;
        // Without the record the proxy cannot tell whether the tag names only one state (rule 12).
        let shown = validators.tag.as_ref().filter(|_| snapshot.is_some());
        show_label(&mut head, request, snapshot, shown)?;
        match (head.status, shown) {
            (StatusCode::OK, None) => {
                self.knowledge.was_untagged(request, why_untagged(request.rules(), snapshot, &exchange, &whole));
            }
            (_, Some(_)) => self.knowledge.is_tagged(request),
            _ => {}
        }
        if let Some(snapshot) = snapshot {
            self.knowledge.was_shown_to_sender(request, snapshot);
        }
        if let Some(snapshot) = snapshot.filter(|_| !request.rules().other_writers) {
            self.knowledge.learn_from_read(request, snapshot, &head, &validators, selecting);
        }
        let current = Representation::Present(validators);
        let Some(unwanted) = self.judge_label(request, snapshot, (&head, &whole), &current) else {
            return whole_or_part(request, head, whole, exchange, &current).await;
        };
        match whole {
            BufferedBody::Complete(_) => exchange.finish().await,
            BufferedBody::TooLarge(_) | BufferedBody::TooSlow(_) => exchange.discard().await,
        }
        unwanted
    }

    /// Reads the body of a response if its tag is made of it, as far as it may be read.
    async fn read_for_tag(
        &self,
        request: &Request,
        head: &ResponseHeader,
        exchange: &mut Exchange,
    ) -> Result<BufferedBody, Halt> {
        if !request.rules().etag.needs_body() || head.status == StatusCode::PARTIAL_CONTENT {
            return Ok(BufferedBody::unread());
        }
        let (wait, budget) = (request.wait_for_body(head), self.bodies.budget_for(MemoryUse::Response));
        let read = read_whole(exchange, request.rules().max_hash_size_bytes, wait, budget).await;
        let whole = read.map_err(refusals::of_read)?;
        if let Some(why) = why_incomplete(exchange, &whole) {
            self.knowledge.was_relayed(request, why);
        }
        Ok(whole)
    }

    /// Returns the answer of a client whose conditions do not want a response with this label; `None` if they want it.
    fn judge_label(
        &self,
        request: &Request,
        snapshot: Option<&Snapshot>,
        (head, whole): (&ResponseHeader, &BufferedBody),
        current: &Representation,
    ) -> Option<Result<Answer, Halt>> {
        let judgement = if head.status == StatusCode::NOT_MODIFIED || request.rules().etag == TagSource::Delegate {
            Judgement::Pass
        } else {
            judge(&request.method, &request.conditions, current, match_rule(request.rules()))
        };
        match judgement {
            Judgement::NotModified
                if snapshot.is_some()
                    && !names_older_state(request.rules(), snapshot, whole)
                    && !self.knowledge.tags_may_outlive_state(request, snapshot) =>
            {
                Some(Ok(confirm(request, snapshot, not_modified_fields(&head.headers))))
            }
            Judgement::Failed { field, .. } => {
                let mut refusal = failed_read(&request.conditions, field, current);
                // The upstream has just let the client read it.
                refusal.cause_mut().client_may_know = true;
                Some(Err(refusal.into()))
            }
            Judgement::Pass | Judgement::NotModified | Judgement::Unknowable => None,
        }
    }
}

/// Puts the label of a response into its head: the tag, and the lease if the route shows it.
fn show_label(
    head: &mut ResponseHeader,
    request: &Request,
    snapshot: Option<&Snapshot>,
    shown: Option<&EntityTag>,
) -> pingora::Result<()> {
    let named = named_by_304(request, head.status);
    let is_by_date = head.status == StatusCode::NOT_MODIFIED && is_by_date(request, snapshot);
    set_tag(head, shown.or(named).filter(|_| !is_by_date))?;
    shown_lease(request, snapshot).iter().try_for_each(|(name, value)| head.insert_header(name.clone(), value.clone()))
}

/// The reason why a response has no tag.
fn why_untagged(
    rules: &GuardRules,
    snapshot: Option<&Snapshot>,
    exchange: &Exchange,
    whole: &BufferedBody,
) -> Untagged {
    match (snapshot, whole) {
        (None, _) => Untagged::NoRecord,
        (Some(_), _) if !rules.etag.needs_body() => Untagged::NoSource,
        (Some(_), _) => why_incomplete(exchange, whole).unwrap_or(Untagged::NoSource),
    }
}

/// The reason why a body was not read to its end.
fn why_incomplete(exchange: &Exchange, whole: &BufferedBody) -> Option<Untagged> {
    match whole {
        BufferedBody::Complete(_) => None,
        BufferedBody::TooLarge(_) => Some(too_large(exchange)),
        BufferedBody::TooSlow(_) => Some(Untagged::TooSlow),
    }
}

/// The reason why a response whose body was too large to read has no tag.
pub(crate) fn too_large(exchange: &Exchange) -> Untagged {
    if exchange.is_stream() { Untagged::Stream } else { Untagged::TooLarge }
}

/// The 304 that confirms the client's copy.
pub(super) fn confirm(request: &Request, snapshot: Option<&Snapshot>, mut fields: HeaderMap) -> Answer {
    if is_by_date(request, snapshot) {
        fields.remove(header::ETAG);
    }
    fields.extend(shown_lease(request, snapshot));
    Answer::not_modified(fields)
}

/// The fields that show the lease of the resource, if the route shows it (`lease.show`).
fn shown_lease(request: &Request, snapshot: Option<&Snapshot>) -> HeaderMap {
    let is_shown = request.rules().lease.as_ref().is_some_and(|rules| rules.show);
    snapshot.filter(|_| is_shown).map(state_fields).unwrap_or_default()
}

/// True if a 304 would rest on a date alone, which may be that of an earlier state. The client's copy may be of that
/// state, and must not get the tag of the later one.
fn is_by_date(request: &Request, snapshot: Option<&Snapshot>) -> bool {
    let is_told = |date| first_date(snapshot) == FirstDate::ANY || first_date(snapshot).is_before(date);
    request.conditions.if_none_match.is_none() && !request.conditions.if_modified_since.is_some_and(is_told)
}

/// True if a response may show the state after a write in flight or in doubt, under the version of the state before.
/// Then the client's copy with that label may be of the other state.
fn names_older_state(rules: &GuardRules, snapshot: Option<&Snapshot>, whole: &BufferedBody) -> bool {
    let is_version = match rules.etag {
        TagSource::Version => true,
        TagSource::Content | TagSource::Json(_) => !rules.other_writers && !matches!(whole, BufferedBody::Complete(_)),
        TagSource::Upstream | TagSource::Delegate | TagSource::Header(_) => false,
    };
    is_version && snapshot.is_some_and(|snapshot| !snapshot.has_no_pending_writes())
}

/// The tag for a 304 that states none, for clients that expect one there (RFC 9110 section 15.4.5): the tag that they
/// named.
fn named_by_304(request: &Request, status: StatusCode) -> Option<&EntityTag> {
    match &request.conditions.if_none_match {
        Some(TagCondition::Tags(tags))
            if request.rules().quirks.confirms_named_tag && status == StatusCode::NOT_MODIFIED =>
        {
            tags.first().filter(|tag| tags.len() == 1 && !tag.is_weak())
        }
        _ => None,
    }
}

/// True if a response represents the target and gets a tag. It can be a whole representation, a part of one, or a 304
/// if the upstream judges its own tags.
fn is_labelled(request: &Request, status: StatusCode) -> bool {
    let is_labelled = match status {
        StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION | StatusCode::PARTIAL_CONTENT => true,
        StatusCode::NOT_MODIFIED => request.rules().etag.is_upstreams_own(),
        _ => false,
    };
    // A version does not cover the content of a request.
    is_labelled
        && (request.is_named_by_head() || request.is_get_or_head() && request.rules().etag != TagSource::Version)
}
