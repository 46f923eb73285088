//! `members` and `index`: the collections whose next member a client can take, or whose members it can list.

use toml::Spanned;

use super::{
    check::Check,
    keys::{Placed, RouteLayers, pattern},
    touches::{may_enforce, reached},
};
use crate::{
    config::{Route, Word as _},
    core::{
        members::index_form::IndexForm,
        policy::{GuardRules, LeaseGuards},
        quirks::ServiceKind,
        route::{MembersTemplate, PathPattern, Relation, relation},
    },
};

/// Reads the template of a route with this path.
pub(super) fn read(
    check: &mut Check<'_>,
    keys: RouteLayers<'_>,
    guard: Option<&GuardRules>,
    path: &PathPattern,
) -> Option<Spanned<MembersTemplate>> {
    let text = keys.own.members.as_ref();
    check.refuse(
        keys.own.index.as_ref(),
        text.is_none() && guard.is_some_and(|guard| guard.index != IndexForm::WebDav && !lists_itself(guard)),
        "index has no effect on a route without members",
        "leave it out, or name the members, as in members = \"/jobs/{id}\"",
    );
    if let Some(guard) = guard.filter(|guard| lists_itself(guard)) {
        check.refuse(
            keys.own.path.as_ref(),
            !path.is_open(),
            format!("dialect = {:?} needs all paths below one", guard.dialect.word()),
            "queues and messages are documents below it: write path = \"/{*path}\"",
        );
    }
    let text = text.filter(|_| guard.is_some())?;
    check.refuse(
        keys.own.index.as_ref(),
        guard.is_some_and(lists_containers),
        "index has no effect in this dialect",
        "leave it out: lists are made of the JSON that nginx shows of a folder",
    );
    let template = pattern(check, text, MembersTemplate::parse(text.get_ref(), path))?;
    Some(Spanned::new(text.span(), template))
}

/// Reports each template whose resources no client could take.
pub(super) fn check(check: &mut Check<'_>, routes: &[Placed]) {
    for placed in routes {
        let Some(template) = &placed.members else { continue };
        let path = template.get_ref().pattern();
        let own = relation((&placed.host, path), (&placed.host, &placed.path)) != Relation::Disjoint;
        let problem = if own {
            let message = format!("members leads from {} back to its own route", placed.path);
            Some((message, "give the collection and its members routes of their own"))
        } else {
            of_own_rules(placed, template.get_ref()).or_else(|| of_members(placed, path, routes))
        };
        if let Some((message, hint)) = problem {
            check.hinted(template.span(), message, hint);
        }
    }
}

/// The problem of a collection whose own rules do not go with `members`.
fn of_own_rules(placed: &Placed, template: &MembersTemplate) -> Option<(String, &'static str)> {
    let rules = placed.route.as_ref()?.guard.as_ref()?;
    if rules.observe {
        return Some(("members has no effect with observe = true".to_owned(), "leave out one of the two"));
    }
    if lists_containers(rules) {
        let message = "members names no containers: they are directly below the path of their account".to_owned();
        return (!template.is_directly_below(&placed.path))
            .then_some((message, "write members = \"/{container}\" with path = \"/\""));
    }
    let hint = "leave it out, or write dialect = \"native\"";
    (!can_take(rules)).then(|| ("members has no effect in this dialect".to_owned(), hint))
}

/// The problem of the routes that the members belong to.
fn of_members(placed: &Placed, path: &PathPattern, routes: &[Placed]) -> Option<(String, &'static str)> {
    let others = reached(&placed.host, path, routes);
    if !others.iter().copied().any(may_enforce) {
        let message = format!("members names {path}, which no guarded route matches");
        return Some((message, "give the members a route with policy = \"pessimistic\""));
    }
    let own = placed.route.as_ref()?;
    let read: Vec<&Route> = others.iter().filter_map(|other| other.route.as_ref()).collect();
    if let Some(route) = read.iter().find(|route| route.upstream != own.upstream) {
        let message = format!("members names resources of route {:?}, which has another upstream", route.name);
        return Some((message, "give both routes one upstream: it lists the members, and has them"));
    }
    if placed.route.as_ref().and_then(Route::enforced).is_some_and(|rules| lists_containers(rules)) {
        // The pattern of a route of blobs has the path of their container too.
        let message = format!("members names {path}, which no route of containers matches");
        let hint = "give the containers a route with dialect = \"azure\" and lease.guards = [\"delete\"]";
        return (!read.iter().any(|route| has_containers(route))).then_some((message, hint));
    }
    let route = read.iter().find(|route| !has_leases(route))?;
    let message = format!("members names resources of route {:?}, whose leases no read can take", route.name);
    Some((message, "write policy = \"pessimistic\" and lease.acquire_on_read = true there"))
}

/// True if a read on a route can take a lease.
fn has_leases(route: &Route) -> bool {
    let enforced = route.enforced().filter(|rules| can_take(rules));
    enforced.and_then(|rules| rules.lease.as_ref()).is_some_and(|lease| lease.acquire_on_read)
}

/// True if the members of a collection with these rules are containers.
fn lists_containers(rules: &GuardRules) -> bool {
    rules.quirks.service == ServiceKind::Azure
}

/// True if the resources of a route are containers.
fn has_containers(route: &Route) -> bool {
    let enforced = route.enforced().filter(|rules| lists_containers(rules));
    enforced.and_then(|rules| rules.lease.as_ref()).is_some_and(|lease| lease.guards == LeaseGuards::Delete)
}

/// True if the requests of clients make the proxy list folders, no matter which members the route names.
fn lists_itself(rules: &GuardRules) -> bool {
    rules.dialect.grammar().facts().demands.makes_own_requests
}

/// True if a read in the dialect of these rules can take a lease, and is one verb of the guard.
fn can_take(rules: &GuardRules) -> bool {
    rules.quirks.service == ServiceKind::Plain && rules.dialect.grammar().facts().demands.acquires_on_read
}
