//! Clients that wait for 100 (Continue) before they send their content (RFC 9110 section 10.1.1). Each gets the 100, or a
//! final status after which the connection ends: some clients take the status that they got instead of a 100 for that of
//! their next request as well.

use crate::support::{
    backend::Backend,
    h2c,
    message::Headers,
    proxy::Proxy,
    raw::{Connection, get},
};

const EXPECT: (&str, &str) = ("Expect", "100-continue");
const ROUTES: &str = "path = \"/guarded/{*rest}\"\netag = \"content\"\n\
    [[routes]]\npath = \"/open/{*rest}\"\nupstream = \"backend\"\npolicy = \"last-writer-wins\"";

async fn start() -> (Backend, Proxy, String) {
    let backend = Backend::start().await;
    let configuration = format!(
        "[server]\n{{listen}}\nmax_body_size = \"1MiB\"\n[upstreams.backend]\nservers = [\"{}\"]\n[[routes]]\n\
         upstream = \"backend\"\npolicy = \"optimistic\"\n{ROUTES}\n",
        backend.addr()
    );
    let proxy = Proxy::start(&configuration).await;
    for target in ["/guarded/a", "/open/a"] {
        backend.put(target, "one");
    }
    let tag = get(proxy.addr(), "/guarded/a").await.etag();
    (backend, proxy, tag)
}

fn statuses(informational: &[(u16, Headers)]) -> Vec<u16> {
    informational.iter().map(|(status, _)| *status).collect()
}

/// Requests without content, answered by any part: the method, the target, the condition, and the status.
fn without_content(tag: &str) -> [(&'static str, &'static str, String, u16); 8] {
    [
        ("PUT", "/guarded/a", "\"stale\"".to_owned(), 412),
        ("PUT", "/guarded/a", String::new(), 428),
        ("PUT", "/guarded/a%2Fb", String::new(), 400),
        ("PUT", "/elsewhere", String::new(), 404),
        ("PUT", "/guarded/a", tag.to_owned(), 204),
        ("PUT", "/open/a", String::new(), 204),
        ("GET", "/open/a", String::new(), 200),
        ("GET", "/guarded/a", String::new(), 200),
    ]
}

/// The framing says that nothing is withheld. The connection stays, and the backend has nothing to continue.
#[tokio::test]
async fn a_request_without_content_gets_the_100_and_then_its_status() {
    let (backend, proxy, tag) = start().await;
    let mut connection = Connection::open(proxy.addr()).await;
    let seen = backend.requests().len();
    for (method, target, condition, status) in without_content(&tag) {
        let mut fields = vec![EXPECT];
        if !condition.is_empty() {
            fields.push(("If-Match", &condition));
        }
        let response = connection.exchange(method, target, &fields, "").await;
        assert_eq!((statuses(&response.informational), response.status), (vec![100], status), "{method} {target}");
    }
    let sent = backend.requests().split_off(seen);
    assert!(!sent.is_empty() && sent.iter().all(|request| request.headers.get("expect").is_none()), "{sent:?}");
}

/// Over HTTP/2, the frame of the head says that no content follows. The status alone is the answer.
#[tokio::test]
async fn a_request_without_content_gets_its_status_over_http_2() {
    let (_backend, proxy, tag) = start().await;
    let mut connection = h2c::Connection::open(proxy.addr()).await;
    for (method, target, condition, status) in without_content(&tag) {
        let mut fields = vec![EXPECT, ("Content-Length", "0")];
        if !condition.is_empty() {
            fields.push(("If-Match", &condition));
        }
        let response = connection.exchange(method, target, &fields, "").await;
        assert_eq!(response.status, status, "{method} {target}");
    }
}

/// A client whose content is not wanted gets the final status in place of the 100. It may not use the connection again.
#[tokio::test]
async fn a_request_whose_content_is_not_wanted_ends_the_connection() {
    let (backend, proxy, tag) = start().await;
    for (target, condition, length, status) in [
        ("/guarded/a", "\"stale\"", "5", 412),
        ("/guarded/a", "", "5", 428),
        ("/guarded/a", &tag, "9000000", 413),
        ("/elsewhere", "", "5", 404),
    ] {
        let mut connection = Connection::open(proxy.addr()).await;
        let condition = if condition.is_empty() { String::new() } else { format!("If-Match: {condition}\r\n") };
        let head = format!("PUT {target} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n{condition}");
        connection.send_bytes(format!("{head}Expect: 100-continue\r\n\r\n")).await;
        let response = connection.read_response().await;
        assert_eq!((statuses(&response.informational), response.status), (vec![], status), "{target} {length}");
        assert_eq!(response.headers.all("connection"), ["close"], "{target} {length}");
        assert_eq!(connection.closed().await, b"", "{target} {length}");
    }
    assert_eq!(backend.count("PUT", "*"), 0);
}

/// On either kind of route the content follows the 100: that of the proxy, or that of the backend.
#[tokio::test]
async fn a_request_whose_content_is_wanted_gets_one_100() {
    let (backend, proxy, tag) = start().await;
    for target in ["/guarded/a", "/open/a"] {
        let mut connection = Connection::open(proxy.addr()).await;
        let head = format!("PUT {target} HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\nIf-Match: {tag}\r\n");
        connection.send_bytes(format!("{head}Expect: 100-continue\r\n\r\n")).await;
        assert_eq!(connection.read_head().await.0, 100, "{target}");
        connection.send_bytes("two").await;
        let response = connection.read_response().await;
        assert_eq!((statuses(&response.informational), response.status), (vec![], 204), "{target}");
        assert_eq!(backend.content(target).as_deref(), Some("two"));
    }
}
