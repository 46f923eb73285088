//! POST runs beside other writes without a claim, and no update is lost by that.

use std::net::SocketAddr;

use tokio::task::JoinHandle;

use crate::support::{
    backend::{Answer, Backend, Held},
    engines::Redis,
    proxy::Proxy,
    raw::{Connection, get, put_if_match, send},
    response::Response,
    source::{self, Source},
};

fn spawn_post(addr: SocketAddr) -> JoinHandle<Response> {
    tokio::spawn(async move { send(addr, "POST", "/log", &[], "+post").await })
}

fn spawn_put(addr: SocketAddr, tag: &str) -> JoinHandle<Response> {
    let tag = tag.to_owned();
    tokio::spawn(async move { put_if_match(addr, "/log", &tag, "put").await })
}

/// Sends a POST that the backend has received and not applied.
async fn begin_post(backend: &Backend, addr: SocketAddr) -> (JoinHandle<Response>, Held) {
    let held = backend.hold("POST", "/log");
    let poster = spawn_post(addr);
    (poster, held.arrived().await)
}

/// Sends a PUT that the backend has received and not applied.
async fn begin_put(backend: &Backend, addr: SocketAddr) -> (JoinHandle<Response>, Held) {
    let tag = get(addr, "/log").await.etag();
    let held = backend.hold("PUT", "/log");
    let writer = spawn_put(addr, &tag);
    (writer, held.arrived().await)
}

async fn post(addr: SocketAddr) {
    assert_eq!(send(addr, "POST", "/log", &[], "+post").await.status, 204);
}

async fn apply_and_answer(mut held: Held, client: JoinHandle<Response>) -> Response {
    held.apply().await;
    held.answer(Answer::status(204)).await;
    let response = client.await.unwrap();
    assert_eq!(response.status, 204);
    response
}

/// Checks that no tag from before overwrites the addition of the POST.
async fn assert_refused(backend: &Backend, addr: SocketAddr, tag: &str, source: Source) {
    let content = backend.content("/log");
    let written = put_if_match(addr, "/log", tag, "lost").await;
    assert_eq!(written.status, 412, "{source}: {written:?}");
    written.refused(412, "precondition-failed");
    assert_eq!(backend.content("/log"), content, "{source}");
}

/// DESIGN, section 4: claimed writes wait for unclaimed ones, at most for a time.
#[tokio::test]
async fn a_write_does_not_begin_beside_a_post() {
    for source in source::ALL {
        let (backend, setup) = source.start("/log", "a").await;
        let proxy = setup.route("claim = { max_wait = \"200ms\" }").start().await;
        let addr = proxy.addr();
        let tag = get(addr, "/log").await.etag();
        let (poster, held) = begin_post(&backend, addr).await;
        put_if_match(addr, "/log", &tag, "put").await.refused(409, "write-in-flight");
        assert_eq!(backend.count("PUT", "/log"), 0, "{source}");
        apply_and_answer(held, poster).await;
        assert_refused(&backend, addr, &tag, source).await;
    }
}

#[tokio::test]
async fn a_waiting_write_begins_when_the_post_has_ended() {
    for source in source::ALL {
        let (backend, setup) = source.start("/log", "a").await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let tag = get(addr, "/log").await.etag();
        let (poster, held) = begin_post(&backend, addr).await;
        let mut writer = Connection::open(addr).await;
        writer.expect_response_to("PUT");
        let fields = "Host: test\r\nContent-Length: 3\r\nExpect: 100-continue";
        writer.send_bytes(format!("PUT /log HTTP/1.1\r\n{fields}\r\nIf-Match: {tag}\r\n\r\n")).await;
        // It is asked for its body, so it is past its first verdict.
        assert_eq!(writer.read_head().await.0, 100, "{source}");
        writer.send_bytes("put").await;
        held.answer(Answer::status(400)).await;
        assert_eq!(poster.await.unwrap().status, 400, "{source}");
        assert_eq!(writer.read_response().await.status, 204, "{source}");
        let events = backend.events();
        let place = |event: &str| events.iter().position(|other| other == event).expect(event);
        assert!(place("POST /log answered 400") < place("PUT /log arrived"), "{source}: {events:?}");
    }
}

#[tokio::test]
async fn posts_run_beside_one_another() {
    let (backend, setup) = source::CONTENT.start("/log", "a").await;
    let proxy = setup.start().await;
    let (first_poster, first) = begin_post(&backend, proxy.addr()).await;
    let (second_poster, second) = begin_post(&backend, proxy.addr()).await;
    apply_and_answer(second, second_poster).await;
    apply_and_answer(first, first_poster).await;
    assert_eq!(backend.content("/log").as_deref(), Some("a+post+post"));
}

/// Memory does not answer while the state may change at any moment, and what it held before is worth nothing after.
#[tokio::test]
async fn nothing_is_answered_from_memory_beside_a_post() {
    for source in source::EXCLUSIVE {
        let (backend, setup) = source.start("/log", "a").await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let tag = get(addr, "/log").await.etag();
        let conditional_get = async || send(addr, "GET", "/log", &[("If-None-Match", &tag)], "").await;
        let (poster, held) = begin_post(&backend, addr).await;
        // The tag may be that of the state before, and the content the new one already.
        let confirmed = if source.hashes_content() { 304 } else { 200 };
        assert_eq!(conditional_get().await.status, confirmed, "{source}");
        assert_eq!(backend.count("GET", "/log"), 2, "{source}: the backend was asked");
        apply_and_answer(held, poster).await;
        assert_eq!(conditional_get().await.text(), "a+post", "{source}");
    }
}

/// A read beside the POST, a read and a write before it: all their tags are refused when it has ended.
#[tokio::test]
async fn tags_from_before_a_post_ends_are_refused() {
    for source in source::ALL {
        let (backend, setup) = source.start("/log", "a").await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let before = get(addr, "/log").await.etag();
        let (poster, held) = begin_post(&backend, addr).await;
        let beside = get(addr, "/log").await;
        assert_eq!(beside.text(), "a", "{source}");
        apply_and_answer(held, poster).await;
        assert_refused(&backend, addr, &before, source).await;
        assert_refused(&backend, addr, &beside.etag(), source).await;
    }
}

/// Two proxies on one store: a POST through the one does not stand in the line of the other.
async fn start_pair(source: Source) -> (Backend, Redis, [Proxy; 2]) {
    let ((backend, setup), redis) = (source.start("/log", "a").await, Redis::start().await);
    let setup = setup.store(&format!("kind = \"redis\"\nurl = \"{}\"\ntimeout = \"10s\"", redis.url()));
    let proxies = [setup.clone().start().await, setup.start().await];
    (backend, redis, proxies)
}

/// The verdict is bound to the revision that it was made at: a POST that comes and ends while the write's probe is
/// in flight makes the write be judged again.
#[tokio::test]
async fn a_post_during_a_probe_makes_the_write_be_judged_again() {
    for (source, probe) in [(source::CONTENT, "GET"), (source::UPSTREAM, "HEAD")] {
        let (backend, _redis, [proxy, other]) = start_pair(source).await;
        let addr = proxy.addr();
        let tag = get(addr, "/log").await.etag();
        let held = backend.hold(probe, "/log");
        let writer = spawn_put(addr, &tag);
        let held = held.arrived().await;
        let old = held.stored();
        post(other.addr()).await;
        held.answer(old).await;
        writer.await.unwrap().refused(412, "precondition-failed");
        assert_eq!((backend.count("PUT", "/log"), backend.content("/log").as_deref()), (0, Some("a+post")), "{source}");
    }
}

/// The same with a POST that is still in flight when the probe is answered: the write waits for its end.
#[tokio::test]
async fn a_post_that_outlives_a_probe_makes_the_write_be_judged_again() {
    for (source, probe) in [(source::CONTENT, "GET"), (source::UPSTREAM, "HEAD")] {
        let (backend, _redis, [proxy, other]) = start_pair(source).await;
        let addr = proxy.addr();
        let tag = get(addr, "/log").await.etag();
        let held = backend.hold(probe, "/log");
        let writer = spawn_put(addr, &tag);
        let held = held.arrived().await;
        let (poster, post) = begin_post(&backend, other.addr()).await;
        let old = held.stored();
        held.answer(old).await;
        apply_and_answer(post, poster).await;
        writer.await.unwrap().refused(412, "precondition-failed");
        assert_eq!((backend.count("PUT", "/log"), backend.content("/log").as_deref()), (0, Some("a+post")), "{source}");
    }
}

/// A POST that ends between a write's mark and its settlement: what the write reads back is from before the POST, so
/// neither the record nor the client may take it for the current state.
#[tokio::test]
async fn a_post_during_the_reading_back_makes_it_worthless() {
    for source in source::ALL {
        for answered in ["verbatim", "always"] {
            let (backend, setup) = source.start("/log", "a").await;
            let route = format!("on_write = \"probe\"\netag_after_write = \"{answered}\"");
            let proxy = setup.route(&route).start().await;
            let addr = proxy.addr();
            let (writer, mut write) = begin_put(&backend, addr).await;
            let reading_back = backend.hold_where(|request| ["GET", "HEAD"].contains(&request.method.as_str()));
            write.apply().await;
            write.answer(Answer::status(204)).await;
            let reading_back = reading_back.arrived().await;
            let old = reading_back.stored();
            let beside = get(addr, "/log").await;
            post(addr).await;
            reading_back.answer(old).await;
            let written = writer.await.unwrap();
            assert_eq!((written.status, backend.content("/log").as_deref()), (204, Some("put+post")), "{source}");
            assert_eq!(beside.text(), "put", "{source}");
            for tag in [written.headers.all("etag"), beside.headers.all("etag")].concat() {
                assert_refused(&backend, addr, tag, source).await;
            }
        }
    }
}

/// The same before the reading back, which then shows what the client has never seen.
#[tokio::test]
async fn a_post_before_the_reading_back_is_not_hidden_by_a_tag() {
    for source in source::ALL {
        let (backend, setup) = source.start("/log", "a").await;
        let proxy = setup.route("on_write = \"probe\"\netag_after_write = \"always\"").start().await;
        let addr = proxy.addr();
        let (writer, mut write) = begin_put(&backend, addr).await;
        write.apply().await;
        post(addr).await;
        write.answer(Answer::status(204)).await;
        let written = writer.await.unwrap();
        assert_eq!((written.status, backend.content("/log").as_deref()), (204, Some("put+post")), "{source}");
        for tag in written.headers.all("etag") {
            assert_refused(&backend, addr, tag, source).await;
        }
    }
}

/// A POST with a precondition is judged like any other write.
#[tokio::test]
async fn a_post_with_a_stale_tag_is_refused() {
    for source in source::ALL {
        let (backend, setup) = source.start("/log", "a").await;
        let proxy = setup.start().await;
        let tag = get(proxy.addr(), "/log").await.etag();
        post(proxy.addr()).await;
        let late = send(proxy.addr(), "POST", "/log", &[("If-Match", &tag)], "+late").await;
        late.refused(412, "precondition-failed");
        assert_eq!(backend.content("/log").as_deref(), Some("a+post"), "{source}");
    }
}
