//! What a reload would change, as a pure function over two configurations.
//!
//! # Design
//!
//! *When is a change more than a swap?* Two writes on one resource exclude each other because they find each other's mark
//! under one key. A reload that changes keys, or whether there are marks at all, lets an old write and a new one pass
//! each other unseen. So each place where a target may come under other rules is found here, and the writes under way
//! there have to end before it happens.
//!
//! *Why is "exclusive" special?* Under `writers = "exclusive"` a tag that was issued long ago is believed as long as the
//! record tells of no write since. Where writes could come past that record, it lies.

use std::sync::Arc;

use super::{Config, Route, Server};
use crate::core::{
    path_mapping::PathMapping,
    policy::{LeaseGuards, Writers},
    resource::KeyTemplate,
    route::{HostPattern, Relation, relation},
};

#[cfg(test)]
mod tests;

/// What a reload would change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadPlan {
    /// The names of routes that are new.
    pub added: Vec<String>,
    /// The names of routes that are gone.
    pub removed: Vec<String>,
    /// The names of routes that are there before and after, and not the same.
    pub changed: Vec<String>,
    /// What the file says otherwise, and takes effect with the next start alone: keys and tables.
    pub needs_restart: Vec<&'static str>,
    /// The places, among the old routes, of those whose writes must have ended before the change.
    pub must_settle: Vec<usize>,
    /// The places of those among them on which no lease may live, unless the operator insists.
    pub must_be_unleased: Vec<usize>,
    /// The names of new routes that would believe what is remembered from a time when writes could pass unseen.
    pub untrusted: Vec<String>,
    /// For each new route, the place of the old one that it continues: of the same pattern, and on which the same writes
    /// exclude each other.
    pub continued: Vec<Option<usize>>,
}

/// What decides which writes on a target exclude each other.
#[derive(PartialEq, Eq)]
struct Exclusion<'a> {
    identity: &'a str,
    mapping: &'a PathMapping,
    key: &'a KeyTemplate,
    leases: Option<LeaseGuards>,
    reading_methods: Vec<&'a str>,
}

/// What a reload from one configuration to another would change. `lingering` are routes of still earlier ones, on which
/// writes may be under way; their places come after those of the old configuration.
pub fn plan(old: &Config, lingering: &[Arc<Route>], new: &Config) -> ReloadPlan {
    let continued = continued(&old.routes, &new.routes);
    let gives = |from: &Route, to: &Route| gives(from, to, &old.routes, &new.routes);
    let meets = |from: &Route, to: &Route| gives(from, to) && !exclude_alike(from, to);
    let must_settle = |(place, route): (usize, &Arc<Route>)| {
        let ends = exclusion(route).is_some() && !continued.contains(&Some(place));
        (ends || new.routes.iter().any(|to| meets(route, to))).then_some(place)
    };
    let lingers = |(place, route): (usize, &Arc<Route>)| {
        let meets = |to: &Arc<Route>| relate(route, to) != Relation::Disjoint && !exclude_alike(route, to);
        new.routes.iter().any(meets).then_some(old.routes.len() + place)
    };
    let must_settle: Vec<usize> = old
        .routes
        .iter()
        .enumerate()
        .filter_map(must_settle)
        .chain(lingering.iter().enumerate().filter_map(lingers))
        .collect();
    let has_leases = |place: &usize| old.routes.get(*place).is_some_and(|route| has_leases(route));
    let tells = |from: &Route, to: &Route| trusts(from) && exclude_alike(from, to);
    let is_untrusted =
        |to: &&Arc<Route>| trusts(to) && old.routes.iter().any(|from| gives(from, to) && !tells(from, to));
    ReloadPlan {
        needs_restart: needs_restart(old, new),
        must_be_unleased: must_settle.iter().copied().filter(has_leases).collect(),
        must_settle,
        untrusted: new.routes.iter().filter(is_untrusted).map(|route| route.name.clone()).collect(),
        continued,
        ..named_changes(&old.routes, &new.routes)
    }
}

impl Config {
    /// This configuration, but with that of the running process where only its next start can change it.
    #[must_use]
    pub fn beside(self, running: &Self) -> Self {
        let old = running.server.clone();
        let server = Server {
            listen: old.listen,
            threads: old.threads,
            body_memory_total_bytes: old.body_memory_total_bytes,
            spool_total_bytes: old.spool_total_bytes,
            claim_waiters_max: old.claim_waiters_max,
            keepalive_timeout: old.keepalive_timeout,
            header_timeout: old.header_timeout,
            max_header_bytes: old.max_header_bytes,
            max_header_memory_bytes: old.max_header_memory_bytes,
            max_connections: old.max_connections,
            max_connections_per_client: old.max_connections_per_client,
            control_socket: old.control_socket,
            ..self.server
        };
        let (admin, store, telemetry) = (running.admin.clone(), running.store.clone(), running.telemetry.clone());
        Self { server, admin, store, telemetry, ..self }
    }
}

/// What differs and is read at the start alone. Each field is named here: whoever adds one has to decide.
fn needs_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let Config { server, admin, store, telemetry, routes: _ } = old;
    let Server {
        listen,
        threads,
        body_memory_bytes: _,
        body_memory_total_bytes,
        body_max_bytes: _,
        spool_total_bytes,
        body_timeout: _,
        spool_dir: _,
        max_target_bytes: _,
        claim_waiters_max,
        keepalive_timeout,
        header_timeout,
        max_header_bytes,
        max_header_memory_bytes,
        max_connections,
        max_connections_per_client,
        shutdown_timeout: _,
        control_socket,
        tls: _,
        trusted_proxies: _,
        underscores: _,
    } = server;
    let differences = [
        ("server.listen", *listen != new.server.listen),
        ("server.threads", *threads != new.server.threads),
        ("server.body_memory_total", *body_memory_total_bytes != new.server.body_memory_total_bytes),
        ("server.spool_total", *spool_total_bytes != new.server.spool_total_bytes),
        ("server.claim_waiters_max", *claim_waiters_max != new.server.claim_waiters_max),
        ("server.keepalive_timeout", *keepalive_timeout != new.server.keepalive_timeout),
        ("server.header_timeout", *header_timeout != new.server.header_timeout),
        ("server.max_header_size", *max_header_bytes != new.server.max_header_bytes),
        ("server.max_header_memory_total", *max_header_memory_bytes != new.server.max_header_memory_bytes),
        ("server.max_connections", *max_connections != new.server.max_connections),
        ("server.max_connections_per_client", *max_connections_per_client != new.server.max_connections_per_client),
        ("server.control_socket", *control_socket != new.server.control_socket),
        ("[admin]", *admin != new.admin),
        ("[store]", *store != new.store),
        ("[telemetry]", *telemetry != new.telemetry),
    ];
    differences.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

fn named_changes(old: &[Arc<Route>], new: &[Arc<Route>]) -> ReloadPlan {
    let find = |routes: &'_ [Arc<Route>], name: &str| routes.iter().find(|route| route.name == name).cloned();
    let name = |route: &Arc<Route>| route.name.clone();
    // What stands beside it is said of those routes.
    let differs = |route: &Arc<Route>, old: Arc<Route>| {
        let Route { beside_guarded, reads_may_be_leased, .. } = *old;
        *old != Route { beside_guarded, reads_may_be_leased, ..Route::clone(route) }
    };
    let is_changed = |route: &&Arc<Route>| find(old, &route.name).is_some_and(|old| differs(route, old));
    ReloadPlan {
        added: new.iter().filter(|route| find(old, &route.name).is_none()).map(name).collect(),
        removed: old.iter().filter(|route| find(new, &route.name).is_none()).map(name).collect(),
        changed: new.iter().filter(is_changed).map(name).collect(),
        ..ReloadPlan::default()
    }
}

fn continued(old: &[Arc<Route>], new: &[Arc<Route>]) -> Vec<Option<usize>> {
    let continues = |old: &Route, new: &Route| relate(old, new) == Relation::Same && exclude_alike(old, new);
    new.iter().map(|new| old.iter().position(|old| continues(old, new))).collect()
}

/// Whether a target that one route served before may be the other's after. Of two routes of one configuration the
/// narrower wins what they share.
fn gives(from: &Route, to: &Route, old: &[Arc<Route>], new: &[Arc<Route>]) -> bool {
    let has_pattern =
        |routes: &[Arc<Route>], of: &Route| routes.iter().any(|route| relate(route, of) == Relation::Same);
    match relate(from, to) {
        Relation::Disjoint => false,
        Relation::Same | Relation::Crossing => true,
        Relation::Narrower => !has_pattern(new, from),
        Relation::Wider => !has_pattern(old, to),
    }
}

/// How the requests of two routes lie to each other; where one of them changes paths, how what the upstream gets does.
fn relate(a: &Route, b: &Route) -> Relation {
    if a.mapping != b.mapping {
        return relation((&HostPattern::Any, &a.upstream_path), (&HostPattern::Any, &b.upstream_path));
    }
    relation((&a.host, &a.path), (&b.host, &b.path))
}

/// Whether a write through one route and a write through the other on the same target exclude each other, as those
/// through one of them do. Where no write excludes another there is nothing to lose.
fn exclude_alike(a: &Route, b: &Route) -> bool {
    let same_captures = || a.path == b.path || !a.key.needs_captures();
    match (exclusion(a), exclusion(b)) {
        (None, None) => true,
        (Some(one), Some(other)) => one == other && same_captures(),
        _ => false,
    }
}

/// `None` where no write excludes another.
fn exclusion(route: &Route) -> Option<Exclusion<'_>> {
    let guard = route.guard.as_ref().filter(|guard| !guard.observe)?;
    let mut reading_methods: Vec<&str> = guard.safe_methods.iter().map(http::Method::as_str).collect();
    reading_methods.sort_unstable();
    Some(Exclusion {
        identity: &route.upstream.identity,
        mapping: &route.mapping,
        key: &route.key,
        leases: guard.lease.as_ref().map(|rules| rules.guards),
        reading_methods,
    })
}

fn has_leases(route: &Route) -> bool {
    exclusion(route).is_some_and(|exclusion| exclusion.leases.is_some())
}

/// Whether a tag that was issued long ago is believed on a route.
fn trusts(route: &Route) -> bool {
    exclusion(route).is_some() && route.guard.as_ref().is_some_and(|guard| guard.writers == Writers::Exclusive)
}
