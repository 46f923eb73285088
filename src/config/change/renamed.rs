//! The names that a reload changes beside the routes themselves: those of the resources that a route's writes touch,
//! and of the servers behind the identities of upstreams.

use std::{collections::HashSet, ptr, sync::Arc};

use super::{RelatedRoutes, Route, exclude_alike, exclusion};
use crate::{
    config::{Upstream, validate::addresses::ServerPlaces},
    core::route::{HostPattern, PathPattern},
};

/// Returns whether writes on the old route mark the same records of other resources as those on the new one do. If not,
/// a write in flight would not be seen by writes of those resources that begin after the reload.
pub(super) fn touch_alike(old: (&Route, &RelatedRoutes<'_>), new: (&Route, &RelatedRoutes<'_>)) -> bool {
    let templates = |route: &Route| route.enforced().map(|guard| guard.also_changes.clone()).unwrap_or_default();
    let touched = templates(old.0);
    let is_alike = |before: &&Arc<Route>, after: &&Arc<Route>| {
        (&before.host, &before.path) == (&after.host, &after.path) && exclude_alike(before, after)
    };
    let are_reached_alike = |paths: &PathPattern| {
        let (before, after) = (old.1.reached(paths), new.1.reached(paths));
        before.len() == after.len() && before.iter().all(|before| after.iter().any(|after| is_alike(before, after)))
    };
    // Equal templates are filled from the captures of the route's own path.
    touched == templates(new.0)
        && (touched.is_empty() || old.0.path == new.0.path)
        && touched.iter().all(|template| are_reached_alike(template.pattern()))
}

impl<'a> RelatedRoutes<'a> {
    /// Returns the guarded routes to which requests for these paths may go.
    fn reached(&self, paths: &PathPattern) -> Vec<&'a Arc<Route>> {
        let places = self.by_client.overlapping(&HostPattern::Any, paths);
        let routes = places.into_iter().filter_map(|place| self.routes.get(place));
        routes.filter(|route| exclusion(route).is_some()).collect()
    }
}

/// The upstreams whose servers a reload gives to another identity. The records of that identity know nothing of the
/// writes that were sent to these servers before.
#[derive(Default)]
pub(super) struct MovedServers {
    /// The old upstreams with such a server.
    left: HashSet<*const Upstream>,
    /// The ones among them whose server goes to an upstream of a guarded route.
    left_to_guarded: HashSet<*const Upstream>,
    /// The new upstreams with such a server.
    gained: HashSet<*const Upstream>,
}

impl MovedServers {
    /// Compares the servers of these routes. `old` may have routes of still earlier configurations.
    pub(super) fn between<'a>(old: impl Iterator<Item = &'a Arc<Route>> + Clone, new: &'a [Arc<Route>]) -> Self {
        let (before, after) = (distinct(old), distinct(new.iter()));
        let is_kept =
            |to: &&Upstream| before.iter().any(|from| (&from.identity, &from.servers) == (&to.identity, &to.servers));
        let mut moved = Self::default();
        if after.iter().all(is_kept) {
            return moved;
        }
        let places = ServerPlaces::of(before.iter().chain(&after).copied());
        let has = |upstream: &Upstream, to: &Upstream, server: &String| {
            upstream.servers.iter().any(|other| places.are_one((upstream, other), (to, server)))
        };
        let knows =
            |from: &&Upstream, to: &Upstream, server: &String| from.identity == to.identity && has(from, to, server);
        let guarded = distinct(new.iter().filter(|route| exclusion(route).is_some()));
        for to in after {
            let new_servers: Vec<_> =
                to.servers.iter().filter(|server| !before.iter().any(|from| knows(from, to, server))).collect();
            for from in &before {
                if from.identity != to.identity && new_servers.iter().any(|server| has(from, to, server)) {
                    moved.left.insert(ptr::from_ref(*from));
                    moved.gained.insert(ptr::from_ref(to));
                    if guarded.iter().any(|guarded| ptr::eq(*guarded, to)) {
                        moved.left_to_guarded.insert(ptr::from_ref(*from));
                    }
                }
            }
        }
        moved
    }

    /// Returns whether writes on this old route may reach a server that has another identity from now on, and some
    /// route guards its resources.
    pub(super) fn are_behind(&self, old: &Route) -> bool {
        let upstream = Arc::as_ptr(&old.upstream);
        self.left_to_guarded.contains(&upstream) || exclusion(old).is_some() && self.left.contains(&upstream)
    }

    /// Returns whether this new route gets a server that had another identity.
    pub(super) fn come_to(&self, new: &Route) -> bool {
        self.gained.contains(&Arc::as_ptr(&new.upstream))
    }
}

/// Returns the upstreams of these routes, each once.
fn distinct<'a>(routes: impl Iterator<Item = &'a Arc<Route>>) -> Vec<&'a Upstream> {
    let mut seen = HashSet::new();
    routes.map(|route| &*route.upstream).filter(|upstream| seen.insert(ptr::from_ref(*upstream))).collect()
}
