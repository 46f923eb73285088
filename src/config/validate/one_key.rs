//! Routes that make the same keys. They share the records of these resources, and the leases in them.

use super::keys::Placed;
use crate::{
    config::{
        Route,
        problem::{Problem, Source},
    },
    core::{lease::Usage, policy::GuardRules, resource::KeySource},
};

/// Returns a warning for each route that makes the same keys as an earlier one but has different lease rules. Each of
/// the two also judges the leases that the other grants.
pub(super) fn warnings(source: Source<'_>, routes: &[Placed]) -> Vec<Problem> {
    let warning = |(index, later): (usize, &Placed)| {
        let (route, guard) = enforced(later)?;
        let differs = |earlier: &&Placed| {
            enforced(earlier)
                .is_some_and(|(other, of_other)| !differences(guard, of_other).is_empty() && can_share(route, other))
        };
        let earlier = routes.iter().take(index).find(differs)?;
        let (_, of_earlier) = enforced(earlier)?;
        let (name, other, line) = (&later.name, &earlier.name, source.line(earlier.span.start));
        let what = differences(guard, of_earlier).join(", ");
        let message =
            format!("routes {name:?} and {other:?} (line {line}) can make the same key, and differ in {what}");
        let hint = "both honour a lease that one of them grants, as it was granted; give both the same values, or \
                    different keys";
        Some(source.problem(later.span.clone(), message).hint(hint))
    };
    routes.iter().enumerate().filter_map(warning).collect()
}

/// Returns whether a route, this one included, grants leases that keep readers away from this route's resources.
pub(super) fn may_be_leased_from_readers(route: &Route, routes: &[Route]) -> bool {
    let keeps_readers_away = |other: &&Route| {
        let guard = other.guard.as_ref().filter(|guard| !guard.observe);
        let rules = guard.and_then(|guard| guard.lease.as_ref());
        rules.is_some_and(|rules| rules.guards.covers(Usage::Read))
    };
    let is_guarded = route.guard.as_ref().is_some_and(|guard| !guard.observe);
    is_guarded
        && routes.iter().filter(keeps_readers_away).any(|other| std::ptr::eq(other, route) || can_share(route, other))
}

/// Returns a route and its guard, if it enforces one.
fn enforced(placed: &Placed) -> Option<(&Route, &GuardRules)> {
    let route = placed.route.as_ref()?;
    Some((route, route.guard.as_ref().filter(|guard| !guard.observe)?))
}

/// Returns the keys in which two routes differ and that matter for the leases of one resource.
fn differences(one: &GuardRules, other: &GuardRules) -> Vec<&'static str> {
    let (Some(rules), Some(of_other)) = (&one.lease, &other.lease) else {
        return if one.lease.is_some() == other.lease.is_some() { Vec::new() } else { vec!["policy"] };
    };
    let differences = [
        ("dialect", one.dialect != other.dialect),
        ("lease.guards", rules.guards != of_other.guards),
        ("lease.shared", rules.shared != of_other.shared),
        ("lease.required", rules.required != of_other.required),
        ("lease.bind", rules.bind != of_other.bind),
        ("identity_headers", rules.bind && one.identity_headers != other.identity_headers),
        ("identity_cookies", rules.bind && one.identity_cookies != other.identity_cookies),
    ];
    differences.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

/// Returns whether one resource can be reached through both routes: they make the same keys for the same backend. If
/// the key is the path, two routes of one host never share a resource: the narrower takes all that both match.
fn can_share(one: &Route, other: &Route) -> bool {
    let are_apart =
        one.host == other.host && one.mapping == other.mapping && [one, other].iter().all(|route| route.key.is_path());
    one.upstream.identity == other.upstream.identity && !are_apart && key_source(one).can_meet(&key_source(other))
}

fn key_source(route: &Route) -> KeySource<'_> {
    let Route { key: template, host, path, upstream_path, .. } = route;
    KeySource { template, host, path, upstream_path }
}
