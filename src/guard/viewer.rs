//! The view of the resources that a list names, by their records. A list is forwarded while it arrives, so a view of it
//! outlives the verbs of the guard.

use std::sync::Arc;

use http::{Method, Version};
use pingora::http::RequestHeader;

use super::{claim::Claims, knowledge::Knowledge, request::Request, write::touches::host};
use crate::{
    core::{
        lease::PrincipalName,
        policy::TagSource,
        records::record::{Revision, Snapshot},
        resource::ResourceKey,
        tags::entity_tag::EntityTag,
    },
    routing::{
        door::{Door, Head, decide},
        table::RoutingTable,
    },
};

/// A view of the resources around that of a request, for its client.
pub(crate) struct Viewer {
    pub(super) request: Request,
    /// The head as the client sent it.
    pub(super) received: Arc<RequestHeader>,
    /// The newest revision that was seen before the upstream was asked.
    pub(super) newest: Revision,
    pub(super) knowledge: Arc<Knowledge>,
    pub(super) claims: Arc<Claims>,
    pub(super) table: Arc<RoutingTable>,
}

/// A resource, as its record shows it.
pub(crate) struct Viewed {
    /// The record.
    pub(crate) snapshot: Snapshot,
    /// True if the route of the request is its route too.
    pub(crate) is_of_route: bool,
}

impl Viewer {
    /// The client, as leases know it.
    pub(crate) fn reader(&self) -> PrincipalName {
        self.request.sender.principal.holder()
    }

    /// The host that the client used.
    pub(crate) fn host(&self) -> &str {
        host(&self.received)
    }

    /// True if collections can be leased with all below them.
    pub(crate) fn has_trees(&self) -> bool {
        self.request.has_trees()
    }

    /// The path by which the client knows the resource with this key.
    pub(crate) fn path_of(&self, key: &ResourceKey) -> Option<String> {
        self.request.path_of(key)
    }

    /// Returns the resource that a reference of the backend's names. `None`: no guarded resource, or the store does not
    /// tell.
    pub(crate) async fn view(&self, target: &[u8]) -> Option<Viewed> {
        let route = self.request.route();
        let mapped = (!route.mapping.is_identity()).then(|| route.mapping.to_client(target)).flatten();
        let target = mapped.as_deref().unwrap_or(target);
        let (headers, client) = (&self.received.headers, self.request.sender.address);
        let head = Head { method: &Method::GET, version: Version::HTTP_11, host: self.host(), target, headers, client };
        let Door::Guarded(found) = decide(&self.table, &head) else { return None };
        let is_of_route = found.route.name == route.name;
        let snapshot = self.knowledge.snapshot(&found.key).await.ok()?;
        Some(Viewed { snapshot, is_of_route })
    }

    /// Returns the tag that a read of a resource would answer, by the tag that a list of the backend tells. `None`: a list
    /// does not tell it. The tag of a state before a write that has ended meanwhile must not get the suffix of the state
    /// after it.
    pub(crate) fn issued(&self, viewed: &Viewed, listed: &EntityTag) -> Option<EntityTag> {
        let (rules, snapshot) = (self.request.rules(), &viewed.snapshot);
        let is_told = viewed.is_of_route
            && rules.etag == TagSource::Upstream
            && snapshot.has_no_pending_writes()
            && snapshot.touched() <= self.newest
            && self.claims.may_begin(snapshot).is_ok();
        if !is_told {
            return None;
        }
        self.knowledge.spelling(&self.request, Some(snapshot)).issued(listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{core::policy::GuardRules, guard::testing::Fixture, testing::guard};

    /// Rule 2: a list was made before a write, and the record is read after it. Both states have one tag at the backend.
    #[tokio::test]
    async fn a_list_gives_no_tag_to_a_state_that_it_does_not_show() {
        let rules = GuardRules { etag: TagSource::Upstream, ..guard() };
        let fixture = Fixture::with(rules).await;
        fixture.answer_reads(|_head| "HTTP/1.1 200 OK\r\nETag: \"t\"\r\nContent-Length: 1\r\n\r\n1".to_owned()).await;
        let listed = EntityTag::parse(b"\"t\"").expect("a tag");
        let first = fixture.tag().await;
        let before = fixture.viewer().await;
        assert_eq!(fixture.put(&first, "two").await.status, 204);
        assert_eq!(before.issued(&fixture.viewed().await, &listed), None, "the write has ended meanwhile");
        let after = fixture.viewer().await;
        let told = after.issued(&fixture.viewed().await, &listed);
        assert_eq!(
            told,
            EntityTag::parse(fixture.tag().await.as_bytes()).ok(),
            "the list shows the state of the record"
        );
    }
}
