//! Other resources that a write changes: those that its route lists (`also_changes`), and those that its response names (RFC
//! 9111 section 4.4).
//!
//! # Design
//!
//! *Why does a touch never wait?* It is made under a claim. Two writes that touch each other's targets would wait for
//! each other's claims for ever. So a touch is marked beside any write in flight, like an unclaimed write, and a
//! claimed write that it meets keeps nothing of what it learned. A write that is about to claim waits for touches, and
//! holds nothing meanwhile. `claim/turn.rs` makes sure, before the claim, that a stream of touches starves no other
//! write.
//!
//! *Why are the named ones not marked?* Only the response names them. They are touched before the write is settled. So
//! by the time its client has the answer, no read of them is answered from memory with the old state.

use std::{borrow::Cow, sync::Arc};

use http::{HeaderMap, Method, StatusCode, Version, header};
use pingora::http::{RequestHeader, ResponseHeader};
use tokio::time::Instant;

use super::Writes;
use crate::{
    config::Config,
    core::{
        cause::Reason,
        client_address::ClientAddress,
        refusal::Refusal,
        resource::{KeyParts, ResourceKey},
        route::WritesTo,
        steps::{Outcome, touch},
        target::{PathParameters, join_query, normalize, same_origin_target, split_query},
    },
    guard::{
        claim::{Claim, Marked},
        refusals,
        request::Request,
    },
    routing::{
        door::{Door, Head, decide},
        table::{RoutingTable, TablePlace},
    },
    store::StoreError,
    upstream::references::reference_to_client,
};

/// The maximum number of attempts at a touch while other writes change the record. Each lost attempt lets another write
/// progress, so this many losses in a row mean that something is wrong.
const ATTEMPTS_MAX: usize = 1_000;

/// The source of the keys of other resources.
pub(crate) struct Related {
    pub(super) table: Arc<RoutingTable>,
}

impl Related {
    pub(crate) fn new(config: &Config) -> Self {
        Self { table: Arc::new(RoutingTable::new(&config.routes)) }
    }

    /// Decides where a request goes that the guard has made, as the door does.
    pub(super) fn door(&self, method: &Method, head: &RequestHeader, client: ClientAddress) -> Door {
        let (host, target, headers) = (host(head), head.raw_path(), &head.headers);
        decide(&self.table, &Head { method, version: Version::HTTP_11, host, target, headers, client })
    }

    /// Returns the target that a template makes of these values of a body, with the query of the request.
    pub(super) fn written_to(&self, template: &WritesTo, head: &RequestHeader, values: &[String]) -> Option<Vec<u8>> {
        let (path, query) = split_query(head.raw_path());
        let path = normalize(path, PathParameters::Keep).ok()?;
        let found = self.table.find(host(head), &path)?;
        let path = template.path(&found.captures, values)?;
        Some(join_query(path.as_str().as_bytes(), query))
    }

    /// Returns the key of a target under the request's own host, or `None` if no route enforces its guard.
    fn key(&self, host: &str, target: &[u8], headers: &HeaderMap) -> Option<ResourceKey> {
        let (path, query) = split_query(target);
        let path = normalize(path, PathParameters::Keep).ok()?;
        let found = self.table.find(host, &path)?;
        let TablePlace::Resource(_, route) = self.table.place(found.index) else { return None };
        route.enforced()?;
        let upstream_path = route.mapping.upstream_path(&path)?;
        let parts = KeyParts { host, path: &upstream_path, captures: &found.captures, query, headers };
        route.key.key(&route.upstream.identity, &parts).ok()
    }

    /// Returns the keys of the resources that the route lists as touched, each once, without the write's own key.
    fn touched(&self, request: &Request) -> Vec<ResourceKey> {
        let target = client_target(request);
        let (path, _) = split_query(&target);
        let Ok(path) = normalize(path, PathParameters::Keep) else { return Vec::new() };
        let host = host(&request.head);
        let Some(found) = self.table.find(host, &path) else { return Vec::new() };
        let paths = request.rules.also_changes.iter().filter_map(|template| template.path(&found.captures));
        let keys = paths.filter_map(|path| self.key(host, path.as_str().as_bytes(), &request.head.headers));
        others(request, keys)
    }

    /// Returns the keys of the resources that a response names in its own origin.
    fn named(&self, request: &Request, response: &HeaderMap) -> Vec<ResourceKey> {
        let fields = [header::LOCATION, header::CONTENT_LOCATION];
        let references = fields.iter().filter_map(|name| response.get(name)?.to_str().ok());
        let target = client_target(request);
        let target = String::from_utf8_lossy(&target);
        let targets = references.filter_map(|reference| {
            let led_back = reference_to_client(reference, &request.route, host(&request.head));
            same_origin_target(led_back.as_deref().unwrap_or(reference), host(&request.head), &target)
        });
        others(
            request,
            targets.filter_map(|target| self.key(host(&request.head), target.as_bytes(), &request.head.headers)),
        )
    }
}

impl Writes {
    /// Returns the resources that the route lists as touched by the write.
    pub(crate) fn touched(&self, request: &Request) -> Vec<ResourceKey> {
        if request.rules.also_changes.is_empty() { Vec::new() } else { self.related.touched(request) }
    }

    /// Marks the touched resources, and ties these marks to the claim. If that fails, nothing is sent.
    pub(crate) async fn mark_related(
        &self,
        request: &Request,
        touched: &[ResourceKey],
        mut claim: Claim,
    ) -> Result<Claim, Refusal> {
        for key in touched {
            match self.mark_one(request, key).await {
                Ok(mark) => claim.add_related(mark),
                Err(refusal) => {
                    claim.settle(Outcome::NotApplied, None).await;
                    return Err(refusal);
                }
            }
        }
        Ok(claim)
    }

    async fn mark_one(&self, request: &Request, key: &ResourceKey) -> Result<Claim, Refusal> {
        for _ in 0..ATTEMPTS_MAX {
            let since = Instant::now();
            let snapshot = self.claims.take_over_dead(key, None).await.map_err(|error| refusals::of_store(&error))?;
            let marked = self.claims.mark_touched(request, key, (&snapshot, since)).await;
            match marked.map_err(|error| refusals::of_store(&error))? {
                Marked::Done(mark) => return Ok(mark),
                Marked::Full => return Err(refusals::too_many_unclaimed()),
                Marked::Conflict(_) => {}
            }
        }
        Err(refusals::write_in_flight(refusals::RETRY_SOON, Reason::WriteInFlight))
    }

    /// Touches the resources that the response to a write names as changed (RFC 9111 section 4.4). This is a courtesy:
    /// if the store fails, the write has happened all the same.
    pub(crate) async fn touch_named(&self, request: &Request, response: &ResponseHeader) {
        if !is_success(response.status) {
            return;
        }
        for key in self.related.named(request, &response.headers) {
            if let Err(error) = self.touch_one(&key).await {
                tracing::warn!(key = ?key, %error, "cannot touch a resource that a response names as changed");
            }
        }
    }

    async fn touch_one(&self, key: &ResourceKey) -> Result<(), StoreError> {
        self.knowledge.records.update(key, None, |snapshot| Some(touch(snapshot))).await.map(drop)
    }
}

/// Whether a response reports a change (RFC 9111 section 4.4: a status that is no error).
fn is_success(status: StatusCode) -> bool {
    status.is_success() || status.is_redirection()
}

/// The host by which the door has found the route.
fn host(head: &RequestHeader) -> &str {
    head.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

/// The target by which the client knows the resource.
pub(super) fn client_target(request: &Request) -> Cow<'_, [u8]> {
    let (mapping, target) = (&request.route.mapping, request.head.raw_path());
    let mapped = (!mapping.is_identity()).then(|| mapping.to_client(target)).flatten();
    mapped.map_or(Cow::Borrowed(target), Cow::Owned)
}

/// Returns each key once, without that of the request itself.
fn others(request: &Request, keys: impl Iterator<Item = ResourceKey>) -> Vec<ResourceKey> {
    let mut others = Vec::new();
    for key in keys {
        if key != request.key && !others.contains(&key) {
            others.push(key);
        }
    }
    others
}
