//! How the routes of a file lie to each other.

use std::{ops::Range, sync::Arc};

use super::{
    super::{
        Route,
        problem::{Problem, Source},
    },
    check::Check,
    routes::Placed,
};
use crate::core::route::{HostPattern, Relation, relation};

/// Two routes that could both win are an error.
pub(super) fn refuse(check: &mut Check<'_>, routes: &[Placed]) {
    for (index, later) in routes.iter().enumerate() {
        for earlier in routes.iter().take(index) {
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

/// What a file without problems can say and rarely means.
pub(super) fn warnings(source: Source<'_>, routes: &[Placed]) -> Vec<Problem> {
    let whole = || routes.iter().filter_map(|placed| Some((placed.span.clone(), placed.route.as_ref()?)));
    if let Some((first, _)) = whole().next()
        && whole().all(|(_, route)| route.guard.is_none())
    {
        let warning = source.problem(first, "no route is guarded: every write passes");
        return vec![warning.hint("write policy = \"optimistic\" on the routes whose updates must not be lost")];
    }
    let warning = |(span, route): (Range<usize>, &Route)| {
        let (place, guarded) = whole().find(|(_, guarded)| reaches(route, guarded))?;
        let (name, other, line) = (&route.name, &guarded.name, source.line(place.start));
        let message = format!("route {name:?} is not guarded and reaches what route {other:?} (line {line}) guards");
        Some(source.problem(span, message).hint(
            "the backend may serve the same resources under both hosts; guard both, give both the same host, or give \
             them different upstreams",
        ))
    };
    whole().filter_map(warning).collect()
}

/// Whether a request can reach through an unguarded route what a guarded one guards: the same path, under another
/// host, at the same backend. Under the same host the more specific of the two routes takes all that both match.
fn reaches(unguarded: &Route, guarded: &Route) -> bool {
    let any = &HostPattern::Any;
    unguarded.guard.is_none()
        && guarded.guard.is_some()
        && unguarded.upstream.identity == guarded.upstream.identity
        && unguarded.host != guarded.host
        && relation((any, &unguarded.path), (any, &guarded.path)) != Relation::Disjoint
}

/// The routes, each knowing whether one that enforces its guard sends to the same backend.
pub(super) fn beside_guarded(routes: Vec<Placed>) -> Vec<Arc<Route>> {
    let routes = routes.into_iter().filter_map(|placed| placed.route).collect::<Vec<_>>();
    let enforces = |route: &&Route| route.guard.as_ref().is_some_and(|guard| !guard.observe);
    let guarded = routes.iter().filter(enforces).map(|route| route.upstream.identity.clone()).collect::<Vec<_>>();
    let beside = |route: Route| Route { beside_guarded: guarded.contains(&route.upstream.identity), ..route };
    routes.into_iter().map(beside).map(Arc::new).collect()
}
