//! Writes whose outcome cannot be known: sent once, held against all others for `late_write_window`, and then nothing is
//! believed that was known before (DESIGN, section 3, rules 3 and 6).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::time::{Duration, Instant};

use crate::support::{
    backend::Answer,
    raw::{put, send},
    response::Response,
    scene::{Mode, Resource, Scene, all_at_once, assert_held_back},
};

/// How long a write is in doubt if the test waits for the end of it.
const SOON_OVER: Duration = Duration::from_millis(300);
/// The same if it must not end before the test does, even on a slow machine.
const NEVER_OVER: Duration = Duration::from_secs(3600);
/// How long a silent upstream is waited for.
const TIMEOUT_SECONDS: u64 = 1;
/// How often a write may happen to get a fresh connection, if a pooled one is wanted.
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

/// Makes every kind of write in every mode, over a pooled connection that swallows it and dies in every way. Pooled
/// connections are taken after any idle time; the writes are made in sequence, so that there is one.
async fn all_swallowed(late_write_window: Duration) -> Vec<(String, Swallowed)> {
    let milliseconds = late_write_window.as_millis();
    let limits = format!("late_write_window = \"{milliseconds}ms\"\nreuse_idle_writes = \"1h\"");
    let scene = Scene::start(|setup| setup.upstream(&limits)).await;
    let ends = [("FIN", Answer::close()), ("RST", Answer::reset())];
    let ends =
        ends.into_iter().flat_map(|(name, end)| [(name, end.clone()), ("applied, then the same", end.applied())]);
    let mut all = Vec::new();
    for (end, answer) in ends {
        for kind in Kind::ALL {
            for mode in Mode::ALL {
                let swallowed = Swallowed::make(&scene, mode, kind, &answer).await;
                all.push((format!("{mode:?} {kind:?} {end}"), swallowed));
            }
        }
    }
    all
}

/// A pooled connection may be dead already when a write is sent over it. It may also have died of that write, and
/// nothing shows which is true, so the write is never sent again.
/// Rule 6: the backend sees the swallowed write once.
#[tokio::test]
async fn a_write_that_a_pooled_connection_swallows_is_sent_once_and_holds_others_back() {
    let all = all_swallowed(NEVER_OVER).await;
    all_at_once(all.into_iter().map(|(name, swallowed)| (name, during_the_doubt(swallowed)))).await;
}

async fn during_the_doubt(swallowed: Swallowed) {
    let Swallowed { resource, response, exists, .. } = swallowed;
    assert_eq!(response.problem().retry_after_seconds, Some(NEVER_OVER.as_secs()));
    assert_held_back(&resource.put(&resource.tag, "three").await, NEVER_OVER.as_secs());
    assert_eq!(resource.writes(), 2, "the creation and the write have reached the backend, nothing else");
    assert_eq!(resource.get().await.status, if exists { 200 } else { 404 }, "a read passes");
}

/// After the doubt the next conditional write is judged by what the backend keeps.
/// Rule 3: others are held back until `late_write_window` has passed, and then the upstream is asked anew.
#[tokio::test]
async fn nothing_is_believed_after_a_write_that_a_pooled_connection_swallowed() {
    let all = all_swallowed(SOON_OVER).await;
    all_at_once(all.into_iter().map(|(name, swallowed)| (name, after_the_doubt(swallowed)))).await;
}

/// A write that a pooled connection has swallowed.
struct Swallowed {
    resource: Resource,
    sent: Instant,
    response: Response,
    /// True if the backend has applied it.
    applied: bool,
    /// True if there is something still.
    exists: bool,
}

impl Swallowed {
    async fn make(scene: &Arc<Scene>, mode: Mode, kind: Kind, answer: &Answer) -> Self {
        for attempt in 0..ATTEMPTS {
            let name = format!("{kind:?}-{}-{attempt}", scene.backend.count("*", "*")).replace(['(', ')', '"'], "");
            let resource = Resource::create(scene, mode, &name).await;
            scene.backend.once(kind.method(), &resource.target, answer.clone());
            let sent = Instant::now();
            let response = kind.send(&resource).await;
            assert!(response.refused(502, "upstream-failed").in_doubt);
            assert_eq!(resource.writes(), 2, "the creation and the write have reached the backend");
            if scene.backend.seen(kind.method(), &resource.target).last().unwrap().on_reused_connection() {
                let content = resource.content();
                let (applied, exists) = (content.as_deref() != Some("one"), content.is_some());
                return Self { resource, sent, response, applied, exists };
            }
        }
        panic!("no write went over a pooled connection in {ATTEMPTS} attempts");
    }
}

async fn after_the_doubt(swallowed: Swallowed) {
    let Swallowed { resource, sent, applied, exists, .. } = swallowed;
    let seen = resource.requests();
    let next = resource.put_when_free(&resource.tag, "three", 1).await;
    assert!(sent.elapsed() >= SOON_OVER, "others were held back for {:?} only", sent.elapsed());
    // A version ends with a doubt, with any outcome of the write.
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

/// Client A's write times out, and the backend applies it after its connection was closed. A client that read before
/// that cannot overwrite it (DESIGN, section 1, the third condition).
#[tokio::test]
async fn a_write_that_is_applied_late_loses_nobodys_update() {
    for late_write_window_seconds in [2, 8] {
        let limits = format!("timeout = \"{TIMEOUT_SECONDS}s\"\nlate_write_window = \"{late_write_window_seconds}s\"");
        let scene = Scene::start(|setup| setup.upstream(&limits)).await;
        let in_time = Arc::new(AtomicBool::new(true));
        let applied_late =
            |mode| applied_late(Arc::clone(&scene), mode, late_write_window_seconds, Arc::clone(&in_time));
        all_at_once(Mode::ALL.map(|mode| (format!("{mode:?}"), applied_late(mode)))).await;
        if in_time.load(Ordering::Relaxed) {
            return;
        }
    }
    panic!("this machine is too slow to do three requests before a doubt is over");
}

/// The last part is left out, and `in_time` says so, if the doubt may have been over before the backend applied the
/// write.
async fn applied_late(scene: Arc<Scene>, mode: Mode, late_write_window_seconds: u64, in_time: Arc<AtomicBool>) {
    let resource = Resource::create(&scene, mode, "late").await;
    let sent = Instant::now();
    let held = scene.backend.hold("PUT", &resource.target);
    let (first, write) = tokio::join!(resource.put(&resource.tag, "first"), async {
        let mut held = held.arrived().await;
        let write = held.write().await;
        held.peer_closed().await;
        write
    });
    assert!(first.refused(504, "upstream-timeout").in_doubt);
    let before = (resource.put(&resource.tag, "second").await, resource.get().await);
    write.apply();
    let after = resource.get().await;
    let held_back = [before.0, resource.put(&after.etag(), "second").await];
    if sent.elapsed() >= Duration::from_secs(TIMEOUT_SECONDS + late_write_window_seconds) {
        return in_time.store(false, Ordering::Relaxed);
    }
    for response in &held_back {
        assert_held_back(response, late_write_window_seconds);
    }
    let before = before.1;
    assert_eq!((before.text(), before.etag()), ("one", resource.tag.clone()), "a read passes");
    assert_eq!(after.text(), "first");

    let stale = resource.put_when_free(&before.etag(), "second", late_write_window_seconds).await;
    stale.refused(412, "precondition-failed");
    let seen = resource.requests();
    let second = resource.put(&after.etag(), "second").await;
    if mode == Mode::VersionExclusive {
        // A state that was read during the doubt has a tag that ends with it.
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
    let scene = Scene::start(|setup| setup.upstream("late_write_window = \"1h\"")).await;
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
