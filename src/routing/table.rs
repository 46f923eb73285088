//! The table in which the door looks up requests: each route, and beside it the leases and the watches of its resources.

use std::{collections::BTreeMap, sync::Arc};

use super::guarded::Facet;
use crate::{
    config::{DEFAULT_LEASE_PREFIX, Route},
    core::{
        http::request_target::{KeptInNames, NormalPath, normalize},
        policy::{GuardRules, LeaseRules},
        route::{HostPattern, PathPattern, RouteMatch, RouteTable},
    },
};

/// The meaning of a place in the table.
#[derive(Clone, Copy, Debug)]
pub enum TablePlace<'a> {
    /// A resource of a route.
    Resource(usize, &'a Arc<Route>),
    /// The lease of a resource of a route, in the native dialect.
    Lease(usize, &'a Arc<Route>, &'a LeaseRules),
    /// A resource of a route, to be watched.
    Watch(usize, &'a Arc<Route>, &'a GuardRules),
    /// A path below the prefix of leases or watches that names neither. It must not reach anything behind the proxy: a
    /// client that mistypes the lease of a resource would write to another one.
    Nothing,
}

/// The table of all routes, with the routes themselves.
#[derive(Debug)]
pub struct RoutingTable {
    patterns: RouteTable,
    routes: Vec<Arc<Route>>,
    /// The routes whose leases or watches have paths of their own, in the order of these paths among the patterns.
    prefixed: Vec<(usize, Facet)>,
}

impl RoutingTable {
    /// Builds the table of these routes.
    pub fn new(routes: &[Arc<Route>]) -> Self {
        let mut patterns: Vec<(HostPattern, PathPattern)> =
            routes.iter().map(|route| (route.host.clone(), route.path.clone())).collect();
        let (mut prefixed, mut by_prefix) = (Vec::new(), BTreeMap::new());
        for (index, route) in routes.iter().enumerate() {
            for (facet, prefix) in prefixes_of(route) {
                // The configuration accepts only a prefix in normal form.
                let Some(prefix) = normal_prefix(prefix) else { continue };
                prefixed.push((index, facet));
                patterns.push((route.host.clone(), route.path.under(&prefix)));
                let place = (route.host.to_string(), prefix.as_str().to_owned());
                let (_, _, in_any_case) = by_prefix.entry(place).or_insert((route.host.clone(), prefix, false));
                *in_any_case |= route.path.ignores_case();
            }
        }
        if let Ok(anything) = PathPattern::parse("/{*rest}") {
            let in_any_case = anything.ignoring_case();
            patterns.extend(by_prefix.into_values().map(|(host, prefix, ignores_case)| {
                (host, if ignores_case { &in_any_case } else { &anything }.under(&prefix))
            }));
        }
        Self { patterns: RouteTable::new(patterns), routes: routes.to_vec(), prefixed }
    }

    /// Returns the routes, in the order of the file.
    pub fn routes(&self) -> &[Arc<Route>] {
        &self.routes
    }

    /// Returns the place that a request takes, by its host as received and its path in normal form.
    pub fn find<'a>(&'a self, host: &str, path: &'a NormalPath) -> Option<RouteMatch<'a>> {
        self.patterns.find(host, path)
    }

    /// Returns the place that a path takes as spelled ([`RouteTable::find_raw`]).
    pub fn find_raw(&self, host: &str, path: &[u8]) -> Option<usize> {
        self.patterns.find_raw(host, path)
    }

    /// Returns what the place of this index stands for.
    pub fn place(&self, index: usize) -> TablePlace<'_> {
        if let Some(route) = self.routes.get(index) {
            return TablePlace::Resource(index, route);
        }
        let prefixed = self.prefixed.get(index - self.routes.len()).and_then(|&(route_index, facet)| {
            let route = self.routes.get(route_index)?;
            Some(match facet {
                Facet::Resource => TablePlace::Resource(route_index, route),
                Facet::Lease => TablePlace::Lease(route_index, route, lease_rules(route)?),
                Facet::Watch => TablePlace::Watch(route_index, route, route.guard.as_ref()?),
            })
        });
        prefixed.unwrap_or(TablePlace::Nothing)
    }

    /// True if a path is a prefix of watches, under which a query can name several resources.
    pub fn is_watch_prefix(&self, path: &NormalPath) -> bool {
        let mut routes = self.prefixed.iter().filter_map(|&(index, _)| self.routes.get(index));
        routes.any(|route| watch_rules(route).is_some_and(|rules| rules.watch_prefix == path.as_str()))
    }

    /// Returns the route of the resource that a lease target names, if it offers no leases. `path` takes no route
    /// itself.
    pub fn route_without_leases(&self, host: &str, path: &NormalPath) -> Option<&Route> {
        let rules = self.prefixed.iter().filter_map(|&(index, _)| lease_rules(self.routes.get(index)?));
        let mut prefixes = rules.map(|rules| rules.prefix.as_str()).chain([DEFAULT_LEASE_PREFIX]);
        let resource =
            prefixes.find_map(|prefix| path.as_str().strip_prefix(prefix).filter(|rest| rest.starts_with('/')))?;
        let resource = normal_prefix(resource)?;
        match self.place(self.find(host, &resource)?.index) {
            TablePlace::Resource(_, route) => Some(&**route).filter(|route| !offers_leases(route)),
            TablePlace::Lease(..) | TablePlace::Watch(..) | TablePlace::Nothing => None,
        }
    }
}

fn offers_leases(route: &Route) -> bool {
    route.guard.as_ref().is_some_and(|guard| guard.lease.is_some())
}

/// The rules of the leases of a route, if these have their own paths.
fn lease_rules(route: &Route) -> Option<&LeaseRules> {
    route.guard.as_ref().filter(|guard| guard.quirks.leases_have_paths)?.lease.as_ref()
}

/// The rules of a route whose resources can be watched.
fn watch_rules(route: &Route) -> Option<&GuardRules> {
    route.guard.as_deref().filter(|guard| guard.watch)
}

/// The prefixes of a route, each with what lies below it.
fn prefixes_of(route: &Route) -> impl Iterator<Item = (Facet, &str)> {
    let leases = lease_rules(route).map(|rules| (Facet::Lease, rules.prefix.as_str()));
    let watches = watch_rules(route).map(|rules| (Facet::Watch, rules.watch_prefix.as_str()));
    leases.into_iter().chain(watches)
}

fn normal_prefix(prefix: &str) -> Option<NormalPath> {
    normalize(prefix.as_bytes(), KeptInNames::ALL).ok()
}
