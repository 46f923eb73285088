//! Reads that wait for writes (`reads = "settled"`), and those that do not.

use std::net::SocketAddr;

use tokio::task::JoinHandle;

use crate::support::{
    admin,
    backend::{Answer, Backend, Held},
    engines::Engine,
    leases::{acquire, put_with},
    proxy::{Proxy, Setup},
    raw::{Connection, get, put, send},
    response::Response,
    source::{self, CONTENT, Source, VERSION},
    wait::{DEADLINE, within},
};

pub(super) const DOC: &str = "/doc";
const SETTLED: &str = "reads = \"settled\"\nrequire = \"never\"\nsafe_methods = [\"REPORT\"]";
const IMPATIENT: &str = "claim.max_wait = \"100ms\"";

/// A backend whose document says "one", and a proxy whose metrics tell who waits.
struct Scene {
    backend: Backend,
    _proxy: Proxy,
    addr: SocketAddr,
    admin: SocketAddr,
}

impl Scene {
    async fn start(source: Source, further: impl FnOnce(Setup) -> Setup) -> Self {
        let (backend, setup) = source.start(DOC, "one").await;
        let (proxy, admin) = admin::start(&further(setup.route(SETTLED))).await;
        // Only a client that may read the document waits for writes of it.
        assert_eq!(get(proxy.addr(), DOC).await.status, 200);
        Self { backend, addr: proxy.addr(), _proxy: proxy, admin }
    }

    /// Begins a PUT of "two", and waits until the backend has it.
    async fn begin_put(&self) -> (JoinHandle<Response>, Held) {
        let (coming, addr) = (self.backend.hold("PUT", DOC), self.addr);
        let put = tokio::spawn(async move { put(addr, DOC, &[], "two").await });
        (put, coming.arrived().await)
    }

    fn spawn(&self, method: &'static str, fields: &'static [(&str, &str)]) -> JoinHandle<Response> {
        let addr = self.addr;
        tokio::spawn(async move { send(addr, method, DOC, fields, "").await })
    }

    fn asked(&self) -> usize {
        ["GET", "HEAD", "REPORT"].iter().map(|method| self.backend.count(method, DOC)).sum()
    }
}

/// Waits until so many reads wait at a proxy.
pub(super) async fn waiting(admin: SocketAddr, count: usize) {
    let told = async {
        let ends = format!(" {count}");
        let is_told = |line: &str| {
            line.starts_with("ifmatch_waiters{") && line.contains("ifmatch_queue=\"read\"") && line.ends_with(&ends)
        };
        while !admin::look(admin, "/metrics").await.text().lines().any(is_told) {
            tokio::time::sleep(DEADLINE / 1000).await;
        }
    };
    within("reads to wait", told).await;
}

pub(super) async fn answered(task: JoinHandle<Response>) -> Response {
    within("an answer", task).await.unwrap()
}

#[tokio::test]
async fn a_read_beside_a_write_waits_and_shows_the_new_state() {
    for source in source::ALL {
        let scene = Scene::start(source, |setup| setup).await;
        let (put, held) = scene.begin_put().await;
        let asked = scene.asked();
        let reads = ["GET", "HEAD"].map(|method| scene.spawn(method, &[]));
        waiting(scene.admin, 2).await;
        assert_eq!(scene.asked(), asked, "{source}: no byte of a read goes to the backend");
        held.answer(Answer::stored()).await;
        let [got, bare] = reads;
        let got = answered(got).await;
        assert_eq!((got.status, got.text()), (200, "two"), "{source}");
        assert_eq!(answered(bare).await.header("content-length"), Some("3"), "{source}");
        assert_eq!(answered(put).await.status, 204);
        waiting(scene.admin, 0).await;
    }
}

/// The body of a read is kept for the second request.
#[tokio::test]
async fn other_methods_that_read_wait_and_are_sent_again_too() {
    let scene = Scene::start(CONTENT, |setup| setup).await;
    let (put, held) = scene.begin_put().await;
    let (addr, coming) = (scene.addr, scene.backend.hold("REPORT", DOC));
    let read = tokio::spawn(async move { send(addr, "REPORT", DOC, &[], "a query").await });
    waiting(scene.admin, 1).await;
    held.answer(Answer::stored()).await;
    assert_eq!(answered(put).await.status, 204);
    let mut overtaken = coming.arrived().await;
    overtaken.read_body().await;
    let (put, held) = scene.begin_put().await;
    scene.backend.once("REPORT", DOC, Answer::status(200).body("the second"));
    overtaken.answer(Answer::status(200).body("the first")).await;
    waiting(scene.admin, 1).await;
    held.answer(Answer::stored()).await;
    assert_eq!(answered(put).await.status, 204);
    assert_eq!(answered(read).await.text(), "the second");
    let bodies: Vec<_> = scene.backend.seen("REPORT", DOC).into_iter().map(|request| request.body).collect();
    assert_eq!(bodies, [b"a query", b"a query"]);
}

#[tokio::test]
async fn a_read_beside_a_write_that_the_backend_refuses_shows_the_old_state() {
    for source in source::ALL {
        let scene = Scene::start(source, |setup| setup).await;
        let (put, held) = scene.begin_put().await;
        let read = scene.spawn("GET", &[]);
        waiting(scene.admin, 1).await;
        held.answer(Answer::status(403)).await;
        assert_eq!(answered(read).await.text(), "one", "{source}");
        assert_eq!(answered(put).await.status, 403);
    }
}

#[tokio::test]
async fn a_read_that_waits_in_vain_is_refused() {
    for source in source::ALL {
        let scene = Scene::start(source, |setup| setup.route(IMPATIENT)).await;
        let (put, held) = scene.begin_put().await;
        let asked = scene.asked();
        let problem = get(scene.addr, DOC).await.refused(503, "unsettled");
        assert_eq!((problem.json["reason"].as_str(), problem.retry_after_seconds), (Some("write-in-flight"), Some(1)));
        assert_eq!(scene.asked(), asked, "{source}");
        held.answer(Answer::stored()).await;
        assert_eq!(answered(put).await.status, 204, "the read has not disturbed the write");
        assert_eq!(get(scene.addr, DOC).await.text(), "two", "{source}");
    }
}

/// The write may still be applied until its window is over.
#[tokio::test]
async fn a_read_waits_for_the_end_of_a_doubt() {
    let scene = Scene::start(CONTENT, |setup| setup.upstream("late_write_window = \"2s\"")).await;
    let (put, mut held) = scene.begin_put().await;
    let late = held.write().await;
    held.close();
    assert!(answered(put).await.refused(502, "upstream-failed").in_doubt);
    let read = scene.spawn("GET", &[]);
    waiting(scene.admin, 1).await;
    late.apply();
    assert_eq!(answered(read).await.text(), "two");
}

#[tokio::test]
async fn a_read_does_not_wait_for_a_doubt_that_outlasts_it() {
    let configure = |setup: Setup| setup.upstream("late_write_window = \"1h\"").route("claim.max_wait = \"1m\"");
    let scene = Scene::start(CONTENT, configure).await;
    let (put, held) = scene.begin_put().await;
    held.close();
    assert!(answered(put).await.refused(502, "upstream-failed").in_doubt);
    let asked = scene.asked();
    let problem = get(scene.addr, DOC).await.refused(503, "unsettled");
    assert_eq!(problem.json["reason"], "write-in-doubt");
    assert!(problem.retry_after_seconds.is_some_and(|seconds| seconds > 3000), "{problem:?}");
    assert_eq!(scene.asked(), asked);
}

/// The old state is on its way to the client when a write begins.
#[tokio::test]
async fn an_answer_that_a_write_has_overtaken_is_read_again() {
    for source in source::ALL {
        for has_ended in [true, false] {
            let scene = Scene::start(source, |setup| setup).await;
            let coming = scene.backend.hold("GET", DOC);
            let read = scene.spawn("GET", &[]);
            let overtaken = coming.arrived().await;
            let old = overtaken.stored();
            let (put, held) = scene.begin_put().await;
            if has_ended {
                held.answer(Answer::stored()).await;
                assert_eq!(answered(put).await.status, 204);
                overtaken.answer(old).await;
            } else {
                overtaken.answer(old).await;
                waiting(scene.admin, 1).await;
                held.answer(Answer::stored()).await;
                assert_eq!(answered(put).await.status, 204);
            }
            assert_eq!(answered(read).await.text(), "two", "{source}, has ended: {has_ended}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_a_write_has_overtaken_too_late_is_refused() {
    let scene = Scene::start(VERSION, |setup| setup.route("claim.max_wait = \"0s\"")).await;
    let coming = scene.backend.hold("GET", DOC);
    let read = scene.spawn("GET", &[]);
    let overtaken = coming.arrived().await;
    assert_eq!(put(scene.addr, DOC, &[], "two").await.status, 204);
    overtaken.answer(Answer::status(200).body("one")).await;
    assert_eq!(answered(read).await.refused(503, "unsettled").retry_after_seconds, Some(1));
}

#[tokio::test]
async fn reads_wait_neither_by_default_nor_with_any() {
    for line in ["", "reads = \"any\""] {
        let (backend, setup) = VERSION.start(DOC, "one").await;
        let proxy = setup.route("require = \"never\"").route(line).start().await;
        let (addr, coming) = (proxy.addr(), backend.hold("PUT", DOC));
        let put = tokio::spawn(async move { put(addr, DOC, &[], "two").await });
        let held = coming.arrived().await;
        assert_eq!(get(addr, DOC).await.text(), "one", "{line}");
        held.answer(Answer::stored()).await;
        assert_eq!(answered(put).await.status, 204);
    }
}

#[tokio::test]
async fn a_read_waits_for_appending_writes() {
    let scene = Scene::start(VERSION, |setup| setup.route(IMPATIENT)).await;
    let (coming, addr) = (scene.backend.hold("POST", DOC), scene.addr);
    let post = tokio::spawn(async move { send(addr, "POST", DOC, &[], "more").await });
    let held = coming.arrived().await;
    get(addr, DOC).await.refused(503, "unsettled");
    held.answer(Answer::stored()).await;
    assert_eq!(answered(post).await.status, 204);
    assert_eq!(get(addr, DOC).await.status, 200);
}

#[tokio::test]
async fn conditions_and_ranges_are_judged_by_the_settled_state() {
    for source in source::ALL {
        let scene = Scene::start(source, |setup| setup).await;
        let old = get(scene.addr, DOC).await.etag();
        let (put, held) = scene.begin_put().await;
        let addr = scene.addr;
        let if_changed = |tag: String| async move { send(addr, "GET", DOC, &[("If-None-Match", &tag)], "").await };
        let reads = [tokio::spawn(if_changed(old.clone())), scene.spawn("GET", &[("Range", "bytes=1-")])];
        waiting(scene.admin, 2).await;
        held.answer(Answer::stored()).await;
        let [changed, part] = reads;
        let changed = answered(changed).await;
        assert_eq!((changed.status, changed.text()), (200, "two"), "{source}");
        let part = answered(part).await;
        let range = if part.status == 206 { "wo" } else { "two" };
        assert_eq!(part.text(), range, "{source}: {part:?}");
        assert_eq!(answered(put).await.status, 204);
        assert_eq!(if_changed(changed.etag()).await.status, 304, "{source}");
    }
}

#[tokio::test]
async fn leases_that_guard_reads_are_judged_after_the_wait() {
    let leased = "policy = \"pessimistic\"\nlease.guards = [\"read\", \"write\"]";
    let scene = Scene::start(VERSION, |setup| setup.route(leased)).await;
    let (addr, grant) = (scene.addr, acquire(scene.addr, DOC, "60").await);
    let coming = scene.backend.hold("PUT", DOC);
    let id = grant.id.clone();
    let put = tokio::spawn(async move { put_with(addr, DOC, &id, "two").await });
    let held = coming.arrived().await;
    let stranger = scene.spawn("GET", &[]);
    let holder = tokio::spawn(async move { send(addr, "GET", DOC, &[("Lease-Id", &grant.id)], "").await });
    waiting(scene.admin, 2).await;
    held.answer(Answer::stored()).await;
    assert_eq!(answered(put).await.status, 204);
    assert_eq!(answered(holder).await.text(), "two");
    answered(stranger).await.refused(412, "lease-id-missing");
}

/// A message of a queue is requested once, so its read is refused, and the lease is free again.
#[tokio::test]
async fn a_read_that_takes_a_lease_is_sent_once() {
    let queue = "policy = \"pessimistic\"\nlease.acquire_on_read = true\nlease.guards = [\"delete\"]";
    let scene = Scene::start(VERSION, |setup| setup.route(queue)).await;
    let coming = scene.backend.hold_where(|request| request.header("fencing-token").is_some());
    let read = scene.spawn("GET", &[("Lease-Duration", "30")]);
    let overtaken = coming.arrived().await;
    assert_eq!(put(scene.addr, DOC, &[], "two").await.status, 204);
    let asked = scene.asked();
    overtaken.answer(Answer::status(200).body("one")).await;
    answered(read).await.refused(503, "unsettled");
    assert_eq!(scene.asked(), asked, "it is not sent again");
    let again = send(scene.addr, "GET", DOC, &[("Lease-Duration", "30")], "").await;
    assert_eq!((again.status, again.text()), (200, "two"));
}

#[tokio::test]
async fn the_reads_that_wait_are_limited_and_end_with_their_clients() {
    let scene = Scene::start(VERSION, |setup| setup.route("claim.max_waiters = 1")).await;
    let (put, held) = scene.begin_put().await;
    let mut client = Connection::open(scene.addr).await;
    client.request("GET", DOC, &[], "").await;
    waiting(scene.admin, 1).await;
    let problem = get(scene.addr, DOC).await.refused(503, "unsettled");
    assert_eq!(problem.json["reason"], "line-full");
    drop(client);
    waiting(scene.admin, 0).await;
    held.answer(Answer::stored()).await;
    assert_eq!(answered(put).await.status, 204, "the limit is not that of writes");
}

#[tokio::test]
async fn a_read_waits_for_a_write_through_another_proxy() {
    for engine in Engine::all().await {
        let backend = Backend::start().await;
        backend.put(DOC, "one");
        let setup = Proxy::to(backend.addr()).store(&engine.store()).store("timeout = \"10s\"").route(SETTLED);
        let writer = setup.clone().start().await;
        let (reader, admin) = admin::start(&setup).await;
        assert_eq!(get(reader.addr(), DOC).await.status, 200);
        let (coming, addr) = (backend.hold("PUT", DOC), writer.addr());
        let put = tokio::spawn(async move { put(addr, DOC, &[], "two").await });
        let held = coming.arrived().await;
        let (asked, addr) = (backend.count("GET", DOC), reader.addr());
        let read = tokio::spawn(async move { get(addr, DOC).await });
        waiting(admin, 1).await;
        assert_eq!(backend.count("GET", DOC), asked, "{}", engine.name());
        held.answer(Answer::stored()).await;
        assert_eq!(answered(read).await.text(), "two", "{}", engine.name());
        assert_eq!(answered(put).await.status, 204);
    }
}
