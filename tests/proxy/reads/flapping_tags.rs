//! Bodies that are never the same twice (P23).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{get, put_if_match, send},
    scene::all_at_once,
};

const OTHER_WRITERS: [bool; 2] = [true, false];

/// The text of the warning, which is logged once for each route.
const WARNING: &str = "two reads gave different tags although no write came between";

/// A backend whose resources say how often they were read, and a document's title that a write changes.
struct Clock {
    backend: Backend,
    title: Arc<AtomicU64>,
}

impl Clock {
    async fn start() -> Self {
        let (backend, title, reads) = (Backend::start().await, Arc::new(AtomicU64::new(1)), AtomicU64::new(0));
        let shown = Arc::clone(&title);
        backend.always("GET", "*", move |_| {
            let (read, title) = (reads.fetch_add(1, Ordering::SeqCst), shown.load(Ordering::SeqCst));
            // Its members come in any order.
            Answer::status(200).body(if read % 2 == 0 {
                format!("{{\"generated_at\": {read}, \"title\": {title}, \"meta\": {{\"took\": {read}}}}}")
            } else {
                format!("{{\"meta\": {{\"took\": {read} }}, \"title\":{title}, \"generated_at\":{read}}}")
            })
        });
        let written = Arc::clone(&title);
        backend.always("PUT", "*", move |_| {
            written.fetch_add(1, Ordering::SeqCst);
            Answer::status(204)
        });
        Self { backend, title }
    }

    async fn proxy(&self, other_writers: bool, route: &str) -> Proxy {
        let setup =
            Proxy::to(self.backend.addr()).route(&format!("other_writers = {other_writers}\nhash_wait = \"10s\""));
        setup.route(route).start().await
    }
}

fn warnings(proxy: &Proxy) -> usize {
    proxy.log().matches(WARNING).count()
}

/// B1: the client and its operator learn from the refusal that no tag of this resource can ever be current.
#[tokio::test]
async fn b1_the_refusal_says_that_the_resource_changes_at_each_read() {
    let clock = Clock::start().await;
    let proxy = clock.proxy(true, "").await;
    let addr = proxy.addr();
    let mut details = Vec::new();
    for _ in 0..2 {
        let tag = get(addr, "/doc").await.etag();
        details.push(put_if_match(addr, "/doc", &tag, "new").await.refused(412, "precondition-failed").detail);
    }
    assert!(!details[0].contains("ignore_json"), "it may have been another writer: {}", details[0]);
    assert!(
        details[1].contains("changed at each of its last reads") && details[1].contains("ignore_json"),
        "{details:?}"
    );
}

#[tokio::test]
async fn p23_tags_that_change_without_a_write_are_told_of_once_a_route() {
    all_at_once(OTHER_WRITERS.map(|other_writers| {
        (format!("other_writers = {other_writers}"), async move {
            let clock = Clock::start().await;
            let proxy = clock.proxy(other_writers, "").await;
            let mut tags = Vec::new();
            for target in ["/a", "/b", "/a", "/a", "/a", "/b", "/b", "/b"] {
                tags.push(get(proxy.addr(), target).await.etag());
            }
            tags.sort();
            tags.dedup();
            assert_eq!(tags.len(), 8, "each read has another tag");
            let lines = proxy.logged(&[WARNING]).await;
            let [line] = &lines[..] else { panic!("the log tells of it once: {lines:?}") };
            assert!(line.contains("WARN") && line.contains("route=all") && line.contains("ignore_json"), "{line}");
        })
    }))
    .await;
}

/// If others write, one change may be theirs; and a write through the proxy always is one.
#[tokio::test]
async fn p23_a_tag_that_changes_for_a_reason_is_not_told_of() {
    all_at_once(OTHER_WRITERS.map(|other_writers| {
        (format!("other_writers = {other_writers}"), async move {
            let backend = Backend::start().await;
            backend.put("/doc", "one");
            let route = format!("other_writers = {other_writers}\nhash_wait = \"10s\"");
            let proxy = Proxy::to(backend.addr()).route(&route).start().await;
            for body in ["two", "three", "four", "five"] {
                let tag = get(proxy.addr(), "/doc").await.etag();
                assert_eq!(put_if_match(proxy.addr(), "/doc", &tag, body).await.status, 204);
                if other_writers {
                    get(proxy.addr(), "/doc").await;
                    backend.put("/doc", format!("{body} again"));
                    get(proxy.addr(), "/doc").await;
                    get(proxy.addr(), "/doc").await;
                }
            }
            assert_eq!(warnings(&proxy), 0, "{}", proxy.log());
        })
    }))
    .await;
}

#[tokio::test]
async fn p23_members_that_are_left_out_do_not_change_the_tag() {
    all_at_once(OTHER_WRITERS.map(|other_writers| {
        (format!("other_writers = {other_writers}"), async move {
            let clock = Clock::start().await;
            let left_out = "ignore_json = [\"/generated_at\", \"/meta/took\"]\netag_after_write = \"always\"";
            let proxy = clock.proxy(other_writers, left_out).await;
            let addr = proxy.addr();
            let tag = get(addr, "/doc").await.etag();
            for method in ["GET", "HEAD", "GET"] {
                assert_eq!(send(addr, method, "/doc", &[("Cache-Control", "no-cache")], "").await.etag(), tag);
            }
            assert_eq!(send(addr, "GET", "/doc", &[("If-None-Match", &tag)], "").await.status, 304);
            let written = put_if_match(addr, "/doc", &tag, "new").await;
            assert_eq!(written.status, 204);
            assert_eq!(get(addr, "/doc").await.etag(), written.etag());
            put_if_match(addr, "/doc", &tag, "lost").await.refused(412, "precondition-failed");
            assert_eq!((clock.title.load(Ordering::SeqCst), warnings(&proxy)), (2, 0));
        })
    }))
    .await;
}

/// A body that is no JSON text is hashed unchanged.
#[tokio::test]
async fn p23_other_bodies_have_the_tag_of_their_bytes() {
    let backend = Backend::start().await;
    backend.put("/doc", "{\"generated_at\": 1");
    let plain = Proxy::to(backend.addr()).start().await;
    let proxy = Proxy::to(backend.addr()).route("ignore_json = [\"/generated_at\"]").start().await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    assert_eq!(tag, get(plain.addr(), "/doc").await.etag());
    backend.put("/doc", "{\"generated_at\": 2");
    assert_ne!(tag, get(proxy.addr(), "/doc").await.etag());
}

/// RFC 9110 section 14.2: a part may be left out. Parts with one tag are put together, and these would not fit.
#[tokio::test]
async fn p23_a_body_whose_tag_leaves_something_out_is_sent_whole() {
    for route in ["ignore_json = [\"/generated_at\", \"/meta/took\"]", "etag = \"json:/title\""] {
        let clock = Clock::start().await;
        let proxy = clock.proxy(false, route).await;
        let tag = get(proxy.addr(), "/doc").await.etag();
        let read = send(proxy.addr(), "GET", "/doc", &[("Range", "bytes=0-1"), ("If-Range", &tag)], "").await;
        assert_eq!((read.status, read.etag()), (200, tag), "{route}");
        assert!(read.text().ends_with('}'), "{route}");
    }
}
