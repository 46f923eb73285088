//! The relations between the routes of a file.

use std::{collections::HashSet, ops::Range, sync::Arc};

use super::{check::Check, keys::Placed, one_key};
use crate::{
    config::{
        Route,
        problem::{Problem, Source},
    },
    core::{
        http::request_target::{KeptInNames, normalize},
        route::{HostPattern, PathPattern, Relation, RouteTable, relation},
    },
};

/// Returns the table of the routes that could be read.
pub(super) fn table(routes: &[Placed]) -> RouteTable {
    table_of(routes.iter().map(|route| (&route.host, &route.path)))
}

fn table_of<'a>(patterns: impl Iterator<Item = (&'a HostPattern, &'a PathPattern)>) -> RouteTable {
    RouteTable::new(patterns.map(|(host, path)| (host.clone(), path.clone())).collect())
}

/// Reports each pair of routes that could both win a request.
pub(super) fn refuse(check: &mut Check<'_>, routes: &[Placed], table: &RouteTable) {
    for (index, later) in routes.iter().enumerate() {
        let overlapping = table.overlapping(&later.host, &later.path).into_iter();
        for earlier in overlapping.take_while(|&other| other < index).filter_map(|other| routes.get(other)) {
            let relation = relation((&later.host, &later.path), (&earlier.host, &earlier.path));
            if matches!(relation, Relation::Same | Relation::Crossing) {
                refuse_pair(check, later, earlier, relation == Relation::Same);
            }
        }
    }
}

fn refuse_pair(check: &mut Check<'_>, later: &Placed, earlier: &Placed, same: bool) {
    let (name, other, line) = (&later.name, &earlier.name, check.source.line(earlier.span.start));
    let (message, hint) = if same {
        let message = format!("route {name:?} matches the same requests as route {other:?} (line {line})");
        (message, "leave one of them out, or give them different hosts".to_owned())
    } else {
        let message = format!("routes {name:?} and {other:?} (line {line}) match common requests");
        let (path, other_path) = (&later.path, &earlier.path);
        (message, format!("neither {path} nor {other_path} is the more specific one; change one of them"))
    };
    check.hinted(later.span.clone(), message, hint);
}

/// Reports routes whose requests for leases, or to watch, another route or its leases or watches could take.
pub(super) fn refuse_taken_prefixes(check: &mut Check<'_>, routes: &[Placed], table: &RouteTable) {
    let prefixes = routes.iter().flat_map(Prefixed::all_of).collect::<Vec<_>>();
    let of_prefixes = table_of(prefixes.iter().map(|prefixed| (&prefixed.route.host, &prefixed.path)));
    for (index, prefixed) in prefixes.iter().enumerate() {
        let overlapping = table.overlapping(&prefixed.route.host, &prefixed.path).into_iter();
        for route in overlapping.filter_map(|other| routes.get(other)).filter(|route| prefixed.loses_to(route)) {
            refuse_taken(check, prefixed, &format!("route {:?}", route.name), &route.path, route.span.start);
        }
        let overlapping = of_prefixes.overlapping(&prefixed.route.host, &prefixed.path).into_iter();
        let earlier = overlapping.take_while(|&other| other < index).filter_map(|other| prefixes.get(other));
        for earlier in earlier.filter(|earlier| prefixed.could_be(earlier)) {
            let other = format!("the {} of route {:?}", earlier.what, earlier.route.name);
            refuse_taken(check, prefixed, &other, &earlier.path, earlier.route.span.start);
        }
    }
}

fn refuse_taken(check: &mut Check<'_>, prefixed: &Prefixed<'_>, other: &str, path: &PathPattern, start: usize) {
    let Prefixed { route, what, key, .. } = prefixed;
    let (name, line) = (&route.name, check.source.line(start));
    let message = format!("the {what} of route {name:?} and {other} (line {line}) match common requests");
    let hint = format!("they are {} and {path}; set another {key}", prefixed.path);
    check.hinted(route.span.clone(), message, hint);
}

/// The paths of the leases of a route, or of its watches.
struct Prefixed<'a> {
    route: &'a Placed,
    what: &'static str,
    /// The key that sets the prefix.
    key: &'static str,
    prefix: &'a str,
    path: PathPattern,
}

impl<'a> Prefixed<'a> {
    fn all_of(route: &'a Placed) -> impl Iterator<Item = Self> {
        let guard = || route.route.as_ref()?.guard.as_ref();
        let leases = guard().filter(|guard| guard.quirks.leases_have_paths).and_then(|guard| guard.lease.as_ref());
        let leases = leases.map(|rules| ("leases", "lease.prefix", rules.prefix.as_str()));
        let watches = guard().filter(|guard| guard.watch);
        let watches = watches.map(|guard| ("watches", "watch_prefix", guard.watch_prefix.as_str()));
        leases.into_iter().chain(watches).filter_map(move |(what, key, prefix)| {
            let normal = normalize(prefix.as_bytes(), KeptInNames::NOTHING).ok()?;
            Some(Self { route, what, key, prefix, path: route.path.under(&normal) })
        })
    }

    /// Returns whether a route, possibly the own one, is not clearly wider than these paths. A route that takes the
    /// resources themselves under a narrower host does not count: nothing is left there.
    fn loses_to(&self, other: &Placed) -> bool {
        let (host, any) = (&self.route.host, &HostPattern::Any);
        let lost = !matches!(
            relation((host, &self.path), (&other.host, &other.path)),
            Relation::Disjoint | Relation::Narrower
        );
        let takes_resources = *host != other.host
            && matches!(relation((any, &self.route.path), (any, &other.path)), Relation::Same | Relation::Narrower);
        lost && !takes_resources
    }

    /// Returns whether one request could be meant for both. Under one prefix, leases differ as their routes do, and so do
    /// watches.
    fn could_be(&self, other: &Self) -> bool {
        let lie = relation((&self.route.host, &self.path), (&other.route.host, &other.path));
        (self.prefix, self.what) != (other.prefix, other.what) && lie != Relation::Disjoint
    }
}

/// Returns warnings of settings that are allowed but rarely meant.
pub(super) fn warnings(source: Source<'_>, routes: &[Placed]) -> Vec<Problem> {
    let whole = || routes.iter().filter_map(|placed| Some((placed.span.clone(), placed.route.as_ref()?)));
    if let Some((first, _)) = whole().next()
        && whole().all(|(_, route)| route.guard.is_none())
    {
        let warning = source.problem(first, "no route is guarded: every write passes");
        return vec![warning.hint("write policy = \"optimistic\" on the routes whose updates must not be lost")];
    }
    let guarded: Vec<_> = whole().filter(|(_, route)| route.guard.is_some()).collect();
    let of_guarded = table_of(guarded.iter().map(|(_, route)| (&HostPattern::Any, &route.upstream_path)));
    let warning = |(span, route): (Range<usize>, &Route)| {
        if route.guard.is_some() {
            return None;
        }
        let overlapping = of_guarded.overlapping(&HostPattern::Any, &route.upstream_path).into_iter();
        let (place, guarded) =
            overlapping.filter_map(|index| guarded.get(index)).find(|(_, guarded)| reaches(route, guarded))?;
        let (name, other, line) = (&route.name, &guarded.name, source.line(place.start));
        let message = format!("route {name:?} is not guarded and reaches what route {other:?} (line {line}) guards");
        let hint = if are_mapped(route, guarded) {
            format!(
                "the backend gets {} from the one and {} from the other; guard both, or change their prefixes",
                route.upstream_path, guarded.upstream_path
            )
        } else {
            "the backend may serve the same resources under both hosts; guard both, give both the same host, or give \
             them different upstreams"
                .to_owned()
        };
        Some(source.problem(span, message).hint(hint))
    };
    whole().filter_map(warning).chain(one_key::warnings(source, routes)).collect()
}

/// Returns whether two routes change paths differently, so that common backend paths need not be common client paths.
fn are_mapped(one: &Route, other: &Route) -> bool {
    one.mapping != other.mapping
}

/// Returns whether requests through an unguarded route can reach resources of a guarded one: the same path at the same
/// backend, under another host or with another prefix. Under the same host and prefix, the more specific route takes
/// all requests that both match.
fn reaches(unguarded: &Route, guarded: &Route) -> bool {
    let any = &HostPattern::Any;
    unguarded.guard.is_none()
        && guarded.guard.is_some()
        && unguarded.upstream.identity == guarded.upstream.identity
        && (unguarded.host != guarded.host || are_mapped(unguarded, guarded))
        && relation((any, &unguarded.upstream_path), (any, &guarded.upstream_path)) != Relation::Disjoint
}

/// Returns the routes with what the routes beside them make of them filled in.
pub(super) fn beside_others(routes: Vec<Placed>) -> Vec<Arc<Route>> {
    let routes = routes.into_iter().filter_map(|placed| placed.route).collect::<Vec<_>>();
    let guarded = routes
        .iter()
        .filter(|route| route.enforced().is_some())
        .map(|route| route.upstream.identity.clone())
        .collect::<HashSet<_>>();
    let leased = one_key::may_be_leased_from_readers(&routes);
    let pending = one_key::may_have_pending_deletes(&routes);
    let holding = may_hold_members(&routes.iter().collect::<Vec<_>>());
    let with_trees = upstreams_with_trees(&routes, &holding);
    let others = leased.into_iter().zip(pending).zip(holding);
    let beside = |(route, ((reads_may_be_leased, deletes_may_be_pending), may_hold_members)): (Route, _)| {
        let beside_guarded = guarded.contains(&route.upstream.identity);
        let has_trees = with_trees.contains(&route.upstream.identity);
        let made_of = Route { beside_guarded, reads_may_be_leased, deletes_may_be_pending, has_trees, ..route };
        Arc::new(Route { may_hold_members, ..made_of })
    };
    routes.into_iter().zip(others).map(beside).collect()
}

/// Returns the identities of the upstreams whose collections can be changed with all below them. The keys of all
/// resources there must be their paths. With other keys, it would be unknown which of them are below a collection.
fn upstreams_with_trees(routes: &[Route], holding: &[bool]) -> HashSet<String> {
    let changes = |(route, holds): (&Route, &bool)| {
        let rules = route.enforced()?;
        (rules.removes_trees() || *holds && rules.changes_trees()).then(|| route.upstream.identity.clone())
    };
    let is_path = |route: &Route| route.key.is_path() && route.writes_to.is_none();
    let is_unclear = |identity: &String| {
        let mut guarded = routes.iter().filter(|route| route.enforced().is_some());
        guarded.any(|route| route.upstream.identity == *identity && !is_path(route))
    };
    let found: HashSet<String> = routes.iter().zip(holding).filter_map(changes).collect();
    found.into_iter().filter(|identity| !is_unclear(identity)).collect()
}

/// Returns for each route whether a guarded route, this one included, has resources below its own.
pub(super) fn may_hold_members(routes: &[&Route]) -> Vec<bool> {
    let guarded: Vec<&Route> = routes.iter().copied().filter(|route| route.enforced().is_some()).collect();
    let paths = guarded.iter().map(|route| (HostPattern::Any, route.upstream_path.clone())).collect();
    let table = RouteTable::new(paths);
    let holds = |route: &Route| {
        let below = table.overlapping(&HostPattern::Any, &route.upstream_path.below());
        let mut members = below.into_iter().filter_map(|index| guarded.get(index));
        members.any(|member| member.upstream.identity == route.upstream.identity)
    };
    routes.iter().map(|route| route.enforced().is_some() && holds(route)).collect()
}
