//! The host of a request has one reading, or it has none (DESIGN, section 3, rule 14).

use crate::support::{
    backend::Backend,
    frames,
    proxy::Proxy,
    raw::{get, send},
};

const DOC: &str = "/doc";

/// One host is guarded, all others are not.
async fn start() -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let file = Proxy::to(backend.addr()).route("host = \"docs.example.com\"").configuration();
    let others = "\n[[routes]]\nname = \"others\"\nhost = \"*\"\npath = \"/{*rest}\"\nupstream = \"backend\"\n\
                  policy = \"last-writer-wins\"\n";
    (backend, Proxy::start(&(file + others)).await)
}

#[tokio::test]
async fn a_host_that_a_backend_could_read_otherwise_takes_no_route() {
    let (backend, proxy) = start().await;
    for host in [
        "docs.example.com:x",
        "docs.example.com:80:80",
        "docs.example.com:80.",
        "docs.example.com:+80",
        "docs.example.com:65536",
        "docs.example.com..",
        ".docs.example.com",
        "docs.example.com,a",
        "docs%2eexample.com",
        "[docs.example.com]",
        "[::1]80",
    ] {
        for (method, body) in [("GET", ""), ("PUT", "lost")] {
            send(proxy.addr(), method, DOC, &[("Host", host)], body).await.refused(400, "malformed-request");
        }
        let absolute = format!("http://{host}{DOC}");
        let response = send(proxy.addr(), "PUT", &absolute, &[("Host", host)], "lost").await;
        assert_eq!(response.status, 400, "{absolute}");
    }
    assert_eq!(backend.requests().len(), 0);
    assert_eq!(backend.content(DOC).as_deref(), Some("one"));
}

/// A request that HTTP/2 itself has no form for is reset.
#[tokio::test]
async fn an_authority_that_a_backend_could_read_otherwise_takes_no_route() {
    let (backend, proxy) = start().await;
    for authority in
        ["docs.example.com:x", "docs.example.com:80:80", "docs.example.com:80.", "docs.example.com..", "a%2eb"]
    {
        let head = [(":method", "PUT"), (":scheme", "http"), (":path", DOC)];
        for name in [":authority", "host"] {
            let place = if name == "host" { 3 } else { 2 };
            let mut fields = head.to_vec();
            fields.insert(place, (name, authority));
            let outcome = frames::outcome(proxy.addr(), &fields).await;
            assert!(outcome.is_refusal(), "{name} {authority}: {outcome:?}");
        }
    }
    assert_eq!(backend.requests().len(), 0);
}

#[tokio::test]
async fn every_spelling_of_one_host_takes_its_route() {
    let (_backend, proxy) = start().await;
    for host in
        ["docs.example.com", "DOCS.Example.com:8080", "docs.example.com.", "docs.example.com.:80", "docs.example.com:"]
    {
        let response = send(proxy.addr(), "PUT", DOC, &[("Host", host)], "lost").await;
        response.refused(428, "precondition-required");
    }
    assert_eq!(get(proxy.addr(), DOC).await.status, 200);
}
