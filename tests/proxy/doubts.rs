//! Writes whose outcome cannot be known: sent once, held against all others for `late_max`, and then nothing is
//! believed that was known before (DESIGN, section 3, rules 3 and 6).

use std::sync::Arc;

use tokio::time::{Duration, Instant};

use crate::support::{
    backend::Answer,
    raw::{put, send},
    response::Response,
    scene::{Mode, Resource, Scene, all_at_once, assert_held_back},
};

/// How long a write is in doubt: long enough for a busy machine to try a few others meanwhile.
const LATE_MAX: Duration = Duration::from_secs(2);
/// A pooled connection is taken however long it was idle.
const LIMITS: &str = "late_max = \"2s\"\nreuse_idle_writes = \"1h\"\n";
/// How often a write may happen to get a fresh connection, where a pooled one is wanted.
const ATTEMPTS: usize = 20;

/// How a write is made.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// With If-Match, and the claim.
    Claimed(&'static str),
    /// Without a precondition, beside others.
    Unclaimed,
}

impl Kind {
    const ALL: [Self; 5] =
        [Self::Claimed("PUT"), Self::Claimed("DELETE"), Self::Claimed("PATCH"), Self::Claimed("POST"), Self::Unclaimed];

    fn method(self) -> &'static str {
        match self {
            Self::Claimed(method) => method,
            Self::Unclaimed => "POST",
        }
    }

    async fn send(self, resource: &Resource) -> Response {
        let (addr, body) = (resource.scene.proxy.addr(), if self.method() == "DELETE" { "" } else { "two" });
        let fields: &[(&str, &str)] = match self {
            Self::Claimed(_) => &[("If-Match", &resource.tag)],
            Self::Unclaimed => &[],
        };
        send(addr, self.method(), &resource.target, fields, body).await
    }
}

/// A pooled connection may be dead already when a write is sent over it. It may also have died of that write: nobody
/// can tell, so it is never sent again.
#[tokio::test]
async fn a_write_that_a_pooled_connection_swallows_is_sent_once() {
    let scene = Scene::start(|setup| setup.upstream(LIMITS)).await;
    let ends = [("FIN", Answer::close()), ("RST", Answer::reset())];
    let ends =
        ends.into_iter().flat_map(|(name, end)| [(name, end.clone()), ("applied, then the same", end.applied())]);
    // All are swallowed one after the other, each over the one pooled connection; what follows happens at once.
    let mut cases = Vec::new();
    for (end, answer) in ends {
        for kind in Kind::ALL {
            for mode in Mode::ALL {
                let (resource, sent) = swallowed(&scene, mode, kind, &answer).await;
                cases.push((format!("{mode:?} {kind:?} {end}"), after_the_doubt(resource, kind, sent)));
            }
        }
    }
    all_at_once(cases).await;
}

/// Makes a resource, and a write on it that a pooled connection swallows; tells when it was sent.
async fn swallowed(scene: &Arc<Scene>, mode: Mode, kind: Kind, answer: &Answer) -> (Resource, Instant) {
    for attempt in 0..ATTEMPTS {
        let name = format!("{kind:?}-{}-{attempt}", scene.backend.count("*", "*")).replace(['(', ')', '"'], "");
        let resource = Resource::create(scene, mode, &name).await;
        scene.backend.once(kind.method(), &resource.target, answer.clone());
        let sent = Instant::now();
        let response = kind.send(&resource).await;
        let problem = response.refused(502, "upstream-failed");
        assert!(problem.in_doubt);
        assert_eq!(problem.retry_after_seconds, Some(LATE_MAX.as_secs()));
        assert_held_back(&resource.put(&resource.tag, "three").await, LATE_MAX.as_secs());
        assert_eq!(resource.writes(), 2, "the creation and the write have reached the backend, nothing else");
        let seen = scene.backend.seen(kind.method(), &resource.target);
        if seen.last().unwrap().on_reused_connection() {
            return (resource, sent);
        }
    }
    panic!("no write went over a pooled connection in {ATTEMPTS} attempts");
}

/// A read passes during the doubt. After it the next conditional write is judged by what the backend keeps.
async fn after_the_doubt(resource: Resource, kind: Kind, sent: Instant) {
    let applied = resource.content().as_deref() != Some("one");
    let exists = !(applied && kind.method() == "DELETE");
    assert_eq!(resource.get().await.status, if exists { 200 } else { 404 });

    let seen = resource.requests();
    let next = resource.put_when_free(&resource.tag, "three", LATE_MAX.as_secs()).await;
    assert!(sent.elapsed() >= LATE_MAX, "others were held back for {:?} only", sent.elapsed());
    // A version ends with a doubt, whatever became of the write.
    let passes = !applied && resource.mode != Mode::VersionExclusive;
    if passes {
        assert_eq!(next.status, 204, "{next:?}");
    } else {
        next.refused(412, "precondition-failed");
    }
    let is_known = resource.mode == Mode::VersionExclusive;
    assert_eq!(resource.probes_since(seen), usize::from(!is_known), "the upstream is asked before the write is judged");

    let last = if exists {
        let tag = resource.get().await.etag();
        resource.put(&tag, "four").await
    } else {
        put(resource.scene.proxy.addr(), &resource.target, &[("If-None-Match", "*")], "four").await
    };
    assert_eq!(last.status, if exists { 204 } else { 201 }, "{last:?}");
    assert_eq!(resource.content().as_deref(), Some("four"));
    assert_eq!(resource.writes(), 3 + usize::from(passes), "each write has reached the backend once");
}

/// Client A's write times out, and the backend applies it after its connection was closed. Whoever read before that
/// cannot overwrite it (DESIGN, section 1, the third condition).
#[tokio::test]
async fn a_write_that_is_applied_late_loses_nobodys_update() {
    let scene = Scene::start(|setup| setup.upstream(LIMITS).upstream("timeout = \"1s\"")).await;
    all_at_once(Mode::ALL.map(|mode| (format!("{mode:?}"), applied_late(Arc::clone(&scene), mode)))).await;
}

async fn applied_late(scene: Arc<Scene>, mode: Mode) {
    let resource = Resource::create(&scene, mode, "late").await;
    let held = scene.backend.hold("PUT", &resource.target);
    let (first, write) = tokio::join!(resource.put(&resource.tag, "first"), async {
        let mut held = held.arrived().await;
        let write = held.write().await;
        held.peer_closed().await;
        write
    });
    assert!(first.refused(504, "upstream-timeout").in_doubt);
    assert_held_back(&resource.put(&resource.tag, "second").await, LATE_MAX.as_secs());
    let before = resource.get().await;
    assert_eq!((before.text(), before.etag()), ("one", resource.tag.clone()), "a read passes");
    write.apply();
    let after = resource.get().await;
    assert_eq!(after.text(), "first");
    assert_held_back(&resource.put(&after.etag(), "second").await, LATE_MAX.as_secs());

    let stale = resource.put_when_free(&before.etag(), "second", LATE_MAX.as_secs()).await;
    stale.refused(412, "precondition-failed");
    let seen = resource.requests();
    let second = resource.put(&after.etag(), "second").await;
    if mode == Mode::VersionExclusive {
        // What was read during the doubt has a tag that ends with it.
        second.refused(412, "precondition-failed");
        let tag = resource.get().await.etag();
        assert_eq!(resource.put(&tag, "second").await.status, 204);
    } else {
        assert_eq!(second.status, 204, "{second:?}");
        assert_eq!(resource.probes_since(seen), 1, "what was read during the doubt is not remembered");
    }
    assert_eq!(resource.content().as_deref(), Some("second"));
    assert_eq!(resource.writes(), 3, "the creation and one write of each client have reached the backend");
}

/// Writes that wait for the claim do not wait for the end of a doubt.
#[tokio::test]
async fn a_doubt_is_told_to_those_who_wait() {
    let scene = Scene::start(|setup| setup.upstream("late_max = \"1h\"")).await;
    let resource = Resource::create(&scene, Mode::ContentExclusive, "waiting").await;
    let held = scene.backend.hold("PUT", &resource.target);
    let answered = async { held.arrived().await.close() };
    let write = |body| resource.put(&resource.tag, body);
    let (first, second, third, ()) = tokio::join!(write("a"), write("b"), write("c"), answered);
    let mut statuses = [first.status, second.status, third.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [409, 409, 502]);
    assert_eq!(resource.writes(), 2);
}
