//! The life of guarded requests (DESIGN, section 4).
//!
//! `Guard::serve` carries a request out by one verb. Reads run through `read`, writes and unclaimed writes through
//! `write`, and lease operations through `lease`. In each of these rooms, one function leads from the first look at the
//! record to the answer. `cors` answers preflights, and lets pages of other origins read answers. [`service`](crate::service)
//! carries out operations of several steps.

use std::sync::Arc;

use http::{Method, header};
use pingora::{ErrorType, http::RequestHeader};

use crate::{
    body::{Bodies, BodyBudget, BodyLimits, Client},
    box_future::box_future,
    config::Config,
    core::{policy::GuardRules, refusal::Refusal},
    dialect::Call,
    drain::{Gates, new_gates},
    routing::{GuardedRequest, table::RoutingTable},
    store::{Records, Store},
    telemetry::{activity::Activity, metrics::watch},
    upstream::{Exchanger, OwnCredentials, Transport, Upstreams},
};

mod answer;
mod claim;
mod cors;
mod destination;
mod handshake;
mod knowledge;
mod late_delete;
mod lease;
mod looks;
mod operator;
mod probe;
mod progress;
mod read;
mod received_client;
pub(crate) mod refusals;
mod request;
mod request_conditions;
mod request_trees;
mod seen_documents;
mod services;
mod tag_member;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod viewer;
mod watch_places;
mod watcher;
mod write;

pub use answer::{Answer, Pieces, Relayed};
pub(crate) use answer::{Halt, not_modified_head, remove_validators, while_client_waits};
pub(crate) use knowledge::principal::{Presented, Principal};
pub(crate) use knowledge::responses::not_modified_fields;
pub(crate) use knowledge::warn_once::WarnOnce;
pub use lease::untold::UntoldGrant;
pub(crate) use lease::{
    Operated, fresh_id,
    keeper::LeaseKeeper,
    member_lines::PlaceInLine,
    streamed::{Acquisition, LeasePlace, StreamedLease},
};
pub use operator::{Broken, Forgotten, NotBroken};
pub(crate) use probe::collection::TypeSeen;
pub(crate) use probe::head::ask_for_identity;
pub(crate) use probe::index::IndexDocument;
pub(crate) use read::{
    ranges::{label_part, label_unsatisfiable},
    settled::overtaken,
};
pub(crate) use received_client::ReceivedClient;
pub(crate) use refusals::{of_forwarded, of_head};
pub(crate) use request::{Request, incoming};
pub(crate) use request_conditions::remove_conditions;
pub(crate) use watch_places::WatchPlaces;
pub(crate) use watcher::{ContentLook, RightEnd, Watcher};
pub(crate) use write::several::WrittenMembers;
pub(crate) use write::touches::host;
pub(crate) use write::{WriteContent, WrittenContent, checksums};

use claim::Claims;
pub use claim::StartHold;
use cors::Cors;
use knowledge::Knowledge;
use lease::{Leases, usage::is_free_to_append};
use looks::SharedLooks;
use probe::Probes;
use progress::GenerationProgress;
use read::Reads;
use watcher::WatchRooms;
use write::{Writes, method_in_body::is_method_in_body};

/// The treatment of a request by the guard.
#[derive(Clone, Copy)]
pub(crate) enum Verb<'a> {
    /// Reading its resource.
    Read,
    /// Changing its resource, with the content that this source makes.
    Write(Option<&'a dyn WrittenContent>),
    /// Appending to its resource, beside other writes.
    Append,
    /// Using or showing the lease of its resource.
    Lease,
    /// Answering what pages of other origins may do with its resource, or with the lease.
    Preflight { is_of_lease: bool },
}

/// The handler of guarded requests under one configuration.
pub struct Guard {
    knowledge: Arc<Knowledge>,
    claims: Arc<Claims>,
    leases: Arc<Leases>,
    writes: Writes,
    reads: Reads,
    cors: Cors,
    exchanger: Arc<Exchanger>,
    progress: GenerationProgress,
}

impl Guard {
    /// Builds the guard of a proxy. Its marks carry `owner`, a random number, and it holds back guarded writes and
    /// grants for the time of `hold`. Requests go to the servers of `upstreams`. The guard finds the resources that a request
    /// names in `table`, the one in which its generation looks requests up.
    pub fn new(
        config: &Config,
        table: Arc<RoutingTable>,
        upstreams: Arc<Upstreams>,
        store: Arc<dyn Store>,
        owner: u64,
        hold: StartHold,
    ) -> Self {
        let exchanger = Arc::new(Exchanger::to(upstreams));
        let transport = Arc::clone(&exchanger) as Arc<dyn Transport>;
        Self::over((exchanger, transport), config, table, store, owner, hold)
    }

    /// Like [`Guard::new`], but guarded exchanges go through this transport.
    pub fn over(
        (connections, exchanger): (Arc<Exchanger>, Arc<dyn Transport>),
        config: &Config,
        table: Arc<RoutingTable>,
        store: Arc<dyn Store>,
        owner: u64,
        hold: StartHold,
    ) -> Self {
        let (server, records) = (&config.server, Records::new(store, config.store.timeout));
        let budget = Arc::new(BodyBudget::new(server.max_body_memory_total_bytes, server.max_spool_size_bytes));
        let bodies = Bodies::new(BodyLimits::of(server), Arc::clone(&budget));
        follow_trees(&records, config);
        let knowledge = Arc::new(Knowledge::new(records.clone()));
        let claims = Arc::new(Claims::new(records, owner, server.max_claim_waiters, hold));
        let probes = Arc::new(Probes::new(Arc::clone(&knowledge), Arc::clone(&exchanger), budget));
        let cors = Cors::new(Arc::clone(&exchanger), Arc::clone(&probes.origins), bodies.clone());
        let leases = Leases::new(Arc::clone(&knowledge), probes, Arc::clone(&claims), server.max_claim_waiters);
        let leases = Arc::new(leases);
        let (knowledge_of_all, probes, claims_of_all) = leases.rooms();
        let (knowledge_of_watches, looks) = (knowledge_of_all, SharedLooks::default());
        let watch_rooms = WatchRooms { knowledge: knowledge_of_watches, probes, claims: claims_of_all, looks };
        Self {
            knowledge,
            claims,
            writes: Writes::new(Arc::clone(&leases), Arc::clone(&exchanger), table, bodies.clone()),
            reads: Reads::new(Arc::clone(&leases), exchanger, bodies),
            leases,
            cors,
            exchanger: connections,
            progress: GenerationProgress::new(watch_rooms, server, new_gates(config.routes.len())),
        }
    }

    /// Returns the guard of another generation in the same process, with the gates of its routes. The two guards
    /// share their claims, their leases, their knowledge of resources and principals, and the total limits of all
    /// requests. So requests that they handle at the same time see each other.
    #[must_use]
    pub fn renewed(&self, config: &Config, table: Arc<RoutingTable>, gates: Gates) -> Self {
        follow_trees(&self.knowledge.records, config);
        let bodies = self.writes.bodies.with_limits(BodyLimits::of(&config.server));
        Self {
            knowledge: Arc::clone(&self.knowledge),
            claims: Arc::clone(&self.claims),
            leases: Arc::clone(&self.leases),
            writes: self.writes.renewed(table, bodies.clone()),
            cors: self.cors.renewed(bodies.clone()),
            reads: self.reads.renewed(bodies),
            exchanger: Arc::clone(&self.exchanger),
            progress: self.progress.renewed(&config.server, gates),
        }
    }

    /// Makes the guard note waits for an operator.
    #[must_use]
    pub fn noting(self, activity: Option<Arc<Activity>>) -> Self {
        if let Some(activity) = activity {
            self.claims.note_in(activity);
        }
        self
    }

    /// Gives the guard the proxy's own credentials, for the routes that probe with them. Guards that share knowledge
    /// share the credentials.
    #[must_use]
    pub fn probing_with(self, own: OwnCredentials) -> Self {
        self.leases.probes.probe_with(own);
        self
    }

    /// Returns the connections to the servers, for requests that are not guarded too.
    pub(crate) fn exchanger(&self) -> &Exchanger {
        &self.exchanger
    }

    /// Returns the upstreams and their servers.
    pub fn upstreams(&self) -> &Arc<Upstreams> {
        self.exchanger.upstreams()
    }

    /// Shows in the metrics what the requests of all generations hold and wait for.
    pub fn show(&self) {
        watch(&self.claims.queues);
        watch(&self.claims.reads);
        watch(&self.leases.queues);
        watch(&self.writes.bodies.budget);
        watch(self.upstreams());
    }

    /// Returns the gates of the routes.
    pub(crate) const fn gates(&self) -> &Gates {
        &self.progress.gates
    }

    /// True if the content of a request may name its resource or its method.
    pub(crate) fn is_named_by_content(client: &mut dyn Client, guarded: &GuardedRequest) -> bool {
        let may_name_method = guarded.methods.may_be(&[Method::POST]) && is_method_in_body(client, guarded);
        guarded.writes_to().is_some() && client.has_content() || may_name_method
    }

    /// Receives the content of a request of this kind. Returns the request as the content names it.
    pub(crate) async fn name_by_content<'a>(
        &self,
        client: &'a mut dyn Client,
        guarded: &GuardedRequest,
    ) -> Result<(ReceivedClient<'a>, GuardedRequest), Halt> {
        if guarded.writes_to().is_some() && client.has_content() {
            return self.writes.name_by_body(client, guarded).await;
        }
        self.writes.name_method_by_body(client, guarded, rules_of(guarded)?).await
    }

    /// Adds to an answer what does not depend on how the request was judged.
    pub(crate) async fn complete(
        &self,
        request: &RequestHeader,
        guarded: &GuardedRequest,
        answer: Result<Answer, Halt>,
    ) -> pingora::Result<Result<Answer, Refusal>> {
        let guard = rules_of(guarded)?;
        let mut answer = match answer {
            Ok(answer) => Ok(answer),
            Err(Halt::Denied(relayed)) => Ok(Answer::Relayed(relayed)),
            Err(Halt::Refused(mut refusal)) => {
                refusal.note_sent_tags(&request.headers);
                Err(refusal)
            }
            Err(Halt::Broken(error)) => return Err(error),
        };
        if request.headers.contains_key(header::ORIGIN) {
            Box::pin(self.cors.answer_origin(request, guarded, guard, &mut answer)).await?;
        }
        if let Ok(answer) = &mut answer {
            answer.mirror_tag(guard)?;
            if guarded.route.renames_resources() {
                answer.rewrite_references(&guarded.route, request)?;
            }
            answer.tell_date(guard)?;
        }
        if guard.tag_member.is_some() {
            // Boxed, so that the futures of other answers stay small.
            answer = Box::pin(self.with_tag_member(guarded, guard, answer)).await;
        }
        Ok(answer)
    }

    /// Serves a request by one verb, after the DELETE that may have waited for the last holder of the lease.
    pub(crate) async fn serve(
        &self,
        client: &mut dyn Client,
        request: &Request,
        verb: Verb<'_>,
    ) -> Result<Answer, Halt> {
        let may_wait = request.route().deletes_may_be_pending || request.destination().is_some();
        if may_wait {
            self.finish_expected_delete(client, request).await;
        }
        match self.serve_in_room(client, request, verb).await {
            Ok(answer) if !may_wait => Ok(answer),
            answer => self.finish_delete_after(client, request, matches!(verb, Verb::Lease), answer).await,
        }
    }

    /// Serves a request in the room of a verb.
    async fn serve_in_room(&self, client: &mut dyn Client, request: &Request, verb: Verb<'_>) -> Result<Answer, Halt> {
        match (verb, &request.rules().lease) {
            (Verb::Preflight { is_of_lease }, _) => Box::pin(self.cors.preflight(client, request, is_of_lease)).await,
            (Verb::Lease, Some(rules)) => box_future(|| self.leases.lease(client, request, rules)).await,
            (Verb::Read, _) if !request.is_get_or_head() => {
                // Only this configuration classes the method as a read; the next one may class it as a write.
                let pass = request.pass().await?;
                let answer = self.reads.read(client, request).await;
                drop(pass);
                answer
            }
            (Verb::Read, _) => self.reads.read(client, request).await,
            (Verb::Append, _) if is_free_to_append(request) => {
                box_future(|| self.writes.write_unclaimed(client, request)).await
            }
            // Boxed, so that the futures of reads stay small.
            (Verb::Write(content), _) => box_future(|| self.writes.write(client, request, content)).await,
            (Verb::Append | Verb::Lease, _) => box_future(|| self.writes.write(client, request, None)).await,
        }
    }

    /// Builds the request of a call. Its head names the resource as the upstream does.
    pub(crate) fn request(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        rules: &Arc<GuardRules>,
        call: Call,
    ) -> pingora::Result<Request> {
        let gate_of = |index: usize| self.progress.gates.get(index).cloned().unwrap_or_default();
        let at_destination = guarded.destination.as_ref().map(|other| (other, call.destination.clone()));
        let mut request = Request::new(client, guarded, (rules, gate_of(guarded.route_index)), call)?;
        if let Some((other, said)) = at_destination {
            let gate = gate_of(other.request.route_index);
            request.place.destination = Some(Box::new(request.at_destination(client, other, gate, said)?));
        }
        Ok(request)
    }
}

/// The rules of the route of a guarded request.
pub(crate) fn rules_of(guarded: &GuardedRequest) -> pingora::Result<&Arc<GuardRules>> {
    let explain = || pingora::Error::explain(ErrorType::InternalError, "the request's route is not guarded");
    guarded.route.guard.as_ref().ok_or_else(explain)
}

/// Lets all resources of the upstreams that have trees take them into account.
fn follow_trees(records: &Records, config: &Config) {
    let with_trees = config.routes.iter().filter(|route| route.has_trees);
    records.follow_trees(with_trees.map(|route| route.upstream.identity.as_str()));
}

#[cfg(test)]
mod dead_owner_tests;
#[cfg(test)]
mod dialect_tests;
#[cfg(test)]
mod keyed_write_tests;
#[cfg(test)]
mod lease_clock_tests;
#[cfg(test)]
mod lost_grant_tests;
#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod probe_tests;
#[cfg(test)]
mod recalled_record_tests;
#[cfg(test)]
mod reload_tests;
#[cfg(test)]
mod rights_tests;
#[cfg(test)]
mod settled_read_tests;
#[cfg(test)]
mod several_keys_tests;
#[cfg(test)]
mod staged_block_tests;
#[cfg(test)]
mod start_tests;
#[cfg(test)]
mod store_cost_tests;
#[cfg(test)]
mod store_failure_tests;
#[cfg(test)]
mod transfer_tests;
#[cfg(test)]
mod tree_lease_tests;
#[cfg(test)]
mod tree_tests;
#[cfg(test)]
mod tree_turn_tests;
#[cfg(test)]
mod turn_tests;
