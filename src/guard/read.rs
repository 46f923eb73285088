//! The life of a guarded read (DESIGN, section 4, "Read"). Reads never write to the store.

use http::{Method, StatusCode, header};
use pingora::{http::RequestHeader, proxy::Session};

use super::{
    Guards,
    answer::{Answer, discard, set_tag, with_tag},
    evidence::{match_rule, selecting_number, version_tag_of},
    memory::{Remembered, is_shareable, not_modified_fields, selecting_fields, wants_upstream},
    probe::{ask_for_identity, hash_of},
    refusals,
    request::{Request, remove_conditions},
};
use crate::{
    core::{
        issued_tag::content_tag,
        policy::{Guard, TagSource, Writers},
        precondition::{Judgement, judge, range_applies},
        record::Snapshot,
        refusal::Refusal,
        validators::{Representation, Validators},
    },
    exchange::{
        Body, Exchange, Whole,
        fields::{request_head, response_head},
        read_whole,
    },
};

impl Guards {
    /// Handles a read from its first look at the record to the answer.
    pub(super) async fn read(
        &self,
        session: &mut Session,
        request: &Request,
        guard: &Guard,
    ) -> pingora::Result<Answer> {
        // The version goes first: content that is asked for afterwards is never older than it.
        let snapshot = self.snapshot(&request.key).await.ok();
        if let Some(answer) = self.read_from_memory(request, guard, snapshot.as_ref())? {
            return Ok(answer);
        }
        let body = match self.receive(session).await {
            Ok(body) => body,
            Err(answer) => return Ok(answer),
        };
        let head = match self.upstream_read_head(request, guard, snapshot.as_ref(), &body) {
            Ok(head) => head,
            Err(refusal) => return Ok(refusal.into()),
        };
        let exchange = self.exchanger.read(request.upstream(), request.preferred_server(), head, &body).await;
        let exchange = match exchange {
            Ok(exchange) => exchange,
            Err(failure) => return Ok(refusals::of_read(failure).into()),
        };
        self.answer_read(request, guard, snapshot.as_ref(), exchange).await
    }

    /// A local verdict, where the record is authoritative and the same principal was given the same variant before.
    fn read_from_memory(
        &self,
        request: &Request,
        guard: &Guard,
        snapshot: Option<&Snapshot>,
    ) -> pingora::Result<Option<Answer>> {
        let may_answer = guard.writers == Writers::Exclusive
            && !request.conditions.is_empty()
            && is_get_or_head(&request.method)
            && !wants_upstream(&request.head.headers);
        let Some(snapshot) = snapshot.filter(|_| may_answer) else { return Ok(None) };
        let Some(remembered) = self.memory.current(request.variant, snapshot, &request.head.headers) else {
            return Ok(None);
        };
        let current = Representation::Present(remembered.validators.clone());
        match judge(&request.method, &request.conditions, &current, match_rule(guard)) {
            Judgement::NotModified => Answer::not_modified(&remembered.fields).map(Some),
            Judgement::Failed { .. } => Ok(Some(refusals::of_read_condition().into())),
            Judgement::Pass | Judgement::Unknowable => Ok(None),
        }
    }

    /// What the upstream is asked: without the conditions that it cannot know, and without a range that may not apply.
    fn upstream_read_head(
        &self,
        request: &Request,
        guard: &Guard,
        snapshot: Option<&Snapshot>,
        body: &Body,
    ) -> Result<RequestHeader, Refusal> {
        let mut head = request_head(&request.head, body.len()).map_err(|error| refusals::of_head(&error))?;
        if guard.etag == TagSource::Upstream {
            return Ok(head);
        }
        remove_conditions(&mut head);
        let may_be_partial = guard.etag == TagSource::Version
            && (request.conditions.if_range.is_none() || self.version_range_applies(request, snapshot));
        if !may_be_partial {
            head.remove_header(&header::RANGE);
        }
        if guard.etag == TagSource::Content && is_get_or_head(&request.method) {
            // A tag of the bytes needs the bytes, for HEAD too.
            head.set_method(Method::GET);
            ask_for_identity(&mut head).map_err(|_error| refusals::of_field())?;
        }
        Ok(head)
    }

    /// Whether `If-Range` names the version that the upstream is about to be asked for.
    fn version_range_applies(&self, request: &Request, snapshot: Option<&Snapshot>) -> bool {
        let remembered =
            snapshot.and_then(|snapshot| self.memory.current(request.variant, snapshot, &request.head.headers));
        remembered.is_some_and(|remembered| {
            range_applies(&request.conditions, &Representation::Present(remembered.validators.clone()))
        })
    }

    async fn answer_read(
        &self,
        request: &Request,
        guard: &Guard,
        snapshot: Option<&Snapshot>,
        mut exchange: Exchange,
    ) -> pingora::Result<Answer> {
        let mut head = response_head(exchange.head());
        let status = head.status;
        let is_whole = matches!(status, StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION);
        let is_partial = status == StatusCode::PARTIAL_CONTENT;
        if !is_get_or_head(&request.method) || !(is_whole || is_partial) {
            if guard.etag != TagSource::Upstream {
                set_tag(&mut head, None)?;
            }
            return Answer::read_so_far(head, Whole::TooLarge(Vec::new()), exchange).await;
        }
        let selecting = selecting_fields(&request.head.headers, &head.headers);
        let whole = match guard.etag {
            TagSource::Content if is_whole => {
                match read_whole(&mut exchange, guard.hash_max_bytes, guard.hash_wait).await {
                    Ok(whole) => whole,
                    Err(failure) => return Ok(refusals::of_read(failure).into()),
                }
            }
            _ => Whole::TooLarge(Vec::new()),
        };
        let version_tag = || {
            let number = selecting_number(request.variant, selecting.as_deref().unwrap_or_default());
            version_tag_of(self.store.incarnation(), snapshot?.version(), number).tag
        };
        let (mut validators, unusable) = Validators::from_headers(&head.headers);
        if let (TagSource::Upstream, Some(reason)) = (guard.etag, unusable) {
            tracing::warn!(route = %request.route.name, %reason, "the upstream's tag is of no use");
        }
        validators.tag = match (guard.etag, &whole) {
            (TagSource::Upstream, _) => validators.tag,
            (TagSource::Version, _) => version_tag(),
            (TagSource::Content, Whole::Complete(chunks)) if is_whole => content_tag(&hash_of(chunks)),
            (TagSource::Content, _) if is_whole && guard.writers == Writers::Exclusive => version_tag(),
            (TagSource::Content, _) => None,
        };
        set_tag(&mut head, validators.tag.as_ref())?;
        if let Some(snapshot) = snapshot {
            self.learn_from_read(request, guard, snapshot, &head, &validators, selecting);
        }
        let current = Representation::Present(validators.clone());
        match judge(&request.method, &request.conditions, &current, match_rule(guard)) {
            Judgement::NotModified => {
                finish_unwanted(exchange, whole).await;
                Answer::not_modified(&with_tag(&head.headers, validators.tag.as_ref()))
            }
            Judgement::Failed { .. } => {
                finish_unwanted(exchange, whole).await;
                Ok(refusals::of_read_condition().into())
            }
            Judgement::Pass | Judgement::Unknowable => Answer::read_so_far(head, whole, exchange).await,
        }
    }

    /// Keeps in this process what a response taught, for the principal that was given it.
    fn learn_from_read(
        &self,
        request: &Request,
        guard: &Guard,
        snapshot: &Snapshot,
        head: &pingora::http::ResponseHeader,
        validators: &Validators,
        selecting: Option<Vec<(http::HeaderName, Vec<http::HeaderValue>)>>,
    ) {
        if guard.writers == Writers::Shared {
            return;
        }
        self.was_let_read(request, guard, snapshot);
        let Some(selecting) = selecting else { return };
        let may_remember = head.status == StatusCode::OK && snapshot.is_quiet() && is_shareable(&head.headers);
        if may_remember && (validators.tag.is_some() || validators.modified.is_some()) {
            let remembered = Remembered {
                touched: snapshot.touched(),
                selecting,
                validators: validators.clone(),
                fields: not_modified_fields(&head.headers),
                until: snapshot.now.plus(guard.identity_ttl),
            };
            self.memory.remember(request.variant, remembered);
        }
    }
}

/// Ends an exchange whose answer the client does not get.
async fn finish_unwanted(exchange: Exchange, whole: Whole) {
    if matches!(whole, Whole::Complete(_)) {
        exchange.finish().await;
    } else {
        discard(exchange).await;
    }
}

fn is_get_or_head(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
