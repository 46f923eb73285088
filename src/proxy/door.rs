//! The door: which route a request takes, and whether it is refused, passed on, or guarded. A pure function.
//!
//! # Design
//!
//! *Why is a path looked at twice?* A route is found by the normal form, the target is forwarded as received. Where the
//! spelling as received would take another route, the backend may read it as that route's resource; so it is refused
//! as soon as a guarded resource could be the one that is meant.
//!
//! *What of `Upgrade`?* A connection that changed its protocol could carry anything. On a guarded route only a plain
//! WebSocket handshake passes with that field, on every other request it is removed and the request is judged. An
//! extended CONNECT (RFC 8441) is never offered to clients, and CONNECT is refused on all routes.

use std::sync::Arc;

use http::{HeaderMap, Method, Version, header};

use super::{guarded::GuardedRequest, method};
use crate::{
    config::Route,
    core::{
        policy::{Guard, MethodClass},
        refusal::{Code, Refusal},
        resource::KeyParts,
        route::{RouteMatch, RouteTable},
        target::{NormalPath, PathParameters, normalize, split_query},
    },
};

/// The head of a request, its target in origin-form.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Its version.
    pub version: Version,
    /// Its host, perhaps with a port; empty where an HTTP/1.0 request has none.
    pub host: &'a str,
    /// Its target as received: path and query.
    pub target: &'a [u8],
    /// Its fields.
    pub headers: &'a HeaderMap,
}

/// Where a request goes from the door.
#[derive(Debug)]
pub enum Door {
    /// Nowhere.
    Refuse {
        /// Why.
        refusal: Refusal,
        /// The place of the route that it would have taken, if it would take one.
        route_index: Option<usize>,
    },
    /// To the upstream, through pingora's own proxying.
    Pass {
        /// The place of its route in the configuration.
        route_index: usize,
        /// Whether `Upgrade` stays.
        upgrade: bool,
    },
    /// To the guard, without `Upgrade`.
    Guarded(GuardedRequest),
    /// To the upstream as it came, on a route that only watches.
    Observed {
        /// The place of its route in the configuration.
        route_index: usize,
        /// What the guard would have got, or why it would have been refused here.
        would: Result<GuardedRequest, Code>,
    },
}

/// Decides where a request goes. `routes` are those that the table was made of.
pub fn decide(table: &RouteTable, routes: &[Arc<Route>], head: &Head<'_>) -> Door {
    let (path, _) = split_query(head.target);
    let spelled = table.find_raw(head.host, path);
    let refuse = |route_index, refusal| Door::Refuse { refusal, route_index };
    // Whether path parameters are kept is for the route to say, which is not found yet.
    let normal = match normalize(path, PathParameters::Keep) {
        Ok(normal) => normal,
        Err(ambiguous) => {
            return match spelled.and_then(|index| Some((index, routes.get(index)?))) {
                Some((route_index, route)) if route.guard.is_none() && !is_protected(route) => {
                    Door::Pass { route_index, upgrade: true }
                }
                Some((route_index, route)) if !is_protected(route) => {
                    Door::Observed { route_index, would: Err(Code::AmbiguousTarget) }
                }
                _ => refuse(spelled, Refusal::new(Code::AmbiguousTarget, ambiguous.to_string())),
            };
        }
    };
    let Some((found, route)) =
        table.find(head.host, &normal).and_then(|found| routes.get(found.index).map(|route| (found, route)))
    else {
        return refuse(None, Refusal::new(Code::NoRoute, "send a request for a host and path that a route matches"));
    };
    let route_index = found.index;
    if let Err(refusal) = check_readings(path, &normal, route, spelled.filter(|&index| index != route_index), routes) {
        return refuse(Some(route_index), refusal);
    }
    let Some(guard) = &route.guard else { return Door::Pass { route_index, upgrade: true } };
    match judge(guard, route, &found, &normal, head) {
        Ok(Door::Guarded(request)) if guard.observe => Door::Observed { route_index, would: Ok(request) },
        Ok(door) => door,
        // A route that only watches refuses nothing.
        Err(refusal) if guard.observe => Door::Observed { route_index, would: Err(refusal.code) },
        Err(refusal) => refuse(Some(route_index), refusal),
    }
}

/// Whether a request that takes this route could change a guarded resource.
fn is_protected(route: &Route) -> bool {
    route.beside_guarded || route.guard.as_ref().is_some_and(|guard| !guard.observe)
}

/// Refuses a path that has another reading by which it could reach a guarded resource. `spelled` is the other route
/// that it takes as it is spelled.
fn check_readings(
    path: &[u8],
    normal: &NormalPath,
    route: &Route,
    spelled: Option<usize>,
    routes: &[Arc<Route>],
) -> Result<(), Refusal> {
    let other = spelled.and_then(|index| routes.get(index));
    if let Some(other) = other
        && (is_protected(route) || is_protected(other))
    {
        let detail = "the path takes one route as it is spelled and another when it is decoded; send it in normal form";
        return Err(Refusal::new(Code::AmbiguousTarget, detail));
    }
    if is_protected(route) && route.path_params == PathParameters::Refuse && normal.as_str().contains(';') {
        let refused = normalize(path, PathParameters::Refuse);
        return refused.map(drop).map_err(|ambiguous| Refusal::new(Code::AmbiguousTarget, ambiguous.to_string()));
    }
    Ok(())
}

/// Decides where a request on a guarded route goes.
fn judge(
    guard: &Guard,
    route: &Arc<Route>,
    found: &RouteMatch<'_>,
    normal: &NormalPath,
    head: &Head<'_>,
) -> Result<Door, Refusal> {
    let route_index = found.index;
    let method = method::effective(guard, head.method, head.headers)?;
    match guard.class_of(&method) {
        MethodClass::NotAllowed => return Err(Refusal::new(Code::MethodNotAllowed, "use another method")),
        MethodClass::NotSupported => return Err(second_resource()),
        _ if head.headers.contains_key("destination") => return Err(second_resource()),
        MethodClass::Unjudged => return Ok(Door::Pass { route_index, upgrade: false }),
        MethodClass::Read | MethodClass::Write | MethodClass::UnclaimedWrite => {}
    }
    if is_websocket(head) || (guard.observe && head.headers.contains_key(header::UPGRADE)) {
        return Ok(Door::Pass { route_index, upgrade: true });
    }
    let (_, query) = split_query(head.target);
    let parts = KeyParts { host: head.host, path: normal, captures: &found.captures, query, headers: head.headers };
    let key = route
        .key
        .key(&route.upstream.identity, &parts)
        .map_err(|ambiguous| Refusal::new(Code::AmbiguousTarget, ambiguous.to_string()))?;
    Ok(Door::Guarded(GuardedRequest { route: Arc::clone(route), route_index, key, method }))
}

fn second_resource() -> Refusal {
    Refusal::new(Code::NotSupported, "copy by reading and writing: COPY, MOVE and Destination change a second resource")
}

/// Whether this is a plain WebSocket handshake (RFC 6455 section 4.1): a GET without a body and without another method
/// in a field.
fn is_websocket(head: &Head<'_>) -> bool {
    let mut upgrades = head.headers.get_all(header::UPGRADE).iter();
    let websocket = upgrades.next().is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    websocket
        && upgrades.next().is_none()
        && head.method == Method::GET
        && head.version == Version::HTTP_11
        && !head.headers.contains_key(header::CONTENT_LENGTH)
        && !head.headers.contains_key(header::TRANSFER_ENCODING)
        && !method::is_named(head.headers)
        && head.headers.get_all(header::CONNECTION).iter().any(|value| {
            let mut options = value.as_bytes().split(|&octet| octet == b',');
            options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade"))
        })
}

#[cfg(test)]
#[path = "door_tests.rs"]
mod tests;
