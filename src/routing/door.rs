//! The door: which route a request takes, and whether it is refused, passed on, or guarded. A pure function.
//!
//! # Design
//!
//! *Why is a path looked at twice?* The route is found by the normal form, but the target is forwarded as received. If
//! the spelling as received would take another route, the backend may read it as that route's resource. So the request
//! is refused as soon as a guarded resource could be the one that is meant.
//!
//! *What of an encoded slash?* A backend may decode `%2F` before it looks for segments. A guarded route takes such a
//! path only if it says that its backend does not (`encoded_slash = "keep"`). A route beside a guarded one passes it if
//! the decoded path takes the same route: then nothing is reached that the plain spelling does not reach.
//!
//! *What happens to `Upgrade`?* A connection that changed its protocol could carry anything. So on a guarded route the
//! field is removed and the request is judged like any other. The exception is a plain WebSocket handshake on a route
//! that lets it open a tunnel (`websocket = true`): the handshake is judged as a read before it goes. An extended
//! CONNECT (RFC 8441) is never offered to clients, and CONNECT is refused on all routes.

use std::sync::Arc;

use http::{HeaderMap, Method, Version, header};

use super::{
    Facet, GuardedRequest,
    table::{RoutingTable, TablePlace},
};
use crate::{
    config::Route,
    core::{
        http::{
            client_address::ClientAddress,
            cors::is_preflight,
            fields::{Fault, fault, fault_of_own, names_path, nominates_upgrade},
            readings::{
                content_type,
                destination::DESTINATION,
                method::{self, MethodReadings},
            },
            request_target::{AmbiguousTarget, KeptInNames, NormalPath, normalize, split_query},
        },
        policy::{GuardRules, MethodClass},
        refusal::{Code, Refusal},
        resource::KeyParts,
        route::RouteMatch,
        watch::names_in_query,
    },
};

mod destination;
mod path_checks;

use path_checks::{ambiguous, check_kept, check_path, not_below, second_path};

/// The head of a request, its target in origin-form.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Its version.
    pub version: Version,
    /// Its host, perhaps with a port; empty if an HTTP/1.0 request has none.
    pub host: &'a str,
    /// Its target as received: path and query.
    pub target: &'a [u8],
    /// Its fields.
    pub headers: &'a HeaderMap,
    /// The address of its client.
    pub client: ClientAddress,
}

/// The way of a request from the door.
#[derive(Debug)]
pub enum Door {
    /// Nowhere: the request is refused.
    Refuse {
        /// The reason.
        refusal: Refusal,
        /// The place of the route that the request would have taken, if any.
        route_index: Option<usize>,
    },
    /// To the upstream, as it came.
    Pass {
        /// The place of its route in the configuration.
        route_index: usize,
        /// True if the `Upgrade` field stays.
        upgrade: bool,
    },
    /// To the guard, without `Upgrade`.
    Guarded(GuardedRequest),
    /// To the guard, which judges the request as a read, and from there to the upstream: a WebSocket handshake.
    Handshake(GuardedRequest),
    /// To the upstream as received, on a route that only watches.
    Observed {
        /// The place of its route in the configuration.
        route_index: usize,
        /// The request that the guard would have received, or why the door would have refused the request.
        would: Result<GuardedRequest, Code>,
    },
}

impl Door {
    /// The place in the configuration of the route taken, if any.
    pub fn route_index(&self) -> Option<usize> {
        match self {
            Self::Refuse { route_index, .. } => *route_index,
            Self::Pass { route_index, .. } | Self::Observed { route_index, .. } => Some(*route_index),
            Self::Guarded(request) | Self::Handshake(request) => Some(request.route_index),
        }
    }
}

/// Decides where a request goes.
pub fn decide(table: &RoutingTable, head: &Head<'_>) -> Door {
    let door = find(table, head);
    match fault(head.headers) {
        Some(fault) => Door::Refuse { refusal: misleading(fault), route_index: door.route_index() },
        None => door,
    }
}

fn misleading(fault: Fault) -> Refusal {
    let code = if fault == Fault::UnknownCoding { Code::NotSupported } else { Code::MalformedRequest };
    Refusal::new(code, fault.to_string())
}

fn find(table: &RoutingTable, head: &Head<'_>) -> Door {
    let (path, _) = split_query(head.target);
    // The route decides which characters are kept, and it is not found yet.
    let normal = match normalize(path, KeptInNames::ALL) {
        Ok(normal) => normal,
        Err(what) => return without_normal_form(table, head, path, what),
    };
    if path == normal.as_str().as_bytes()
        && table.is_watch_prefix(&normal)
        && let Some(first) = names_in_query(head.target).next()
    {
        // Each name is judged on its own, and the first one finds the route.
        return match first {
            Ok(name) => decide(table, &Head { target: &[path, &name].concat(), ..*head }),
            Err(refusal) => refuse(None, refusal),
        };
    }
    let Some((found, taken)) = taken(table, head.host, &normal) else {
        return refuse(None, no_route(table, head.host, &normal));
    };
    let (route_index, route, prefix) = taken;
    let checked = check(table, head, (path, &normal), (found.index, route, prefix.is_some()));
    if let Err(refusal) = checked {
        return refuse(Some(route_index), refusal);
    }
    let Some(guard) = &route.guard else { return Door::Pass { route_index, upgrade: true } };
    let taken = TakenRoute { route_index, route, found: &found };
    let judged = check_kept(path, route.kept).and_then(|()| check_own_fields(guard, route, head));
    let judged = judged.and_then(|()| match prefix {
        Some(prefix) => judge_below_prefix(table, guard, (prefix, &taken), &normal, head),
        None => judge(table, guard, &taken, &normal, head),
    });
    match judged {
        Ok(Door::Guarded(request)) if guard.observe => Door::Observed { route_index, would: Ok(request) },
        Ok(door) => door,
        // A route that only watches refuses nothing.
        Err(refusal) if guard.observe => Door::Observed { route_index, would: Err(refusal.code) },
        Err(refusal) => refuse(Some(route_index), refusal),
    }
}

const fn refuse(route_index: Option<usize>, refusal: Refusal) -> Door {
    Door::Refuse { refusal, route_index }
}

/// Decides where a request goes whose path has no normal form: only to a route that leads to no guarded resource.
fn without_normal_form(table: &RoutingTable, head: &Head<'_>, path: &[u8], what: AmbiguousTarget) -> Door {
    let spelled = table.find_raw(head.host, path);
    match spelled.and_then(|index| Some((index, table.routes().get(index)?))) {
        Some((_, route)) if !route.mapping.is_identity() || route.is_protected() => refuse(spelled, ambiguous(what)),
        Some((route_index, route)) if route.guard.is_none() => Door::Pass { route_index, upgrade: true },
        Some((route_index, _)) => Door::Observed { route_index, would: Err(Code::AmbiguousTarget) },
        None => refuse(spelled, ambiguous(what)),
    }
}

/// A route with its place in the configuration, and the prefix that a path has before that of the resource.
type FoundRoute<'a> = (usize, &'a Arc<Route>, Option<(Facet, &'a str)>);

/// Returns the route that a path in normal form takes.
fn taken<'a>(table: &'a RoutingTable, host: &str, normal: &'a NormalPath) -> Option<(RouteMatch<'a>, FoundRoute<'a>)> {
    let found = table.find(host, normal)?;
    let taken = match table.place(found.index) {
        TablePlace::Resource(index, route) => (index, route, None),
        TablePlace::Lease(index, route, rules) => (index, route, Some((Facet::Lease, rules.prefix.as_str()))),
        TablePlace::Watch(index, route, rules) => (index, route, Some((Facet::Watch, rules.watch_prefix.as_str()))),
        TablePlace::Nothing => return None,
    };
    Some((found, taken))
}

fn no_route(table: &RoutingTable, host: &str, normal: &NormalPath) -> Refusal {
    match table.route_without_leases(host, normal) {
        Some(route) => {
            let detail = format!("route {:?} offers no leases: they need policy = \"pessimistic\"", route.name);
            Refusal::new(Code::NoRoute, detail)
        }
        None => Refusal::new(Code::NoRoute, "send a request for a host and path that a route matches"),
    }
}

/// Refuses a request that could reach another resource than the one that its path names on this route.
fn check(
    table: &RoutingTable,
    head: &Head<'_>,
    (path, normal): (&[u8], &NormalPath),
    (index, route, is_prefixed): (usize, &Route, bool),
) -> Result<(), Refusal> {
    check_path(table, head.host, (path, normal), (index, route))?;
    if route.is_protected() && names_path(head.headers) {
        return Err(second_path());
    }
    if !is_prefixed && !route.mapping.agrees(path, normal) {
        return Err(not_below(route));
    }
    if route.is_protected() && route.enforced().is_none() {
        return destination::leads_to_nothing_guarded(table, route, head);
    }
    Ok(())
}

/// Refuses a request if a field that only this route judges by is removed from it, or has a second spelling. Also
/// refuses content that has two types.
pub(super) fn check_own_fields(guard: &GuardRules, route: &Route, head: &Head<'_>) -> Result<(), Refusal> {
    let own = guard.identity_headers.iter().chain(route.key.fields());
    match fault_of_own(head.headers, &own) {
        Some(fault) => Err(misleading(fault)),
        None if content_type::is_ambiguous(head.headers) => Err(two_types()),
        None => Ok(()),
    }
}

fn two_types() -> Refusal {
    Refusal::new(
        Code::MalformedRequest,
        "send one Content-Type field with one media type: servers differ in which of several they read",
    )
}

/// Decides where a request on a guarded route goes.
fn judge(
    table: &RoutingTable,
    guard: &GuardRules,
    taken: &TakenRoute<'_>,
    normal: &NormalPath,
    head: &Head<'_>,
) -> Result<Door, Refusal> {
    let route_index = taken.route_index;
    let methods = MethodReadings::of(guard, head.method, head.headers, head.target)?;
    match guard.class_of(&methods.judged) {
        MethodClass::NotAllowed => return Err(Refusal::new(Code::MethodNotAllowed, "use another method")),
        MethodClass::TwoResources => {
            let (_, query) = split_query(head.target);
            let mut request = taken.request((normal, query), methods, Facet::Resource, head)?;
            request.destination = Some(destination::of_request(table, &request, head)?);
            return Ok(Door::Guarded(request));
        }
        _ if head.headers.contains_key(&DESTINATION) => return Err(second_resource()),
        // An operation that is on no list does not pass.
        _ if guard.quirks.is_closed_list => return taken.guarded(normal, methods, Facet::Resource, head),
        // Its answer shows the locks of this proxy.
        MethodClass::Unjudged if guard.quirks.has_locks && !guard.observe => {
            return taken.guarded(normal, methods, Facet::Resource, head);
        }
        MethodClass::Unjudged if is_preflight(head.headers) && !guard.observe => {
            return taken.guarded(normal, methods, Facet::Resource, head);
        }
        MethodClass::Unjudged => return Ok(Door::Pass { route_index, upgrade: false }),
        MethodClass::Read | MethodClass::Write | MethodClass::UnclaimedWrite => {}
    }
    if guard.observe && head.headers.contains_key(header::UPGRADE) {
        return Ok(Door::Pass { route_index, upgrade: true });
    }
    match taken.guarded(normal, methods, Facet::Resource, head)? {
        Door::Guarded(request) if guard.websocket && is_websocket(head) => Ok(Door::Handshake(request)),
        door => Ok(door),
    }
}

/// Decides where a request for the lease of a resource goes, or one to watch it: its path without the prefix is that of
/// the resource.
fn judge_below_prefix(
    table: &RoutingTable,
    guard: &GuardRules,
    ((facet, prefix), taken): ((Facet, &str), &TakenRoute<'_>),
    normal: &NormalPath,
    head: &Head<'_>,
) -> Result<Door, Refusal> {
    let methods = MethodReadings::of(guard, head.method, head.headers, head.target)?;
    let is_asked_about = *head.method == Method::OPTIONS && is_preflight(head.headers);
    if facet == Facet::Watch && methods.judged != Method::GET && !is_asked_about {
        return Err(Refusal::new(Code::MethodNotAllowed, "watch a resource with GET"));
    }
    let misspelled = || Refusal::new(Code::AmbiguousTarget, format!("spell the path's beginning as {prefix}"));
    let is_prefix = |beginning: &[u8]| {
        let ignore_case = taken.route.upstream.ignore_case && beginning.eq_ignore_ascii_case(prefix.as_bytes());
        ignore_case || beginning == prefix.as_bytes()
    };
    if !head.target.get(..prefix.len()).is_some_and(is_prefix) {
        return Err(misspelled());
    }
    let resource = normal.as_str().get(prefix.len()..).filter(|path| !path.is_empty()).unwrap_or("/");
    let resource = normalize(resource.as_bytes(), KeptInNames::ALL).map_err(|_cause| misspelled())?;
    let (path, _) = split_query(head.target.get(prefix.len()..).unwrap_or_default());
    let path = if path.is_empty() { b"/" } else { path };
    if !taken.route.mapping.agrees(path, &resource) {
        return Err(not_below(taken.route));
    }
    // A wider route has no say in what another one serves.
    if facet == Facet::Watch && table.find(head.host, &resource).map(|found| found.index) != Some(taken.route_index) {
        return Err(Refusal::new(Code::NoRoute, "watch resources of routes with watch = true"));
    }
    taken.guarded(&resource, methods, facet, head)
}

/// The route that a request took.
pub(super) struct TakenRoute<'a> {
    pub(super) route_index: usize,
    pub(super) route: &'a Arc<Route>,
    pub(super) found: &'a RouteMatch<'a>,
}

impl TakenRoute<'_> {
    /// The request as the guard receives it, for the resource of this path.
    fn guarded(
        &self,
        resource: &NormalPath,
        methods: MethodReadings,
        facet: Facet,
        head: &Head<'_>,
    ) -> Result<Door, Refusal> {
        let (_, query) = split_query(head.target);
        self.request((resource, query), methods, facet, head).map(Door::Guarded)
    }

    /// The same for a resource of this path and query, without a destination.
    pub(super) fn request(
        &self,
        (resource, query): (&NormalPath, Option<&[u8]>),
        methods: MethodReadings,
        facet: Facet,
        head: &Head<'_>,
    ) -> Result<GuardedRequest, Refusal> {
        let captures = &self.found.captures;
        // One resource may be reached by two prefixes, but has one key.
        let path = self.route.mapping.upstream_path(resource).ok_or_else(|| not_below(self.route))?;
        let parts = KeyParts { host: head.host, path: &path, captures, query, headers: head.headers };
        let key = self
            .route
            .key
            .key(&self.route.upstream.identity, &parts)
            .map_err(|ambiguous| Refusal::new(Code::AmbiguousTarget, ambiguous.to_string()))?;
        let (route, route_index) = (Arc::clone(self.route), self.route_index);
        let (client, forwarded_target, destination) = (head.client, None, None);
        Ok(GuardedRequest { route, route_index, key, methods, forwarded_target, client, facet, destination })
    }
}

/// The refusal of a request that changes a second resource, or may in some reading, and cannot be guarded there.
pub(super) fn second_resource() -> Refusal {
    let detail = "copy by reading and writing: this route takes a Destination with COPY and MOVE alone, if at all, and \
                  only with one reading of the method";
    Refusal::new(Code::NotSupported, detail)
}

/// True if a request is a plain WebSocket handshake (RFC 6455 section 4.1): a GET without a body, and without another
/// method in a field.
fn is_websocket(head: &Head<'_>) -> bool {
    let mut upgrades = head.headers.get_all(header::UPGRADE).iter();
    let websocket = upgrades.next().is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    websocket
        && upgrades.next().is_none()
        && head.method == Method::GET
        && head.version == Version::HTTP_11
        && !head.headers.contains_key(header::CONTENT_LENGTH)
        && !head.headers.contains_key(header::TRANSFER_ENCODING)
        && !method::is_named(head.headers, head.target)
        && nominates_upgrade(head.headers)
}

#[cfg(test)]
#[path = "door_tests.rs"]
mod tests;
