//! The table that the door looks requests up in: each route, and beside it the leases of its resources.

use std::sync::Arc;

use crate::{
    config::Route,
    core::{
        policy::{Dialect, LeaseRules},
        route::{HostPattern, PathPattern, RouteTable},
    },
};

/// What a place in the table stands for.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// A resource of a route.
    Resource(usize, &'a Arc<Route>),
    /// The lease of a resource of a route, in the native dialect.
    Lease(usize, &'a Arc<Route>, &'a LeaseRules),
    /// A path below the prefix of leases that is none: nothing behind the proxy may be reached by it, since a client
    /// that mistypes the lease of a resource would write to another one.
    Nothing,
}

/// The table of all routes.
pub fn table(routes: &[Arc<Route>]) -> RouteTable {
    let mut patterns: Vec<(HostPattern, PathPattern)> =
        routes.iter().map(|route| (route.host.clone(), route.path.clone())).collect();
    // Routes whose lease has no readable path do not pass the configuration.
    let below = |prefix: &str, path: &str| PathPattern::parse(&format!("{prefix}{}", path.trim_end_matches('/')));
    for (_, route, rules) in leased(routes) {
        if let Ok(path) = below(&rules.prefix, &route.path.to_string()) {
            patterns.push((route.host.clone(), path));
        }
    }
    let nothing = leased(routes)
        .filter_map(|(_, route, rules)| Some((route.host.clone(), below(&rules.prefix, "/{*rest}").ok()?)));
    for pattern in nothing.collect::<Vec<_>>() {
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    RouteTable::new(patterns)
}

/// What the place of this index in the table of these routes stands for.
pub fn place(routes: &[Arc<Route>], index: usize) -> Place<'_> {
    if let Some(route) = routes.get(index) {
        return Place::Resource(index, route);
    }
    match leased(routes).nth(index - routes.len()) {
        Some((route_index, route, rules)) => Place::Lease(route_index, route, rules),
        None => Place::Nothing,
    }
}

/// The routes whose leases have paths of their own.
fn leased(routes: &[Arc<Route>]) -> impl Iterator<Item = (usize, &Arc<Route>, &LeaseRules)> {
    routes.iter().enumerate().filter_map(|(index, route)| {
        let rules = route.guard.as_ref()?.lease.as_ref()?;
        (rules.dialect == Dialect::Native).then_some((index, route, rules))
    })
}
