//! The rights of clients of the admin listener (docs/admin.md).

use std::net::SocketAddr;

use serde_json::json;

use crate::support::{
    admin::{TOOL, look, problem, start, start_with, without_end},
    backend::Backend,
    leases::{acquire, put_with},
    raw::{Connection, send},
};

async fn leased() -> (Backend, crate::support::proxy::Proxy, SocketAddr, String) {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend)).await;
    let grant = acquire(proxy.addr(), "/doc", "infinite").await;
    (backend, proxy, admin, grant.id)
}

const BREAK: &str = r#"{"key": "backend:/doc"}"#;

/// DNS rebinding: a page makes its own name lead to this listener, and is of the same origin then.
#[tokio::test]
async fn a_name_that_is_not_known_leads_nowhere() {
    let backend = Backend::start().await;
    let (_proxy, admin) = start_with(&without_end(&backend), "hosts = [\"admin.example\"]", &[]).await;
    for target in ["/", "/leases", "/metrics", "/nothing"] {
        let response = send(admin, "GET", target, &[("Host", "rebound.example")], "").await;
        assert_eq!(problem(&response, 421), "unknown-host");
    }
    let own = admin.to_string();
    for host in ["localhost:1234", own.as_str(), "[::1]", "Admin.Example:443"] {
        assert_eq!(send(admin, "GET", "/leases", &[("Host", host)], "").await.status, 200, "{host}");
    }
}

/// A page of another origin can send such a request without asking; it breaks nothing.
#[tokio::test]
async fn what_changes_something_needs_the_field_and_the_own_origin() {
    let (_backend, proxy, admin, id) = leased().await;
    let simple = [("Host", "localhost"), ("Content-Type", "text/plain")];
    assert_eq!(problem(&send(admin, "POST", "/leases/break", &simple, BREAK).await, 403), "admin-field-missing");
    for target in ["/leases/break", "/forget"] {
        let response = send(admin, "POST", target, &[("Host", "localhost")], BREAK).await;
        assert_eq!(problem(&response, 403), "admin-field-missing");
        for (name, value) in [("Origin", "http://other.example"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site")]
        {
            let fields = [&TOOL[..], &[(name, value)]].concat();
            assert_eq!(problem(&send(admin, "POST", target, &fields, BREAK).await, 403), "other-origin");
        }
    }
    assert_eq!(put_with(proxy.addr(), "/doc", &id, "still held").await.status, 201);
    let own = [&TOOL[..], &[("Origin", "http://localhost")]].concat();
    assert_eq!(send(admin, "POST", "/leases/break", &own, BREAK).await.status, 200);
}

/// No preflight is ever answered, and nothing can be kept, framed or guessed at.
#[tokio::test]
async fn every_answer_keeps_other_pages_out() {
    let (_backend, _proxy, admin, _) = leased().await;
    let preflight = [
        ("Host", "localhost"),
        ("Origin", "http://other.example"),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "ifmatch-admin,content-type"),
    ];
    let mut answers = vec![
        send(admin, "OPTIONS", "/leases/break", &preflight, "").await,
        send(admin, "GET", "/leases", &preflight, "").await,
        send(admin, "GET", "/leases", &[("Host", "rebound.example")], "").await,
    ];
    for target in ["/", "/livez", "/readyz", "/metrics", "/activity", "/config", "/routes", "/records", "/nothing"] {
        answers.push(look(admin, target).await);
    }
    for answer in answers {
        let names = ["access-control-allow-origin", "access-control-allow-headers", "access-control-allow-methods"];
        assert!(names.iter().all(|name| answer.headers.all(name).is_empty()), "{answer:?}");
        assert_eq!(answer.headers.all("cache-control"), ["no-store"], "{answer:?}");
        assert_eq!(answer.headers.all("x-content-type-options"), ["nosniff"], "{answer:?}");
        assert_eq!(answer.headers.all("x-frame-options"), ["DENY"], "{answer:?}");
        let policies = answer.headers.all("content-security-policy");
        assert!(matches!(policies[..], [policy] if policy.starts_with("default-src 'none'")), "{answer:?}");
        assert!(policies[0].contains("frame-ancestors 'none'") && !policies[0].contains("unsafe"), "{answer:?}");
    }
}

/// Some ask without Host, and over HTTP/1.0; others under the address of a machine. They learn yes or no alone.
#[tokio::test]
async fn probes_may_call_the_listener_what_they_like() {
    let backend = Backend::start().await;
    let (proxy, admin) = start_with(&without_end(&backend), "", &[]).await;
    for target in ["/livez", "/readyz", "/readyz/reads", "/readyz/writes"] {
        for method in ["GET", "OPTIONS"] {
            let answer = send(admin, method, target, &[("Host", "rebound.example")], "").await;
            assert_eq!(answer.status, 200, "{method} {target}");
            assert!(!answer.text().contains(&proxy.addr().to_string()), "{answer:?}");
        }
        let mut haproxy = Connection::open(admin).await;
        haproxy.send_bytes(format!("OPTIONS {target} HTTP/1.0\r\n\r\n")).await;
        assert_eq!(haproxy.read_response().await.status, 200, "{target}");
    }
    for target in ["/", "/metrics", "/leases"] {
        assert_eq!(send(admin, "GET", target, &[("Host", "rebound.example")], "").await.status, 421, "{target}");
    }
}

#[tokio::test]
async fn where_there_is_a_token_nothing_but_health_is_told_without_it() {
    let backend = Backend::start().await;
    let secret = ("ADMIN", "correct-horse-battery");
    let (proxy, admin) = start_with(&without_end(&backend), "token_env = \"ADMIN\"", &[secret]).await;
    acquire(proxy.addr(), "/doc", "infinite").await;
    for target in ["/livez", "/readyz", "/readyz/reads", "/readyz/writes", "/", "/console/main.js"] {
        let answer = look(admin, target).await;
        assert_eq!(answer.status, 200);
        assert!(!answer.text().contains("backend:"), "{answer:?}");
    }
    for target in [
        "/leases",
        "/metrics",
        "/config",
        "/routes",
        "/activity",
        "/doubts",
        "/records?key=a",
        "/refusals",
        "/refusals/0",
        "/history",
        "/servers",
        "/timeline?key=a",
        "/watch",
        "/nothing",
    ] {
        let answer = look(admin, target).await;
        assert_eq!(problem(&answer, 401), "token-required");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    let with = |token| [&TOOL[..], &[("Authorization", token)]].concat();
    for wrong in ["Bearer correct-horse-batter", "Bearer correct-horse-batteryy", "Basic correct-horse-battery"] {
        assert_eq!(send(admin, "POST", "/leases/break", &with(wrong), BREAK).await.status, 401);
    }
    assert_eq!(send(admin, "POST", "/leases/break", &with("Bearer correct-horse-battery"), BREAK).await.status, 200);
    assert!(!proxy.log().contains("horse"), "the token is nowhere in the log");
    let config = send(admin, "GET", "/config", &with("Bearer correct-horse-battery"), "").await;
    assert!(config.text().contains("token_env") && !config.text().contains("horse"), "{config:?}");
}

/// An answer to a request that makes no sense has the same form, and a limited length.
#[tokio::test]
async fn requests_that_make_no_sense_are_refused() {
    let (_backend, _proxy, admin, _) = leased().await;
    for (target, status, code) in [
        ("/leases?limit=0", 400, "malformed-request"),
        ("/leases?limit=1001", 400, "malformed-request"),
        ("/leases?state=lost", 400, "malformed-request"),
        ("/leases?cursor=*", 400, "malformed-request"),
        ("/leases?prefx=a", 400, "malformed-request"),
        ("/records", 400, "malformed-request"),
        ("/records?key=", 400, "malformed-request"),
        ("/records?key=a%20b", 400, "malformed-request"),
        ("/timeline", 400, "malformed-request"),
        ("/watch?key=a%20b", 400, "malformed-request"),
        ("/watch?prefx=a", 400, "malformed-request"),
        ("/nothing", 404, "not-found"),
        ("/console/nothing.js", 404, "not-found"),
        ("/leases/break", 405, "method-not-allowed"),
    ] {
        assert_eq!(problem(&look(admin, target).await, status), code, "{target}");
    }
    for (target, document, status) in [
        ("/leases/break", json!({}).to_string(), 422),
        ("/leases/break", json!({"key": "backend:/doc", "period": "30"}).to_string(), 400),
        ("/leases/break", json!({"key": "backend:/doc", "perod": "30s"}).to_string(), 422),
        ("/leases/break", "{".to_owned(), 400),
        ("/forget", json!({}).to_string(), 400),
        ("/forget", json!({"key": "a", "prefix": "b"}).to_string(), 400),
        ("/forget", json!({"key": "x".repeat(100_000)}).to_string(), 413),
        ("/forget", json!({"key": "a", "cursor": "YQ"}).to_string(), 400),
    ] {
        let answer = send(admin, "POST", target, &TOOL, &document).await;
        assert_eq!(problem(&answer, status), "malformed-request", "{target} {document}");
    }
    assert_eq!(problem(&send(admin, "POST", "/leases", &TOOL, "{}").await, 405), "method-not-allowed");
    let huge = "x".repeat(20_000);
    let mut connection = Connection::open(admin).await;
    let answer = connection.try_exchange("GET", "/leases", &[("Host", "localhost"), ("Large", &huge)], "").await;
    assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status == 431));
}
