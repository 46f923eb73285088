//! `also_changes`: the other resources that the writes of a route change.

use toml::Spanned;

use super::{
    check::Check,
    keys::{Placed, pattern},
};
use crate::{
    config::raw::Texts,
    core::route::{HostPattern, PathPattern, Relation, TouchTemplate, relation},
};

/// The largest number of `also_changes`: each costs two swaps in the store, one before and one after the exchange.
const TOUCHES_MAX: usize = 16;

/// Reads the templates of a route with this path.
pub(super) fn read(check: &mut Check<'_>, list: Option<&Texts>, path: &PathPattern) -> Vec<Spanned<TouchTemplate>> {
    let Some(list) = list else { return Vec::new() };
    if list.get_ref().len() > TOUCHES_MAX {
        let message = format!("also_changes names {} resources, the limit is {TOUCHES_MAX}", list.get_ref().len());
        check.hinted(list.span(), message, "give resources that change together one key (see key)");
    }
    check.each(list, |check, text| {
        let template = pattern(check, text, TouchTemplate::parse(text.get_ref(), path))?;
        Some(Spanned::new(text.span(), template))
    })
}

/// Reports each template from which no guarded route would make a key: touching it would have no effect.
pub(super) fn refuse_unguarded(check: &mut Check<'_>, routes: &[Placed]) {
    for placed in routes {
        for touch in &placed.touches {
            let path = touch.get_ref().pattern();
            let others = reached(&placed.host, path, routes);
            let by_query = others.iter().filter_map(|other| other.route.as_ref()).find(|route| route.key.needs_query());
            if !others.iter().copied().any(may_enforce) {
                let message = format!("also_changes names {path}, which no guarded route matches");
                check.hinted(touch.span(), message, "guard the route of that resource, or leave it out");
            } else if let Some(route) = by_query {
                let message =
                    format!("also_changes names {path}, and route {:?} names its resources by the query", route.name);
                check.hinted(touch.span(), message, "only a route whose key has no {query.NAME} can be touched");
            }
        }
    }
}

/// Returns the routes that a request can reach by naming a path: the named resource has the host of the request.
pub(super) fn reached<'a>(host: &HostPattern, path: &PathPattern, routes: &'a [Placed]) -> Vec<&'a Placed> {
    let reaches = |other: &&Placed| relation((host, path), (&other.host, &other.path)) != Relation::Disjoint;
    routes.iter().filter(reaches).collect()
}

/// True if a route enforces rules, or could once its problems are solved.
pub(super) fn may_enforce(placed: &Placed) -> bool {
    placed.route.as_ref().is_none_or(|route| route.enforced().is_some())
}
