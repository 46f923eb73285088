//! A `last-writer-wins` route: requests and answers pass unchanged (DESIGN, section 3, rule 9).

use tokio::time::Instant;

use crate::support::{
    backend::{Answer, Backend, Request},
    h2c,
    message::Headers,
    ports,
    proxy::Proxy,
    raw::{Connection, get, put, send},
    response::Response,
    wait::DEADLINE,
};

const UNGUARDED: &str = "policy = \"last-writer-wins\"";

async fn start() -> (Backend, Proxy) {
    let backend = Backend::start().await;
    let proxy = Proxy::to(backend.addr()).route(UNGUARDED).start().await;
    (backend, proxy)
}

/// The fields without those of this hop, Via, and Date, in whose place pingora puts the present.
fn end_to_end(headers: &Headers) -> Vec<(&str, &str)> {
    let own = |name: &str| ["connection", "via", "date"].iter().any(|own| name.eq_ignore_ascii_case(own));
    headers.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).filter(|(name, _)| !own(name)).collect()
}

/// RFC 9110 section 7.6: the spelling of names, the order of fields and of equal names, and values that mean something
/// to ifmatch elsewhere.
/// Rule 9: a route without a guard forwards every end-to-end field as it came.
#[tokio::test]
async fn end_to_end_fields_of_a_request_arrive_as_they_were_sent() {
    let (backend, proxy) = start().await;
    let fields = [
        ("Host", "a.example:81"),
        ("if-match", "\"a\", not a tag"),
        ("IF-NONE-MATCH", "W/\"b\""),
        ("If-None-Match", "*"),
        ("If-Modified-Since", "yesterday"),
        ("If-Range", "\"c\""),
        ("Range", "bytes=0-0,2-"),
        ("X-Empty", ""),
        ("X-Twice", "1"),
        ("X-Twice", "1"),
        ("X-Latin", "caf\u{e9} \u{a0}"),
        ("X!#$%&'*+-.^_`|~9", "a  b\tc"),
        ("Cookie", "a=b; c=d"),
        ("Authorization", "Basic dTpw"),
        ("Accept-Encoding", "gzip, br"),
        ("X-HTTP-Method-Override", "DELETE"),
        ("Destination", "/b"),
        ("Lease-Id", "0d3a1b9e-7f7e-4a53-9b8e-1d0f2f7b1c11"),
        ("Cache-Control", "no-cache"),
        ("Expires", "0"),
        ("Content-Length", "3"),
    ];
    assert_eq!(send(proxy.addr(), "PUT", "/a%2Fb/../c;d?e=%zz&f", &fields, "one").await.status, 201);
    let request = &backend.requests()[0];
    assert_eq!((request.target.as_str(), request.body.as_slice()), ("/a%2Fb/../c;d?e=%zz&f", &b"one"[..]));
    assert_eq!(end_to_end(&request.headers), fields);
    assert_eq!(request.headers.all("via"), ["1.1 ifmatch"]);
}

#[tokio::test]
async fn end_to_end_fields_of_a_response_arrive_as_they_were_sent() {
    let (backend, proxy) = start().await;
    let fields = [
        ("Server", "plain/1.0"),
        ("ETag", "W/\"weak\""),
        ("Last-Modified", "Sunday, 06-Nov-94 08:49:37 GMT"),
        ("Set-Cookie", "a=b"),
        ("Set-Cookie", "c=d"),
        ("content-encoding", "gzip"),
        ("Vary", "*"),
        ("Accept-Ranges", "bytes"),
        ("X-Empty", ""),
        ("X-Latin", "caf\u{e9}"),
        ("Cache-Control", "private"),
        ("Content-Length", "3"),
    ];
    let answer =
        fields.iter().fold(Answer::status(203), |answer, (name, value)| answer.header(name, value)).body("one");
    backend.always("*", "*", move |_| answer.clone());
    for method in ["GET", "PUT", "DELETE"] {
        let response = send(proxy.addr(), method, "/a", &[("Accept-Encoding", "gzip")], "").await;
        assert_eq!((response.status, response.text()), (203, "one"));
        assert_eq!(end_to_end(&response.headers), fields, "{method}");
        assert_eq!(response.headers.all("via"), ["1.1 ifmatch"]);
        assert_eq!(response.headers.all("date").len(), 1);
    }
    let mut connection = h2c::Connection::open(proxy.addr()).await;
    let response = connection.exchange("GET", "/a", &[], "").await;
    let lower: Vec<(String, &str)> = fields.iter().map(|(name, value)| (name.to_lowercase(), *value)).collect();
    let lower: Vec<(&str, &str)> = lower.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    assert_eq!(end_to_end(&response.headers), lower);
}

/// RFC 9110 section 7.6.3: the own entry comes last, and names the version in which the message came.
#[tokio::test]
async fn via_is_appended_both_ways() {
    let (backend, proxy) = start().await;
    backend.always("*", "*", |_| Answer::status(200).header("Via", "1.0 inner"));
    let response = send(proxy.addr(), "GET", "/a", &[("Via", "1.0 a, 1.1 b"), ("Via", "1.1 c")], "").await;
    assert_eq!(backend.requests()[0].headers.all("via"), ["1.0 a, 1.1 b", "1.1 c", "1.1 ifmatch"]);
    assert_eq!(response.headers.all("via"), ["1.0 inner", "1.1 ifmatch"]);
    h2c::Connection::open(proxy.addr()).await.exchange("GET", "/b", &[], "").await;
    assert_eq!(backend.seen("GET", "/b")[0].headers.all("via"), ["2 ifmatch"]);
    assert_eq!(backend.seen("GET", "/b")[0].headers.all("host"), ["test"], "the authority of the target");
}

/// DESIGN, section 8: upstreams trust `Fencing-Token`, and only the proxy may write it; a lease id is a secret between
/// the client of a guarded route and the proxy.
#[tokio::test]
async fn fields_of_ours_do_not_pass() {
    let backend = Backend::start().await;
    let unguarded = Proxy::to(backend.addr()).route(UNGUARDED).start().await;
    let guarded = Proxy::to(backend.addr()).start().await;
    let fields = [("fencing-token", "1"), ("Fencing-Token", "9"), ("If-None-Match", "*"), ("Lease-Id", "x")];
    let mut reached = 0;
    for (proxy, leaves_lease_id) in [(&unguarded, true), (&guarded, false)] {
        for method in ["GET", "PUT", "POST", "OPTIONS"] {
            // A guarded route refuses a value that is no lease id.
            let fields = if leaves_lease_id { &fields[..] } else { &fields[..3] };
            send(proxy.addr(), method, &format!("/{leaves_lease_id}/{method}"), fields, "").await;
        }
        for request in &backend.requests()[reached..] {
            assert!(!request.headers.contains("fencing-token"), "{request:?}");
            assert_eq!(request.headers.contains("lease-id"), leaves_lease_id, "{request:?}");
        }
        assert!(backend.requests().len() >= reached + 4);
        reached = backend.requests().len();
    }
}

/// RFC 9110 section 7.6.1: what is said to this hop ends here, in both directions.
#[tokio::test]
async fn fields_of_this_hop_do_not_pass() {
    let (backend, proxy) = start().await;
    let hop = [
        ("Connection", "X-Hop, keep-alive"),
        ("X-Hop", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Connection", "keep-alive"),
        ("TE", "trailers"),
        ("Upgrade", "h2c"),
    ];
    let answer = hop[..4].iter().fold(Answer::status(200), |answer, (name, value)| answer.header(name, value));
    backend.always("*", "*", move |_| answer.clone());
    let response = send(proxy.addr(), "GET", "/a", &hop, "").await;
    for name in ["X-Hop", "Keep-Alive", "Proxy-Connection", "TE", "Upgrade"] {
        assert!(!backend.requests()[0].headers.contains(name), "{name} in {:?}", backend.requests()[0].headers);
        assert!(!response.headers.contains(name), "{name} in {response:?}");
    }
}

/// Preconditions that would be refused or answered on a guarded route.
#[tokio::test]
async fn nothing_is_judged() {
    let (backend, proxy) = start().await;
    assert_eq!(put(proxy.addr(), "/a", &[], "one").await.status, 201);
    assert_eq!(put(proxy.addr(), "/a", &[("If-Match", "\"stale\"")], "two").await.status, 204);
    assert_eq!(put(proxy.addr(), "/a", &[("If-None-Match", "*")], "three").await.status, 204);
    assert_eq!(put(proxy.addr(), "/a", &[("If-Match", "nonsense")], "four").await.status, 204);
    let read = send(proxy.addr(), "GET", "/a", &[("If-None-Match", "*")], "").await;
    assert_eq!((read.status, read.text(), read.header("etag")), (200, "four", None));
    for method in ["TRACE", "COPY", "MOVE", "BREW"] {
        backend.once(method, "/a", Answer::status(299));
        assert_eq!(send(proxy.addr(), method, "/a", &[], "").await.status, 299, "{method}");
    }
    assert_eq!(backend.count("PUT", "/a"), 4);
}

/// Sends a request that goes to the backend over a connection that closes instead of answering it.
async fn over_a_pooled_connection(method: &str) -> (Response, Backend) {
    let end = Instant::now() + DEADLINE;
    loop {
        let (backend, proxy) = start().await;
        backend.always_where(Request::on_reused_connection, |_| Answer::close());
        let mut connection = Connection::open(proxy.addr()).await;
        // Reads have connections of their own.
        connection.exchange(method, "/first", &[], "").await;
        let response = connection.exchange(method, "/a", &[], "").await;
        // On a busy machine the connection may not be back in its pool yet.
        if backend.requests().iter().any(Request::on_reused_connection) {
            return (response, backend);
        }
        assert!(Instant::now() < end, "no connection is ever used again");
    }
}

/// Rule 6: a pooled connection that swallowed a write is no reason to send it again.
#[tokio::test]
async fn only_reads_are_sent_again() {
    for (method, status, requests) in [
        ("PUT", 502, 1),
        ("DELETE", 502, 1),
        ("POST", 502, 1),
        ("PATCH", 502, 1),
        ("PROPFIND", 502, 1),
        ("GET", 404, 2),
    ] {
        let (response, backend) = over_a_pooled_connection(method).await;
        assert_eq!((response.status, backend.count(method, "/a")), (status, requests), "{method}");
        if status == 502 {
            assert!(response.refused(502, "upstream-failed").in_doubt, "{method}");
        }
    }
}

/// A backend that is down was sent nothing, so nothing is in doubt.
#[tokio::test]
async fn a_backend_that_is_down_leaves_no_doubt() {
    let proxy = Proxy::to(ports::free()).route(UNGUARDED).start().await;
    assert!(!put(proxy.addr(), "/a", &[], "x").await.refused(502, "upstream-failed").in_doubt);
}

/// An interim response reaches the client before the final one (RFC 9110 section 15.2).
#[tokio::test]
async fn interim_responses_are_relayed() {
    let (backend, proxy) = start().await;
    backend.always("*", "*", |_| {
        Answer::status(200).early(103, &[("Link", "</style.css>; rel=preload")]).early(102, &[]).body("done")
    });
    let response = get(proxy.addr(), "/a").await;
    let interim: Vec<_> = response.informational.iter().map(|(status, fields)| (*status, fields.get("link"))).collect();
    assert_eq!(interim, [(103, Some("</style.css>; rel=preload")), (102, None)]);
    assert_eq!((response.status, response.text()), (200, "done"));
}

/// RFC 9110 sections 7.6.1 and 8.6, RFC 9112 section 6.1: what concerns the connection of the backend, or content that is
/// not there, would end the client's reading of this one.
#[tokio::test]
async fn an_interim_response_has_no_field_of_the_backends_connection() {
    let (backend, proxy) = start().await;
    let fields = [
        ("Link", "</style.css>; rel=preload"),
        ("Connection", "close, X-Hop"),
        ("X-Hop", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Transfer-Encoding", "chunked"),
        ("Content-Length", "5"),
    ];
    backend.always("*", "*", move |_| Answer::status(200).early(103, &fields).body("done"));
    let response = get(proxy.addr(), "/a").await;
    let [(103, interim)] = response.informational.as_slice() else { panic!("{response:?}") };
    assert_eq!(interim.0, [("Link".to_owned(), "</style.css>; rel=preload".to_owned())]);
    assert_eq!((response.status, response.text()), (200, "done"));
}

/// No client would receive the rest of the backend's answer.
#[tokio::test]
async fn an_exchange_ends_when_its_client_goes() {
    let (backend, proxy) = start().await;
    for begins in [false, true] {
        let target = format!("/{begins}");
        let hold = backend.hold("GET", &target);
        let mut client = Connection::open(proxy.addr()).await;
        client.request("GET", &target, &[], "").await;
        let mut exchange = hold.arrived().await;
        if begins {
            exchange.send_bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
            client.read_head().await;
            client.read_bytes(5).await;
        }
        drop(client);
        exchange.peer_closed().await;
    }
}

/// A read with content, and one that offers another protocol, take another path through the proxy.
#[tokio::test]
async fn reads_of_all_kinds_are_forwarded() {
    let (backend, proxy) = start().await;
    backend.serve(|request| Answer::status(200).body(&request.body));
    for (fields, content) in [
        (&[][..], ""),
        (&[("Content-Length", "0")], ""),
        (&[("Content-Length", "4")], "body"),
        (&[("Connection", "upgrade"), ("Upgrade", "other/1")], ""),
        (&[("X-HTTP-Method-Override", "PUT")], ""),
    ] {
        let mut connection = Connection::open(proxy.addr()).await;
        for _ in 0..2 {
            let response = connection.exchange("GET", "/a", fields, content).await;
            assert_eq!((response.status, response.text()), (200, content), "{fields:?}");
        }
    }
}

/// The larger of two limits counts for each wait, and the head and the body are waits of their own.
#[tokio::test]
async fn a_silent_backend_is_given_up() {
    let backend = Backend::start().await;
    let limits = "timeout = \"100ms\"\nread_timeout = \"300ms\"";
    let proxy = Proxy::to(backend.addr()).upstream(limits).route(UNGUARDED).start().await;
    let silent = backend.hold("GET", "/a");
    let began = Instant::now();
    assert!(!get(proxy.addr(), "/a").await.refused(504, "upstream-timeout").in_doubt);
    assert!(began.elapsed() >= std::time::Duration::from_millis(300));
    silent.arrived().await.peer_closed().await;
    let broken_off = backend.hold("GET", "/b");
    let mut client = Connection::open(proxy.addr()).await;
    client.request("GET", "/b", &[], "").await;
    let mut exchange = broken_off.arrived().await;
    exchange.send_bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
    assert_eq!(client.read_head().await.0, 200);
    assert!(!client.closed().await.ends_with(b"0\r\n\r\n"), "a part is not told as the whole");
    exchange.peer_closed().await;
}
