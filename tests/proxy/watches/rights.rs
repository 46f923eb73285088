//! The right to watch: a client has it if the backend lets it read, and as long as the backend does.

use super::{DOC, start};
use crate::support::{
    backend::{Answer, Request},
    events::Events,
    raw::{get, send},
};

/// A backend that lets one client in.
fn is_owner(request: &Request) -> bool {
    request.header("authorization") == Some("Basic owner")
}

/// A hidden resource looks like a missing one: the answer is the backend's own.
#[tokio::test]
async fn the_answer_of_the_backend_decides() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    for status in [401, 403, 404] {
        let denied = move |request: &Request| {
            if is_owner(request) {
                Answer::status(200).body("one")
            } else {
                Answer::status(status).header("X-Backend", "denies").body("no")
            }
        };
        backend.always("GET", DOC, denied);
        backend.always("HEAD", DOC, denied);
        for accept in ["text/event-stream", "application/json"] {
            let refused = send(addr, "GET", "/.watch/doc", &[("Accept", accept)], "").await;
            assert_eq!((refused.status, refused.header("x-backend")), (status, Some("denies")), "{refused:?}");
            let owner = [("Accept", "application/json"), ("Authorization", "Basic owner")];
            assert_eq!(send(addr, "GET", "/.watch/doc", &owner, "").await.status, 200);
        }
    }
    let absent = get(addr, "/.watch/none").await;
    assert_eq!((absent.status, absent.header("etag")), (404, None));
}

/// Rule 19: HEAD may deny what GET shows.
#[tokio::test]
async fn a_head_alone_denies_nobody() {
    let (backend, proxy) = start(|setup| setup).await;
    for status in [404, 410] {
        backend.always("HEAD", DOC, move |_| Answer::status(status));
        assert_eq!(get(proxy.addr(), "/.watch/doc").await.status, 200);
    }
}

/// The backend is asked about what a reader asks it, and about nothing of the watch.
#[tokio::test]
async fn the_backend_is_asked_as_by_a_reader() {
    let (backend, proxy) = start(|setup| setup).await;
    backend.put("/doc?v=1", "one");
    let fields = [("Last-Event-ID", "x"), ("Authorization", "Basic owner"), ("If-None-Match", "\"x\"")];
    Events::open(proxy.addr(), "/.watch/doc?v=1", &fields).await.expect("state").await;
    let asked: Vec<Request> = [backend.seen("GET", "/doc?v=1"), backend.seen("HEAD", "/doc?v=1")].concat();
    assert!(!asked.is_empty());
    for request in asked {
        let field = |name| request.header(name);
        assert_eq!(field("authorization"), Some("Basic owner"));
        assert_eq!((field("accept"), field("last-event-id"), field("if-none-match")), (Some("*/*"), None, None));
    }
}

#[tokio::test]
async fn a_right_that_ends_ends_the_stream() {
    let (backend, proxy) = start(|setup| setup.route("identity_ttl = \"1s\"")).await;
    let mut events = Events::open(proxy.addr(), "/.watch/doc", &[]).await;
    let mut several = Events::open(proxy.addr(), "/.watch?path=/doc&path=/other", &[]).await;
    events.expect("state").await;
    assert_eq!(several.expect("denied").await.data["path"], "/other");
    several.expect("state").await;
    for method in ["GET", "HEAD"] {
        backend.always(method, DOC, |_| Answer::status(403));
    }
    assert_eq!(events.next().await, None);
    let denied = several.expect("denied").await;
    assert_eq!((&denied.data["path"], &denied.data["status"]), (&DOC.into(), &403.into()));
    assert_eq!(several.next().await, None);
}

/// A backend may take long to answer when it is asked about a right.
#[tokio::test]
async fn a_stop_does_not_wait_for_an_answer_about_a_right() {
    let (backend, mut proxy) = start(|setup| setup.route("identity_ttl = \"1s\"\nprobe.timeout = \"1m\"")).await;
    let mut events = Events::open(proxy.addr(), "/.watch/doc", &[]).await;
    events.expect("state").await;
    let asked = backend.hold_where(|request| request.target == DOC).arrived().await;
    events.retry = None;
    proxy.signal("TERM");
    assert_eq!(events.next().await, None);
    assert!(events.retry.is_some(), "its client learns when to come back");
    assert_eq!(proxy.exit_status().await.code(), Some(0));
    drop(asked);
}
