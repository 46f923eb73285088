//! Over HTTP/2, the last frame that says something ends the stream. Clients that count bytes (curl before its version 8)
//! would reset a stream that an empty frame ends later, and the proxy would take such a client for a flood.

use std::net::SocketAddr;

use crate::support::{
    backend::{Answer, Backend},
    frames::{self, DATA, HEADERS},
    proxy::Proxy,
    raw::get,
};

const DOC: &str = "/doc";
const POLICIES: [&str; 3] =
    ["policy = \"last-writer-wins\"", "policy = \"optimistic\"", "policy = \"optimistic\"\netag = \"content\""];

/// The kinds of the frames of a response, and whether the last one is empty.
async fn frames_of(addr: SocketAddr, method: &str, fields: &[(&str, &str)]) -> (Vec<u8>, bool) {
    let mut head = vec![(":method", method), (":scheme", "http"), (":path", DOC), (":authority", "a")];
    head.extend(fields);
    let frames = frames::response(addr, &head).await;
    let ends_empty = frames.last().is_some_and(|(_, length)| *length == 0);
    (frames.into_iter().map(|(kind, _)| kind).collect(), ends_empty)
}

#[tokio::test]
async fn the_last_byte_of_a_body_ends_the_stream() {
    for policy in POLICIES {
        let backend = Backend::start().await;
        let proxy = Proxy::to(backend.addr()).route(policy).start().await;
        for (length, frames) in [(1, 1), (1_024, 1), (20_000, 2)] {
            backend.put(DOC, "x".repeat(length));
            let (kinds, ends_empty) = frames_of(proxy.addr(), "GET", &[]).await;
            assert!(
                kinds.len() > frames && kinds[0] == HEADERS && kinds[1..].iter().all(|kind| *kind == DATA),
                "{policy}"
            );
            assert!(!ends_empty, "{policy}: {length} bytes, {kinds:?}");
        }
        backend.always("POST", DOC, |_| Answer::status(200).body("done"));
        let (kinds, ends_empty) = frames_of(proxy.addr(), "POST", &[("if-match", "*")]).await;
        assert_eq!((kinds, ends_empty), (vec![HEADERS, DATA], false), "{policy}: POST");
    }
}

#[tokio::test]
async fn a_head_without_a_body_ends_the_stream() {
    for policy in POLICIES {
        let backend = Backend::start().await;
        backend.put(DOC, "");
        let proxy = Proxy::to(backend.addr()).route(policy).start().await;
        for method in ["GET", "HEAD"] {
            assert_eq!(frames_of(proxy.addr(), method, &[]).await, (vec![HEADERS], false), "{policy}: {method}");
        }
        backend.put(DOC, "one");
        assert_eq!(frames_of(proxy.addr(), "HEAD", &[]).await, (vec![HEADERS], false), "{policy}: HEAD");
        backend.always("DELETE", DOC, |_| Answer::status(204).applied());
        let tag = get(proxy.addr(), DOC).await.headers.get("ETag").unwrap_or("*").to_owned();
        let seen = [("if-match", &*tag)];
        assert_eq!(frames_of(proxy.addr(), "DELETE", &seen).await, (vec![HEADERS], false), "{policy}: DELETE");
    }
}

#[tokio::test]
async fn an_answer_of_the_proxy_ends_the_stream_like_one_of_the_backend() {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let proxy = Proxy::to(backend.addr()).route(POLICIES[1]).start().await;
    let tag = get(proxy.addr(), DOC).await.etag();
    assert_eq!(frames_of(proxy.addr(), "GET", &[("if-none-match", &tag)]).await, (vec![HEADERS], false), "304");
    assert_eq!(frames_of(proxy.addr(), "DELETE", &[]).await, (vec![HEADERS, DATA], false), "428");
    assert_eq!(backend.count("DELETE", DOC), 0);
}
