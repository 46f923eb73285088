//! Other resources that a write changes: those that its route lists (`also_changes`), and those that its response names (RFC
//! 9111 section 4.4).
//!
//! # Design
//!
//! *Why are the listed ones marked together with the target?* A write of a listed one that was judged before, and is
//! applied after, would replace the change that this write has made to it. So the two exclude each other
//! (`claim/held.rs`).
//!
//! *Why are the named ones not marked?* Only the response names them. They are touched before the write is settled. So
//! by the time its client has the answer, no read of them is answered from memory with the old state.

use std::{borrow::Cow, sync::Arc};

use http::{HeaderMap, Method, StatusCode, Version, header};
use pingora::http::{RequestHeader, ResponseHeader};

use super::{Writes, send::end_of};
use crate::{
    core::{
        http::{
            client_address::ClientAddress,
            request_target::{KeptInNames, join_query, normalize, same_origin_target, split_query},
        },
        records::steps::touch,
        resource::{KeyParts, ResourceKey},
        route::WritesTo,
        tags::told_dates::WriteEnd,
    },
    guard::request::Request,
    routing::{
        door::{Door, Head, decide},
        table::{RoutingTable, TablePlace},
    },
    store::StoreError,
    upstream::references::reference_to_client,
};

/// The source of the keys of other resources.
pub(crate) struct Related {
    pub(super) table: Arc<RoutingTable>,
}

impl Related {
    /// Decides where a request goes that the guard has made, as the door does.
    pub(super) fn door(&self, method: &Method, head: &RequestHeader, client: ClientAddress) -> Door {
        let (host, target, headers) = (host(head), head.raw_path(), &head.headers);
        decide(&self.table, &Head { method, version: Version::HTTP_11, host, target, headers, client })
    }

    /// Returns the target that a template makes of these values of a body, with the query of the request.
    pub(super) fn written_to(&self, template: &WritesTo, head: &RequestHeader, values: &[String]) -> Option<Vec<u8>> {
        let (path, query) = split_query(head.raw_path());
        let path = normalize(path, KeptInNames::ALL).ok()?;
        let found = self.table.find(host(head), &path)?;
        let path = template.path(&found.captures, values)?;
        Some(join_query(path.as_str().as_bytes(), query))
    }

    /// Returns the key of a target under the request's own host, or `None` if no route enforces its guard.
    fn key(&self, host: &str, target: &[u8], headers: &HeaderMap) -> Option<ResourceKey> {
        let (path, query) = split_query(target);
        let path = normalize(path, KeptInNames::ALL).ok()?;
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
        let Ok(path) = normalize(path, KeptInNames::ALL) else { return Vec::new() };
        let host = host(&request.head);
        let Some(found) = self.table.find(host, &path) else { return Vec::new() };
        let paths = request.rules().also_changes.iter().filter_map(|template| template.path(&found.captures));
        let keys = paths.filter_map(|path| self.key(host, path.as_str().as_bytes(), &request.head.headers));
        others(request, keys)
    }

    /// The same for a COPY or MOVE, with those of the route of its destination. A COPY changes nothing by its source.
    fn touched_by_both(&self, request: &Request) -> Vec<ResourceKey> {
        let source = Some(request).filter(|source| !source.only_reads_target());
        let changed = source.into_iter().chain(request.destination());
        others(request, changed.flat_map(|changed| self.touched(changed)))
    }

    /// Returns the keys of the resources that a response names in its own origin.
    fn named(&self, request: &Request, response: &HeaderMap) -> Vec<ResourceKey> {
        let fields = [header::LOCATION, header::CONTENT_LOCATION];
        let references = fields.iter().filter_map(|name| response.get(name)?.to_str().ok());
        let target = client_target(request);
        let target = String::from_utf8_lossy(&target);
        let targets = references.filter_map(|reference| {
            let led_back = reference_to_client(reference, request.route(), host(&request.head));
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
        if request.destination().is_some() {
            return self.related.touched_by_both(request);
        }
        if request.rules().also_changes.is_empty() { Vec::new() } else { self.related.touched(request) }
    }

    /// Touches the resources that the response to a write names as changed (RFC 9111 section 4.4). This is a courtesy:
    /// if the store fails, the write has happened all the same.
    pub(crate) async fn touch_named(&self, request: &Request, response: &ResponseHeader) {
        if !is_success(response.status) {
            return;
        }
        for key in self.related.named(request, &response.headers) {
            if let Err(error) = self.touch_one(&key, end_of(request, response, None)).await {
                tracing::warn!(key = %key, %error, "cannot touch a resource that a response names as changed");
            }
        }
    }

    async fn touch_one(&self, key: &ResourceKey, end: Option<WriteEnd>) -> Result<(), StoreError> {
        self.knowledge.records.update(key, None, |snapshot| Some(touch(snapshot, end))).await.map(drop)
    }
}

/// True if a response reports a change (RFC 9111 section 4.4: a status that is no error).
fn is_success(status: StatusCode) -> bool {
    status.is_success() || status.is_redirection()
}

/// The host by which the door has found the route.
pub(crate) fn host(head: &RequestHeader) -> &str {
    head.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

/// The target by which the client knows the resource.
pub(super) fn client_target(request: &Request) -> Cow<'_, [u8]> {
    let (mapping, target) = (&request.route().mapping, request.head.raw_path());
    let mapped = (!mapping.is_identity()).then(|| mapping.to_client(target)).flatten();
    mapped.map_or(Cow::Borrowed(target), Cow::Owned)
}

/// Returns each key once, in the order of marks, without those that the request claims.
fn others(request: &Request, keys: impl Iterator<Item = ResourceKey>) -> Vec<ResourceKey> {
    let is_destination = |key: &ResourceKey| request.destination().is_some_and(|other| other.key == *key);
    let mut others: Vec<_> = keys.filter(|key| *key != request.key && !is_destination(key)).collect();
    others.sort_unstable_by(|one, other| other.cmp(one));
    others.dedup();
    others
}
