//! `writes_to`: the resource that the body of a write names.

use toml::Spanned;

use super::{
    check::Check,
    keys::{Placed, pattern},
    touches::{may_enforce, reached},
};
use crate::{
    config::{Route, raw::Text},
    core::route::{PathPattern, Relation, WritesTo, relation},
};

/// Reads the template of a route with this path.
pub(super) fn read(check: &mut Check<'_>, text: Option<&Text>, path: &PathPattern) -> Option<Spanned<WritesTo>> {
    let text = text?;
    let template = pattern(check, text, WritesTo::parse(text.get_ref(), path))?;
    Some(Spanned::new(text.span(), template))
}

/// Reports each template whose resources could not be guarded.
pub(super) fn check(check: &mut Check<'_>, routes: &[Placed]) {
    for placed in routes {
        let Some(template) = &placed.writes_to else { continue };
        let path = template.get_ref().pattern();
        let own = relation((&placed.host, path), (&placed.host, &placed.path)) != Relation::Disjoint;
        let problem = if own {
            Some((
                format!("writes_to leads from {} back to its own route", placed.path),
                "name resources of another route, whose requests name them by the path",
            ))
        } else {
            of_own_rules(placed).or_else(|| of_named_routes(placed, template.get_ref(), routes))
        };
        if let Some((message, hint)) = problem {
            check.hinted(template.span(), message, hint);
        }
    }
}

/// The problem of a route whose own rules do not go with `writes_to`.
fn of_own_rules(placed: &Placed) -> Option<(String, &'static str)> {
    let rules = placed.route.as_ref()?.guard.as_ref()?;
    if rules.observe {
        let hint = "leave out one of the two: a route that only watches lets the writes of guarded resources pass";
        return Some(("writes_to has no effect with observe = true".to_owned(), hint));
    }
    let hint = "leave it out: an operation of that dialect names its resource in the path";
    rules.quirks.is_closed_list.then(|| ("writes_to has no effect in this dialect".to_owned(), hint))
}

/// The problem of the routes that the named resources belong to.
fn of_named_routes(placed: &Placed, template: &WritesTo, routes: &[Placed]) -> Option<(String, &'static str)> {
    let others = reached(&placed.host, template.pattern(), routes);
    if !others.iter().copied().any(may_enforce) {
        return Some((
            format!("writes_to names {template}, which no guarded route matches"),
            "guard the route of that resource, or leave it out",
        ));
    }
    let own = placed.route.as_ref()?;
    let read: Vec<&Route> = others.iter().filter_map(|other| other.route.as_ref()).collect();
    if let Some(route) = read.iter().find(|route| route.upstream != own.upstream) {
        let message = format!("writes_to names resources of route {:?}, which has another upstream", route.name);
        return Some((message, "give both routes one upstream: the write goes to the server that has the resource"));
    }
    let closed = |route: &&&Route| route.guard.as_ref().is_some_and(|rules| rules.quirks.is_closed_list);
    let route = read.iter().find(closed)?;
    let message = format!("writes_to names resources of route {:?}, whose dialect has no such write", route.name);
    Some((message, "leave it out: an operation of that dialect names its resource in the path"))
}
