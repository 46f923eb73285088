//! Reads that show the state before a write in flight (`reads = "last"`).

use std::net::SocketAddr;

use tokio::task::JoinHandle;

use super::settled::{DOC, answered, waiting};
use crate::support::{
    admin,
    backend::{Answer, Backend, Held},
    leases::acquire,
    proxy::{Proxy, Setup},
    raw::{get, put_if_match, send},
    response::Response,
    source::{CONTENT, SHARED, Source, UPSTREAM},
};

const LAST: &str = "reads = \"last\"";

/// A backend whose document says "one", and a proxy whose metrics tell who waits.
struct Scene {
    backend: Backend,
    _proxy: Proxy,
    addr: SocketAddr,
    admin: SocketAddr,
    tag: String,
}

impl Scene {
    async fn start(source: Source, further: impl FnOnce(Setup) -> Setup) -> Self {
        let (backend, setup) = source.start(DOC, "one").await;
        let (proxy, admin) = admin::start(&further(setup.route(LAST))).await;
        let tag = get(proxy.addr(), DOC).await.etag();
        Self { backend, addr: proxy.addr(), _proxy: proxy, admin, tag }
    }

    /// Begins a PUT of "two" by the tag of the document, and waits until the backend has it.
    async fn begin_put(&self) -> (JoinHandle<Response>, Held) {
        let (coming, addr, tag) = (self.backend.hold("PUT", DOC), self.addr, self.tag.clone());
        let put = tokio::spawn(async move { put_if_match(addr, DOC, &tag, "two").await });
        (put, coming.arrived().await)
    }

    async fn read(&self, fields: &[(&str, &str)]) -> Response {
        send(self.addr, "GET", DOC, fields, "").await
    }

    fn spawn(
        &self,
        method: &'static str,
        target: &'static str,
        fields: &'static [(&str, &str)],
    ) -> JoinHandle<Response> {
        let addr = self.addr;
        tokio::spawn(async move { send(addr, method, target, fields, "").await })
    }
}

#[tokio::test]
async fn a_read_beside_a_write_shows_the_state_before_it_at_once() {
    for source in SHARED {
        for (answer, status, after) in [(Answer::stored(), 204, "two"), (Answer::status(403), 403, "one")] {
            let scene = Scene::start(source, |setup| setup).await;
            let (put, held) = scene.begin_put().await;
            let asked = scene.backend.count("GET", DOC);
            let got = scene.read(&[]).await;
            assert_eq!((got.status, got.text(), got.etag()), (200, "one", scene.tag.clone()), "{source}");
            assert_eq!(got.header("content-length"), Some("3"), "{source}");
            assert_eq!(scene.read(&[("If-None-Match", &scene.tag)]).await.status, 304, "{source}");
            scene.read(&[("If-Match", "\"other\"")]).await.refused(412, "precondition-failed");
            assert_eq!(scene.backend.count("GET", DOC), asked, "{source}: the backend is not asked");
            held.answer(answer).await;
            assert_eq!(answered(put).await.status, status, "{source}");
            assert_eq!(get(scene.addr, DOC).await.text(), after, "{source}");
        }
    }
}

/// The check has read one variant for one client. All other reads wait, as with `reads = "settled"`.
#[tokio::test]
async fn reads_of_all_else_wait() {
    for source in SHARED {
        let scene = Scene::start(source, |setup| setup).await;
        scene.backend.put("/doc?lang=de", "eins");
        for (target, fields) in [(DOC, &[("Authorization", "another")][..]), ("/doc?lang=de", &[])] {
            assert_eq!(send(scene.addr, "GET", target, fields, "").await.status, 200, "it may know of the document");
        }
        let (put, held) = scene.begin_put().await;
        let reads = [
            scene.spawn("GET", DOC, &[("Authorization", "another")]),
            scene.spawn("GET", DOC, &[("Cache-Control", "no-cache")]),
            scene.spawn("GET", "/doc?lang=de", &[]),
            scene.spawn("HEAD", DOC, &[]),
        ];
        waiting(scene.admin, 4).await;
        held.answer(Answer::stored()).await;
        assert_eq!(answered(put).await.status, 204);
        let [another, fresh, variant, bare] = reads;
        for (read, text) in [(another, "two"), (fresh, "two"), (variant, "eins"), (bare, "")] {
            let got = answered(read).await;
            assert_eq!((got.status, got.text()), (200, text), "{source}");
        }
    }
}

/// Checks that a read beside a write waits for its end, and shows what it has left.
async fn assert_waits(scene: &Scene) {
    let (put, held) = scene.begin_put().await;
    let read = scene.spawn("GET", DOC, &[]);
    waiting(scene.admin, 1).await;
    held.answer(Answer::stored()).await;
    assert_eq!(answered(put).await.status, 204);
    assert_eq!(answered(read).await.text(), "two");
}

#[tokio::test]
async fn a_body_that_is_too_large_to_keep_is_waited_for() {
    let scene = Scene::start(UPSTREAM, |setup| setup.route("max_hash_size = \"1KiB\"")).await;
    let large = || Answer::status(200).header("etag", &scene.tag).body("one".repeat(1024));
    scene.backend.once("GET", DOC, large());
    assert_waits(&scene).await;
}

/// A state that no other client may share is not kept.
#[tokio::test]
async fn a_state_with_a_cookie_is_not_shown_again() {
    let scene = Scene::start(CONTENT, |setup| setup).await;
    let with_cookie = || Answer::status(200).header("set-cookie", "visit=1").body("one");
    scene.backend.once("GET", DOC, with_cookie());
    assert_waits(&scene).await;
}

/// The client of a read does not get a state that the backend shows to other credentials, or by a part of them outside
/// the identity.
#[tokio::test]
async fn a_state_that_depends_on_more_than_the_identity_is_waited_for() {
    for (lines, vary) in [
        ("probe_auth = \"none\"", ""),
        ("identity_cookies = [\"session\"]", "accept, Cookie"),
        ("identity_headers = [\"x-user\"]", "Authorization"),
        ("", "*"),
    ] {
        let scene = Scene::start(CONTENT, |setup| setup.route(lines)).await;
        scene.backend.once("GET", DOC, Answer::status(200).header("vary", vary).body("one"));
        assert_waits(&scene).await;
    }
}

/// Rule 3: what a write in doubt has left is not known, so no earlier state is shown as the last one.
#[tokio::test]
async fn a_read_beside_a_doubt_waits_for_its_end() {
    let scene = Scene::start(CONTENT, |setup| setup.upstream("late_write_window = \"2s\"")).await;
    let (put, mut held) = scene.begin_put().await;
    let late = held.write().await;
    assert_eq!(scene.read(&[]).await.text(), "one", "it is in flight");
    held.close();
    assert!(answered(put).await.refused(502, "upstream-failed").in_doubt);
    let read = scene.spawn("GET", DOC, &[]);
    waiting(scene.admin, 1).await;
    late.apply();
    assert_eq!(answered(read).await.text(), "two");
}

#[tokio::test]
async fn a_lease_that_guards_reads_is_judged_first() {
    let leased = "policy = \"pessimistic\"\nlease.guards = [\"read\", \"write\"]";
    let scene = Scene::start(CONTENT, |setup| setup.route(leased)).await;
    let (addr, tag, grant) = (scene.addr, scene.tag.clone(), acquire(scene.addr, DOC, "60").await);
    let (coming, id) = (scene.backend.hold("PUT", DOC), grant.id.clone());
    let put =
        tokio::spawn(async move { send(addr, "PUT", DOC, &[("Lease-Id", &id), ("If-Match", &tag)], "two").await });
    let held = coming.arrived().await;
    let stranger = scene.spawn("GET", DOC, &[]);
    assert_eq!(scene.read(&[("Lease-Id", &grant.id)]).await.text(), "one");
    waiting(scene.admin, 1).await;
    held.answer(Answer::stored()).await;
    assert_eq!(answered(put).await.status, 204);
    answered(stranger).await.refused(412, "lease-id-missing");
}
