//! The destinations of COPY and MOVE, by the routes that they take.

use std::{net::SocketAddr, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, Version};

use super::*;
use crate::{
    config::Upstream,
    core::{
        http::{client_address::ClientAddress, path_mapping::PathMapping},
        policy::{Dialect, GuardRules, MethodOverride},
        quirks::Quirks,
        resource::KeyTemplate,
        route::WritesTo,
    },
    routing::door::{Door, decide},
    testing::{config, guard, route},
};

/// Routes of one upstream, but for `/other/{id}`: `/docs/{id}` and `/items/{id}` are guarded, `/alias/{id}` has the keys of
/// `/docs/{id}`, `/judge/{id}` takes method overrides, `/api/docs/{id}` leads to `/docs/{id}` of the upstream, `/watch/{id}`
/// only watches, `/open/{*rest}` is not guarded, nor are `/mapped/{id}` with a prefix and `/beside/{id}` of another upstream,
/// `/blobs/{id}` has a dialect of its own, and bodies name what a write to `/list` changes.
fn routes() -> Vec<Arc<Route>> {
    let server: SocketAddr = "127.0.0.1:9".parse().expect("an address");
    let guarded = |path: &str, guard| Route { beside_guarded: true, ..route(path, Some(guard), &[server]) };
    let key = |path: &str, route: Route| Route { key: KeyTemplate::parse(path, &["id"]).expect("a key"), ..route };
    let normal = |path: &str| normalize(path.as_bytes(), KeptInNames::ALL).expect("a path");
    let mut other = guarded("/other/{id}", guard());
    other.upstream = Arc::new(Upstream { identity: "other".to_owned(), ..Upstream::clone(&other.upstream) });
    let open = |path: &str| Route { beside_guarded: true, ..route(path, None, &[server]) };
    let beside = Route { upstream: Arc::clone(&other.upstream), ..open("/beside/{id}") };
    let mapping = PathMapping::new(&normal("/api"), &normal("/"));
    let mapped = PathMapping::new(&normal("/mapped"), &normal("/"));
    let list = guarded("/list", guard());
    let writes_to = WritesTo::parse("/docs/{json./id}", &list.path).expect("a template");
    config(vec![
        guarded("/docs/{id}", guard()),
        guarded("/items/{id}", guard()),
        key("/docs/{id}", guarded("/alias/{id}", guard())),
        guarded("/judge/{id}", GuardRules { method_override: MethodOverride::Judge, ..guard() }),
        Route { mapping, ..guarded("/api/docs/{id}", guard()) },
        guarded("/watch/{id}", GuardRules { observe: true, ..guard() }),
        open("/open/{*rest}"),
        Route { mapping: mapped, ..open("/mapped/{id}") },
        beside,
        guarded("/blobs/{id}", GuardRules { quirks: quirks_of("azure"), ..guard() }),
        Route { writes_to: Some(writes_to), ..list },
        other,
    ])
    .routes
}

fn quirks_of(dialect: &str) -> &'static Quirks {
    Dialect::NAMES.iter().find(|(name, _)| *name == dialect).expect("a dialect").1.quirks()
}

fn door(method: &str, target: &str, fields: &[&str]) -> Door {
    let mut headers = HeaderMap::new();
    for field in fields {
        let (name, value) = field.split_once(": ").expect("a field");
        headers.append(
            name.parse::<HeaderName>().expect("a name"),
            HeaderValue::from_bytes(value.as_bytes()).expect("a value"),
        );
    }
    let method = Method::from_bytes(method.as_bytes()).expect("a method");
    let (version, host, client) = (Version::HTTP_11, "example.com", ClientAddress::Local);
    let head = Head { method: &method, version, host, target: target.as_bytes(), headers: &headers, client };
    decide(&RoutingTable::new(&routes()), &head)
}

/// The keys of both resources, or the code of the refusal.
fn keys(method: &str, target: &str, fields: &[&str]) -> Result<(String, String), Code> {
    match door(method, target, fields) {
        Door::Guarded(GuardedRequest { key, destination: Some(destination), .. }) => {
            Ok((key.as_str().to_owned(), destination.request.key.as_str().to_owned()))
        }
        Door::Refuse { refusal, .. } => Err(refusal.code),
        other => panic!("{other:?}"),
    }
}

/// Rule 9: both are guarded, and the one backend reaches both.
#[test]
fn a_copy_and_a_move_lead_to_what_is_guarded_for_the_same_upstream() {
    let both = |source: &str, destination: &str| Ok((format!("backend:{source}"), format!("backend:{destination}")));
    for (target, destination, expected) in [
        ("/docs/1", "/docs/2", both("/docs/1", "/docs/2")),
        ("/docs/1", "http://example.com/items/1", both("/docs/1", "/items/1")),
        ("/docs/1?a=1", "https://EXAMPLE.com:443/items/%31/", both("/docs/1", "/items/1")),
        ("/items/1", "/alias/1", both("/items/1", "/docs/1")),
        ("/items/1", "/api/docs/1", both("/items/1", "/docs/1")),
        ("/docs/1", "/docs/1", Err(Code::DestinationIsSource)),
        ("/docs/1", "/docs/%31/", Err(Code::DestinationIsSource)),
        ("/docs/1", "/alias/1", Err(Code::DestinationIsSource)),
        ("/api/docs/1", "/docs/1", Err(Code::DestinationIsSource)),
        ("/docs/1", "http://other.com/docs/2", Err(Code::DestinationElsewhere)),
        ("/docs/1", "/nowhere", Err(Code::DestinationElsewhere)),
        ("/docs/1", "/open/1", Err(Code::DestinationElsewhere)),
        ("/docs/1", "/watch/1", Err(Code::DestinationElsewhere)),
        ("/docs/1", "/other/1", Err(Code::DestinationElsewhere)),
        ("/docs/1", "/blobs/1", Err(Code::DestinationElsewhere)),
        ("/docs/1", "/.leases/docs/2", Err(Code::DestinationElsewhere)),
        ("/docs/1", "/docs/a%2fb", Err(Code::AmbiguousTarget)),
        ("/docs/1", "/docs/a;b", Err(Code::AmbiguousTarget)),
        ("/docs/1", "/docs/../docs/2", both("/docs/1", "/docs/2")),
        ("/docs/1", "/docs/%2e%2e/2", Err(Code::AmbiguousTarget)),
        ("/docs/1", "/docs/2?a", Err(Code::MalformedRequest)),
        ("/blobs/1", "/docs/1", Err(Code::NotSupported)),
        ("/list", "/docs/1", Err(Code::NotSupported)),
        ("/open/1", "/docs/1", Err(Code::DestinationElsewhere)),
        ("/open/1", "http://other.com/docs/1", Err(Code::DestinationElsewhere)),
        ("/open/1", "/docs/%2f", Err(Code::DestinationElsewhere)),
        ("/open/1", "/docs%2f1", Err(Code::DestinationElsewhere)),
        ("/open/1", "/open/..%2fdocs%2f1", Err(Code::AmbiguousTarget)),
        ("/open/1", "/open;x/../docs/1", Err(Code::DestinationElsewhere)),
        ("/open/1", "/docs;x/1", Err(Code::DestinationElsewhere)),
        ("/open/1", "/open/2;x", Err(Code::AmbiguousTarget)),
        ("/open/1", "/open/../docs/1", Err(Code::DestinationElsewhere)),
        ("/open/1", "docs/1", Err(Code::AmbiguousTarget)),
        ("/open/1", "//docs/1", Err(Code::DestinationElsewhere)),
        ("/open/1", "/nowhere", Err(Code::DestinationElsewhere)),
        ("/open/1", "/beside/1", Err(Code::DestinationElsewhere)),
        ("/open/1", "/mapped/1", Err(Code::DestinationElsewhere)),
        ("/open/1", "/.leases/docs/1", Err(Code::DestinationElsewhere)),
        ("/watch/1", "/docs/1", Err(Code::DestinationElsewhere)),
    ] {
        for method in ["COPY", "MOVE"] {
            let found = keys(method, target, &[&format!("destination: {destination}")]);
            assert_eq!(found, expected, "{method} {target} to {destination}");
        }
    }
    assert_eq!(keys("MOVE", "/docs/1", &[]), Err(Code::MalformedRequest));
    assert_eq!(keys("PUT", "/docs/1", &["destination: /docs/2"]), Err(Code::NotSupported));
}

/// The destination is written, no matter what the method does to its source.
#[test]
fn a_destination_is_written() {
    for method in ["COPY", "MOVE"] {
        let Door::Guarded(GuardedRequest { methods, destination: Some(destination), .. }) =
            door(method, "/docs/1", &["destination: /items/%31/"])
        else {
            panic!("{method} is guarded");
        };
        assert_eq!(methods.judged.as_str(), method);
        assert_eq!(destination.request.methods.judged, Method::PUT, "{method}");
        assert_eq!(destination.request.methods.usages, Usage::Write.into(), "{method}");
        assert_eq!((&*destination.target, destination.request.route_index), (&b"/items/%31/"[..], 1), "{method}");
    }
}

/// An open route accepts a destination that leads to nothing guarded.
#[test]
fn an_open_route_passes_what_leads_to_no_guarded_resource() {
    for destination in ["/open/2", "/docs/../open/2", "/open/a%2fb", "/open/gr\u{fc}n", "http://other.com/open/2"] {
        let door = door("COPY", "/open/1", &[&format!("destination: {destination}")]);
        assert!(matches!(door, Door::Pass { .. }), "{destination}: {door:?}");
    }
}

/// Rule 18: a method with two readings would do two things to the source.
#[test]
fn a_copy_or_move_has_one_reading_in_any_letter_case() {
    let to = "destination: /docs/2";
    for (method, target, field, is_taken) in [
        ("MOVE", "/judge/1", "x-own: 1", true),
        ("move", "/judge/1", "x-own: 1", true),
        ("Copy", "/judge/1", "x-own: 1", true),
        ("MOVE", "/judge/1", "x-http-method: move", true),
        ("MOVE", "/judge/1", "x-http-method: COPY", false),
        ("POST", "/judge/1", "x-http-method: MOVE", false),
        ("GET", "/judge/1?_method=COPY", "x-own: 1", false),
    ] {
        let found = keys(method, target, &[to, field]);
        let expected = if is_taken { Ok(()) } else { Err(Code::NotSupported) };
        assert_eq!(found.map(drop), expected, "{method} {target} {field}");
    }
}
