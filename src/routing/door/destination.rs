//! The second resource of a COPY or MOVE: its route and key, found as those of a target are (DESIGN, section 4).
//!
//! # Design
//!
//! *Why must both be guarded, and at one upstream?* The backend carries the operation out itself, so it reaches both. A
//! write of an unguarded resource would label nothing, and one of another upstream's would be no operation of this one.

use http::Method;

use super::{
    Head, TakenRoute, check_own_fields,
    path_checks::{ambiguous, check_kept, check_path, not_below},
    second_resource,
};
use crate::{
    config::Route,
    core::{
        http::{
            readings::{
                destination::{DESTINATION, destination, elsewhere},
                method::MethodReadings,
            },
            request_target::{KeptInNames, normalize, split_authority},
        },
        lease::Usage,
        refusal::{Code, Refusal},
    },
    routing::{
        Facet, GuardedDestination, GuardedRequest,
        table::{RoutingTable, TablePlace},
    },
};

/// Returns the destination of a COPY or MOVE whose source takes this route and has been found to be `source`.
pub(super) fn of_request(
    table: &RoutingTable,
    source: &GuardedRequest,
    head: &Head<'_>,
) -> Result<Box<GuardedDestination>, Refusal> {
    let is_closed = |route: &Route| route.guard.as_ref().is_none_or(|guard| guard.quirks.is_closed_list);
    // The body of a write to such a route names another source.
    if !source.methods.are_alike() || source.route.writes_to.is_some() || is_closed(&source.route) {
        return Err(second_resource());
    }
    let method = &source.methods.judged;
    let target = destination(method.as_str(), head.headers, head.host)?;
    let normal = normalize(target, KeptInNames::ALL).map_err(ambiguous)?;
    let found = table.find(head.host, &normal).ok_or_else(elsewhere)?;
    let TablePlace::Resource(route_index, route) = table.place(found.index) else { return Err(elsewhere()) };
    check_path(table, head.host, (target, &normal), (found.index, route))?;
    if !route.mapping.agrees(target, &normal) {
        return Err(not_below(route));
    }
    let same_upstream = route.upstream.identity == source.route.upstream.identity;
    let Some(guard) = route.enforced().filter(|_| same_upstream && !is_closed(route)) else { return Err(elsewhere()) };
    check_kept(target, route.kept)?;
    check_own_fields(guard, route, head)?;
    let methods = MethodReadings { judged: Method::PUT, others: Vec::new(), usages: Usage::Write.into() };
    let taken = TakenRoute { route_index, route, found: &found };
    let request = taken.request((&normal, None), methods, Facet::Resource, head)?;
    if request.key == source.key {
        let detail = "Destination names the resource itself: choose another name";
        return Err(Refusal::new(Code::DestinationIsSource, detail));
    }
    Ok(Box::new(GuardedDestination { request, target: target.into() }))
}

/// Refuses a request on a route that enforces nothing unless its `Destination` leads to another such resource. The upstream
/// reads the path there in its own way, so one that takes no route could be any of its resources.
pub(super) fn leads_to_nothing_guarded(table: &RoutingTable, source: &Route, head: &Head<'_>) -> Result<(), Refusal> {
    for value in head.headers.get_all(&DESTINATION) {
        let reference = str::from_utf8(value.as_bytes()).map_err(|_error| elsewhere())?;
        let (_, authority, path) = split_authority(reference.trim()).ok_or_else(elsewhere)?;
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let path = if path.is_empty() && authority.is_some() { "/" } else { path };
        let normal = normalize(path.as_bytes(), KeptInNames::ALL).map_err(ambiguous)?;
        // The host in it may count or not.
        let other = authority.and_then(|host| table.find(host, &normal)).map(|found| table.place(found.index));
        let found = table.find(head.host, &normal).ok_or_else(elsewhere)?;
        let TablePlace::Resource(_, route) = table.place(found.index) else { return Err(elsewhere()) };
        let is_guarded = |place| matches!(place, TablePlace::Resource(_, route) if route.enforced().is_some());
        let is_reached_alike = route.upstream.identity == source.upstream.identity && route.mapping == source.mapping;
        if route.enforced().is_some() || !is_reached_alike || other.is_some_and(is_guarded) {
            return Err(elsewhere());
        }
        check_path(table, head.host, (path.as_bytes(), &normal), (found.index, route))?;
        if !route.mapping.agrees(path.as_bytes(), &normal) {
            return Err(not_below(route));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "destination_tests.rs"]
mod tests;
