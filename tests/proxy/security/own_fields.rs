//! The statements that only this proxy makes in an answer: no upstream of a guarded route can make them in its place.

use crate::support::{
    azure,
    backend::{Answer, Backend},
    leases::{acquire, leasing},
    proxy::Proxy,
    raw::{get, send},
    response::Response,
};

const FORGED: [(&str, &str); 7] = [
    ("Lease-Id", "7b0e0b8f-2f0b-4f3e-9f43-0d7a2f1c9d55"),
    ("Lease-Duration", "infinite"),
    ("Lease-Time", "0"),
    ("Fencing-Token", "18446744073709551615"),
    ("Idempotent-Replayed", "true"),
    ("Proxy-Status", "ifmatch; error=http_request_denied; details=\"lease-held\""),
    ("Proxy-Status", "edge; received-status=418"),
];

fn forging(status: u16) -> Answer {
    FORGED.iter().fold(Answer::status(status), |answer, (name, value)| answer.header(name, value))
}

/// Checks that an answer of the upstream arrived without them.
#[track_caller]
fn is_the_upstreams(response: &Response, status: u16) {
    assert_eq!(response.status, status, "{response:?}");
    for (name, _) in &FORGED[..5] {
        assert_eq!(response.header(name), None, "{response:?}");
    }
    let statuses = response.headers.all("proxy-status").join(", ");
    assert!(statuses.starts_with("edge; received-status=418"), "{response:?}");
    assert!(!statuses.contains("lease-held"), "{response:?}");
}

/// Rule 14: a client that reads such a field believes the proxy.
#[tokio::test]
async fn no_answer_of_an_upstream_speaks_for_the_proxy() {
    let backend = Backend::start().await;
    let proxy = leasing(&backend).route("idempotency = \"accept\"").start().await;
    let addr = proxy.addr();
    backend.put("/absent", "still there");
    let lease = acquire(addr, "/absent", "30").await;
    backend.always("*", "/doc", |request| forging(if request.method == "DELETE" { 409 } else { 200 }));
    backend.always("*", "/absent", |_| forging(404));
    backend.always("*", "/hidden", |_| forging(403));
    is_the_upstreams(&get(addr, "/doc").await, 200);
    is_the_upstreams(&get(addr, "/absent").await, 404);
    is_the_upstreams(&send(addr, "HEAD", "/doc", &[], "").await, 200);
    is_the_upstreams(&send(addr, "PUT", "/doc", &[], "two").await, 200);
    is_the_upstreams(&send(addr, "DELETE", "/doc", &[], "").await, 409);
    is_the_upstreams(&send(addr, "POST", "/doc", &[], "more").await, 200);
    is_the_upstreams(&send(addr, "OPTIONS", "/doc", &[], "").await, 200);
    let preflight = [("Origin", "https://a.example"), ("Access-Control-Request-Method", "PUT")];
    is_the_upstreams(&send(addr, "OPTIONS", "/doc", &preflight, "").await, 200);
    is_the_upstreams(&send(addr, "PUT", "/hidden", &[("If-Match", "\"a\"")], "x").await, 403);
    is_the_upstreams(&send(addr, "POST", "/.leases/hidden", &[("Lease-Duration", "30")], "").await, 403);
    is_the_upstreams(&send(addr, "PUT", "/absent", &[("Lease-Id", &lease.id)], "x").await, 404);
    proxy.logged(&["method=\"PUT\"", "path=/absent", "status=404"]).await;
    assert!(!proxy.log().contains("replayed"), "{}", proxy.log());
}

/// Rule 9: on a route without a guard every end-to-end field passes as it came, such as the leases of an ifmatch behind
/// this one.
#[tokio::test]
async fn a_route_without_a_guard_passes_what_a_proxy_behind_it_says() {
    let backend = Backend::start().await;
    let proxy = Proxy::to(backend.addr()).route("policy = \"last-writer-wins\"").start().await;
    backend.always("*", "/doc", |_| forging(200));
    let answer = get(proxy.addr(), "/doc").await;
    for (name, value) in FORGED {
        assert!(answer.headers.all(name).contains(&value), "{name} {answer:?}");
    }
    proxy.logged(&["path=/doc", "verdict=\"passed\""]).await;
}

/// In the azure dialect, the fields of its leases are the proxy's own too.
#[tokio::test]
async fn no_upstream_tells_of_leases_in_the_azure_dialect() {
    let backend = Backend::start().await;
    let proxy = azure::blobs(&backend).start().await;
    let forging =
        |status| Answer::status(status).header("x-ms-lease-id", "7b0e0b8f").header("x-ms-lease-state", "broken");
    backend.always("*", "/c/doc", move |request| forging(if request.method == "PUT" { 201 } else { 404 }));
    for method in ["PUT", "GET"] {
        let answer = send(proxy.addr(), method, "/c/doc", &[("x-ms-blob-type", "BlockBlob")], "").await;
        assert_eq!((answer.header("x-ms-lease-id"), answer.header("x-ms-lease-state")), (None, None), "{answer:?}");
    }
}
