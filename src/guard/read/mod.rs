//! The life of a guarded read (DESIGN, section 4, "Read"). Reads never write to the store.

use std::sync::Arc;

use http::{Method, StatusCode, header};
use pingora::http::RequestHeader;

use super::{
    Answer, Halt,
    claim::Claims,
    knowledge::{Knowledge, evidence::match_rule, label::first_date, responses::wants_upstream},
    lease::{
        Leases,
        usage::{is_open_to_all, judge_read_by_lease, wanted_on_read},
    },
    probe::{Probes, head::ask_for_identity},
    refusals,
    request::Request,
    request_conditions::{remove_conditions, show_tags_alone},
};
use crate::{
    body::{Bodies, Body, Client},
    box_future::box_future,
    core::{
        lease::field_names::FENCING_TOKEN,
        policy::TagSource,
        records::record::{Revision, Snapshot},
        refusal::{Code, Refusal},
        rights::WordOfBackend,
        tags::{
            precondition::{Judgement, RangeCondition, judge},
            validators::Representation,
        },
        verdict::failed_read,
    },
    store::StoreError,
    upstream::{Exchange, Failure, Purpose, Transport, fields::request_head},
};
use label::confirm;
use ranges::whole_head;

mod committed;
mod described;
pub(crate) mod label;
pub(crate) mod ranges;
pub(crate) mod settled;

/// How a read goes to the upstream.
#[derive(Clone, Copy)]
struct Sending<'a> {
    /// The fence of the lease, if the client holds it.
    fence: Option<Revision>,
    /// For [`Purpose::Write`] the request is sent once, and never answered from memory.
    purpose: Purpose,
    /// The body of the request, if it has been received.
    body: Option<&'a Body>,
}

/// Guarded reads under one configuration.
pub(crate) struct Reads {
    knowledge: Arc<Knowledge>,
    probes: Arc<Probes>,
    claims: Arc<Claims>,
    leases: Arc<Leases>,
    exchanger: Arc<dyn Transport>,
    /// The budgets of bodies.
    pub(crate) bodies: Bodies,
}

impl Reads {
    /// Builds reads that are judged by `leases` and its rooms, and sent through `exchanger`.
    pub(crate) fn new(leases: Arc<Leases>, exchanger: Arc<dyn Transport>, bodies: Bodies) -> Self {
        let (knowledge, probes, claims) = leases.rooms();
        Self { knowledge, probes, claims, leases, exchanger, bodies }
    }

    /// The reads under another configuration.
    pub(crate) fn renewed(&self, bodies: Bodies) -> Self {
        Self::new(Arc::clone(&self.leases), Arc::clone(&self.exchanger), bodies)
    }

    /// Asks the upstream something else with the credentials of a request.
    pub(crate) async fn ask(&self, request: &Request, head: Box<RequestHeader>) -> Result<Exchange, Failure> {
        self.exchanger.read(request.upstream(), request.to_send(), head, &Body::empty()).await
    }

    /// Handles a read, with the lease that it may need or take.
    pub(crate) async fn read(&self, client: &mut dyn Client, request: &Request) -> Result<Answer, Halt> {
        if request.rules().lease.as_ref().is_some_and(|rules| rules.acquire_on_read)
            // Boxed, so that the futures of other reads stay small.
            && let Some(answer) = Box::pin(self.acquire_and_read(client, request)).await?
        {
            return Ok(answer);
        }
        if request.rules().reads.is_committed() {
            // Boxed, so that the futures of other reads stay small.
            return Ok(box_future(|| self.read_settled(client, request)).await?.0);
        }
        if request.content.shows_description() {
            // Boxed, so that the futures of other reads stay small.
            return box_future(|| self.read_described(client, request)).await;
        }
        // The version is read first, so that content requested afterwards is never older.
        let snapshot = self.knowledge.snapshot(&request.key).await;
        self.read_by_lease(client, request, snapshot, None).await
    }

    /// Handles a read whose record has been read: judges it by the lease, then answers it.
    async fn read_by_lease(
        &self,
        client: &mut dyn Client,
        request: &Request,
        snapshot: Result<Snapshot, StoreError>,
        body: Option<&Body>,
    ) -> Result<Answer, Halt> {
        let fence = match judge_read_by_lease(request, snapshot.as_ref()) {
            Ok(fence) => fence,
            Err(denied) => {
                let Ok(snapshot) = &snapshot else { return Err(denied.into()) };
                // Boxed, so that the futures of other reads stay small.
                if !is_open_to_all(request) {
                    Box::pin(self.must_be_let_read(client, request, (snapshot, false), body)).await?;
                }
                return Err(self.leases.refuse_knowing(request, snapshot, denied).await);
            }
        };
        self.read_resource(client, request, snapshot.ok(), Sending { fence, purpose: Purpose::Read, body }).await
    }

    /// Handles a read that requests the lease of its resource; `None` if it requests none. The client does not need
    /// to hold the lease already.
    async fn acquire_and_read(&self, client: &mut dyn Client, request: &Request) -> Result<Option<Answer>, Halt> {
        let Some(wanted) = wanted_on_read(request)? else { return Ok(None) };
        if !is_open_to_all(request) {
            let snapshot = self.knowledge.record(request).await?;
            self.must_be_let_read(client, request, (&snapshot, false), None).await?;
        }
        let Some(receipt) = self.leases.acquire_on_read(client, request, wanted).await? else { return Ok(None) };
        let sent_once = Sending { fence: Some(receipt.fence()), purpose: Purpose::Write, body: None };
        let answer = if request.rules().reads.is_committed() {
            self.read_settled_once(client, request, sent_once).await
        } else {
            let snapshot = self.knowledge.snapshot(&request.key).await.ok();
            self.read_resource(client, request, snapshot, sent_once).await
        };
        match answer {
            Ok(Answer::Relayed(mut relayed))
                if relayed.head.status == StatusCode::OK && !receipt.is_in_vain(client) =>
            {
                receipt.write_to(request, &mut relayed.head)?;
                Ok(Some(Answer::Relayed(relayed)))
            }
            nothing => {
                self.leases.return_receipt(client, request, receipt).await;
                nothing.map(Some)
            }
        }
    }

    /// Lets a read go on to the refusal, the wait or the lease that its client must have the right to. If the upstream
    /// has not let the client read the resource of late, it is asked by the read itself. Its refusal is the answer.
    /// `may_be_absent`: a client to which the upstream shows nothing goes on too.
    async fn must_be_let_read(
        &self,
        client: &mut dyn Client,
        request: &Request,
        (snapshot, may_be_absent): (&Snapshot, bool),
        body: Option<&Body>,
    ) -> Result<(), Halt> {
        if self.knowledge.may_know(request, snapshot) {
            return Ok(());
        }
        let sending = Sending { fence: None, purpose: Purpose::Read, body };
        match self.read_resource(client, request, Some(snapshot.clone()), sending).await {
            Err(Halt::Refused(refusal)) if refusal.code == Code::PreconditionFailed => Ok(()),
            Err(halt) => Err(halt),
            Ok(Answer::Relayed(relayed)) if !is_let(relayed.head.status, may_be_absent) => Err(Halt::Denied(relayed)),
            Ok(Answer::Relayed(relayed)) => {
                relayed.discard().await;
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    /// Reads a resource and returns the answer. The caller has already read the record.
    async fn read_resource(
        &self,
        client: &mut dyn Client,
        request: &Request,
        snapshot: Option<Snapshot>,
        sending: Sending<'_>,
    ) -> Result<Answer, Halt> {
        // While writes are held back after the start, a write of the earlier process may still arrive, and no record
        // shows it. A tag issued now could outlive its state.
        let snapshot = snapshot.filter(|snapshot| self.claims.may_begin(snapshot).is_ok());
        if sending.purpose == Purpose::Read
            && let Some(answer) = self.read_from_memory(request, snapshot.as_ref())?
        {
            return Ok(answer);
        }
        // Boxed, so that the future of an answer from memory stays small.
        box_future(|| self.read_from_upstream(client, request, snapshot.as_ref(), sending)).await
    }

    async fn read_from_upstream(
        &self,
        client: &mut dyn Client,
        request: &Request,
        snapshot: Option<&Snapshot>,
        Sending { fence, purpose, body }: Sending<'_>,
    ) -> Result<Answer, Halt> {
        let received;
        let body = if let Some(body) = body {
            body
        } else {
            received = self.bodies.receive(client).await.map_err(refusals::of_body)?;
            &received
        };
        let mut head = self.upstream_read_head(request, snapshot, body)?;
        if let Some(fence) = fence {
            head.insert_header(FENCING_TOKEN.title, fence.0)?;
        }
        let upstream = request.upstream();
        let ask = async |head| {
            let exchange = match purpose {
                Purpose::Read => self.exchanger.read(upstream, request.to_send(), head, body).await,
                Purpose::Write => match self.exchanger.connect(upstream, request.to_send(), purpose).await {
                    Ok(connected) => connected.send(head, body).await,
                    Err(failure) => Err(failure),
                },
            };
            let exchange = exchange.map_err(refusals::of_read)?;
            request.affinity.asked(exchange.server());
            Ok::<_, Refusal>(exchange)
        };
        if purpose == Purpose::Write {
            // The request is sent only once, so the whole could not be requested after an unusable part.
            head.remove_header(&header::RANGE);
        }
        let whole = if purpose == Purpose::Read { whole_head(request, &head) } else { None };
        let described = self.description_of(request).await;
        let mut exchange = ask(head).await?;
        if let Some(whole) = whole {
            if let Some(part) = self.part_instead(request, snapshot, &whole, exchange.head()) {
                // The body is too large to read only to keep the connection.
                drop(exchange);
                exchange = ask(part).await?;
            }
            if self.is_of_another_state(request, snapshot, exchange.head()).await {
                exchange.discard().await;
                exchange = ask(whole).await?;
            }
        }
        // Boxed, so that a read that waits for its server need not make room for it.
        box_future(|| self.answer_read(request, snapshot, (exchange, described))).await
    }

    /// A local verdict, if the record is authoritative and the same principal got the same variant before.
    fn read_from_memory(&self, request: &Request, snapshot: Option<&Snapshot>) -> Result<Option<Answer>, Refusal> {
        let may_answer = !request.rules().other_writers
            && !request.conditions.is_empty()
            && request.is_named_by_head()
            && !wants_upstream(&request.head.headers);
        let Some(snapshot) = snapshot.filter(|_| may_answer) else { return Ok(None) };
        let Some(remembered) = self.knowledge.remembered(request, snapshot) else { return Ok(None) };
        let current = Representation::Present(remembered.validators.clone());
        match judge(&request.method, &request.conditions, &current, match_rule(request.rules())) {
            Judgement::NotModified => Ok(Some(confirm(request, Some(snapshot), remembered.fields.clone()))),
            Judgement::Failed { field, .. } => {
                let refusal = failed_read(&request.conditions, field, &current);
                Err(self.knowledge.explain(request, snapshot, refusal))
            }
            Judgement::Pass | Judgement::Unknowable => Ok(None),
        }
    }

    /// The head of the request to the upstream, without conditions that the upstream cannot judge, and without a
    /// range that may not apply.
    fn upstream_read_head(
        &self,
        request: &Request,
        snapshot: Option<&Snapshot>,
        body: &Body,
    ) -> Result<Box<RequestHeader>, Refusal> {
        let mut head = request_head(&request.head, body.len()).map_err(|error| refusals::of_head(&error))?;
        let needs_body = request.rules().etag.needs_body() || request.rules().tag_member.is_some();
        if needs_body && request.is_get_or_head() {
            // A tag of the bytes needs the bytes, for HEAD too, and so does the length of a body that has its tag.
            head.set_method(Method::GET);
            ask_for_identity(&mut head).map_err(|_error| refusals::of_field())?;
        }
        if request.rules().etag.is_upstreams_own() {
            let spelling = self.knowledge.spelling(request, snapshot);
            let seen = spelling.conditions_at_backend(&request.conditions);
            if !spelling.is_bare() || seen != request.conditions {
                show_tags_alone(&mut head, &seen);
            }
            if self.knowledge.tags_may_outlive_state(request, snapshot) {
                head.remove_header(&header::IF_NONE_MATCH);
            }
            // The upstream cannot know that the date may be that of an earlier state.
            if let Some(RangeCondition::Date(date)) = &request.conditions.if_range
                && !first_date(snapshot).may_be(*date)
            {
                head.remove_header(&header::RANGE);
                head.remove_header(&header::IF_RANGE);
            }
            return Ok(head);
        }
        remove_conditions(&mut head);
        let may_be_partial = match request.rules().etag {
            TagSource::Version => {
                snapshot.is_none_or(Snapshot::has_no_pending_writes)
                    && (request.conditions.if_range.is_none()
                        || self.knowledge.version_range_applies(request, snapshot))
            }
            TagSource::Header(_) => true,
            TagSource::Content | TagSource::Json(_) | TagSource::Upstream | TagSource::Delegate => false,
        };
        if !may_be_partial {
            head.remove_header(&header::RANGE);
        }
        Ok(head)
    }
}

/// True if an answer with this status shows that its client may read the resource, if there is one.
fn is_let(status: StatusCode, may_be_absent: bool) -> bool {
    let word = WordOfBackend::of_status(status);
    word == WordOfBackend::Shows
        || may_be_absent && word == WordOfBackend::Misses
        || matches!(status, StatusCode::NOT_MODIFIED | StatusCode::RANGE_NOT_SATISFIABLE)
}
