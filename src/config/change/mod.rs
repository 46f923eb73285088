//! The effects of a reload, as a pure function of two configurations.
//!
//! # Design
//!
//! *Why is it not enough to swap the configurations?* Two writes on one resource exclude each other because each finds
//! the other's mark under the same key. If a reload changes keys, or whether there are marks at all, an old write and a
//! new one do not see each other. So this module finds each route whose targets may come under other rules. The writes
//! in flight there have to end before the reload takes effect.
//!
//! *What else does a write mark?* The records of all resources that it touches, under the keys that their routes give
//! them. And a server that changes its identity takes its resources to other keys (`renamed`).
//!
//! *Why is "exclusive" special?* Under `other_writers = false` the proxy trusts an old tag as long as the record shows
//! no later write. If writes could bypass that record, it may be wrong.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{Config, Route, table::Section as _};
use crate::core::{
    http::path_mapping::PathMapping,
    policy::{Idempotency, LeaseGuards},
    resource::KeyTemplate,
    route::{HostPattern, Relation, RouteTable, WritesTo, relation},
};

use renamed::{MovedServers, touch_alike};

mod renamed;
#[cfg(test)]
mod tests;

/// The effects of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadPlan {
    /// The names of the new routes.
    pub added: Vec<String>,
    /// The names of the removed routes.
    pub removed: Vec<String>,
    /// The names of the routes that exist before and after the reload, but differ.
    pub changed: Vec<String>,
    /// The changed keys and tables that take effect only at the next start.
    pub needs_restart: Vec<String>,
    /// The indexes of the old routes whose writes must have ended before the change.
    pub must_settle: Vec<usize>,
    /// The indexes of those among them that must have no live lease, unless the operator insists.
    pub must_be_unleased: Vec<usize>,
    /// The names of the new routes that would trust records from a time when writes could pass unseen.
    pub untrusted: Vec<String>,
    /// The names of the new routes that would not recognise retries of writes from before: their resources have other
    /// keys now.
    pub forgetful: Vec<String>,
    /// For each new route, the index of the old route that it continues. Both have the same pattern, and on both the
    /// same writes exclude each other.
    pub continued: Vec<Option<usize>>,
}

/// The settings that decide which writes on a target exclude each other.
#[derive(PartialEq, Eq)]
struct Exclusion<'a> {
    identity: &'a str,
    mapping: &'a PathMapping,
    key: &'a KeyTemplate,
    writes_to: Option<&'a WritesTo>,
    leases: Option<LeaseGuards>,
    reading_methods: Vec<&'a str>,
}

/// Returns the effects of a reload from one configuration to another. Blocks where names of servers must be resolved.
/// `lingering` are routes of still earlier
/// configurations on which writes may be in flight; their indexes follow those of the old configuration.
pub fn plan(old: &Config, lingering: &[Arc<Route>], new: &Config) -> ReloadPlan {
    let (before, after) = (RelatedRoutes::among(&old.routes), RelatedRoutes::among(&new.routes));
    let moved = MovedServers::between(old.routes.iter().chain(lingering), &new.routes);
    let alike = |from: &Route, to: &Route| exclude_alike(from, to) && touch_alike((from, &before), (to, &after));
    let continued = continued(&before, &new.routes, &alike);
    let continuing: HashSet<usize> = continued.iter().flatten().copied().collect();
    let gives = |from: &Route, to: &Route| gives(from, to, &before, &after);
    let meets = |from: &Route, to: &Route| gives(from, to) && !alike(from, to);
    let must_settle = |(place, route): (usize, &Arc<Route>)| {
        let ends = exclusion(route).is_some() && !continuing.contains(&place);
        (ends || moved.are_behind(route) || after.of(route).any(|(_, to)| meets(route, to))).then_some(place)
    };
    let lingers = |(place, route): (usize, &Arc<Route>)| {
        let meets = after.of(route).any(|(_, to)| !exclude_alike(route, to));
        (meets || moved.are_behind(route)).then_some(old.routes.len() + place)
    };
    let mut must_settle: Vec<usize> = old.routes.iter().enumerate().filter_map(must_settle).collect();
    must_settle.extend(lingering.iter().enumerate().filter_map(lingers));
    let has_leases = |place: &usize| old.routes.get(*place).is_some_and(|route| has_leases(route));
    let tells = |from: &Route, to: &Route| trusts(from) && exclude_alike(from, to);
    let is_untrusted = |to: &&Arc<Route>| {
        let misses_writes = || before.of(to).any(|(_, from)| gives(from, to) && !tells(from, to));
        trusts(to) && (moved.come_to(to) || misses_writes())
    };
    let forgets = |from: &Route, to: &Route| heeds_keys(from) && !name_alike(from, to);
    let is_forgetful =
        |to: &&Arc<Route>| heeds_keys(to) && before.of(to).any(|(_, from)| gives(from, to) && forgets(from, to));
    ReloadPlan {
        needs_restart: needs_restart(old, new),
        must_be_unleased: must_settle.iter().copied().filter(has_leases).collect(),
        must_settle,
        untrusted: new.routes.iter().filter(is_untrusted).map(|route| route.name.clone()).collect(),
        forgetful: new.routes.iter().filter(is_forgetful).map(|route| route.name.clone()).collect(),
        continued,
        ..named_changes(&old.routes, &new.routes)
    }
}

impl Config {
    /// Returns this configuration, with the running process's values for all settings that only a start can change.
    #[must_use]
    pub fn beside(self, running: &Self) -> Self {
        let server = self.server.beside(&running.server);
        let (admin, store, telemetry) = (running.admin.clone(), running.store.clone(), running.telemetry.clone());
        Self { server, admin, store, telemetry, ..self }
    }
}

/// Returns the differing keys and tables that only a start reads.
fn needs_restart(old: &Config, new: &Config) -> Vec<String> {
    let of_server = old.server.differing_at_start(&new.server);
    let tables = [
        ("[admin]", old.admin != new.admin),
        ("[store]", old.store != new.store),
        ("[telemetry]", old.telemetry != new.telemetry),
    ];
    let tables = tables.iter().filter(|(_, differs)| *differs).map(|(table, _)| (*table).to_owned());
    of_server.into_iter().map(|key| format!("server.{key}")).chain(tables).collect()
}

fn named_changes(old: &[Arc<Route>], new: &[Arc<Route>]) -> ReloadPlan {
    let by_name = |routes: &[Arc<Route>]| -> HashMap<String, Arc<Route>> {
        // Of two routes with one name, the first counts.
        routes.iter().rev().map(|route| (route.name.clone(), Arc::clone(route))).collect()
    };
    let (of_old, of_new) = (by_name(old), by_name(new));
    let name = |route: &Arc<Route>| route.name.clone();
    // A change of the routes beside this one is reported for those routes.
    let differs = |route: &Arc<Route>, old: &Arc<Route>| {
        let Route { beside_guarded, reads_may_be_leased, deletes_may_be_pending, may_hold_members, has_trees, .. } =
            **old;
        let own = Route { may_hold_members, has_trees, ..Route::clone(route) };
        **old != Route { beside_guarded, reads_may_be_leased, deletes_may_be_pending, ..own }
    };
    let is_changed = |route: &&Arc<Route>| of_old.get(&route.name).is_some_and(|old| differs(route, old));
    ReloadPlan {
        added: new.iter().filter(|route| !of_old.contains_key(&route.name)).map(name).collect(),
        removed: old.iter().filter(|route| !of_new.contains_key(&route.name)).map(name).collect(),
        changed: new.iter().filter(is_changed).map(name).collect(),
        ..ReloadPlan::default()
    }
}

fn continued(
    old: &RelatedRoutes<'_>,
    new: &[Arc<Route>],
    alike: &dyn Fn(&Route, &Route) -> bool,
) -> Vec<Option<usize>> {
    let continues = |old: &Route, new: &Route| relate(old, new) == Relation::Same && alike(old, new);
    new.iter().map(|new| old.of(new).find(|(_, old)| continues(old, new)).map(|(place, _)| place)).collect()
}

/// Returns whether a target of the old route may belong to the new one after the reload. Of two routes in one
/// configuration the narrower wins their common targets.
fn gives(from: &Route, to: &Route, old: &RelatedRoutes<'_>, new: &RelatedRoutes<'_>) -> bool {
    let has_pattern =
        |routes: &RelatedRoutes<'_>, of: &Route| routes.of(of).any(|(_, route)| relate(route, of) == Relation::Same);
    match relate(from, to) {
        Relation::Disjoint => false,
        Relation::Same | Relation::Crossing => true,
        Relation::Narrower => !has_pattern(new, from),
        Relation::Wider => !has_pattern(old, to),
    }
}

/// The routes of one configuration, by the requests that they take and by those that the upstream receives.
struct RelatedRoutes<'a> {
    routes: &'a [Arc<Route>],
    by_client: RouteTable,
    by_upstream: RouteTable,
}

impl<'a> RelatedRoutes<'a> {
    fn among(routes: &'a [Arc<Route>]) -> Self {
        let by_client = routes.iter().map(|route| (route.host.clone(), route.path.clone())).collect();
        let by_upstream = routes.iter().map(|route| (HostPattern::Any, route.upstream_path.clone())).collect();
        Self { routes, by_client: RouteTable::new(by_client), by_upstream: RouteTable::new(by_upstream) }
    }

    /// Returns the routes that are not disjoint from this one, each with its place, in the order of the file.
    fn of(&self, route: &Route) -> impl Iterator<Item = (usize, &'a Arc<Route>)> {
        let mut places = self.by_client.overlapping(&route.host, &route.path);
        places.extend(self.by_upstream.overlapping(&HostPattern::Any, &route.upstream_path));
        places.sort_unstable();
        places.dedup();
        let related = |place: usize| {
            let other = self.routes.get(place)?;
            (relate(route, other) != Relation::Disjoint).then_some((place, other))
        };
        places.into_iter().filter_map(related)
    }
}

/// Returns the relation between the requests of two routes. If they change paths differently, it compares the requests
/// that the upstream receives.
fn relate(a: &Route, b: &Route) -> Relation {
    if a.mapping != b.mapping {
        return relation((&HostPattern::Any, &a.upstream_path), (&HostPattern::Any, &b.upstream_path));
    }
    relation((&a.host, &a.path), (&b.host, &b.path))
}

/// Returns whether writes through the two routes on the same target exclude each other, as two writes through one of
/// them do. If neither route makes writes exclude each other, nothing can be lost.
fn exclude_alike(a: &Route, b: &Route) -> bool {
    match (exclusion(a), exclusion(b)) {
        (None, None) => true,
        (Some(one), Some(other)) => one == other && have_same_captures(a, b),
        _ => false,
    }
}

/// Returns whether the two routes give a target the same key.
fn name_alike(a: &Route, b: &Route) -> bool {
    (&a.upstream.identity, &a.mapping, &a.key, &a.writes_to) == (&b.upstream.identity, &b.mapping, &b.key, &b.writes_to)
        && have_same_captures(a, b)
}

fn have_same_captures(a: &Route, b: &Route) -> bool {
    a.path == b.path || !a.key.needs_captures()
}

/// Returns whether a route recognises the retries of writes that came with an idempotency key.
fn heeds_keys(route: &Route) -> bool {
    route.enforced().is_some_and(|guard| guard.idempotency != Idempotency::Off)
}

/// Returns the exclusion of a route; `None` if its writes do not exclude each other.
fn exclusion(route: &Route) -> Option<Exclusion<'_>> {
    let guard = route.enforced()?;
    let mut reading_methods: Vec<&str> = guard.safe_methods.iter().map(http::Method::as_str).collect();
    reading_methods.sort_unstable();
    Some(Exclusion {
        identity: &route.upstream.identity,
        mapping: &route.mapping,
        key: &route.key,
        writes_to: route.writes_to.as_ref(),
        leases: guard.lease.as_ref().map(|rules| rules.guards),
        reading_methods,
    })
}

fn has_leases(route: &Route) -> bool {
    exclusion(route).is_some_and(|exclusion| exclusion.leases.is_some())
}

/// Returns whether the proxy trusts an old tag on a route.
fn trusts(route: &Route) -> bool {
    exclusion(route).is_some() && route.guard.as_ref().is_some_and(|guard| !guard.other_writers)
}
