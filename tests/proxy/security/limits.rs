//! Everything has a limit (DESIGN, section 3, rule 13), and a request beyond it is refused untouched.

use tokio::time::{Duration, Instant};

use crate::support::{
    backend::{Answer, Backend},
    h2c,
    message::chunked,
    proxy::Proxy,
    raw::{Connection, get, put_if_match, request_bytes, send},
    scene::{Mode, Resource, Scene, assert_held_back},
    wait::within,
};

/// Two futures; the answer of the one that is done first, and the other one's after `between`.
async fn in_order<T>(
    first: impl Future<Output = T>,
    second: impl Future<Output = T>,
    between: impl AsyncFnOnce(&T),
) -> (T, T) {
    tokio::pin!(first, second);
    tokio::select! {
        one = &mut first => {
            between(&one).await;
            (one, second.await)
        }
        one = &mut second => {
            between(&one).await;
            (one, first.await)
        }
    }
}

/// A proxy that holds writes back for so long after its start, and a resource in each mode that was there before.
async fn just_started(start_grace: &str) -> Vec<Resource> {
    let scene = Scene::start(|setup| setup.store(&format!("start_grace = \"{start_grace}\""))).await;
    let mut resources = Vec::new();
    for mode in Mode::ALL {
        let target = format!("/{}/doc", mode.folder());
        scene.backend.put(&target, "one");
        let read = get(scene.proxy.addr(), &target).await;
        assert_eq!(read.text(), "one", "a read passes");
        resources.push(Resource { scene: scene.clone(), mode, target, tag: "\"of-another-time\"".to_owned() });
    }
    resources
}

/// Writes of the predecessor may still be on their way.
#[tokio::test]
async fn guarded_writes_are_held_back_after_a_start() {
    for resource in just_started("1h").await {
        let Resource { scene, target, .. } = &resource;
        assert_eq!(resource.get().await.header("etag"), None, "a late write may still replace the state: {target}");
        assert_held_back(&resource.put(&resource.tag, "two").await, 3600);
        assert_held_back(&send(scene.proxy.addr(), "POST", target, &[], "two").await, 3600);
        assert_eq!(resource.writes(), 0, "{target}");
    }
}

#[tokio::test]
async fn guarded_writes_pass_after_the_start_grace() {
    let before = Instant::now();
    for resource in just_started("1s").await {
        resource.put_when_free(&resource.tag, "two", 1).await.refused(412, "precondition-failed");
        assert!(before.elapsed() >= Duration::from_secs(1), "it was over after {:?}", before.elapsed());
        let tag = resource.get().await.etag();
        assert_eq!(resource.put(&tag, "two").await.status, 204);
    }
}

/// A full line takes no request; those in it go on waiting.
#[tokio::test]
async fn a_write_beyond_the_line_is_refused_at_once() {
    let scene = Scene::start(|setup| setup.route("claim = { max_wait = \"1h\", max_waiters = 1 }")).await;
    let resource = Resource::create(&scene, Mode::ContentExclusive, "line").await;
    let held = scene.backend.hold("PUT", &resource.target);
    let others = async {
        let held = held.arrived().await;
        let write = |body| resource.put(&resource.tag, body);
        let (beyond, waited) = in_order(write("b"), write("c"), async |_| held.answer(Answer::stored()).await).await;
        assert_held_back(&beyond, 1);
        waited.refused(412, "precondition-failed");
    };
    let (first, ()) = tokio::join!(resource.put(&resource.tag, "a"), others);
    assert_eq!((first.status, resource.writes()), (204, 2));
}

/// Rule 1: while one write has the claim, the backend sees nothing of the next.
#[tokio::test]
async fn a_write_waits_no_longer_than_max_wait() {
    const MAX_WAIT: Duration = Duration::from_millis(300);
    let scene = Scene::start(|setup| setup.route("claim = { max_wait = \"300ms\" }")).await;
    let resource = Resource::create(&scene, Mode::ContentExclusive, "line").await;
    let held = scene.backend.hold("PUT", &resource.target);
    let other = async {
        let held = held.arrived().await;
        let begun = Instant::now();
        assert_held_back(&resource.put(&resource.tag, "b").await, 1);
        assert!(begun.elapsed() >= MAX_WAIT, "it has waited {:?}", begun.elapsed());
        held.answer(Answer::stored()).await;
    };
    let (first, ()) = tokio::join!(resource.put(&resource.tag, "a"), other);
    assert_eq!((first.status, resource.writes()), (204, 2));
}

/// The waiters of all resources together.
#[tokio::test]
async fn too_many_waiters_in_all_are_an_overload() {
    let scene = Scene::start(|setup| setup.server("max_claim_waiters = 1")).await;
    let one = Resource::create(&scene, Mode::ContentExclusive, "one").await;
    let two = Resource::create(&scene, Mode::VersionExclusive, "two").await;
    let holds = [scene.backend.hold("PUT", &one.target), scene.backend.hold("PUT", &two.target)];
    let others = async {
        let [first, second] = holds;
        let (first, second) = (first.arrived().await, second.arrived().await);
        let let_go = async |_: &_| {
            first.answer(Answer::stored()).await;
            second.answer(Answer::stored()).await;
        };
        let (refused, waited) = in_order(one.put(&one.tag, "b"), two.put(&two.tag, "b"), let_go).await;
        assert_eq!(refused.refused(503, "overloaded").retry_after_seconds, Some(1));
        waited.refused(412, "precondition-failed");
    };
    let (first, second, ()) = tokio::join!(one.put(&one.tag, "a"), two.put(&two.tag, "a"), others);
    assert_eq!((first.status, second.status, one.writes() + two.writes()), (204, 204, 4));
}

/// Rule 8: a busy record is never forgotten, so the next resource gets 503.
#[tokio::test]
async fn a_full_store_takes_no_write_on_another_resource() {
    let scene = Scene::start(|setup| setup.store("capacity = 1")).await;
    let targets = Mode::ALL.map(|mode| format!("/{}/doc", mode.folder()));
    for target in &targets {
        scene.backend.put(target, "one");
    }
    let held = scene.backend.hold("PUT", &targets[0]);
    let write = async |target: &str| {
        let tag = get(scene.proxy.addr(), target).await.etag();
        put_if_match(scene.proxy.addr(), target, &tag, "two").await
    };
    let others = async {
        let held = held.arrived().await;
        for target in &targets[1..] {
            assert_eq!(write(target).await.refused(503, "store-full").retry_after_seconds, Some(1));
            let unclaimed = send(scene.proxy.addr(), "POST", target, &[], "two").await;
            assert_eq!(unclaimed.refused(503, "store-full").retry_after_seconds, Some(1));
            assert_eq!(scene.backend.count("PUT", target) + scene.backend.count("POST", target), 0);
        }
        held.answer(Answer::stored()).await;
    };
    let (first, ()) = tokio::join!(write(&targets[0]), others);
    assert_eq!(first.status, 204);
    for target in &targets[1..] {
        assert_eq!(write(target).await.status, 204, "{target}");
    }
}

/// A body whose length is not said is counted while it comes.
#[tokio::test]
async fn a_body_above_max_body_size_is_refused() {
    let backend = Backend::start().await;
    let proxy = Proxy::to(backend.addr()).server("max_body_size = \"4KiB\"").start().await;
    let fields = [("If-None-Match", "*"), ("Transfer-Encoding", "chunked")];
    let (fits, too_large) = ("x".repeat(2048), "x".repeat(2049));
    let refused = send(proxy.addr(), "PUT", "/a", &fields, chunked(&[&fits, &too_large])).await;
    refused.refused(413, "body-too-large");
    assert_eq!(backend.count("*", "*"), 0);
    assert_eq!(send(proxy.addr(), "PUT", "/a", &fields, chunked(&[&fits, &fits])).await.status, 201);
    assert_eq!(backend.content("/a").map(|content| content.len()), Some(4096));
}

#[tokio::test]
async fn a_body_that_takes_too_long_is_refused() {
    let backend = Backend::start().await;
    let proxy = Proxy::to(backend.addr()).server("body_timeout = \"1s\"").start().await;
    let mut client = Connection::open(proxy.addr()).await;
    let fields = [("If-None-Match", "*"), ("Content-Length", "9")];
    client.expect_response_to("PUT");
    client.send_bytes(request_bytes("PUT", "/a", &fields, b"half")).await;
    client.read_response().await.refused(408, "body-timeout");
    assert_eq!(backend.count("*", "*"), 0);
}

/// Bodies that do not fit into memory go through files, as they are; where those are full too, a body is refused and
/// the room of an earlier one is free when it is done.
#[tokio::test]
async fn large_bodies_go_through_a_bounded_spool() {
    let backend = Backend::start().await;
    let limits = "max_body_memory = \"64KiB\"\nmax_body_memory_total = \"1MiB\"\nmax_body_size = \"8MiB\"\nmax_spool_size = \"8MiB\"";
    let proxy = Proxy::to(backend.addr()).server(limits).route("on_write = \"omit\"").start().await;
    let body: Vec<u8> = (0..5_000_000_u32).flat_map(u32::to_le_bytes).take(5_000_000).collect();
    let write = |target| send(proxy.addr(), "PUT", target, &[("If-None-Match", "*")], &body);
    let held = backend.hold("PUT", "/a");
    let others = async {
        let held = held.arrived().await;
        assert_eq!(write("/b").await.refused(503, "overloaded").retry_after_seconds, Some(1));
        assert_eq!(backend.count("PUT", "/b"), 0);
        held.answer(Answer::stored()).await;
    };
    let (first, ()) = tokio::join!(write("/a"), others);
    assert_eq!((first.status, write("/b").await.status), (201, 201));
    for target in ["/a", "/b"] {
        assert!(backend.seen("PUT", target)[0].body == body, "{target} arrived as it was sent");
    }
    let left: Vec<_> = std::fs::read_dir(proxy.spool()).unwrap().collect();
    assert!(left.is_empty(), "the files have no names: {left:?}");
}

/// Refused before it is read: no route is known, and nothing of it is kept.
#[tokio::test]
async fn a_head_above_max_header_size_is_refused() {
    let backend = Backend::start().await;
    backend.put("/a", "one");
    let proxy = Proxy::to(backend.addr()).server("max_header_size = \"4KiB\"").start().await;
    let read = async |value: usize| send(proxy.addr(), "GET", "/a", &[("X", &"x".repeat(value))], "").await;
    assert_eq!(read(3_000).await.status, 200);
    let refused = read(5_000).await;
    refused.refused(431, "header-too-large");
    assert_eq!(refused.header("connection"), Some("close"));
    assert_eq!(backend.count("GET", "/a"), 1);
    // A list of fields counts 32 bytes more for each (RFC 9113 section 6.5.2), and the library answers itself.
    let mut http2 = h2c::Connection::open(proxy.addr()).await;
    let fields = [("x", "x".repeat(5_000))];
    assert_eq!(http2.exchange("GET", "/a", &[(fields[0].0, &fields[0].1)], "").await.status, 431);
    assert_eq!(http2.exchange("GET", "/a", &[], "").await.status, 200);
}

/// The time of a head begins with its first byte: a connection that is kept may say nothing for longer.
#[tokio::test]
async fn a_head_that_takes_too_long_is_refused() {
    let backend = Backend::start().await;
    backend.put("/a", "one");
    let proxy = Proxy::to(backend.addr()).server("header_timeout = \"1s\"").start().await;
    let mut idle = Connection::open(proxy.addr()).await;
    assert_eq!(idle.exchange("GET", "/a", &[], "").await.status, 200);
    let mut slow = Connection::open(proxy.addr()).await;
    assert_eq!(slow.exchange("GET", "/a", &[], "").await.status, 200);
    let begun = Instant::now();
    slow.send_bytes("GET /a HTTP/1.1\r\nHost: a\r\n").await;
    slow.read_response().await.refused(408, "header-timeout");
    assert!(begun.elapsed() >= Duration::from_secs(1), "it had {:?}", begun.elapsed());
    assert_eq!(idle.exchange("GET", "/a", &[], "").await.status, 200, "it said nothing for as long");
}

/// Large heads have a total, until their requests have ended; small ones pass beside them.
#[tokio::test]
async fn all_large_heads_have_a_total() {
    let backend = Backend::start().await;
    let lines = "max_header_size = \"512KiB\"\nmax_header_memory_total = \"1MiB\"";
    let proxy = Proxy::to(backend.addr()).server(lines).start().await;
    // Room is taken in powers of two: each of these has a quarter.
    let large = "x".repeat(150_000);
    let mut held = Vec::new();
    for number in 0..4 {
        let mut connection = Connection::open(proxy.addr()).await;
        let fields = [("If-None-Match", "*"), ("Content-Length", "9"), ("Expect", "100-continue"), ("X", &large)];
        connection.send_bytes(request_bytes("PUT", &format!("/{number}"), &fields, b"")).await;
        assert_eq!(connection.read_head().await.0, 100, "its body is waited for");
        held.push(connection);
    }
    let read = async || send(proxy.addr(), "GET", "/none", &[("X", &large)], "").await;
    assert_eq!(read().await.refused(503, "overloaded").retry_after_seconds, Some(1));
    assert_eq!(send(proxy.addr(), "GET", "/none", &[], "").await.status, 404);
    held.pop().expect("one of them").reset();
    let passes = async { while read().await.status != 404 {} };
    within("the room of one that has gone to be free", passes).await;
}
