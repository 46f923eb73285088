//! The life of a guarded read (DESIGN, section 4, "Read"). Reads never write to the store.

use http::{HeaderMap, Method, StatusCode, header};
use pingora::http::RequestHeader;

use super::{
    Guard,
    answer::{Answer, set_tag, withhold_foreign_tag},
    knowledge::{
        evidence::match_rule,
        responses::{not_modified_fields, selecting_fields, wants_upstream},
    },
    lease::usage::is_upstream_asked_first,
    probe::ask_for_identity,
    refusals,
    request::{Request, remove_conditions, show_tags_alone},
};
use crate::{
    body::{Body, Client, MemoryUse},
    box_future::box_future,
    core::{
        coarse_tag::Spelling,
        entity_tag::EntityTag,
        policy::{ErrorShape, GuardRules, TagSource, Writers},
        precondition::{Judgement, TagCondition, judge, range_applies},
        record::{Revision, Snapshot},
        refusal::Refusal,
        validators::Representation,
    },
    upstream::{
        BufferedBody, Exchange, Purpose,
        fields::{request_head, response_head},
        read_whole,
    },
};

use ranges::{whole_head, whole_or_part};

pub(crate) mod label;
pub(crate) mod ranges;
pub(crate) mod unstable_tags;
pub(crate) mod warn_once;

impl Guard {
    /// Handles a read, with the lease that it may need or take.
    pub(crate) async fn read(&self, client: &mut dyn Client, request: &Request) -> Result<Answer, Answer> {
        if request.rules.lease.as_ref().is_some_and(|rules| rules.acquire_on_read)
            // Boxed, so that other reads need not make room for it.
            && let Some(answer) = Box::pin(self.acquire_and_read(client, request)).await?
        {
            return Ok(answer);
        }
        // The version goes first: content that is asked for afterwards is never older than it.
        let snapshot = self.snapshot(&request.key).await;
        let fence = match Self::judge_read_by_lease(request, snapshot.as_ref()) {
            Err(denied) if is_upstream_asked_first(request) => {
                return Err(Box::pin(self.refuse_read(request, denied)).await);
            }
            fence => fence?,
        };
        self.read_resource(client, request, snapshot.ok(), (fence, Purpose::Read)).await
    }

    /// Handles a read that asks for the lease of what it reads; `None` if it does not. Who asks does not need to have
    /// it already.
    async fn acquire_and_read(&self, client: &mut dyn Client, request: &Request) -> Result<Option<Answer>, Answer> {
        let Some(receipt) = self.acquire_on_read(client, request).await? else { return Ok(None) };
        let snapshot = self.snapshot(&request.key).await.ok();
        let sent_once = (Some(receipt.fence()), Purpose::Write);
        match self.read_resource(client, request, snapshot, sent_once).await {
            Ok(Answer::Relayed(mut relayed)) if relayed.head.status == StatusCode::OK => {
                receipt.write_to(&mut relayed.head)?;
                Ok(Some(Answer::Relayed(relayed)))
            }
            nothing => {
                self.return_receipt(client, request, &receipt).await;
                nothing.map(Some)
            }
        }
    }

    /// What a read is told that its lease forbids.
    async fn refuse_read(&self, request: &Request, denied: Refusal) -> Answer {
        match self.record(request).await {
            Ok(snapshot) => self.refuse_by_lease(request, &snapshot, denied).await,
            Err(_) => denied.into(),
        }
    }

    /// Reads a resource, whose record was read before, to the answer. For the purpose of a write it is sent once,
    /// and never answered from memory.
    async fn read_resource(
        &self,
        client: &mut dyn Client,
        request: &Request,
        snapshot: Option<Snapshot>,
        (fence, purpose): (Option<Revision>, Purpose),
    ) -> Result<Answer, Answer> {
        // While writes are held back after the start, a write of the earlier process may come, and no record tells of it:
        // a tag given out now could outlive its state.
        let snapshot = snapshot.filter(|snapshot| self.may_begin(snapshot).is_ok());
        if purpose == Purpose::Read
            && !self.is_outdated(request, snapshot.as_ref()).await
            && let Some(answer) = self.read_from_memory(request, snapshot.as_ref())
        {
            return Ok(answer);
        }
        // Boxed, so that an answer from memory need not make room for an exchange.
        box_future(|| self.read_from_upstream(client, request, snapshot.as_ref(), (fence, purpose))).await
    }

    /// Whether memory must not answer a read.
    async fn is_outdated(&self, request: &Request, snapshot: Option<&Snapshot>) -> bool {
        match snapshot {
            Some(snapshot) => self.may_be_removed(request, snapshot).await,
            None => false,
        }
    }

    async fn read_from_upstream(
        &self,
        client: &mut dyn Client,
        request: &Request,
        snapshot: Option<&Snapshot>,
        (fence, purpose): (Option<Revision>, Purpose),
    ) -> Result<Answer, Answer> {
        let body = self.receive(client).await?;
        let mut head = self.upstream_read_head(request, snapshot, &body)?;
        if let Some(fence) = fence {
            head.insert_header("Fencing-Token", fence.0)?;
        }
        let upstream = request.upstream();
        let ask = async |head| {
            let exchange = match purpose {
                Purpose::Read => self.exchanger.read(upstream, request.to_send(), head, &body).await,
                Purpose::Write => match self.exchanger.connect(upstream, request.to_send(), purpose).await {
                    Ok(connected) => connected.send(head, &body).await,
                    Err(failure) => Err(failure),
                },
            };
            let exchange = exchange.map_err(refusals::of_read)?;
            request.affinity.asked(exchange.server());
            Ok::<_, Refusal>(exchange)
        };
        if purpose == Purpose::Write {
            // It is sent once, whatever comes back.
            head.remove_header(&header::RANGE);
        }
        let whole = if purpose == Purpose::Read { whole_head(request, &head) } else { None };
        let mut exchange = ask(head).await?;
        if let Some(whole) = whole {
            if let Some(part) = self.part_instead(request, snapshot, &whole, exchange.head()) {
                // Its body is too large to be read for the sake of its connection.
                drop(exchange);
                exchange = ask(part).await?;
            }
            if self.is_of_another_state(request, snapshot, exchange.head()).await {
                exchange.discard().await;
                exchange = ask(whole).await?;
            }
        }
        self.answer_read(request, snapshot, exchange).await
    }

    /// A local verdict, where the record is authoritative and the same principal was given the same variant before.
    fn read_from_memory(&self, request: &Request, snapshot: Option<&Snapshot>) -> Option<Answer> {
        let may_answer = request.rules.writers == Writers::Exclusive
            && !request.conditions.is_empty()
            && request.is_named_by_head()
            && !wants_upstream(&request.head.headers);
        let snapshot = snapshot.filter(|_| may_answer)?;
        let remembered = self.memory.current(request.variant, snapshot, &request.head.headers)?;
        let current = Representation::Present(remembered.validators.clone());
        match judge(&request.method, &request.conditions, &current, match_rule(&request.rules)) {
            Judgement::NotModified => {
                let spelling = self.spelling(&request.rules, Some(snapshot));
                Some(confirm(request, &spelling, remembered.fields.clone()))
            }
            Judgement::Failed { .. } => Some(refusals::of_read_condition().into()),
            Judgement::Pass | Judgement::Unknowable => None,
        }
    }

    /// What the upstream is asked: without the conditions that it cannot know, and without a range that may not apply.
    fn upstream_read_head(
        &self,
        request: &Request,
        snapshot: Option<&Snapshot>,
        body: &Body,
    ) -> Result<Box<RequestHeader>, Refusal> {
        let mut head = request_head(&request.head, body.len()).map_err(|error| refusals::of_head(&error))?;
        if request.rules.etag.is_upstreams_own() {
            let spelling = self.spelling(&request.rules, snapshot);
            if !spelling.is_bare() {
                show_tags_alone(&mut head, &spelling.conditions_at_backend(&request.conditions));
            }
            return Ok(head);
        }
        remove_conditions(&mut head);
        let may_be_partial = match request.rules.etag {
            TagSource::Version => {
                snapshot.is_none_or(Snapshot::has_no_pending_writes)
                    && (request.conditions.if_range.is_none() || self.version_range_applies(request, snapshot))
            }
            TagSource::Header(_) => true,
            TagSource::Content | TagSource::Json(_) | TagSource::Upstream | TagSource::Delegate => false,
        };
        if !may_be_partial {
            head.remove_header(&header::RANGE);
        }
        if request.rules.etag.needs_body() && request.is_get_or_head() {
            // A tag of the bytes needs the bytes, for HEAD too.
            head.set_method(Method::GET);
            ask_for_identity(&mut head).map_err(|_error| refusals::of_field())?;
        }
        Ok(head)
    }

    /// Whether no write has begun since.
    pub(crate) async fn is_untouched(&self, request: &Request, snapshot: &Snapshot) -> bool {
        self.snapshot(&request.key).await.is_ok_and(|now| now.touched() == snapshot.touched())
    }

    /// Whether `If-Range` names the version that the upstream is about to be asked for.
    pub(crate) fn version_range_applies(&self, request: &Request, snapshot: Option<&Snapshot>) -> bool {
        let remembered =
            snapshot.and_then(|snapshot| self.memory.current(request.variant, snapshot, &request.head.headers));
        remembered.is_some_and(|remembered| {
            range_applies(&request.conditions, &Representation::Present(remembered.validators.clone()))
        })
    }

    /// Labels the upstream's response, and judges the client's conditions by that label.
    async fn answer_read(
        &self,
        request: &Request,
        snapshot: Option<&Snapshot>,
        mut exchange: Exchange,
    ) -> Result<Answer, Answer> {
        let mut head = response_head(exchange.take_head());
        let spelling = self.spelling(&request.rules, snapshot);
        if !is_labelled(request, head.status) {
            withhold_foreign_tag(&mut head, &request.rules, &spelling)?;
            return Answer::read_so_far(head, BufferedBody::unread(), exchange).await;
        }
        let whole = if request.rules.etag.needs_body() && head.status != StatusCode::PARTIAL_CONTENT {
            let read = read_whole(
                &mut exchange,
                request.rules.hash_max_bytes,
                request.rules.hash_wait,
                self.budget_for(MemoryUse::Response),
            );
            let whole = read.await.map_err(refusals::of_read)?;
            self.warn_once.tell_of(&request.route, &request.rules, &exchange, &whole);
            whole
        } else {
            BufferedBody::unread()
        };
        let selecting = selecting_fields(&request.head.headers, &head.headers);
        let validators = self.label(request, snapshot, &head, &whole, selecting.as_deref());
        self.watch_tag(request, snapshot, &head, validators.tag.as_ref()).await;
        let named = named_by_304(request, head.status);
        // Without the record nobody knows whether the tag names one state alone (rule 12).
        let shown = validators.tag.as_ref().filter(|_| snapshot.is_some());
        let is_by_date = head.status == StatusCode::NOT_MODIFIED && is_by_date(request, &spelling);
        set_tag(&mut head, shown.or(named).filter(|_| !is_by_date))?;
        if let (Some(snapshot), Writers::Exclusive) = (snapshot, request.rules.writers) {
            self.learn_from_read(request, snapshot, &head, &validators, selecting);
        }
        let current = Representation::Present(validators);
        let judgement = if head.status == StatusCode::NOT_MODIFIED || request.rules.etag == TagSource::Delegate {
            Judgement::Pass
        } else {
            judge(&request.method, &request.conditions, &current, match_rule(&request.rules))
        };
        let unwanted = match judgement {
            Judgement::NotModified if snapshot.is_some() && !names_older_state(&request.rules, snapshot, &whole) => {
                confirm(request, &spelling, not_modified_fields(&head.headers))
            }
            Judgement::Failed { .. } => refusals::of_read_condition().into(),
            Judgement::Pass | Judgement::NotModified | Judgement::Unknowable => {
                return whole_or_part(request, head, whole, exchange, &current).await;
            }
        };
        match whole {
            BufferedBody::Complete(_) => exchange.finish().await,
            BufferedBody::TooLarge(_) | BufferedBody::TooSlow(_) => exchange.discard().await,
        }
        Ok(unwanted)
    }
}

/// The answer that the client's copy is current.
fn confirm(request: &Request, spelling: &Spelling, mut fields: HeaderMap) -> Answer {
    if is_by_date(request, spelling) {
        fields.remove(header::ETAG);
    }
    Answer::not_modified(&fields)
}

/// Whether a 304 would rest on a date alone where states of one second are told apart: the client's copy may be the
/// earlier one, and must not get the tag of the later.
fn is_by_date(request: &Request, spelling: &Spelling) -> bool {
    !spelling.is_bare() && request.conditions.if_none_match.is_none()
}

/// Whether a response may show the state that a write under way, or in doubt, leaves, while its label is the version of
/// the state before: then the client's copy with that label may be the other one.
fn names_older_state(rules: &GuardRules, snapshot: Option<&Snapshot>, whole: &BufferedBody) -> bool {
    let is_version = match rules.etag {
        TagSource::Version => true,
        TagSource::Content | TagSource::Json(_) => {
            rules.writers == Writers::Exclusive && !matches!(whole, BufferedBody::Complete(_))
        }
        TagSource::Upstream | TagSource::Delegate | TagSource::Header(_) => false,
    };
    is_version && snapshot.is_some_and(|snapshot| !snapshot.has_no_pending_writes())
}

/// The tag of a 304 that states none, for clients that expect it there (RFC 9110 section 15.4.5): the one that they named.
/// S3 has strong tags alone, so that no other one can be meant.
fn named_by_304(request: &Request, status: StatusCode) -> Option<&EntityTag> {
    match &request.conditions.if_none_match {
        Some(TagCondition::Tags(tags))
            if request.rules.errors == ErrorShape::S3 && status == StatusCode::NOT_MODIFIED =>
        {
            tags.first().filter(|tag| tags.len() == 1 && !tag.is_weak())
        }
        _ => None,
    }
}

/// Whether a response is a representation of the target that gets a tag: a whole one, a part of one, or, where the
/// upstream judges its own tags, the word that the client's copy is current.
fn is_labelled(request: &Request, status: StatusCode) -> bool {
    let is_labelled = match status {
        StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION | StatusCode::PARTIAL_CONTENT => true,
        StatusCode::NOT_MODIFIED => request.rules.etag.is_upstreams_own(),
        _ => false,
    };
    // A version says nothing of the content of a request.
    is_labelled && (request.is_named_by_head() || request.is_get_or_head() && request.rules.etag != TagSource::Version)
}
