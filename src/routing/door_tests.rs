//! One table for each question that the door answers.

use std::net::SocketAddr;

use http::{HeaderName, HeaderValue};

use super::{super::table::RoutingTable, *};
use crate::{
    config::Upstream,
    core::{http::request_target::EncodedSlash, policy::MethodOverride, resource::KeyTemplate},
    testing::{config, guard, route},
};

#[path = "door_method_tests.rs"]
mod methods;

/// Routes for the tables: `/docs/{id}` is guarded, `/judge/{id}` takes method overrides, `/watch/{id}` only watches,
/// `/beside/{*rest}` shares the upstream of a guarded route, `/open/{*rest}` and `/open/docs/{id}` share nothing.
fn routes() -> Vec<Arc<Route>> {
    let server: SocketAddr = "127.0.0.1:9".parse().expect("an address");
    let guarded = |path, guard| route(path, Some(guard), &[server]);
    let mut beside = route("/beside/{*rest}", None, &[server]);
    beside.beside_guarded = true;
    config(vec![
        guarded("/docs/{id}", guard()),
        guarded("/judge/{id}", GuardRules { method_override: MethodOverride::Judge, ..guard() }),
        guarded("/watch/{id}", GuardRules { observe: true, ..guard() }),
        beside,
        route("/open/{*rest}", None, &[server]),
        route("/open/docs/{id}", None, &[server]),
        guarded("/socket/{id}", GuardRules { websocket: true, ..guard() }),
    ])
    .routes
}

const DOCS: usize = 0;
const JUDGE: usize = 1;
const WATCH: usize = 2;
const BESIDE: usize = 3;
const OPEN: usize = 4;
const OPEN_DOCS: usize = 5;
const SOCKET: usize = 6;

/// A guarded `/api/{*rest}` beside an open `/{*rest}`, and below `/projects` guarded routes that keep slashes; all of one
/// upstream, which ignores letter case or not.
fn aliased_routes(ignore_case: bool) -> Vec<Arc<Route>> {
    let server: SocketAddr = "127.0.0.1:9".parse().expect("an address");
    let aliased = |path: &str, key: &str, guard: Option<GuardRules>| {
        let mut route = route(path, guard, &[server]);
        let names: Vec<&str> = route.path.names().collect();
        let key = KeyTemplate::parse(key, &names).expect("a key");
        let mut upstream = Upstream::clone(&route.upstream);
        upstream.ignore_case = ignore_case;
        route.key = if ignore_case { key.ignoring_case() } else { key };
        route.path = if ignore_case { route.path.ignoring_case() } else { route.path };
        (route.upstream, route.beside_guarded) = (Arc::new(upstream), true);
        route
    };
    let mut projects = aliased("/projects/{id}", "{path}", Some(guard()));
    projects.kept.encoded_slash = EncodedSlash::Keep;
    let items = aliased("/items/{id}", "/Items/{id}", Some(guard()));
    let as_json = aliased("/items/{id}.json", "/Items/{id}", Some(guard()));
    let by_query = aliased("/item", "/Items/{query.id}", Some(guard()));
    let api = aliased("/api/{*rest}", "{path}", Some(guard()));
    config(vec![api, aliased("/{*rest}", "{path}", None), projects, items, as_json, by_query]).routes
}

/// The parts of a [`Door`] that the tables compare.
#[derive(Debug, PartialEq)]
enum Outcome {
    Refused(Code),
    Passed(usize),
    PassedWithoutUpgrade(usize),
    Guarded(usize, &'static str, &'static str),
    Handshake(usize),
    Observed(usize, &'static str, &'static str),
    ObservedRefusal(Code),
}

use Outcome::{Guarded, Handshake, Observed, ObservedRefusal, Passed, PassedWithoutUpgrade, Refused};

/// Decides on one request: its method, its target, and its fields as `name: value` lines.
fn outcome(method: &str, target: &str, fields: &[&str]) -> Outcome {
    outcome_of(&routes(), method, target, fields)
}

fn outcome_of(routes: &[Arc<Route>], method: &str, target: &str, fields: &[&str]) -> Outcome {
    let mut headers = HeaderMap::new();
    for field in fields {
        let (name, value) = field.split_once(": ").expect("a field");
        let name: HeaderName = name.parse().expect("a name");
        headers.append(name, HeaderValue::from_str(value).expect("a value"));
    }
    let method = Method::from_bytes(method.as_bytes()).expect("a method");
    let head = Head {
        method: &method,
        version: Version::HTTP_11,
        host: "example.com",
        target: target.as_bytes(),
        headers: &headers,
        client: ClientAddress::Local,
    };
    match decide(&RoutingTable::new(routes), &head) {
        Door::Refuse { refusal, .. } => Refused(refusal.code),
        Door::Pass { route_index, upgrade: true } => Passed(route_index),
        Door::Pass { route_index, upgrade: false } => PassedWithoutUpgrade(route_index),
        Door::Handshake(request) => Handshake(request.route_index),
        Door::Guarded(request) => {
            Guarded(request.route_index, leak(request.key.as_str()), leak(request.methods.judged.as_str()))
        }
        Door::Observed { would: Ok(request), .. } => {
            Observed(request.route_index, leak(request.key.as_str()), leak(request.methods.judged.as_str()))
        }
        Door::Observed { would: Err(code), .. } => ObservedRefusal(code),
    }
}

fn leak(text: &str) -> &'static str {
    text.to_owned().leak()
}

/// DESIGN, section 3, rule 10: one resource, one key, and no second reading.
#[test]
fn a_target_takes_one_route_or_none() {
    let doc = Guarded(DOCS, "backend:/docs/42", "PUT");
    for (target, expected) in [
        ("/docs/42", doc),
        ("/docs/42?draft=1", Guarded(DOCS, "backend:/docs/42", "PUT")),
        ("/docs/%34%32", Guarded(DOCS, "backend:/docs/42", "PUT")),
        ("/docs//42/", Guarded(DOCS, "backend:/docs/42", "PUT")),
        ("/%64ocs/42", Guarded(DOCS, "backend:/docs/42", "PUT")),
        ("/nothing", Refused(Code::NoRoute)),
        ("/open/x", Passed(OPEN)),
        ("/open/docs/42", Passed(OPEN_DOCS)),
        ("/beside/x", Passed(BESIDE)),
        // Two readings, one of them guarded.
        ("/open/../docs/42", Refused(Code::AmbiguousTarget)),
        ("/beside/../open/x", Refused(Code::AmbiguousTarget)),
        ("/open/../beside/x", Refused(Code::AmbiguousTarget)),
        // Two readings, neither of them guarded.
        ("/docs/../open/x", Passed(OPEN)),
        ("/open/%64ocs/42", Passed(OPEN_DOCS)),
        // No reading.
        ("/docs/a%2fb", Refused(Code::AmbiguousTarget)),
        ("/beside/a%2fb", Passed(BESIDE)),
        ("/beside/..%2fdocs%2f42", Refused(Code::AmbiguousTarget)),
        ("/beside%2fa", Refused(Code::NoRoute)),
        ("/nothing/a%2fb", Refused(Code::NoRoute)),
        ("/open/a%2fb", Passed(OPEN)),
        ("/open/a%5cb", Passed(OPEN)),
        // Path parameters.
        ("/docs/42;v=1", Refused(Code::AmbiguousTarget)),
        ("/docs/41;/../42", Refused(Code::AmbiguousTarget)),
        ("/docs/42%3Bv=1", Refused(Code::AmbiguousTarget)),
        ("/beside/42;v=1", Refused(Code::AmbiguousTarget)),
        ("/open/42;v=1", Passed(OPEN)),
    ] {
        assert_eq!(outcome("PUT", target, &[]), expected, "{target}");
    }
}

/// Rule 18: if the upstream ignores letter case, all cases of a path take one route and have one key.
#[test]
fn a_path_in_another_case_is_the_same_resource_where_case_is_ignored() {
    let (ignoring, exact) = (aliased_routes(true), aliased_routes(false));
    let note = |key| Guarded(0, key, "PUT");
    for (target, in_any_case, in_one_case) in [
        ("/api/notes/1", note("backend:/api/notes/1"), note("backend:/api/notes/1")),
        ("/API/Notes/1", note("backend:/api/notes/1"), Passed(1)),
        ("/api/NOTES/1", note("backend:/api/notes/1"), note("backend:/api/NOTES/1")),
        ("/api/%4Eotes/1", note("backend:/api/notes/1"), note("backend:/api/Notes/1")),
        ("/api/%C3%84", note("backend:/api/%C3%A4"), note("backend:/api/%C3%84")),
        ("/api/\u{e4}", note("backend:/api/%C3%A4"), note("backend:/api/%C3%A4")),
        ("/api/\u{212a}", note("backend:/api/k"), note("backend:/api/%E2%84%AA")),
        // Two readings, one of them guarded.
        ("/%41PI/notes/1", Refused(Code::AmbiguousTarget), Passed(1)),
        ("/x/../API/1", Refused(Code::AmbiguousTarget), Passed(1)),
        ("/other", Passed(1), Passed(1)),
        // Keys from a path and from a query meet.
        ("/items/A1", Guarded(3, "backend:/items/a1", "PUT"), Guarded(3, "backend:/Items/A1", "PUT")),
        ("/ITEMS/a1.Json", Guarded(4, "backend:/items/a1", "PUT"), Passed(1)),
        ("/Item?id=A1", Guarded(5, "backend:/items/a1", "PUT"), Passed(1)),
    ] {
        assert_eq!(outcome_of(&ignoring, "PUT", target, &[]), in_any_case, "{target}");
        assert_eq!(outcome_of(&exact, "PUT", target, &[]), in_one_case, "{target}");
    }
}

/// Rule 18: a resource and its format have one key if the routes say so. The route with the longer end is the more
/// specific.
#[test]
fn a_format_suffix_is_part_of_the_pattern_and_not_of_the_key() {
    let routes = aliased_routes(false);
    for (target, expected) in [
        ("/items/1", Guarded(3, "backend:/Items/1", "PUT")),
        ("/items/1.json", Guarded(4, "backend:/Items/1", "PUT")),
        ("/items/1.json/", Guarded(4, "backend:/Items/1", "PUT")),
        ("/items/1.a.json", Guarded(4, "backend:/Items/1.a", "PUT")),
        ("/items/1.xml", Guarded(3, "backend:/Items/1.xml", "PUT")),
        ("/items/.json", Guarded(3, "backend:/Items/.json", "PUT")),
        // As it is spelled, it takes the other route.
        ("/items/1%2Ejson", Refused(Code::AmbiguousTarget)),
    ] {
        assert_eq!(outcome_of(&routes, "PUT", target, &[]), expected, "{target}");
    }
}

/// Rule 10: an encoded slash passes only if it can reach no guarded resource, or if the route keeps it.
#[test]
fn an_encoded_slash_passes_where_no_reading_of_it_is_guarded() {
    let routes = aliased_routes(false);
    let project = |key| Guarded(2, key, "PUT");
    for (target, expected) in [
        // Kept: a name with a slash in it.
        ("/projects/a%2Fb", project("backend:/projects/a%2Fb")),
        ("/projects/%61%2fb", project("backend:/projects/a%2Fb")),
        ("/projects/a%252Fb", project("backend:/projects/a%252Fb")),
        ("/projects/a%2F..%2Fb", Refused(Code::AmbiguousTarget)),
        ("/projects/a%5Cb", Refused(Code::AmbiguousTarget)),
        // Open in both readings.
        ("/users/a%2Fb", Passed(1)),
        ("/users/a%2fb/c", Passed(1)),
        ("/projects/a%2Fb/issues", Passed(1)),
        // The decoded reading is guarded, or leads elsewhere.
        ("/api%2Fnotes%2F1", Refused(Code::AmbiguousTarget)),
        ("/items%2f1", Refused(Code::AmbiguousTarget)),
        ("/x/..%2Fapi%2F1", Refused(Code::AmbiguousTarget)),
        ("/x%2F../api/1", Refused(Code::AmbiguousTarget)),
        ("/x%2Fy/../api/1", Refused(Code::AmbiguousTarget)),
        ("/%2Fapi/1", Refused(Code::AmbiguousTarget)),
        ("/users/a%2F%2e%2e%2F%2e%2e%2Fapi/1", Refused(Code::AmbiguousTarget)),
        // Guarded, and not kept.
        ("/api/a%2Fb", Refused(Code::AmbiguousTarget)),
        ("/items/a%2Fb", Refused(Code::AmbiguousTarget)),
    ] {
        assert_eq!(outcome_of(&routes, "PUT", target, &[]), expected, "{target}");
    }
}

#[test]
fn a_lease_target_of_a_route_without_leases_is_told_the_route() {
    let (routes, method, headers) = (routes(), Method::POST, HeaderMap::new());
    let table = RoutingTable::new(&routes);
    for (target, names_route) in [
        ("/.leases/docs/42", true),
        ("/.leases//%64ocs/42", true),
        ("/.leases/open/x", true),
        ("/.leases/nothing", false),
        ("/.leases", false),
        ("/.leasesdocs/42", false),
        ("/nothing", false),
    ] {
        let (version, host, client) = (Version::HTTP_11, "example.com", ClientAddress::Local);
        let head = Head { method: &method, version, host, target: target.as_bytes(), headers: &headers, client };
        let Door::Refuse { refusal, route_index: None } = decide(&table, &head) else {
            panic!("{target} takes a route");
        };
        assert_eq!(refusal.code, Code::NoRoute, "{target}");
        assert_eq!(refusal.detail.contains("offers no leases"), names_route, "{target}: {}", refusal.detail);
    }
}

/// DESIGN, section 4: Upgrade never bypasses a guard.
#[test]
fn only_a_plain_websocket_handshake_keeps_upgrade_and_only_where_the_route_says_so() {
    let judged = |method| Guarded(SOCKET, "backend:/socket/1", method);
    let websocket = ["connection: keep-alive, Upgrade", "upgrade: WebSocket"];
    let with = |field| [websocket[0], websocket[1], field];
    for (method, fields, expected) in [
        ("GET", &websocket[..], Handshake(SOCKET)),
        ("PUT", &websocket[..], judged("PUT")),
        ("POST", &websocket[..], judged("POST")),
        ("HEAD", &websocket[..], judged("HEAD")),
        ("OPTIONS", &websocket[..], PassedWithoutUpgrade(SOCKET)),
        ("GET", &["upgrade: websocket"], judged("GET")),
        ("GET", &["connection: upgrade", "upgrade: h2c"], judged("GET")),
        ("GET", &["connection: upgrade", "upgrade: websocket, h2c"], judged("GET")),
        ("GET", &with("upgrade: h2c"), judged("GET")),
        ("GET", &with("content-length: 5"), judged("GET")),
        ("GET", &with("transfer-encoding: chunked"), judged("GET")),
        ("GET", &with("x-http-method: PUT"), Refused(Code::MethodOverride)),
        ("GET", &with("destination: /docs/2"), Refused(Code::NotSupported)),
    ] {
        assert_eq!(outcome(method, "/socket/1", fields), expected, "{method} {fields:?}");
    }
    assert_eq!(outcome("GET", "/socket/1?_method=PUT", &websocket), Refused(Code::MethodOverride));
    assert_eq!(outcome("GET", "/docs/1", &websocket), Guarded(DOCS, "backend:/docs/1", "GET"));
    let named = outcome("GET", "/judge/1", &with("x-http-method: PUT"));
    assert_eq!(named, Guarded(JUDGE, "backend:/judge/1", "PUT"));
}

/// DESIGN, section 5: `observe` forwards every request as received.
#[test]
fn a_route_that_watches_refuses_nothing() {
    for (method, target, fields, would) in [
        ("TRACE", "/watch/1", &[][..], Code::MethodNotAllowed),
        ("MOVE", "/watch/1", &[], Code::MalformedRequest),
        ("PUT", "/watch/1", &["x-http-method: GET"], Code::MethodOverride),
        ("PUT", "/watch/a%2fb", &[], Code::AmbiguousTarget),
    ] {
        assert_eq!(outcome(method, target, fields), ObservedRefusal(would), "{method} {target} {fields:?}");
    }
    assert_eq!(outcome("PUT", "/watch/1", &["connection: upgrade", "upgrade: h2c"]), Passed(WATCH));
    assert_eq!(outcome("PUT", "/watch/1", &[]), Observed(WATCH, "backend:/watch/1", "PUT"));
}

/// DESIGN, section 3, rule 9: a route is guarded or untouched.
#[test]
fn an_unguarded_route_passes_everything() {
    for (method, fields) in [
        ("TRACE", &[][..]),
        ("COPY", &["destination: /docs/2"]),
        ("GET", &["x-http-method: PUT"]),
        ("PUT", &["connection: upgrade", "upgrade: h2c"]),
    ] {
        assert_eq!(outcome(method, "/open/1", fields), Passed(OPEN), "{method} {fields:?}");
    }
}
