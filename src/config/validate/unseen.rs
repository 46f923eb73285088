//! Changes that the path of a write does not name: of the list that the resource is in, and of all that a batch holds.
//!
//! # Design
//!
//! *Why do so few of them get a warning?* A route for `/{*rest}` may have lists and batches anywhere below, or none. No
//! operator would read a warning for each such route. So a list counts if the file has a route for its members, and a
//! batch if a path says that it is one.

use super::{keys::Placed, one_key::can_share, overlap::may_hold_members};
use crate::{
    config::{
        Route, Word as _,
        problem::{Problem, Source},
    },
    core::{
        policy::GuardRules,
        route::{HostPattern, PathPattern, Relation, relation},
    },
};

/// Returns a warning for each route that changes more than its requests name, and for each setting against that without
/// an effect.
pub(super) fn warnings(source: Source<'_>, routes: &[Placed]) -> Vec<Problem> {
    let whole: Vec<(&Placed, &Route)> =
        routes.iter().filter_map(|placed| Some((placed, placed.route.as_ref()?))).collect();
    let lists = whole.iter().filter_map(|members| stale_list(source, *members, &whole));
    let batches = whole.iter().filter_map(|route| batch(source, *route).or_else(|| beside(source, *route, &whole)));
    let holding = may_hold_members(&whole.iter().map(|(_, route)| *route).collect::<Vec<_>>());
    let in_vain = whole.iter().zip(holding).filter_map(|(route, holds)| vain_collections(source, *route, holds));
    lists.chain(batches).chain(in_vain).collect()
}

/// The rules of a route whose dialect knows nothing of lists and batches, if it enforces them.
fn plain_rules(route: &Route) -> Option<&GuardRules> {
    watched_rules(route).filter(|rules| !rules.observe)
}

/// The same, also if the route only observes what they would refuse.
fn watched_rules(route: &Route) -> Option<&GuardRules> {
    let rules = route.guard.as_ref()?;
    (!rules.quirks.is_flat && !rules.quirks.is_closed_list).then_some(rules)
}

/// Warns if the members of a list are written on a route that does not say so, and the list is answered from memory.
fn stale_list(
    source: Source<'_>,
    (members, route): (&Placed, &Route),
    routes: &[(&Placed, &Route)],
) -> Option<Problem> {
    plain_rules(route)?;
    let path = route.path.collection()?;
    let (placed, list) = winner((&route.host, &path), routes)?;
    let is_remembered = plain_rules(list).is_some_and(|rules| !rules.other_writers);
    let names = |touch: &PathPattern| relation((&route.host, touch), (&route.host, &path)) != Relation::Disjoint;
    let is_named = members.touches.iter().any(|touch| names(touch.get_ref().pattern()));
    let is_other_backend = list.upstream.identity != route.upstream.identity;
    if !is_remembered || is_named || is_other_backend || can_share(list, route) {
        return None;
    }
    let line = source.line(placed.span.start);
    let message = format!(
        "a write on route {:?} may change the list at {path}, which route {:?} (line {line}) answers from memory",
        members.name, placed.name
    );
    let hint = format!("write also_changes = [\"{path}\"] on the first route, or give {path} other_writers = true");
    Some(source.problem(members.span.clone(), message).hint(hint))
}

/// The route that takes all requests for these paths.
fn winner<'a>(
    paths: (&HostPattern, &PathPattern),
    routes: &[(&'a Placed, &'a Route)],
) -> Option<(&'a Placed, &'a Route)> {
    let takes = |(_, other): &&(&Placed, &Route)| {
        matches!(relation(paths, (&other.host, &other.path)), Relation::Same | Relation::Narrower)
    };
    let loses =
        |one: &Route, other: &Route| relation((&one.host, &one.path), (&other.host, &other.path)) == Relation::Wider;
    routes
        .iter()
        .copied()
        .filter(|route| takes(&route))
        .reduce(|best, other| if loses(best.1, other.1) { other } else { best })
}

/// Warns if a path says that its POST holds many changes, and no key says which. An operator who observes learns of it
/// before the route refuses anything.
fn batch(source: Source<'_>, (placed, route): (&Placed, &Route)) -> Option<Problem> {
    let rules = watched_rules(route)?;
    let is_unchecked = rules.append_methods.contains(&http::Method::POST);
    let is_named = !rules.also_changes.is_empty() || route.writes_to.is_some();
    if !is_unchecked || is_named || !route.path.names_batch() {
        return None;
    }
    let message = format!(
        "a POST on route {:?} may change resources that {} does not name: no tag and no lease covers them",
        placed.name, route.path
    );
    let hint = "name them in also_changes, refuse the POST by append_methods = [] and require_methods = [\"POST\"], or \
                let the route pass by policy = \"last-writer-wins\"";
    Some(source.problem(placed.span.clone(), message).hint(hint))
}

/// Warns if a path that passes says that its requests hold many changes, and another route answers from memory what they may
/// change.
fn beside(source: Source<'_>, (placed, route): (&Placed, &Route), routes: &[(&Placed, &Route)]) -> Option<Problem> {
    if route.guard.is_some() || !route.path.names_batch() {
        return None;
    }
    let remembers = |(_, other): &&(&Placed, &Route)| {
        other.upstream.identity == route.upstream.identity
            && plain_rules(other).is_some_and(|rules| !rules.other_writers)
    };
    let (other, _) = routes.iter().find(remembers)?;
    let line = source.line(other.span.start);
    let message = format!(
        "a request on route {:?} may change resources of route {:?} (line {line}), which answers from memory",
        placed.name, other.name
    );
    let hint = format!("give route {:?} other_writers = true, or let the backend refuse {}", other.name, route.path);
    Some(source.problem(placed.span.clone(), message).hint(hint))
}

/// Warns of a `collections` on a route whose DELETE removes its target alone in any case.
fn vain_collections(source: Source<'_>, (placed, route): (&Placed, &Route), holds_members: bool) -> Option<Problem> {
    let (span, rules) = (placed.collections.clone()?, route.guard.as_ref()?);
    let hint = if rules.quirks.is_flat {
        format!("leave it out: names have no folders in the {} dialect", rules.dialect.word())
    } else {
        "leave it out, or guard what is below: no guarded route has resources below those of this one".to_owned()
    };
    let message = format!("collections has no effect on route {:?}", placed.name);
    (rules.quirks.is_flat || !holds_members).then(|| source.problem(span, message).hint(hint))
}
