//! The views of resources for the lists of the backend.

use std::sync::Arc;

use http::Method;

use super::{fixture::Fixture, message::head};
use crate::{
    body::Client as _,
    core::resource::ResourceKey,
    guard::{
        incoming,
        viewer::{Viewed, Viewer},
    },
    store::Store as _,
    testing,
};

impl Fixture {
    /// A view of the resources for a client that asks for a list now.
    pub(crate) async fn viewer(&self) -> Viewer {
        let (mut session, _client) = testing::arrived(&head("/doc", &Method::GET, "", 0)).await;
        let guarded = self.request(("doc", "/doc"), &Method::GET);
        let rules = guarded.route.guard.as_ref().expect("a guarded route");
        let call = rules.dialect.grammar().read(incoming(session.request(), &guarded), rules, false).expect("a read");
        let received = Arc::clone(session.head());
        let request = self.guards.request(&mut session, &guarded, rules, call).expect("a request");
        self.guards.viewer((request, received), self.guards.records().newest_seen())
    }

    /// Returns the resource, as its record shows it.
    pub(crate) async fn viewed(&self) -> Viewed {
        let snapshot = self.store.read(&ResourceKey::from_text("doc")).await.expect("a record");
        Viewed { snapshot, is_of_route: true }
    }
}
