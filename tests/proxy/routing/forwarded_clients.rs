//! The facts about clients that backends get, and the lies that clients cannot make them believe (RFC 7239).

use crate::{
    operations::balancing::{backend, configuration},
    support::{backend::Request, proxy::Proxy, raw::send},
};

const SPOOFED: [(&str, &str); 7] = [
    ("Host", "docs.test:8080"),
    ("X-Forwarded-For", "10.0.0.1"),
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-Host", "admin.test"),
    ("X-Forwarded-Port", "443"),
    ("Forwarded", "for=10.0.0.1;proto=https"),
    ("X-Real-IP", "10.0.0.1"),
];

/// Every line of these fields, in the order of their names.
fn told(request: &Request) -> Vec<String> {
    let names =
        ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Real-IP"];
    let lines = names
        .iter()
        .flat_map(|name| request.headers.all(name).into_iter().map(move |value| format!("{name}: {value}")));
    lines.collect()
}

/// Returns these facts in each request to the backend for a guarded read, a guarded write and an unguarded read.
async fn all_told(server: &str, upstream: &str) -> Vec<Vec<String>> {
    let backend = backend().await;
    backend.put("/guarded/a", "one");
    let configuration = configuration(&[backend.addr()], upstream, "");
    let proxy = Proxy::start(&configuration.replace("threads = 2", &format!("threads = 2\n{server}"))).await;
    let read = send(proxy.addr(), "GET", "/guarded/a", &SPOOFED, "").await;
    let tag = read.etag();
    let write = [&SPOOFED[..], &[("If-Match", &tag)]].concat();
    assert_eq!(send(proxy.addr(), "PUT", "/guarded/a", &write, "two").await.status, 204);
    assert_eq!(send(proxy.addr(), "GET", "/open", &SPOOFED, "").await.status, 404);
    let all = backend.requests().iter().map(told).collect::<Vec<_>>();
    assert_eq!(all.len(), 5, "a read; a question, a write, and what it made; a read");
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_says_of_itself_does_not_reach_the_backend() {
    let all = all_told("", "forwarded = \"both\"").await;
    for told in all {
        assert_eq!(
            told,
            [
                "Forwarded: for=127.0.0.1;host=\"docs.test:8080\";proto=http",
                "X-Forwarded-For: 127.0.0.1",
                "X-Forwarded-Host: docs.test:8080",
                "X-Forwarded-Port: 8080",
                "X-Forwarded-Proto: http",
            ]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_trusted_proxy_says_is_continued() {
    let all = all_told("trusted_proxies = [\"127.0.0.0/8\"]", "forwarded = \"x-forwarded\"").await;
    for told in all {
        assert_eq!(
            told,
            [
                "Forwarded: for=10.0.0.1;proto=https",
                "X-Forwarded-For: 10.0.0.1, 127.0.0.1",
                "X-Forwarded-Host: admin.test",
                "X-Forwarded-Port: 443",
                "X-Forwarded-Proto: https",
                "X-Real-IP: 10.0.0.1",
            ]
        );
    }
}

/// DESIGN, rule 9: a route that is not guarded forwards every end-to-end field as it came.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_and_nothing_is_taken_where_it_is_off() {
    let sent = [
        "Forwarded: for=10.0.0.1;proto=https",
        "X-Forwarded-For: 10.0.0.1",
        "X-Forwarded-Host: admin.test",
        "X-Forwarded-Port: 443",
        "X-Forwarded-Proto: https",
        "X-Real-IP: 10.0.0.1",
    ];
    for told in all_told("", "").await {
        assert_eq!(told, sent);
    }
}

/// Behind trusted proxies many clients come from one address.
#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_apart_by_what_trusted_proxies_say() {
    let upstream = "balance = \"consistent-hash\"\nhash_by = \"client\"";
    for (trusted, spread) in [("trusted_proxies = [\"127.0.0.1\"]", true), ("", false)] {
        let servers = [backend().await, backend().await];
        let configuration = configuration(&[servers[0].addr(), servers[1].addr()], upstream, "");
        let proxy = Proxy::start(&configuration.replace("threads = 2", &format!("threads = 2\n{trusted}"))).await;
        for number in 0..16 {
            let address = format!("192.0.2.{number}");
            for _ in 0..2 {
                send(proxy.addr(), "GET", &format!("/{number}"), &[("X-Forwarded-For", &address)], "").await;
            }
            let counts = servers.each_ref().map(|server| server.count("*", &format!("/{number}")));
            assert!(counts == [2, 0] || counts == [0, 2], "{address}: {counts:?}");
        }
        let both = servers.iter().all(|server| server.count("*", "*") > 0);
        assert_eq!(both, spread, "{trusted:?}");
    }
}
