//! Routes that match no common requests without one of them being the more specific: the configuration accepts no others.

use std::ptr;

use super::{DecidedPath, PathRole, RoutePlan, UndecidedPoint};
use crate::core::route::{HostPattern, PathPattern, Relation, RouteTable, relation};

/// Leaves out the routes that cross others, those of actions first, and what depends on them. Keeps, of the unguarded paths,
/// those that a guarded route would take otherwise.
pub(super) fn keep_apart(plan: &mut RoutePlan<'_>) {
    let patterns = plan.decided.iter().map(|decided| (HostPattern::Any, decided.path.pattern.clone())).collect();
    let table = RouteTable::new(patterns);
    let mut is_written = vec![false; plan.decided.len()];
    for class in [is_state as fn(&PathRole) -> bool, is_action, is_unguarded] {
        for index in 0..plan.decided.len() {
            let Some(decided) = plan.decided.get(index).filter(|decided| class(&decided.role)) else { continue };
            let mut others = table.overlapping(&HostPattern::Any, &decided.path.pattern).into_iter();
            let crosses = |other: usize| {
                let other = plan.decided.get(other).filter(|_| is_written.get(other) == Some(&true));
                other.is_some_and(|other| relates(&decided.path.pattern, &other.path.pattern) == Relation::Crossing)
            };
            let crossing = others.any(crosses);
            let needed = is_guarded(&decided.role) || is_taken(&plan.decided, &table, decided);
            if crossing && needed {
                // Remarks on a route that is left out would mislead.
                plan.open.retain(|(_, known)| !decided.operations.iter().any(|own| ptr::eq(*own, *known)));
                let writes = decided.operations.iter().filter(|operation| operation.is_write());
                plan.open.extend(writes.map(|operation| (UndecidedPoint::Crossing, *operation)));
            }
            if let Some(written) = is_written.get_mut(index) {
                *written = needed && !crossing;
            }
        }
    }
    let mut written = is_written.into_iter();
    plan.decided.retain(|_| written.next() == Some(true));
    leave_out_dangling(plan);
}

fn is_state(role: &PathRole) -> bool {
    matches!(role, PathRole::Resource | PathRole::Collection { .. })
}

fn is_action(role: &PathRole) -> bool {
    matches!(role, PathRole::Action { .. })
}

fn is_unguarded(role: &PathRole) -> bool {
    *role == PathRole::Unguarded
}

fn is_guarded(role: &PathRole) -> bool {
    *role != PathRole::Unguarded
}

fn relates(one: &PathPattern, other: &PathPattern) -> Relation {
    relation((&HostPattern::Any, one), (&HostPattern::Any, other))
}

/// True if a guarded route takes requests of an unguarded path that has none of its own.
fn is_taken(all: &[DecidedPath<'_>], table: &RouteTable, unguarded: &DecidedPath<'_>) -> bool {
    let pattern = &unguarded.path.pattern;
    let others = table.overlapping(&HostPattern::Any, pattern).into_iter().filter_map(|other| all.get(other));
    others.filter(|other| is_guarded(&other.role)).any(|other| relates(pattern, &other.path.pattern) != Relation::Wider)
}

/// Leaves out what names the resource of a route that is left out.
fn leave_out_dangling(plan: &mut RoutePlan<'_>) {
    let states: Vec<PathPattern> = plan
        .decided
        .iter()
        .filter(|decided| is_state(&decided.role))
        .map(|decided| decided.path.pattern.clone())
        .collect();
    let is_there = |path: &str| {
        let pattern = PathPattern::parse(&path.replace("{json./", "{json_"));
        pattern.is_ok_and(|pattern| {
            states.iter().any(|state| matches!(relates(&pattern, state), Relation::Same | Relation::Narrower))
        })
    };
    let RoutePlan { decided, open } = plan;
    decided.retain_mut(|decided| {
        decided.also_changes.take_if(|path| !is_there(path));
        decided.next_member.take_if(|next| !is_there(&next.members));
        if let PathRole::Collection { writes_to } = &mut decided.role
            && writes_to.take_if(|path| !is_there(path)).is_some()
        {
            let replaces = decided.operations.iter().filter(|operation| operation.is_write());
            open.extend(replaces.map(|operation| (UndecidedPoint::ChangesMembers, *operation)));
        }
        let dangles = matches!(&decided.role, PathRole::Action { changes } if !is_there(changes));
        if dangles {
            let writes = decided.operations.iter().filter(|operation| operation.is_write());
            open.extend(writes.map(|operation| (UndecidedPoint::NamesNoResource, *operation)));
        }
        !dangles
    });
}

#[cfg(test)]
mod tests {
    use crate::openapi::{classify::plan, document::ApiDocument, paths::Paths};

    /// Returns the routes of these paths, and the open decisions.
    fn routes(paths: &str) -> (Vec<String>, Vec<String>) {
        let document = ApiDocument::parse("d", &format!("openapi: 3.1.0\npaths:\n{paths}")).expect("a document");
        let paths = Paths::of(&document).expect("paths");
        let plan = plan(&paths);
        let routes = plan.decided.iter().map(|decided| decided.path.spelled.clone()).collect();
        (routes, plan.open.iter().map(|(open, operation)| format!("{open:?} {}", operation.label())).collect())
    }

    #[test]
    fn routes_that_cross_others_are_left_out() {
        let (routes, open) = routes("  /a/{x}/c: {get: {}, put: {}}\n  /a/b/{y}: {get: {}, put: {}}\n");
        assert_eq!(routes, ["/a/b/{y}"]);
        assert_eq!(open, ["Crossing PUT /a/{x}/c"]);
    }

    #[test]
    fn unguarded_paths_have_a_route_if_a_guarded_one_would_take_them() {
        let (routes, _) = routes("  /a/{x}: {get: {}, put: {}}\n  /a/new: {get: {}}\n  /b: {get: {}}\n");
        assert_eq!(routes, ["/a/new", "/a/{x}"]);
    }

    #[test]
    fn actions_on_resources_without_a_route_are_left_out() {
        let paths = "  /a/b/{y}: {get: {}, put: {}}\n  /a/{x}/c: {get: {}, put: {}}\n  /a/{x}/c/send: {post: {}}\n";
        let (routes, open) = routes(paths);
        assert_eq!(routes, ["/a/b/{y}"]);
        assert_eq!(open, ["Crossing PUT /a/{x}/c", "NamesNoResource POST /a/{x}/c/send"]);
    }
}
