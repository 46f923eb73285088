//! How the routes of a file lie to each other.

use std::sync::Arc;

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
            let line = check.source.line(earlier.span.start);
            let (name, other) = (&later.route.name, &earlier.route.name);
            let (a, b) = (&later.route, &earlier.route);
            match relation((&a.host, &a.path), (&b.host, &b.path)) {
                Relation::Same => {
                    let message = format!("route {name:?} matches the same requests as route {other:?} (line {line})");
                    check.hinted(later.span.clone(), message, "leave one of them out, or give them different hosts");
                }
                Relation::Crossing => {
                    let message = format!("routes {name:?} and {other:?} (line {line}) match common requests");
                    let hint = format!("neither {} nor {} is the more specific one; change one of them", a.path, b.path);
                    check.hinted(later.span.clone(), message, hint);
                }
                Relation::Disjoint | Relation::Narrower | Relation::Wider => {}
            }
        }
    }
}

/// What a file can say and rarely means.
pub(super) fn warnings(source: Source<'_>, routes: &[Placed]) -> Vec<Problem> {
    if let Some(first) = routes.first()
        && routes.iter().all(|placed| placed.route.guard.is_none())
    {
        let warning = source.problem(first.span.clone(), "no route is guarded: every write passes");
        return vec![warning.hint("write policy = \"optimistic\" on the routes whose updates must not be lost")];
    }
    let around = |unguarded: &Placed| {
        let guarded = routes.iter().find(|guarded| reaches(&unguarded.route, &guarded.route))?;
        let line = source.line(guarded.span.start);
        let (name, other) = (&unguarded.route.name, &guarded.route.name);
        let message = format!("route {name:?} is not guarded and reaches what route {other:?} (line {line}) guards");
        Some(source.problem(unguarded.span.clone(), message).hint(
            "the backend may serve the same resources under both hosts; guard both, give both the same host, or give \
             them different upstreams",
        ))
    };
    routes.iter().filter_map(around).collect()
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

/// The routes, each knowing whether a guarded one sends to its backend.
pub(super) fn beside_guarded(routes: Vec<Placed>) -> Vec<Arc<Route>> {
    let guarded = routes.iter().filter(|placed| placed.route.guard.is_some());
    let identities = guarded.map(|placed| placed.route.upstream.identity.clone()).collect::<Vec<_>>();
    let beside = |route: Route| Route { beside_guarded: identities.contains(&route.upstream.identity), ..route };
    routes.into_iter().map(|placed| Arc::new(beside(placed.route))).collect()
}
