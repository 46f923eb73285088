//! The resource that a request watches.

use std::{net::SocketAddr, sync::Arc};

use http::{HeaderMap, HeaderValue, Method, Version, header};

use super::{
    Facet,
    door::{Door, Head, decide},
    table::RoutingTable,
};
use crate::{
    config::Route,
    core::{http::client_address::ClientAddress, policy::GuardRules, refusal::Code},
    testing::{config, guard, route},
};

/// A guarded `/{*rest}` and `/docs/{id}`, both watched, and `/plain/{id}`, which is not.
fn routes() -> Vec<Arc<Route>> {
    let server: SocketAddr = "127.0.0.1:9".parse().expect("an address");
    let watched = |path| route(path, Some(GuardRules { watch: true, ..guard() }), &[server]);
    config(vec![watched("/docs/{id}"), watched("/{*rest}"), route("/plain/{id}", Some(guard()), &[server])]).routes
}

/// Returns the watched resource, or why there is none.
fn watched(method: &Method, target: &str, headers: &HeaderMap) -> Result<(Facet, String), Code> {
    let (host, client, target) = ("example.com", ClientAddress::Local, target.as_bytes());
    let head = Head { method, version: Version::HTTP_11, host, target, headers, client };
    match decide(&RoutingTable::new(&routes()), &head) {
        Door::Guarded(request) => Ok((request.facet, request.key.as_str().to_owned())),
        Door::Refuse { refusal, .. } => Err(refusal.code),
        other => panic!("{other:?}"),
    }
}

/// Rule 14: the upstream is asked about the right to the resource that is watched. A name in a query counts only where
/// nothing else names a resource.
#[test]
fn a_path_names_the_resource_that_is_watched() {
    let get = |target| watched(&Method::GET, target, &HeaderMap::new());
    for (target, key) in [
        ("/.watch/docs/1", "/docs/1"),
        ("/.watch/docs/%31?v=2", "/docs/1"),
        ("/.watch/docs/1?path=/docs/2", "/docs/1"),
        ("/.watch/any/thing", "/any/thing"),
        ("/.watch?path=/docs/1", "/docs/1"),
        ("/.watch?path=%2Fdocs%2F1&path=/docs/2", "/docs/1"),
        ("/.watch/?path=/docs/1", "/"),
        ("/.watch", "/"),
    ] {
        assert_eq!(get(target), Ok((Facet::Watch, format!("backend:{key}"))), "{target}");
    }
    for (target, code) in [
        ("/.watch?path=docs/1", Code::AmbiguousTarget),
        ("/.watch?path=/docs%252F1", Code::AmbiguousTarget),
        ("/.watch/plain/1", Code::NoRoute),
        ("/.watch?path=/plain/1", Code::NoRoute),
    ] {
        assert_eq!(get(target), Err(code), "{target}");
    }
}

#[test]
fn a_watch_is_a_get_or_the_preflight_of_one() {
    let none = HeaderMap::new();
    for method in [Method::HEAD, Method::PUT, Method::POST, Method::DELETE, Method::OPTIONS] {
        assert_eq!(watched(&method, "/.watch/docs/1", &none), Err(Code::MethodNotAllowed));
    }
    let mut preflight = HeaderMap::new();
    preflight.insert(header::ORIGIN, HeaderValue::from_static("https://app.test"));
    preflight.insert(header::ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("GET"));
    assert!(watched(&Method::OPTIONS, "/.watch/docs/1", &preflight).is_ok());
    assert_eq!(watched(&Method::PUT, "/.watch/docs/1", &preflight), Err(Code::MethodNotAllowed));
}
