//! Routes that make the same keys. They share the records of these resources, and the leases in them.

use super::keys::Placed;
use crate::{
    config::{
        Route,
        problem::{Problem, Source},
    },
    core::{
        lease::Usage,
        policy::{GuardRules, LeaseRules},
        resource::KeySource,
        route::{HostPattern, RouteTable},
    },
};

/// Returns a warning for each route that makes the same keys as an earlier one but has different lease rules. Each of
/// the two also judges the leases that the other grants.
pub(super) fn warnings(source: Source<'_>, routes: &[Placed]) -> Vec<Problem> {
    let (guarded, rules): (Vec<_>, Vec<_>) = routes.iter().filter_map(enforced).unzip();
    let keys = KeyTable::of(guarded.iter().map(|(_, route)| *route));
    let warning = |(index, (later, route)): (usize, &(&Placed, &Route))| {
        let guard = rules.get(index)?;
        let is_other = |other: usize| {
            let differs = !differences(guard, rules.get(other)?).is_empty();
            (differs && can_share(route, guarded.get(other)?.1)).then_some(other)
        };
        let earlier = keys.overlapping(route).into_iter().take_while(|&other| other < index);
        let other = earlier.into_iter().find_map(is_other)?;
        let ((earlier, _), of_earlier) = (guarded.get(other)?, rules.get(other)?);
        let (name, other, line) = (&later.name, &earlier.name, source.line(earlier.span.start));
        let what = differences(guard, of_earlier).join(", ");
        let message =
            format!("routes {name:?} and {other:?} (line {line}) can make the same key, and differ in {what}");
        let hint = "both honour a lease that one of them grants, as it was granted; give both the same values, or \
                    different keys";
        Some(source.problem(later.span.clone(), message).hint(hint))
    };
    guarded.iter().enumerate().filter_map(warning).collect()
}

/// Returns for each route whether a route, this one included, grants leases that keep readers away from its resources.
pub(super) fn may_be_leased_from_readers(routes: &[Route]) -> Vec<bool> {
    share_with(routes, |rules| rules.guards.covers(Usage::Read))
}

/// Returns for each route whether a DELETE of its resources may wait on a route, this one included.
pub(super) fn may_have_pending_deletes(routes: &[Route]) -> Vec<bool> {
    share_with(routes, |rules| rules.delete_pending)
}

/// Returns for each route whether a route with such rules, this one included, shares resources with it.
fn share_with(routes: &[Route], has_rule: impl Fn(&LeaseRules) -> bool) -> Vec<bool> {
    let is_keeper = |route: &Route| route.enforced().and_then(|guard| guard.lease.as_ref()).is_some_and(&has_rule);
    let keepers: Vec<&Route> = routes.iter().filter(|route| is_keeper(route)).collect();
    let keys = KeyTable::of(keepers.iter().copied());
    let shares = |route: &Route| {
        let others = keys.overlapping(route).into_iter().filter_map(|index| keepers.get(index));
        others.into_iter().any(|other| can_share(route, other))
    };
    routes.iter().map(|route| is_keeper(route) || route.enforced().is_some() && shares(route)).collect()
}

/// Routes by the keys that they make.
struct KeyTable {
    /// The paths that the upstream receives, of the routes whose key is the path.
    by_path: RouteTable,
    with_path: Vec<usize>,
    with_another: Vec<usize>,
}

impl KeyTable {
    fn of<'a>(routes: impl Iterator<Item = &'a Route> + Clone) -> Self {
        let paths = routes.clone().filter(|route| route.key.is_path());
        let by_path = RouteTable::new(paths.map(|route| (HostPattern::Any, route.upstream_path.clone())).collect());
        let (with_path, with_another) = routes.enumerate().partition::<Vec<_>, _>(|(_, route)| route.key.is_path());
        let indexes = |routes: Vec<(usize, &Route)>| routes.into_iter().map(|(index, _)| index).collect();
        Self { by_path, with_path: indexes(with_path), with_another: indexes(with_another) }
    }

    /// The indexes of the routes that may make the same keys as this one, in ascending order.
    fn overlapping(&self, route: &Route) -> Vec<usize> {
        let with_path = if route.key.is_path() {
            let found = self.by_path.overlapping(&HostPattern::Any, &route.upstream_path).into_iter();
            found.filter_map(|place| self.with_path.get(place).copied()).collect()
        } else {
            self.with_path.clone()
        };
        let mut found = [with_path, self.with_another.clone()].concat();
        found.sort_unstable();
        found
    }
}

/// Returns a route and its guard, if it enforces one.
fn enforced(placed: &Placed) -> Option<((&Placed, &Route), &GuardRules)> {
    let route = placed.route.as_ref()?;
    Some(((placed, route), route.enforced()?))
}

/// Returns the keys in which two routes differ and that matter for the leases of one resource, or for its metadata.
fn differences(one: &GuardRules, other: &GuardRules) -> Vec<&'static str> {
    let (Some(rules), Some(of_other)) = (&one.lease, &other.lease) else {
        return if one.lease.is_some() == other.lease.is_some() { Vec::new() } else { vec!["policy"] };
    };
    let differences = [
        // A blob can be designated as the lock of a table: their clients have leases of the same ids.
        ("dialect", one.quirks.service != other.quirks.service),
        ("metadata_suffix", one.metadata_suffix != other.metadata_suffix),
        ("lease.guards", rules.guards != of_other.guards),
        ("lease.shared", rules.shared != of_other.shared),
        ("lease.delete_pending", rules.delete_pending != of_other.delete_pending),
        ("lease.sharing_violation", rules.sharing_violation != of_other.sharing_violation),
        ("lease.required", rules.required != of_other.required),
        ("lease.bind", rules.bind != of_other.bind),
        ("identity_headers", rules.bind && one.identity_headers != other.identity_headers),
        ("identity_cookies", rules.bind && one.identity_cookies != other.identity_cookies),
        ("identity_query", rules.bind && one.identity_query != other.identity_query),
    ];
    differences.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

/// Returns whether one resource can be reached through both routes: they make the same keys for the same backend. If
/// the key is the path, two routes of one host never share a resource: the narrower takes all that both match.
pub(super) fn can_share(one: &Route, other: &Route) -> bool {
    let are_apart =
        one.host == other.host && one.mapping == other.mapping && [one, other].iter().all(|route| route.key.is_path());
    one.upstream.identity == other.upstream.identity && !are_apart && key_source(one).can_meet(&key_source(other))
}

fn key_source(route: &Route) -> KeySource<'_> {
    let Route { key: template, host, path, upstream_path, .. } = route;
    KeySource { template, host, path, upstream_path }
}
