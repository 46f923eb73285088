//! Tags that a backend gives to two states of a resource (DESIGN, section 3, rule 2). Each tag counts for the state
//! that it was given for, and a client that reads again can go on.

use crate::support::{
    backend::{Answer, Backend},
    nginx::Nginx,
    proxy::{Proxy, Setup},
    raw::{get, put, put_if_match, put_when_free, send},
    response::Response,
    scene::all_at_once,
};

/// A text whose date is that of all others.
fn text(number: usize) -> String {
    dated(number, "2024-01-01T00:00:00Z")
}

fn dated(number: usize, date: &str) -> String {
    format!("{{\"number\": {number}, \"updated_at\": \"{date}\"}}")
}

/// The sources of tags, before a backend that has one tag for all states.
const SOURCES: [&str; 5] = [
    "etag = \"json:/updated_at\"",
    "etag = \"json:/updated_at\"\nother_writers = false",
    "etag = \"header:X-Tag\"",
    "etag = \"upstream\"",
    "etag = \"upstream\"\nother_writers = false\non_write = \"probe\"",
];

/// A backend that has one tag for all states, in its texts and in its fields, and keeps one of them at `/doc`.
async fn start(source: &str, further: impl FnOnce(Setup) -> Setup) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put("/doc", text(0));
    if !source.contains("json") {
        let tagged = |_: &_| Answer::status(200).header("ETag", "\"same\"").header("X-Tag", "same").body("text");
        backend.always_where(|request| matches!(request.method.as_str(), "GET" | "HEAD"), tagged);
    }
    let setup = Proxy::to(backend.addr()).route(source).route("hash_wait = \"10s\"");
    let proxy = further(setup).start().await;
    (backend, proxy)
}

/// Runs a case for each source.
async fn for_each<F: Future<Output = ()> + Send + 'static>(case: impl Fn(&'static str) -> F) {
    all_at_once(SOURCES.map(|source| (source.to_owned(), case(source)))).await;
}

/// A stale tag is refused, and a client that reads again writes.
async fn assert_dead(proxy: &Proxy, tag: &str) {
    put_if_match(proxy.addr(), "/doc", tag, text(8)).await.refused(412, "precondition-failed");
    let fresh = get(proxy.addr(), "/doc").await.etag();
    assert_ne!(fresh, tag);
    assert_eq!(put_if_match(proxy.addr(), "/doc", &fresh, text(9)).await.status, 204);
}

/// Rule 2: a tag ends with its state, even if the backend gives the same one to the next state.
#[tokio::test]
async fn of_two_writes_with_one_tag_one_passes() {
    for_each(async |source| {
        let (backend, proxy) = start(source, |setup| setup).await;
        let mut tag = get(proxy.addr(), "/doc").await.etag();
        for number in 1..=3 {
            assert_eq!(put_if_match(proxy.addr(), "/doc", &tag, text(number)).await.status, 204);
            put_if_match(proxy.addr(), "/doc", &tag, text(100)).await.refused(412, "precondition-failed");
            tag = get(proxy.addr(), "/doc").await.etag();
        }
        assert_eq!(backend.count("PUT", "/doc"), 3, "refused means untouched");
    })
    .await;
}

/// nginx makes a tag of the second and the size.
#[tokio::test]
async fn of_two_writes_within_a_second_one_passes_before_nginx() {
    for mode in ["", "on_write = \"probe\"", "other_writers = false"] {
        let nginx = Nginx::with_etags().await;
        let proxy = Proxy::to(nginx.addr()).route("etag = \"upstream\"").route(mode).start().await;
        let addr = proxy.addr();
        assert_eq!(put(addr, "/doc", &[("If-None-Match", "*")], "one").await.status, 201, "{mode}");
        for _ in 0..5 {
            let tag = get(addr, "/doc").await.etag();
            assert_eq!(put_if_match(addr, "/doc", &tag, "two").await.status, 204, "{mode}");
            put_if_match(addr, "/doc", &tag, "six").await.refused(412, "precondition-failed");
        }
        let writes = nginx.access_lines().await.into_iter().filter(|line| line.starts_with("PUT ")).count();
        assert_eq!(writes, 6, "{mode}");
    }
}

/// A tag that comes back after another one was between: it is not enough to look at the state before.
#[tokio::test]
async fn a_tag_that_comes_back_is_that_of_another_state() {
    for other_writers in [true, false] {
        let source = format!("etag = \"json:/updated_at\"\nother_writers = {other_writers}");
        let (_backend, proxy) = start(&source, |setup| setup).await;
        let addr = proxy.addr();
        let first = get(addr, "/doc").await.etag();
        let second = put_if_match(addr, "/doc", &first, dated(1, "b")).await.etag();
        // Others may have made a state with that tag before.
        assert_eq!(second == "\"b\"", !other_writers, "no other state had it: it is the backend's own");
        let third = put_if_match(addr, "/doc", &second, text(2)).await.etag();
        assert_eq!(get(addr, "/doc").await.etag(), third);
        for stale in [&first, &second] {
            put_if_match(addr, "/doc", stale, text(3)).await.refused(412, "precondition-failed");
        }
        let fourth = put_if_match(addr, "/doc", &third, dated(4, "b")).await.etag();
        for stale in [&first, &second, &third] {
            put_if_match(addr, "/doc", stale, text(3)).await.refused(412, "precondition-failed");
        }
        assert_eq!(put_if_match(addr, "/doc", &fourth, text(5)).await.status, 204);
    }
}

/// An event that may have changed the state without its tag.
#[tokio::test]
async fn a_tag_ends_with_whatever_may_have_changed_the_state() {
    Box::pin(for_each(async |source| {
        let lines = |setup: Setup| setup.upstream("late_write_window = \"100ms\"").route("require = \"never\"");
        let (backend, proxy) = start(source, lines).await;
        let addr = proxy.addr();
        let read = async || get(addr, "/doc").await.etag();
        let tag = read().await;
        assert_eq!(send(addr, "POST", "/doc", &[], "").await.status, 204);
        assert_dead(&proxy, &tag).await;
        let tag = read().await;
        assert_eq!(put(addr, "/doc", &[], text(1)).await.status, 204);
        assert_dead(&proxy, &tag).await;
        let tag = read().await;
        backend.once("PUT", "/doc", Answer::status(500).applied());
        assert_eq!(put_if_match(addr, "/doc", &tag, text(2)).await.status, 500);
        assert_dead(&proxy, &tag).await;
        let tag = read().await;
        backend.once("PUT", "/doc", Answer::close().applied());
        assert_eq!(put_if_match(addr, "/doc", &tag, text(3)).await.status, 502);
        put_when_free(addr, "/doc", &tag, &text(4)).await.refused(412, "precondition-failed");
        assert_dead(&proxy, &tag).await;
        let tag = read().await;
        assert_eq!(send(addr, "DELETE", "/doc", &[("If-Match", &tag)], "").await.status, 204);
        assert_eq!(put(addr, "/doc", &[], text(5)).await.status, 201);
        assert_dead(&proxy, &tag).await;
    }))
    .await;
}

/// A record that is forgotten takes what it knew along, and leaves a floor.
#[tokio::test]
async fn a_tag_stays_dead_when_its_record_is_forgotten() {
    for_each(async |source| {
        let (backend, proxy) = start(source, |setup| setup.store("capacity = 1")).await;
        let addr = proxy.addr();
        let tag = get(addr, "/doc").await.etag();
        assert_eq!(put_if_match(addr, "/doc", &tag, text(1)).await.status, 204);
        let second = get(addr, "/doc").await.etag();
        backend.put("/other", text(0));
        for _ in 0..2 {
            let other = get(addr, "/other").await.etag();
            assert_eq!(put_if_match(addr, "/other", &other, text(1)).await.status, 204);
        }
        assert_eq!(put_if_match(addr, "/doc", &tag, text(2)).await.status, 412);
        assert_eq!(get(addr, "/doc").await.etag(), second, "it is the version that stands in the floor");
        assert_dead(&proxy, &tag).await;
    })
    .await;
}

async fn conditional(proxy: &Proxy, fields: &[(&str, &str)]) -> Response {
    send(proxy.addr(), "GET", "/doc", &[fields, &[("Cache-Control", "no-cache")]].concat(), "").await
}

/// nginx judges reads by its own tags: it gets those, and none of an earlier state.
#[tokio::test]
async fn reads_are_judged_by_the_tag_of_the_current_state() {
    for source in ["upstream", "delegate", "header:X-Modified"] {
        let nginx = Nginx::with("etag on; add_header X-Modified $sent_http_last_modified;").await;
        std::fs::write(nginx.root().join("doc"), "one").unwrap();
        let route = format!("etag = \"{source}\"\nrequire = \"never\"");
        let proxy = Proxy::to(nginx.addr()).route(&route).start().await;
        let bare = get(proxy.addr(), "/doc").await.etag();
        // No client knows the tag of the state before.
        assert_eq!(put(proxy.addr(), "/doc", &[], "two").await.status, 204, "{source}");
        let tag = get(proxy.addr(), "/doc").await.etag();
        let same = conditional(&proxy, &[("If-None-Match", &tag)]).await;
        assert_eq!((same.status, same.etag()), (304, tag.clone()), "{source}");
        assert_eq!(conditional(&proxy, &[("If-Match", &tag)]).await.status, 200, "{source}");
        let stripped = format!("{}\"", tag.split('~').next().unwrap());
        let other_version = format!("{}0\"", &tag[..tag.len() - 1]);
        for stale in [&bare, &stripped, &other_version] {
            let read = conditional(&proxy, &[("If-None-Match", stale)]).await;
            assert_eq!((read.status, read.text()), (200, "two"), "{source}: {stale}");
            assert_eq!(conditional(&proxy, &[("If-Match", stale)]).await.status, 412, "{source}: {stale}");
            let part = conditional(&proxy, &[("Range", "bytes=1-1"), ("If-Range", stale)]).await;
            assert_eq!((part.status, part.text()), (200, "two"), "{source}: {stale}");
        }
        let part = conditional(&proxy, &[("Range", "bytes=1-1"), ("If-Range", &tag)]).await;
        assert_eq!((part.status, part.text(), part.etag()), (206, "w", tag.clone()), "{source}");
    }
}

/// A date of a second confirms either of its two states, so the copy keeps the tag that it has.
#[tokio::test]
async fn a_copy_that_a_date_confirms_gets_no_tag() {
    let nginx = Nginx::with_etags().await;
    std::fs::write(nginx.root().join("doc"), "one").unwrap();
    let proxy = Proxy::to(nginx.addr()).route("etag = \"upstream\"").start().await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    assert_eq!(put_if_match(proxy.addr(), "/doc", &tag, "two").await.status, 204);
    let date = get(proxy.addr(), "/doc").await.header("date").unwrap().to_owned();
    let same = conditional(&proxy, &[("If-Modified-Since", &date)]).await;
    assert_eq!((same.status, same.header("etag")), (304, None));
}

/// In a write's conditions the backend sees its own tag, or one that it never gave.
#[tokio::test]
async fn a_delegate_is_asked_by_its_own_tag() {
    let (backend, proxy) = start("etag = \"delegate\"", |setup| setup).await;
    let addr = proxy.addr();
    let seen = || backend.seen("PUT", "/doc").pop().unwrap().header("if-match").unwrap().to_owned();
    assert_eq!(put_if_match(addr, "/doc", "\"same\"", "two").await.status, 204);
    assert_eq!(seen(), "\"same\"");
    backend.once("PUT", "/doc", Answer::status(412));
    assert_eq!(put_if_match(addr, "/doc", "\"same\"", "three").await.status, 412);
    assert_ne!(seen(), "\"same\"");
    let fresh = get(addr, "/doc").await.etag();
    assert_eq!(put_if_match(addr, "/doc", &fresh, "three").await.status, 204);
    assert_eq!(seen(), "\"same\"");
}

/// The last fence is the backend's own tag too.
#[tokio::test]
async fn the_fence_is_the_backends_own_tag() {
    let (backend, proxy) = start("etag = \"upstream\"", |setup| setup.route("allow_any = true")).await;
    let addr = proxy.addr();
    for condition in ["*", "FRESH, \"other\"", "FRESH"] {
        let fresh = get(addr, "/doc").await.etag();
        assert_eq!(put_if_match(addr, "/doc", &condition.replace("FRESH", &fresh), "two").await.status, 204);
        assert_eq!(backend.seen("PUT", "/doc").pop().unwrap().headers.all("if-match"), ["\"same\""], "{condition}");
    }
}

/// A suffix that an intermediary appends comes after that of the proxy, and a tag that it weakens keeps that of the
/// proxy.
#[tokio::test]
async fn a_tag_that_was_changed_on_the_way_counts_with_its_suffix() {
    for_each(async |source| {
        let lines = |setup: Setup| setup.route("etag_suffixes = [\"-gzip\"]\naccept_weak_own = true");
        let (_backend, proxy) = start(source, lines).await;
        let changed = |tag: &str| format!("W/{}-gzip\"", &tag[..tag.len() - 1]);
        for _ in 0..3 {
            let tag = changed(&get(proxy.addr(), "/doc").await.etag());
            assert_eq!(put_if_match(proxy.addr(), "/doc", &tag, text(1)).await.status, 204);
            put_if_match(proxy.addr(), "/doc", &tag, text(2)).await.refused(412, "precondition-failed");
        }
    })
    .await;
}

/// Read by one target and written by another: the version counts, no matter which tag was learned.
#[tokio::test]
async fn who_reads_by_another_target_gets_on() {
    for_each(async |source| {
        let (backend, proxy) = start(source, |setup| setup).await;
        backend.put("/doc?full", text(0));
        for (read, write) in [("/doc", "/doc?full"), ("/doc?full", "/doc"), ("/doc", "/doc"), ("/doc?full", "/doc")] {
            let tag = get(proxy.addr(), read).await.etag();
            assert_eq!(put_if_match(proxy.addr(), write, &tag, text(1)).await.status, 204, "{read} {write}");
            put_if_match(proxy.addr(), write, &tag, text(2)).await.refused(412, "precondition-failed");
        }
    })
    .await;
}

/// If the configuration says that no two states have one tag, the backend's tags are the clients'.
#[tokio::test]
async fn unique_tags_are_never_spelled_otherwise() {
    for other_writers in [true, false] {
        let source = format!("etag = \"json:/updated_at\"\nunique_tags = true\nother_writers = {other_writers}");
        let (_backend, proxy) = start(&source, |setup| setup).await;
        let mut tag = get(proxy.addr(), "/doc").await.etag();
        for number in 1..20 {
            let date = format!("\"{number}\"");
            let written = put_if_match(proxy.addr(), "/doc", &tag, dated(number, &number.to_string())).await;
            assert_eq!((written.status, written.etag()), (204, date.clone()));
            assert_eq!(get(proxy.addr(), "/doc").await.etag(), date);
            tag = date;
        }
        assert!(!proxy.log().contains("unique_tags"), "{}", proxy.log());
    }
}

/// Rule 2: a backend whose tags repeat although the configuration says that they do not is found out by its first write.
/// A store that keeps the tag within the body as it was sent is such a backend.
#[tokio::test]
async fn a_unique_tag_that_repeats_is_coarse_from_then_on() {
    for_each(async |source| {
        let (backend, proxy) = start(source, |setup| setup.route("unique_tags = true")).await;
        let tag = get(proxy.addr(), "/doc").await.etag();
        assert_eq!(put_if_match(proxy.addr(), "/doc", &tag, text(0)).await.status, 204);
        put_if_match(proxy.addr(), "/doc", &tag, text(0)).await.refused(412, "precondition-failed");
        assert_eq!(backend.count("PUT", "/doc"), 1, "refused means untouched");
        assert_dead(&proxy, &tag).await;
        let lines = proxy.logged(&["WARN", "set unique_tags = false"]).await;
        assert_eq!(lines.len(), 1, "it is told of once: {lines:?}");
    })
    .await;
}

/// Rule 2: the tag of a state that the record does not cover is not that of a later one.
#[tokio::test]
async fn a_state_made_without_ifmatch_lends_its_tag_to_no_later_one() {
    let (backend, proxy) = start("etag = \"json:/updated_at\"", |setup| setup).await;
    let addr = proxy.addr();
    backend.put("/doc", dated(1, "a"));
    let first = get(addr, "/doc").await.etag();
    backend.put("/doc", dated(2, "b"));
    let second = get(addr, "/doc").await.etag();
    assert_eq!((first.as_str(), second.as_str()), ("\"a\"", "\"b\""), "nothing was written through ifmatch");
    let third = put_if_match(addr, "/doc", &second, dated(3, "a")).await.etag();
    for stale in [&first, &second] {
        put_if_match(addr, "/doc", stale, text(4)).await.refused(412, "precondition-failed");
    }
    assert_eq!(put_if_match(addr, "/doc", &third, text(5)).await.status, 204);
}

/// Rule 2: a delegate that checks nothing loses one update, and is not asked again.
#[tokio::test]
async fn a_delegate_that_checks_nothing_is_found_out() {
    let (backend, proxy) = start("etag = \"delegate\"", |setup| setup).await;
    let addr = proxy.addr();
    let tag = get(addr, "/doc").await.etag();
    assert_eq!(put_if_match(addr, "/doc", &tag, "two").await.status, 204);
    assert_eq!(put_if_match(addr, "/doc", &tag, "three").await.status, 204, "the backend should have refused it");
    for stale in [&tag, "\"other\""] {
        put_if_match(addr, "/doc", stale, "four").await.refused(412, "precondition-failed");
    }
    assert_eq!(backend.count("PUT", "/doc"), 2, "refused means untouched");
    let fresh = get(addr, "/doc").await.etag();
    assert_eq!(put_if_match(addr, "/doc", &fresh, "four").await.status, 204);
    let lines = proxy.logged(&["WARN", "set etag = \"upstream\""]).await;
    assert_eq!(lines.len(), 1, "it is told of once: {lines:?}");
}
