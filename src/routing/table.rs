//! The table in which the door looks up requests: each route, and beside it the leases of its resources.

use std::sync::Arc;

use crate::{
    config::{DEFAULT_LEASE_PREFIX, Route},
    core::{
        policy::LeaseRules,
        route::{HostPattern, PathPattern, RouteTable},
        target::{NormalPath, PathParameters, normalize},
    },
};

/// What a place in the table stands for.
#[derive(Clone, Copy, Debug)]
pub enum TablePlace<'a> {
    /// A resource of a route.
    Resource(usize, &'a Arc<Route>),
    /// The lease of a resource of a route, in the native dialect.
    Lease(usize, &'a Arc<Route>, &'a LeaseRules),
    /// A path below the prefix of leases that names no lease. It must not reach anything behind the proxy: a client
    /// that mistypes the lease of a resource would write to another one.
    Nothing,
}

/// The table of all routes.
pub fn table(routes: &[Arc<Route>]) -> RouteTable {
    let resources = routes.iter().map(|route| (route.host.clone(), route.path.clone()));
    let leases = leased(routes).map(|(_, route, _, prefix)| (route.host.clone(), route.path.under(&prefix)));
    let mut patterns: Vec<(HostPattern, PathPattern)> = resources.chain(leases).collect();
    if let Ok(anything) = PathPattern::parse("/{*rest}") {
        for (_, route, _, prefix) in leased(routes) {
            let nothing = (route.host.clone(), anything.under(&prefix));
            if !patterns.contains(&nothing) {
                patterns.push(nothing);
            }
        }
    }
    RouteTable::new(patterns)
}

/// What the place of this index in the table of these routes stands for.
pub fn place(routes: &[Arc<Route>], index: usize) -> TablePlace<'_> {
    if let Some(route) = routes.get(index) {
        return TablePlace::Resource(index, route);
    }
    match leased(routes).nth(index - routes.len()) {
        Some((route_index, route, rules, _)) => TablePlace::Lease(route_index, route, rules),
        None => TablePlace::Nothing,
    }
}

/// The route of the resource that a lease target names, if it offers no leases. `path` takes no route itself.
pub fn route_without_leases<'a>(
    table: &RouteTable,
    routes: &'a [Arc<Route>],
    host: &str,
    path: &NormalPath,
) -> Option<&'a Route> {
    let configured = leased(routes).map(|(.., prefix)| prefix.as_str().to_owned());
    let mut prefixes = configured.chain([DEFAULT_LEASE_PREFIX.to_owned()]);
    let resource =
        prefixes.find_map(|prefix| path.as_str().strip_prefix(&prefix).filter(|rest| rest.starts_with('/')))?;
    let resource = normalize(resource.as_bytes(), PathParameters::Keep).ok()?;
    match place(routes, table.find(host, &resource)?.index) {
        TablePlace::Resource(_, route) => Some(&**route).filter(|route| !offers_leases(route)),
        TablePlace::Lease(..) | TablePlace::Nothing => None,
    }
}

fn offers_leases(route: &Route) -> bool {
    route.guard.as_ref().is_some_and(|guard| guard.lease.is_some())
}

/// The routes whose leases have their own paths, each with the prefix of those paths.
fn leased(routes: &[Arc<Route>]) -> impl Iterator<Item = (usize, &Arc<Route>, &LeaseRules, NormalPath)> {
    routes.iter().enumerate().filter_map(|(index, route)| {
        let rules = route.guard.as_ref().filter(|guard| guard.quirks.leases_have_paths)?.lease.as_ref()?;
        // The configuration accepts only a prefix in normal form.
        let prefix = normalize(rules.prefix.as_bytes(), PathParameters::Keep).ok()?;
        Some((index, route, rules, prefix))
    })
}
