//! The life of a guarded read (DESIGN, section 4, "Read"). Reads never write to the store.

use http::{Method, StatusCode, header};
use pingora::{http::RequestHeader, proxy::Session};

use super::{
    Guards,
    answer::{Answer, set_tag, withhold_foreign_tag},
    evidence::match_rule,
    lease_use::conditions_go_first,
    memory::{not_modified_fields, selecting_fields, wants_upstream},
    probe::{Aim, Probed, ask_for_identity},
    refusals,
    request::{Request, remove_conditions},
};
use crate::{
    core::{
        policy::{Guard, TagSource, Writers},
        precondition::{Judgement, judge, range_applies},
        record::{Revision, Snapshot},
        refusal::Refusal,
        validators::Representation,
    },
    exchange::{
        Body, Exchange, Purpose, Whole,
        fields::{request_head, response_head},
        read_whole,
    },
};

impl Guards {
    /// Handles a read, with the lease that it may need or take.
    pub(super) async fn read(&self, session: &mut Session, request: &Request, guard: &Guard) -> Result<Answer, Answer> {
        if guard.lease.as_ref().is_some_and(|rules| rules.acquire_on_read)
            // Boxed, so that other reads need not make room for it.
            && let Some(answer) = Box::pin(self.acquire_and_read(session, request, guard)).await?
        {
            return Ok(answer);
        }
        let fence = match self.judge_read_by_lease(request, guard).await {
            Err(denied) if conditions_go_first(request) => {
                return Err(Box::pin(self.refuse_read(request, guard, denied)).await);
            }
            fence => fence?,
        };
        self.read_resource(session, request, guard, fence, Purpose::Read).await
    }

    /// Handles a read that asks for the lease of what it reads; `None` if it does not. Who asks does not need to have
    /// it already.
    async fn acquire_and_read(
        &self,
        session: &mut Session,
        request: &Request,
        guard: &Guard,
    ) -> Result<Option<Answer>, Answer> {
        let Some(receipt) = self.acquire_on_read(session, request, guard).await? else { return Ok(None) };
        match self.read_resource(session, request, guard, Some(receipt.fence()), Purpose::Write).await {
            Ok(Answer::Relayed(mut relayed)) if relayed.head.status == StatusCode::OK => {
                receipt.write_to(&mut relayed.head)?;
                Ok(Some(Answer::Relayed(relayed)))
            }
            nothing => {
                self.return_receipt(session, request, guard, &receipt).await;
                nothing.map(Some)
            }
        }
    }

    /// What a read is told that its lease forbids, where its conditions are judged first.
    async fn refuse_read(&self, request: &Request, guard: &Guard, denied: Refusal) -> Answer {
        let Ok(snapshot) = self.record(request).await else { return denied.into() };
        let Probed::Current { representation, .. } = self.probe(request, guard, &snapshot, Aim::Verdict).await else {
            return denied.into();
        };
        match judge(&request.method, &request.conditions, &representation, match_rule(guard)) {
            Judgement::Failed { .. } => refusals::of_read_condition().into(),
            Judgement::Pass | Judgement::NotModified | Judgement::Unknowable => denied.into(),
        }
    }

    /// Reads a resource, from the first look at the record to the answer. For the purpose of a write it is sent once,
    /// and never answered from memory.
    async fn read_resource(
        &self,
        session: &mut Session,
        request: &Request,
        guard: &Guard,
        fence: Option<Revision>,
        purpose: Purpose,
    ) -> Result<Answer, Answer> {
        // The version goes first: content that is asked for afterwards is never older than it.
        let snapshot = self.snapshot(&request.key).await.ok();
        if purpose == Purpose::Read
            && let Some(answer) = self.read_from_memory(request, guard, snapshot.as_ref())?
        {
            return Ok(answer);
        }
        // Boxed, so that an answer from memory need not make room for an exchange.
        Box::pin(self.read_from_upstream(session, request, guard, snapshot.as_ref(), (fence, purpose))).await
    }

    async fn read_from_upstream(
        &self,
        session: &mut Session,
        request: &Request,
        guard: &Guard,
        snapshot: Option<&Snapshot>,
        (fence, purpose): (Option<Revision>, Purpose),
    ) -> Result<Answer, Answer> {
        let body = self.receive(session).await?;
        let mut head = self.upstream_read_head(request, guard, snapshot, &body)?;
        if let Some(fence) = fence {
            head.insert_header("Fencing-Token", fence.0)?;
        }
        let (upstream, server) = (request.upstream(), request.preferred_server());
        let ask = async |head| {
            let exchange = match purpose {
                Purpose::Read => self.exchanger.read(upstream, server, head, &body).await,
                Purpose::Write => match self.exchanger.connect(upstream, server, purpose).await {
                    Ok(connected) => connected.send(head, &body).await,
                    Err(failure) => Err(failure),
                },
            };
            exchange.map_err(refusals::of_read)
        };
        let whole = if guard.etag == TagSource::Version { whole_head(&head) } else { None };
        let mut exchange = ask(head).await?;
        // Parts with one tag are put together: a part may be older than its tag no more than it may be newer.
        if let (Some(whole), Some(snapshot), StatusCode::PARTIAL_CONTENT) = (whole, snapshot, exchange.head().status)
            && !self.is_untouched(request, snapshot).await
        {
            exchange.discard().await;
            exchange = ask(whole).await?;
        }
        self.answer_read(request, guard, snapshot, exchange).await
    }

    /// A local verdict, where the record is authoritative and the same principal was given the same variant before.
    fn read_from_memory(
        &self,
        request: &Request,
        guard: &Guard,
        snapshot: Option<&Snapshot>,
    ) -> Result<Option<Answer>, Answer> {
        let may_answer = guard.writers == Writers::Exclusive
            && !request.conditions.is_empty()
            && request.is_named_by_head()
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
        if guard.etag.is_upstreams_own() {
            return Ok(head);
        }
        remove_conditions(&mut head);
        let may_be_partial = match guard.etag {
            TagSource::Version => {
                snapshot.is_none_or(Snapshot::is_quiet)
                    && (request.conditions.if_range.is_none() || self.version_range_applies(request, snapshot))
            }
            TagSource::Header(_) => request.conditions.if_range.is_none(),
            TagSource::Content | TagSource::Json(_) | TagSource::Upstream | TagSource::Delegate => false,
        };
        if !may_be_partial {
            head.remove_header(&header::RANGE);
        }
        if guard.etag.needs_body() && request.is_get_or_head() {
            // A tag of the bytes needs the bytes, for HEAD too.
            head.set_method(Method::GET);
            ask_for_identity(&mut head).map_err(|_error| refusals::of_field())?;
        }
        Ok(head)
    }

    /// Whether no write has begun since.
    pub(super) async fn is_untouched(&self, request: &Request, snapshot: &Snapshot) -> bool {
        self.snapshot(&request.key).await.is_ok_and(|now| now.touched() == snapshot.touched())
    }

    /// Whether `If-Range` names the version that the upstream is about to be asked for.
    fn version_range_applies(&self, request: &Request, snapshot: Option<&Snapshot>) -> bool {
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
        guard: &Guard,
        snapshot: Option<&Snapshot>,
        mut exchange: Exchange,
    ) -> Result<Answer, Answer> {
        let mut head = response_head(exchange.take_head());
        if !is_labelled(request, guard, head.status) {
            withhold_foreign_tag(&mut head, guard)?;
            return Answer::read_so_far(head, Whole::unread(), exchange).await;
        }
        let whole = if guard.etag.needs_body() && head.status != StatusCode::PARTIAL_CONTENT {
            read_whole(&mut exchange, guard.hash_max_bytes, guard.hash_wait, &self.body_budget)
                .await
                .map_err(refusals::of_read)?
        } else {
            Whole::unread()
        };
        let selecting = selecting_fields(&request.head.headers, &head.headers);
        let validators = self.label(request, guard, snapshot, &head, &whole, selecting.as_deref());
        self.watch_tag(request, guard, snapshot, &head, validators.tag.as_ref()).await;
        set_tag(&mut head, validators.tag.as_ref())?;
        if let (Some(snapshot), Writers::Exclusive) = (snapshot, guard.writers) {
            self.learn_from_read(request, guard, snapshot, &head, &validators, selecting);
        }
        let current = Representation::Present(validators);
        let judgement = if head.status == StatusCode::NOT_MODIFIED || guard.etag == TagSource::Delegate {
            Judgement::Pass
        } else {
            judge(&request.method, &request.conditions, &current, match_rule(guard))
        };
        let unwanted = match judgement {
            Judgement::NotModified => Answer::not_modified(&not_modified_fields(&head.headers))?,
            Judgement::Failed { .. } => refusals::of_read_condition().into(),
            Judgement::Pass | Judgement::Unknowable => return Answer::read_so_far(head, whole, exchange).await,
        };
        match whole {
            Whole::Complete(_) => exchange.finish().await,
            Whole::TooLarge(_) | Whole::TooSlow(_) => exchange.discard().await,
        }
        Ok(unwanted)
    }
}

/// The same request for the whole, where it is for a part.
fn whole_head(head: &RequestHeader) -> Option<RequestHeader> {
    head.headers.contains_key(header::RANGE).then(|| {
        let mut whole = head.clone();
        whole.remove_header(&header::RANGE);
        whole
    })
}

/// Whether a response is a representation of the target that gets a tag: a whole one, a part of one, or, where the
/// upstream judges its own tags, the word that the client's copy is current.
fn is_labelled(request: &Request, guard: &Guard, status: StatusCode) -> bool {
    let is_labelled = match status {
        StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION | StatusCode::PARTIAL_CONTENT => true,
        StatusCode::NOT_MODIFIED => guard.etag.is_upstreams_own(),
        _ => false,
    };
    // A version says nothing of the content of a request.
    is_labelled && (request.is_named_by_head() || request.is_get_or_head() && guard.etag != TagSource::Version)
}
