//! The life of a guarded write (DESIGN, section 4, "Write"): one function from the first verdict to the answer.

use std::sync::Arc;

use http::Method;
use pingora::http::RequestHeader;
use tokio::time::Instant;

use super::{
    Answer, Halt, claim::Claims, knowledge::Knowledge, lease::Leases, probe::Probes, refusals, request::Request,
};
use crate::{
    body::{Bodies, Body, BoxFuture, Client},
    box_future::box_future,
    core::http::client_address::ClientAddress,
    routing::{door::Door, table::RoutingTable},
    store::Sighting,
    telemetry::Step,
    upstream::Transport,
};
use admit::Admission;
use idempotency::{Beginning, KeyedWrite, Replays, WriteKey, key_of_write};
use members::FoundBelow;
use parts::DocumentParts;
use repeated::may_be_done;
use send::head_of_write;
use touches::Related;

pub(crate) mod admit;
pub(crate) mod checksums;
mod deferred;
mod description;
mod destination;
mod exchange;
pub(crate) mod idempotency;
mod judge;
mod members;
mod membership;
pub(crate) mod method_in_body;
pub(crate) mod named_by_body;
pub(crate) mod new_state;
mod parts;
mod repeated;
mod rights;
pub(crate) mod send;
pub(crate) mod several;
pub(crate) mod touches;
pub(crate) mod unclaimed;

/// The source of what a write sends, if that is not what its request brings.
pub(crate) trait WrittenContent: Sync {
    /// Returns the content of a write whose request has brought this.
    fn written<'a>(&'a self, request: &'a Request, received: Body) -> BoxFuture<'a, Result<WriteContent, Halt>>;
}

/// The content that a write sends, and the request that goes with it.
pub(crate) struct WriteContent {
    /// The content.
    pub(crate) body: Body,
    /// The request as its content has completed it: the source may describe the resource too.
    pub(crate) request: Option<Box<Request>>,
}

impl From<Body> for WriteContent {
    fn from(body: Body) -> Self {
        Self { body, request: None }
    }
}

/// Guarded writes under one configuration.
pub(crate) struct Writes {
    knowledge: Arc<Knowledge>,
    probes: Arc<Probes>,
    claims: Arc<Claims>,
    leases: Arc<Leases>,
    exchanger: Arc<dyn Transport>,
    replays: Replays,
    related: Related,
    /// The budgets of bodies.
    pub(crate) bodies: Bodies,
}

impl Writes {
    /// Creates the room of writes. `leases` and its rooms judge the writes, `exchanger` sends them.
    pub(crate) fn new(
        leases: Arc<Leases>,
        exchanger: Arc<dyn Transport>,
        table: Arc<RoutingTable>,
        bodies: Bodies,
    ) -> Self {
        let (knowledge, probes, claims) = leases.rooms();
        let (replays, related) = (Replays::new(knowledge.records.are_shared()), Related { table });
        Self { knowledge, probes, claims, leases, exchanger, replays, related, bodies }
    }

    /// Returns the writes of another generation. Both recognise retries of each other's writes.
    pub(crate) fn renewed(&self, table: Arc<RoutingTable>, bodies: Bodies) -> Self {
        let replays = self.replays.clone();
        Self { replays, ..Self::new(Arc::clone(&self.leases), Arc::clone(&self.exchanger), table, bodies) }
    }

    /// Returns the table of the routes.
    pub(crate) const fn table(&self) -> &Arc<RoutingTable> {
        &self.related.table
    }

    /// Decides where a request goes that the guard has made, as the door does.
    pub(crate) fn door(&self, method: &Method, head: &RequestHeader, client: ClientAddress) -> Door {
        self.related.door(method, head, client)
    }

    /// Handles a write from its first verdict to the answer. The claim never waits for the client: the whole body
    /// arrives before the claim is taken, and the claim is released before the answer is written.
    pub(crate) async fn write(
        &self,
        client: &mut dyn Client,
        request: &Request,
        content: Option<&dyn WrittenContent>,
    ) -> Result<Answer, Halt> {
        let mut key = key_of_write(client, request)?;
        let is_costly = self.bodies.is_costly(&client.head().headers);
        let early = match self.judge_unless_retry(request, is_costly, key.as_mut()).await {
            Err(refused) if may_be_done(request, &refused) => None,
            judged => judged?,
        };
        // Boxed, so that a refusal from memory need not make room for an exchange.
        box_future(|| self.write_named(client, request, (key, early), content)).await
    }

    async fn write_named(
        &self,
        client: &mut dyn Client,
        request: &Request,
        (key, early): (Option<WriteKey>, Option<Sighting>),
        content: Option<&dyn WrittenContent>,
    ) -> Result<Answer, Halt> {
        let body = self.bodies.receive(client).await.map_err(refusals::of_body)?;
        if !request.content.checksums.is_empty() {
            checksums::check(request, &request.content.checksums, &body).await?;
        }
        // A retry is recognised by what its request has brought: what that stands for may be gone.
        let mut attempt = match self.begin(key, client.head(), request, &body).await? {
            Beginning::First(attempt) => attempt,
            Beginning::Replayed(answer) => return Ok(answer),
        };
        let written = match content {
            Some(content) => content.written(request, body).await,
            None => Ok(body.into()),
        };
        let answer = match written {
            Ok(WriteContent { body, request: completed }) => {
                let request = completed.as_deref().unwrap_or(request);
                self.write_to_upstream(request, early, &body, &mut attempt).await
            }
            Err(refused) => Err(refused),
        };
        attempt.end(&answer).await;
        answer
    }

    async fn write_to_upstream(
        &self,
        request: &Request,
        early: Option<Sighting>,
        body: &Body,
        attempt: &mut KeyedWrite,
    ) -> Result<Answer, Halt> {
        let head = head_of_write(request, body)?;
        let description = request.content.description.as_ref();
        let described = description.map(|description| DocumentParts::of(request, description)).transpose()?;
        let end = Instant::now() + request.rules().claim.max_wait;
        let step = Step::begin("claim");
        let touched = self.touched(request);
        let (mut early, mut trees) = (early, Vec::new());
        if request.place.removes_tree {
            trees.extend(request.named_tree()?);
        }
        loop {
            self.must_know_of_line(request, early.as_ref(), &touched).await?;
            let mut places = self.claims.stand_to_claim(request, (&touched, trees), end).await?;
            // A write that had its turn meanwhile has changed the record.
            let known = early.take().filter(|_| !places.came_after_others());
            // Taken only after the wait in line: a reload waits for all writes with a pass, but not for those in line.
            let pass = request.pass().await?;
            let mut admitted = match self.admit(request, known, &mut places, end).await {
                Ok(Admission::Admitted(admitted)) => admitted,
                Ok(Admission::Deferred(answer)) => return Ok(answer),
                Err(refused) if may_be_done(request, &refused) => {
                    // Boxed, so that the futures of other writes stay small.
                    return Box::pin(self.answer_if_done(request, body, refused)).await;
                }
                Err(refused) => return Err(refused),
            };
            places.step_aside();
            if request.may_change_members() || !places.trees.is_empty() {
                admitted.claim = match self.hold_members(request, admitted.claim, &places.trees, end).await? {
                    FoundBelow::Held(claim) => claim,
                    FoundBelow::Of(found) => {
                        trees = found;
                        continue;
                    }
                };
            }
            drop(step);
            let answer = self.exchange_under_claim(request, *admitted, (head, body, described), attempt).await;
            drop((pass, places));
            return answer;
        }
    }
}
