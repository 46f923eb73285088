//! The writes that need a precondition (RFC 6585 section 3), and the preconditions that satisfy.

use std::net::SocketAddr;

use crate::support::{
    backend::Backend,
    proxy::Proxy,
    raw::{get, send},
    response::Response,
    source::{self, CONTENT, Source},
};

/// A backend that keeps `/doc`, behind a route with these lines.
async fn start(source: Source, route: &str) -> (Backend, Proxy) {
    let (backend, setup) = source.start("/doc", "one").await;
    (backend, setup.route(route).start().await)
}

async fn write(addr: SocketAddr, method: &str, target: &str, fields: &[(&str, &str)]) -> Response {
    send(addr, method, target, fields, if method == "DELETE" { "" } else { "two" }).await
}

/// The default. Nothing is asked of the backend for a write that says nothing.
#[tokio::test]
async fn a_write_without_a_precondition_reaches_nobody() {
    for source in source::ALL {
        let (backend, proxy) = start(source, "").await;
        for method in ["PUT", "PATCH", "DELETE"] {
            for target in ["/doc", "/missing"] {
                let refused = write(proxy.addr(), method, target, &[]).await.refused(428, "precondition-required");
                assert!(refused.detail.contains("If-Match") && !refused.detail.contains("If-Match: *"), "{source}");
            }
        }
        assert_eq!(backend.count("*", "*"), 0, "{source}");
        assert_eq!(write(proxy.addr(), "POST", "/doc", &[]).await.status, 204, "{source}: POST needs none");
    }
}

/// A condition that does not bind a write to one state is no protection.
#[tokio::test]
async fn a_precondition_that_protects_nothing_does_not_satisfy() {
    let cases: [&[(&str, &str)]; 4] = [
        &[("If-Match", "*")],
        &[("If-None-Match", "\"other\"")],
        &[("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT")],
        &[("If-Unmodified-Since", "yesterday")],
    ];
    for source in source::ALL {
        let (backend, proxy) = start(source, "").await;
        for fields in cases {
            for method in ["PUT", "PATCH", "DELETE"] {
                let refused = write(proxy.addr(), method, "/doc", fields).await;
                assert_eq!(refused.status, 428, "{source}: {method} {fields:?}");
                refused.refused(428, "precondition-required");
            }
        }
        assert_eq!(backend.content("/doc").as_deref(), Some("one"), "{source}");
    }
}

#[tokio::test]
async fn allow_any_lets_a_star_satisfy() {
    for source in source::ALL {
        let (_backend, proxy) = start(source, "allow_any = true").await;
        let refused = write(proxy.addr(), "PUT", "/doc", &[]).await.refused(428, "precondition-required");
        assert!(refused.detail.contains("If-Match: *"), "the refusal tells of it: {}", refused.detail);
        assert_eq!(write(proxy.addr(), "PUT", "/doc", &[("If-Match", "*")]).await.status, 204, "{source}");
    }
}

/// An asterisk names no version, and the refusal says so.
#[tokio::test]
async fn an_asterisk_that_does_not_satisfy_is_named_in_the_refusal() {
    for source in source::ALL {
        let (_backend, proxy) = start(source, "").await;
        let refused = write(proxy.addr(), "PUT", "/doc", &[("If-Match", "*")]).await;
        let problem = refused.refused(428, "precondition-required");
        assert!(problem.detail.contains("asterisk") && problem.detail.contains("allow_any"), "{source}: {problem:?}");
    }
}

/// `require = "existing"`: creating is free, changing is not. Preconditions are judged all the same.
#[tokio::test]
async fn only_what_exists_needs_a_precondition() {
    for source in source::ALL {
        let (backend, proxy) = start(source, "require = \"existing\"").await;
        let addr = proxy.addr();
        for method in ["PUT", "PATCH", "DELETE"] {
            write(addr, method, "/doc", &[]).await.refused(428, "precondition-required");
            write(addr, method, "/doc", &[("If-Match", "*")]).await.refused(428, "precondition-required");
            write(addr, method, "/doc", &[("If-Match", "\"other\"")]).await.refused(412, "precondition-failed");
        }
        assert_eq!(write(addr, "DELETE", "/missing", &[]).await.status, 404, "{source}: the backend's answer");
        assert_eq!(write(addr, "PUT", "/missing", &[]).await.status, 201, "{source}");
        write(addr, "PUT", "/missing", &[]).await.refused(428, "precondition-required");
        let tag = get(addr, "/missing").await.etag();
        assert_eq!(write(addr, "DELETE", "/missing", &[("If-Match", &tag)]).await.status, 204, "{source}");
        assert_eq!(write(addr, "PUT", "/missing", &[]).await.status, 201, "{source}: it is gone, and made anew");
        assert_eq!(backend.content("/doc").as_deref(), Some("one"), "{source}");
    }
}

/// `require = "never"`: a first step with clients that know nothing of preconditions.
#[tokio::test]
async fn nothing_is_required_where_the_route_says_so() {
    for source in source::ALL {
        let (backend, proxy) = start(source, "require = \"never\"").await;
        let addr = proxy.addr();
        assert_eq!(write(addr, "PUT", "/doc", &[]).await.status, 204, "{source}");
        assert_eq!(write(addr, "PATCH", "/doc", &[]).await.status, 204, "{source}");
        write(addr, "PUT", "/doc", &[("If-Match", "\"other\"")]).await.refused(412, "precondition-failed");
        assert_eq!(backend.content("/doc").as_deref(), Some("twotwo"), "{source}");
        assert_eq!(write(addr, "DELETE", "/doc", &[]).await.status, 204, "{source}");
    }
}

/// A write without a precondition that is let through still makes every older tag invalid.
#[tokio::test]
async fn an_unconditional_write_invalidates_tags() {
    for source in source::ALL {
        let (_backend, proxy) = start(source, "require = \"never\"").await;
        let tag = get(proxy.addr(), "/doc").await.etag();
        assert_eq!(write(proxy.addr(), "PUT", "/doc", &[]).await.status, 204, "{source}");
        let late = write(proxy.addr(), "PUT", "/doc", &[("If-Match", &tag)]).await;
        assert_eq!(late.status, 412, "{source}");
    }
}

#[tokio::test]
async fn the_route_names_the_methods_that_need_a_precondition() {
    for source in source::ALL {
        let (backend, proxy) = start(source, "require_methods = [\"POST\", \"DELETE\"]").await;
        let addr = proxy.addr();
        for method in ["POST", "DELETE"] {
            write(addr, method, "/doc", &[]).await.refused(428, "precondition-required");
        }
        assert_eq!(backend.count("*", "*"), 0, "{source}");
        let tag = get(addr, "/doc").await.etag();
        assert_eq!(write(addr, "POST", "/doc", &[("If-Match", &tag)]).await.status, 204, "{source}");
        assert_eq!(write(addr, "PUT", "/doc", &[]).await.status, 204, "{source}");
    }
}

/// RFC 9110 section 9.1: methods are case-sensitive; a backend that does not know it would take each of these for PUT.
#[tokio::test]
async fn a_method_in_lower_case_needs_what_its_name_needs() {
    for method in ["put", "Put"] {
        let (backend, setup) = CONTENT.start("/doc", "one").await;
        let proxy = setup.start().await;
        send(proxy.addr(), method, "/doc", &[], "two").await.refused(428, "precondition-required");
        assert_eq!(backend.count("*", "*"), 0);
    }
}
