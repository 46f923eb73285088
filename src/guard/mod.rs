//! Section 4 of the design as code: the life of guarded requests.
//!
//! [`Guard::handle`] is the way in. A read runs through `read`, a write through `write`, a write that is judged by
//! nothing through `unclaimed`; each is one function from the first look at the record to the answer.

use std::{borrow::Cow, sync::Arc};

use http::header;
use pingora::{ErrorType, http::RequestHeader};

use crate::{
    body::{Body, BodyBudget, BodyLimits, Client, MemoryUse, receive},
    box_future::box_future,
    config::{self, Config, Route},
    core::{
        cors::is_preflight,
        policy::{Dialect, ErrorShape, GuardRules, MethodClass},
        precondition::Preconditions,
        record::Snapshot,
        refusal::{Code, Refusal},
        resource::ResourceKey,
        time::StoreTime,
    },
    dialect::{native::presented_id, s3},
    drain::{Gate, Gates, new_gates},
    routing::GuardedRequest,
    store::{Records, Store, StoreError},
    telemetry::{activity::Activity, metrics::watch},
    upstream::{Exchanger, Signer, Transport, Upstreams},
};

mod answer;
mod azure;
mod azure_parts;
mod claim;
mod cors;
mod handshake;
mod knowledge;
mod lease;
mod operator;
mod probe;
mod read;
mod refusals;
mod request;
#[cfg(test)]
mod testing;
mod write;

pub use answer::{Answer, Relayed};
pub use operator::{Forgotten, NotBroken};

use claim::{Marker, queue::Queues};
use cors::Origins;
use knowledge::{issued_tags::IssuedTags, principal::ReadGrants, responses::Memory};
use lease::{quota::LeaseQuota, usage::is_free_to_append};
use read::{unstable_tags::UnstableTags, warn_once::WarnOnce};
use request::{Received, Request, name_resource};
use write::{idempotency::Replays, touches::Related};

/// Everything that guarded requests share.
pub struct Guard {
    records: Records,
    marker: Arc<Marker>,
    queues: Arc<Queues>,
    lease_queues: Arc<Queues>,
    lease_quota: Arc<LeaseQuota>,
    replays: Arc<Replays>,
    upstreams: Arc<Upstreams>,
    exchanger: Arc<dyn Transport>,
    signer: Option<Arc<Signer>>,
    memory: Arc<Memory>,
    issued: Arc<IssuedTags>,
    unstable_tags: Arc<UnstableTags>,
    related: Related,
    warn_once: WarnOnce,
    origins: Arc<Origins>,
    read_grants: Arc<ReadGrants>,
    activity: Option<Arc<Activity>>,
    body_limits: BodyLimits,
    body_budget: Arc<BodyBudget>,
    gates: Gates,
    /// Until when guarded writes and grants are held back after the start.
    held_until: StoreTime,
}

impl Guard {
    /// The guard of a proxy, which makes its marks in the name of `owner`, a random number, and holds guarded writes and
    /// grants back until `held_until`. Requests go to servers of these upstreams.
    pub fn new(
        config: &Config,
        upstreams: Arc<Upstreams>,
        store: Arc<dyn Store>,
        owner: u64,
        held_until: StoreTime,
    ) -> Self {
        let exchanger = Arc::new(Exchanger::to(Arc::clone(&upstreams)));
        Self::over((upstreams, exchanger), config, store, owner, held_until)
    }

    /// The same, where exchanges with these upstreams take this way.
    pub fn over(
        (upstreams, exchanger): (Arc<Upstreams>, Arc<dyn Transport>),
        config: &Config,
        store: Arc<dyn Store>,
        owner: u64,
        held_until: StoreTime,
    ) -> Self {
        let server = &config.server;
        let records = Records::new(store, config.store.timeout);
        Self {
            marker: Arc::new(Marker::new(records.clone(), owner)),
            records,
            queues: Arc::new(Queues::new(server.claim_waiters_max)),
            lease_queues: Arc::new(Queues::for_leases(server.claim_waiters_max)),
            lease_quota: Arc::default(),
            replays: Arc::new(Replays::new()),
            upstreams,
            exchanger,
            signer: None,
            memory: Arc::new(Memory::new()),
            issued: Arc::new(IssuedTags::new()),
            unstable_tags: Arc::new(UnstableTags::new()),
            related: Related::new(config),
            warn_once: WarnOnce::default(),
            origins: Arc::new(Origins::new()),
            read_grants: Arc::new(ReadGrants::new()),
            activity: None,
            body_limits: body_limits(server),
            body_budget: Arc::new(BodyBudget::new(server.body_memory_total_bytes, server.spool_total_bytes)),
            gates: new_gates(config.routes.len()),
            held_until,
        }
    }

    /// The same, where what happens is noted for an operator.
    #[must_use]
    pub fn noting(self, activity: Option<Arc<Activity>>) -> Self {
        Self { activity, ..self }
    }

    /// The guard of another configuration in the same process. It shares with this one all that is known of resources and
    /// of those who use them, and the limits on what all requests hold together; so a request that this one still
    /// handles, and one that the other does, see each other. The gates are those of its routes.
    #[must_use]
    pub fn renewed(&self, config: &Config, gates: Gates) -> Self {
        Self {
            records: self.records.clone(),
            marker: Arc::clone(&self.marker),
            queues: Arc::clone(&self.queues),
            lease_queues: Arc::clone(&self.lease_queues),
            lease_quota: Arc::clone(&self.lease_quota),
            replays: Arc::clone(&self.replays),
            upstreams: Arc::clone(&self.upstreams),
            exchanger: Arc::clone(&self.exchanger),
            signer: self.signer.clone(),
            memory: Arc::clone(&self.memory),
            issued: Arc::clone(&self.issued),
            unstable_tags: Arc::clone(&self.unstable_tags),
            related: Related::new(config),
            warn_once: WarnOnce::default(),
            origins: Arc::clone(&self.origins),
            read_grants: Arc::clone(&self.read_grants),
            activity: self.activity.clone(),
            body_limits: body_limits(&config.server),
            body_budget: Arc::clone(&self.body_budget),
            gates,
            held_until: self.held_until,
        }
    }

    /// The servers of its upstreams.
    pub fn upstreams(&self) -> &Arc<Upstreams> {
        &self.upstreams
    }

    /// Shows in the metrics what requests hold and wait for, by whatever generation they are handled.
    pub fn show(&self) {
        watch(&self.queues);
        watch(&self.lease_queues);
        watch(&self.body_budget);
        watch(self.upstreams());
    }

    /// The gates of its routes.
    pub(crate) fn gates(&self) -> Gates {
        Arc::clone(&self.gates)
    }

    /// The route of a request, and its gate.
    fn place(&self, guarded: &GuardedRequest) -> (Arc<Route>, Arc<Gate>) {
        (Arc::clone(&guarded.route), self.gates.get(guarded.route_index).cloned().unwrap_or_default())
    }

    /// Handles one request, up to the answer that its client is to get. An error: there is nobody to answer.
    pub fn handle<'a>(
        &'a self,
        client: &'a mut dyn Client,
        guarded: &'a GuardedRequest,
    ) -> impl Future<Output = pingora::Result<Answer>> + Send + 'a {
        box_future(|| self.handle_request(client, guarded))
    }

    async fn handle_request(&self, client: &mut dyn Client, guarded: &GuardedRequest) -> pingora::Result<Answer> {
        let Some(guard) = guarded.route.guard.as_ref() else {
            return pingora::Error::e_explain(ErrorType::InternalError, "the door sends only guarded routes here");
        };
        let mut answer = self.answer(client, guarded, guard).await.unwrap_or_else(|answer| answer);
        let request = client.head();
        if request.headers.contains_key(header::ORIGIN) {
            Box::pin(self.answer_origin(request, guarded, guard, &mut answer)).await?;
        }
        answer.mirror_tag(guard)?;
        answer.rewrite_references(&guarded.route, client.head())?;
        answer.tell_date(guard)?;
        Ok(answer)
    }

    async fn answer(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        guard: &Arc<GuardRules>,
    ) -> Result<Answer, Answer> {
        if let Some(rules) = guard.lease.as_ref().filter(|rules| rules.dialect == Dialect::Azure) {
            return Box::pin(self.answer_in_azure(client, guarded, guard, rules)).await;
        }
        let mut head = client.head().clone();
        let class = guard.class_of(&guarded.method);
        let leases = guard.lease.as_ref();
        let lease_id = presented_id(&head.headers)?;
        // From here on the request is about the resource.
        name_resource(&mut head, guarded)?;
        let mut stated = Cow::Borrowed(&head.headers);
        if guard.errors == ErrorShape::S3 {
            s3::refuse_unguardable(&guarded.method, head.raw_path(), &head.headers, &guard.etag)?;
            stated = s3::quoted(&head.headers);
        }
        let conditions = match class {
            MethodClass::Read => Preconditions::parse_for_read(&stated),
            _ => Preconditions::parse(&stated)
                .map_err(|malformed| Refusal::new(Code::MalformedPrecondition, malformed.to_string()))?,
        };
        let head = Received::of(client, head, guarded.client);
        let (key, method) = (guarded.key.clone(), guarded.method.clone());
        let request = Request::new(self.place(guarded), guard, key, method, head, conditions, lease_id);
        match (class, leases) {
            (MethodClass::Unjudged, _) if is_preflight(&request.head.headers) => {
                Box::pin(self.preflight(client, &request, guarded.is_lease)).await
            }
            (_, Some(rules)) if guarded.is_lease => Box::pin(self.lease(client, &request, rules)).await,
            (MethodClass::Read, _) if !request.is_get_or_head() => {
                // Whether that method reads is for this configuration to say; the next one may call it a write.
                let pass = request.pass().await?;
                let answer = self.read(client, &request).await;
                drop(pass);
                answer
            }
            (MethodClass::Read, _) => self.read(client, &request).await,
            _ if is_free_to_append(&request, class) => Box::pin(self.write_unclaimed(client, &request)).await,
            // The door lets no other class through to here.
            _ => self.write(client, &request).await,
        }
    }

    async fn snapshot(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        self.records.read(key).await
    }

    /// The record, for a request that cannot go on without it (rule 12).
    async fn record(&self, request: &Request) -> Result<Snapshot, Refusal> {
        self.snapshot(&request.key).await.map_err(|error| refusals::of_store(&error))
    }

    /// Receives the request body, all of it.
    async fn receive(&self, client: &mut dyn Client) -> Result<Body, Answer> {
        receive(client, &self.body_limits, &self.body_budget).await.map_err(refusals::of_body)
    }

    /// What all bodies may hold, for one of this use.
    fn budget_for(&self, purpose: MemoryUse) -> (&Arc<BodyBudget>, MemoryUse) {
        (&self.body_budget, purpose)
    }

    /// Whether the body of a request is worth a question to the upstream before it is received.
    fn is_costly(&self, head: &RequestHeader) -> bool {
        let headers = &head.headers;
        let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        headers.contains_key(header::EXPECT)
            || length.is_some_and(|length| length > self.body_limits.memory_bytes as u64)
    }

    fn was_let_read(&self, request: &Request, snapshot: &Snapshot) {
        self.read_grants.was_let_read(&request.key, request.principal, snapshot.now, request.rules.identity_ttl);
    }
}

fn body_limits(server: &config::Server) -> BodyLimits {
    BodyLimits {
        memory_bytes: server.body_memory_bytes,
        max_bytes: server.body_max_bytes,
        timeout: server.body_timeout,
        spool_dir: server.spool_dir.clone(),
    }
}

#[cfg(test)]
mod dead_owner_tests;
#[cfg(test)]
mod lease_clock_tests;
#[cfg(test)]
mod lost_grant_tests;
#[cfg(test)]
mod start_tests;
#[cfg(test)]
mod store_cost_tests;
#[cfg(test)]
mod store_failure_tests;
