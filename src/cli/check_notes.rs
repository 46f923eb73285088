//! The facts that the table of `ifmatch check` does not show. These are the methods that need a precondition, the
//! routes that let writes reach targets below guarded ones, those whose requests hold changes of any resource, and those
//! that answer lists from memory whose items they change.

use std::sync::Arc;

use http::Method;

use crate::{
    config::Route,
    core::{
        policy::{GuardRules, Require},
        route::is_below,
    },
};

/// Returns a line for each group of routes that demand the same.
pub(super) fn demands(routes: &[Arc<Route>]) -> Vec<String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for route in routes {
        let Some(guard) = route.guard.as_deref() else { continue };
        let demand = demand(guard);
        match groups.iter_mut().find(|(of_group, _)| *of_group == demand) {
            Some((_, names)) => names.push(&route.name),
            None => groups.push((demand, vec![&route.name])),
        }
    }
    groups.into_iter().map(|(demand, names)| format!("{}: {demand}", names.join(", "))).collect()
}

fn demand(guard: &GuardRules) -> String {
    let demanding: Vec<&str> = guard
        .require_methods
        .iter()
        .filter(|method| guard.demand(method) != Require::Never)
        .map(Method::as_str)
        .collect();
    let which = if guard.require == Require::Existing { " if the resource exists" } else { "" };
    if guard.observe {
        "no request is refused (observe = true)".to_owned()
    } else if demanding.is_empty() {
        let lease =
            if guard.lease.as_ref().is_some_and(|rules| rules.required) { "a write needs a lease; " } else { "" };
        format!("{lease}no method needs a precondition, and one that is sent must be true")
    } else {
        let others = if demanding.contains(&"POST") { "other methods" } else { "POST and other methods" };
        let (verb, listed) = (if demanding.len() == 1 { "needs" } else { "need" }, listed(&demanding));
        format!("{listed} {verb} a precondition{which}; {others} pass without one")
    }
}

/// Joins names as a sentence does: `PUT, PATCH and DELETE`.
fn listed(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Returns a line for each unguarded route whose targets lie below those of a guarded one.
pub(super) fn unguarded_below(routes: &[Arc<Route>]) -> Vec<String> {
    let is_below = |inner: &Route, outer: &Route| is_below((&inner.host, &inner.path), (&outer.host, &outer.path));
    let unguarded = routes.iter().filter(|route| route.guard.is_none());
    let line = |inner: &Arc<Route>| {
        let outer = routes.iter().find(|outer| outer.guard.is_some() && is_below(inner, outer))?;
        let above = format!("{} ({})", outer.name, outer.path);
        Some(format!("{} ({}) is not guarded, and lies below {above}", inner.name, inner.path))
    };
    unguarded.filter_map(line).collect()
}

/// Returns a line for each unguarded route whose requests name in their body what they change, if the same backend has guarded
/// resources.
pub(super) fn unguarded_batches(routes: &[Arc<Route>]) -> Vec<String> {
    let line = |batch: &Arc<Route>| {
        let is_reached =
            |other: &&Arc<Route>| other.guard.is_some() && other.upstream.identity == batch.upstream.identity;
        let reached = routes.iter().find(is_reached)?;
        let (name, path) = (&batch.name, &batch.path);
        let guarded = format!("{} ({})", reached.name, reached.path);
        Some(format!(
            "{name} ({path}) is not guarded, and its requests may change resources of guarded routes: {guarded}"
        ))
    };
    routes.iter().filter(|route| route.guard.is_none() && route.path.names_batch()).filter_map(line).collect()
}

/// Returns a line for each route that takes both a list and its items, if it answers the list from memory although a
/// write of an item changes it.
pub(super) fn remembered_lists(routes: &[Arc<Route>]) -> Vec<String> {
    let takes_both = |route: &&Arc<Route>| {
        let rules = route.enforced().filter(|rules| !rules.quirks.is_flat && !rules.quirks.is_closed_list);
        let is_unnamed = rules.is_some_and(|rules| !rules.other_writers && rules.also_changes.is_empty());
        is_unnamed && route.path.is_open() && route.key.is_path()
    };
    let line = |route: &Arc<Route>| {
        format!(
            "{} ({}) answers lists from memory, and a write of an item does not change the tag of its list: name the list \
             in also_changes, or give it a route with other_writers = true",
            route.name, route.path
        )
    };
    routes.iter().filter(takes_both).map(line).collect()
}
