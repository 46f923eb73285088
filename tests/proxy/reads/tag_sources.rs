//! Tags that a backend states in its own way: a field of its JSON texts, a tag that is spelled badly or twice, and
//! tags that it judges itself (DESIGN, section 6).

use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{get, put, put_if_match, send},
    scene::all_at_once,
    source::{CONTENT, Source, UPSTREAM, UPSTREAM_EXCLUSIVE},
};

const OTHER_WRITERS: [bool; 2] = [true, false];

/// A backend with this JSON text at `/doc`, and a route that takes its tags from there.
async fn json(pointer: &str, other_writers: bool, text: &str) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put("/doc", text);
    let route = format!("etag = \"json:{pointer}\"\nother_writers = {other_writers}\nhash_wait = \"10s\"");
    let proxy = Proxy::to(backend.addr()).route(&route).route("unique_tags = true").start().await;
    (backend, proxy)
}

#[tokio::test]
async fn p23_a_field_of_a_json_text_is_the_tag() {
    all_at_once(OTHER_WRITERS.map(|other_writers| {
        (format!("other_writers = {other_writers}"), async move {
            let (backend, proxy) = json("/meta/version", other_writers, r#"{"seen": 1, "meta": {"version": 7}}"#).await;
            let addr = proxy.addr();
            assert_eq!(get(addr, "/doc").await.etag(), "\"7\"");
            assert_eq!(send(addr, "HEAD", "/doc", &[], "").await.etag(), "\"7\"", "HEAD and GET agree");
            backend.put("/doc", r#"{"seen": 2, "meta": {"version": 7}}"#);
            assert_eq!(send(addr, "GET", "/doc", &[("If-None-Match", "\"7\"")], "").await.status, 304);
            let written = put_if_match(addr, "/doc", "\"7\"", r#"{"seen": 0, "meta": {"version": 8}}"#).await;
            assert_eq!((written.status, written.etag()), (204, "\"8\"".to_owned()), "read back: nothing else is known");
            put_if_match(addr, "/doc", "\"7\"", "stale").await.refused(412, "precondition-failed");
            assert_eq!(get(addr, "/doc").await.etag(), "\"8\"");
            assert_eq!(backend.seen("PUT", "/doc").len(), 1);
            assert!(backend.seen("PUT", "/doc")[0].header("if-match").is_none(), "the backend does not know the tag");
        })
    }))
    .await;
}

/// Strings as they are spelled, tags as they are, and numbers with all their digits.
#[tokio::test]
async fn the_usual_fields_make_useful_tags() {
    for (field, value, tag) in [
        ("updated_at", "\"2024-01-01 10:00:00 +01\"", "\"2024-01-01%2010:00:00%20+01\""),
        ("_etag", r#""\"0000d826-0000-0700\"""#, "\"0000d826-0000-0700\""),
        ("version", "12345678901234567890123", "\"12345678901234567890123\""),
    ] {
        let (_backend, proxy) = json(&format!("/{field}"), true, &format!("{{\"{field}\": {value}}}")).await;
        assert_eq!(get(proxy.addr(), "/doc").await.etag(), tag, "{field}");
        let written = put_if_match(proxy.addr(), "/doc", tag, format!("{{\"{field}\": 1}}")).await;
        assert_eq!((written.status, written.etag()), (204, "\"1\"".to_owned()), "{field}");
    }
}

/// Without the field there is no tag: a write that names one is refused, not let through.
#[tokio::test]
async fn a_text_without_the_field_has_no_tag() {
    all_at_once(OTHER_WRITERS.map(|other_writers| {
        (format!("other_writers = {other_writers}"), async move {
            let (backend, proxy) = json("/version", other_writers, r#"{"version": 1}"#).await;
            let tag = get(proxy.addr(), "/doc").await.etag();
            assert_eq!(put_if_match(proxy.addr(), "/doc", &tag, r#"{"version": null}"#).await.status, 204);
            assert_eq!(get(proxy.addr(), "/doc").await.header("etag"), None);
            put_if_match(proxy.addr(), "/doc", &tag, "lost").await.refused(412, "precondition-failed");
            assert_eq!(backend.content("/doc").as_deref(), Some(r#"{"version": null}"#));
        })
    }))
    .await;
}

/// The refusal names a value that is no version, since another read would help no client.
#[tokio::test]
async fn a_member_that_is_no_version_is_named_in_the_refusal() {
    for value in ["null", "true", "[1]", "{}"] {
        let (_backend, proxy) = json("/version", true, &format!("{{\"version\": {value}}}")).await;
        let refused = put_if_match(proxy.addr(), "/doc", "\"1\"", "lost").await;
        let problem = refused.refused(412, "precondition-failed");
        assert!(problem.detail.contains("its member /version"), "{value}: {problem:?}");
        assert!(!problem.detail.contains("read it again"), "{value}: {problem:?}");
    }
}

/// A backend that makes the versions itself tells the new one in its answer.
#[tokio::test]
async fn the_member_in_the_answer_to_a_write_is_the_tag() {
    all_at_once(OTHER_WRITERS.map(|other_writers| {
        (format!("other_writers = {other_writers}"), async move {
            let (backend, proxy) = json("/v", other_writers, r#"{"v": 1}"#).await;
            let addr = proxy.addr();
            let tag = get(addr, "/doc").await.etag();
            let stored = Answer::status(200).body(r#"{"text": "two", "v": 2}"#);
            let held = backend.hold("PUT", "/doc");
            let (written, ()) = tokio::join!(put_if_match(addr, "/doc", &tag, r#"{"text": "two"}"#), async {
                let held = held.arrived().await;
                let shown = stored.clone();
                backend.always("GET", "/doc", move |_| shown.clone());
                held.answer(stored).await;
            });
            assert_eq!((written.status, written.etag()), (200, "\"2\"".to_owned()));
            assert_eq!(written.text(), r#"{"text": "two", "v": 2}"#);
            put_if_match(addr, "/doc", &tag, "lost").await.refused(412, "precondition-failed");
            backend.once("PUT", "/doc", Answer::status(204));
            let silent = put_if_match(addr, "/doc", "\"2\"", r#"{"text": "three"}"#).await;
            assert_eq!((silent.status, silent.header("etag")), (204, None), "the stored bytes are not the sent ones");
        })
    }))
    .await;
}

/// The size of a text that is looked at is capped as it is for content: above the cap a response streams with the
/// version as its tag if that is known, else with none.
#[tokio::test]
async fn a_large_text_is_not_looked_at() {
    let large = format!(r#"{{"version": 1, "text": "{}"}}"#, "x".repeat(2_000));
    for (source, is_tagged) in [("json:/version", false), ("json:/version", true), ("content", true)] {
        let backend = Backend::start().await;
        backend.put("/doc", &large);
        let other_writers = !is_tagged;
        let route = format!("etag = \"{source}\"\nother_writers = {other_writers}\nmax_hash_size = \"1KiB\"");
        let proxy = Proxy::to(backend.addr()).route(&route).start().await;
        let addr = proxy.addr();
        let read = get(addr, "/doc").await;
        assert_eq!(
            (read.text() == large, read.header("etag").is_some()),
            (true, is_tagged),
            "{source} {other_writers}"
        );
        if is_tagged {
            let tag = read.etag();
            assert_eq!(put_if_match(addr, "/doc", &tag, &large).await.status, 204, "{source}");
            // An unknown client is refused by the version too.
            let unacquainted = [("If-Match", tag.as_str()), ("Authorization", "another")];
            put(addr, "/doc", &unacquainted, "lost").await.refused(412, "precondition-failed");
            let fresh = get(addr, "/doc").await.etag();
            let unacquainted = [("If-Match", fresh.as_str()), ("Authorization", "a third")];
            assert_eq!(put(addr, "/doc", &unacquainted, &large).await.status, 204, "{source}");
        } else {
            put_if_match(addr, "/doc", "\"1\"", "lost").await.refused(502, "validator-unavailable");
        }
    }
}

/// RFC 9110 section 8.8.3: the quotes are part of a tag. A backend that forgets them is helped.
#[tokio::test]
async fn p13_an_unquoted_tag_of_the_backend_gets_its_quotes() {
    for source in [UPSTREAM, UPSTREAM_EXCLUSIVE] {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.route("unique_tags = true").start().await;
        for method in ["GET", "HEAD"] {
            backend.always(method, "/doc", |_| Answer::status(200).header("ETag", "v1, or so").body("one"));
        }
        assert_eq!(get(proxy.addr(), "/doc").await.header("etag"), None, "{source}: what no tag can hold is none");
        for method in ["GET", "HEAD"] {
            backend.always(method, "/doc", |_| Answer::status(200).header("ETag", "v1").body("one"));
        }
        assert_eq!(get(proxy.addr(), "/doc").await.etag(), "\"v1\"", "{source}");
        let same = send(proxy.addr(), "GET", "/doc", &[("If-None-Match", "\"v1\"")], "").await;
        assert_eq!((same.status, same.etag()), (304, "\"v1\"".to_owned()), "{source}");
        put_if_match(proxy.addr(), "/doc", "\"v0\"", "two").await.refused(412, "precondition-failed");
        backend.once("PUT", "/doc", Answer::status(204).header("ETag", "v2").applied());
        assert_eq!(put_if_match(proxy.addr(), "/doc", "\"v1\"", "two").await.etag(), "\"v2\"", "{source}");
    }
}

/// However often the backend states a tag, one leaves: in each answer, to reads and writes, good or bad.
#[tokio::test]
async fn p14_one_tag_leaves_where_the_backend_sends_several() {
    let twice = |status, second| Answer::status(status).header("ETag", "\"a\"").header("ETag", second).body("x");
    for (second, expected) in [("\"a\"", Some("\"a\"")), ("a", Some("\"a\"")), ("\"b\"", None)] {
        for source in [Source::of_tags("etag = \"upstream\"\nunique_tags = true"), DELEGATE] {
            let (backend, setup) = source.start("/doc", "one").await;
            let proxy = setup.route("require = \"never\"").start().await;
            for method in ["GET", "PUT", "POST", "PATCH"] {
                for status in [200, 404] {
                    // Two writes of one resource would have one tag, which is not unique.
                    let target = &format!("/{method}");
                    backend.once(method, target, twice(status, second));
                    let answer = send(proxy.addr(), method, target, &[], "").await;
                    let tags = answer.headers.all("etag");
                    assert_eq!(
                        (answer.status, tags),
                        (status, Vec::from_iter(expected)),
                        "{source}: {method} {second}"
                    );
                }
            }
        }
    }
    let (backend, setup) = CONTENT.start("/doc", "one").await;
    let proxy = setup.start().await;
    backend.once("GET", "/doc", twice(200, "\"b\""));
    assert!(get(proxy.addr(), "/doc").await.etag().len() > 3, "it is ours, and the only one");
}

/// The backend's own tags, which it judges itself.
const DELEGATE: Source = Source::of_tags("etag = \"delegate\"\nunique_tags = true");

/// The condition that the backend judges reaches it unchanged, and its verdict counts.
#[tokio::test]
async fn p32_a_delegate_judges_by_itself() {
    let (backend, setup) = DELEGATE.start("/doc", "one").await;
    let proxy = setup.start().await;
    let addr = proxy.addr();
    for condition in ["\"write-1\"", "W/\"any\"", "\"x\" ,\"y\"", "\"stale\""] {
        for status in [412, 204] {
            let new = format!("\"new-{}\"", backend.count("PUT", "/doc"));
            backend.once("PUT", "/doc", Answer::status(status).header("ETag", &new));
            let answer = put(addr, "/doc", &[("If-Match", condition)], "two").await;
            assert_eq!((answer.status, answer.etag()), (status, new), "{condition}");
        }
        assert_eq!(backend.seen("PUT", "/doc").pop().unwrap().headers.all("if-match"), [condition]);
    }
    let reads = [("If-None-Match", "\"fresh\""), ("If-Match", "\"other\"")];
    let read = send(addr, "GET", "/doc", &reads, "").await;
    assert_eq!((read.status, read.text()), (200, "one"), "it ignores both, and so be it");
    assert_eq!(backend.seen("GET", "/doc")[0].headers.all("if-none-match"), ["\"fresh\""]);
    assert_eq!(backend.count("HEAD", "/doc"), 0, "nothing is asked for beforehand");
}

/// The tasks that a delegate does not take: it demands no precondition, and keeps no writers apart.
#[tokio::test]
async fn a_delegate_is_given_428_and_the_claim() {
    let (backend, setup) = DELEGATE.start("/doc", "one").await;
    let proxy = setup.start().await;
    let addr = proxy.addr();
    put(addr, "/doc", &[], "two").await.refused(428, "precondition-required");
    let held = backend.hold("PUT", "/doc");
    let first = tokio::spawn(async move { put_if_match(addr, "/doc", "\"write-1\"", "two").await });
    let held = held.arrived().await;
    let second = tokio::spawn(async move { put_if_match(addr, "/doc", "\"write-1\"", "three").await });
    get(addr, "/doc").await;
    assert_eq!(backend.count("PUT", "/doc"), 1, "the second one waits for the first");
    backend.once("PUT", "/doc", Answer::status(412));
    held.answer(Answer::stored()).await;
    assert_eq!((first.await.unwrap().status, second.await.unwrap().status), (204, 412));
    assert_eq!(backend.content("/doc").as_deref(), Some("two"));
}

/// DESIGN, section 6: if the backend had to be asked first, the write is tied to what was seen.
#[tokio::test]
async fn a_delegate_gets_the_fence_where_it_was_asked() {
    let (backend, setup) = DELEGATE.start("/doc", "one").await;
    let proxy = setup.route("require = \"existing\"").start().await;
    let addr = proxy.addr();
    put(addr, "/doc", &[], "two").await.refused(428, "precondition-required");
    put(addr, "/doc", &[("If-Match", "*")], "two").await.refused(428, "precondition-required");
    assert_eq!(put(addr, "/new", &[], "one").await.status, 201);
    assert_eq!(backend.count("PUT", "/doc"), 0);
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let dated = |_: &_| {
        let modified = Answer::status(200).header("ETag", "\"seen\"").header("Last-Modified", date);
        modified.body("one")
    };
    backend.always("GET", "/doc", dated);
    assert_eq!(put(addr, "/doc", &[("If-Unmodified-Since", date)], "two").await.status, 204);
    let seen = backend.seen("PUT", "/doc").pop().unwrap();
    assert_eq!(seen.headers.all("if-match"), ["\"seen\""]);
    assert_eq!(seen.headers.all("if-unmodified-since"), [date]);
}
