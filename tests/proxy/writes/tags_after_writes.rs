//! The tag in the answer to a write: what a client may go on from without reading again.

use std::net::SocketAddr;

use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{get, put_if_match, send},
    response::Response,
    source::{self, CONTENT, CONTENT_EXCLUSIVE, Source, UPSTREAM, UPSTREAM_EXCLUSIVE, VERSION},
};

/// A backend that keeps `/doc`, behind a route with these lines; and the tag of `/doc`.
async fn start(source: Source, route: &str) -> (Backend, Proxy, String) {
    let (backend, setup) = source.start("/doc", "one").await;
    let proxy = setup.route(route).start().await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    (backend, proxy, tag)
}

/// Makes the backend store something else than what it is sent.
fn transform(backend: &Backend) {
    backend.always("GET", "/doc", |_| Answer::status(200).header("ETag", "\"own\"").body("transformed"));
    backend.always("HEAD", "/doc", |_| Answer::status(200).header("ETag", "\"own\""));
}

/// The tag of an applied write is the one that a read would give, and good for the next write.
async fn assert_useful(addr: SocketAddr, written: &Response, source: Source) {
    assert_eq!(written.status, 204, "{source}");
    let tag = written.etag();
    assert_eq!(get(addr, "/doc").await.etag(), tag, "{source}");
    assert_eq!(put_if_match(addr, "/doc", &tag, "three").await.status, 204, "{source}");
}

fn assert_untagged(written: &Response, source: Source) {
    assert_eq!((written.status, written.header("etag")), (204, None), "{source}");
}

/// RFC 9110 section 9.3.4: the bytes read back are the bytes sent.
#[tokio::test]
async fn a_put_is_answered_with_the_tag_of_what_it_stored() {
    for source in source::ALL {
        let (_backend, proxy, tag) = start(source, "on_write = \"probe\"").await;
        let written = put_if_match(proxy.addr(), "/doc", &tag, "two").await;
        assert_useful(proxy.addr(), &written, source).await;
    }
}

/// RFC 9110 section 9.3.4: with a tag a PUT would say that what was sent is what is stored.
#[tokio::test]
async fn a_put_that_was_transformed_is_answered_without_a_tag() {
    for source in source::ALL {
        let (backend, proxy, tag) = start(source, "on_write = \"probe\"").await;
        let held = backend.hold("PUT", "/doc");
        let addr = proxy.addr();
        let writer = tokio::spawn(async move { put_if_match(addr, "/doc", &tag, "two").await });
        let mut held = held.arrived().await;
        transform(&backend);
        held.apply().await;
        held.answer(Answer::status(204)).await;
        assert_untagged(&writer.await.unwrap(), source);
    }
}

#[tokio::test]
async fn a_transformed_put_is_tagged_where_the_route_says_so() {
    for source in source::ALL {
        let (backend, proxy, tag) = start(source, "on_write = \"probe\"\netag_after_write = \"always\"").await;
        let held = backend.hold("PUT", "/doc");
        let addr = proxy.addr();
        let writer = tokio::spawn(async move { put_if_match(addr, "/doc", &tag, "two").await });
        let mut held = held.arrived().await;
        transform(&backend);
        held.apply().await;
        held.answer(Answer::status(204)).await;
        assert_useful(addr, &writer.await.unwrap(), source).await;
    }
}

/// `on_write = "omit"`: no further read, and no tag that only it could tell.
#[tokio::test]
async fn without_a_probe_after_it_a_write_is_answered_without_a_tag() {
    for source in source::ALL {
        let (backend, proxy, tag) = start(source, "on_write = \"omit\"").await;
        assert_untagged(&put_if_match(proxy.addr(), "/doc", &tag, "two").await, source);
        assert_eq!(backend.events().last().map(String::as_str), Some("PUT /doc answered 204"), "{source}");
    }
}

/// A version is known without a read.
#[tokio::test]
async fn a_version_needs_no_probe() {
    let (backend, proxy, tag) = start(VERSION, "etag_after_write = \"always\"").await;
    let written = put_if_match(proxy.addr(), "/doc", &tag, "two").await;
    assert_eq!(backend.count("*", "*"), 2, "a GET and a PUT");
    assert_useful(proxy.addr(), &written, VERSION).await;
}

/// The defaults: a read after the write for content tags, none for the others.
#[tokio::test]
async fn only_content_tags_are_read_back_by_default() {
    for source in source::ALL {
        let (backend, proxy, tag) = start(source, "").await;
        let written = put_if_match(proxy.addr(), "/doc", &tag, "two").await;
        let is_content = source == CONTENT || source == CONTENT_EXCLUSIVE;
        assert_eq!(written.header("etag").is_some(), is_content, "{source}");
        let last = if is_content { "GET /doc answered 200" } else { "PUT /doc answered 204" };
        assert_eq!(backend.events().last().map(String::as_str), Some(last), "{source}");
    }
}

/// The backend's own tag for its own PUT is passed on, and counts.
#[tokio::test]
async fn the_tag_of_the_backends_answer_is_passed_on() {
    for source in [UPSTREAM, UPSTREAM_EXCLUSIVE] {
        let (backend, proxy, tag) = start(source, "unique_tags = true").await;
        backend.once("PUT", "/doc", Answer::status(204).header("ETag", "\"write-2\"").applied());
        let written = put_if_match(proxy.addr(), "/doc", &tag, "two").await;
        assert_eq!(written.etag(), "\"write-2\"", "{source}");
        assert_useful(proxy.addr(), &written, source).await;
    }
}

/// If the proxy makes the tags, those of the backend never reach a client.
#[tokio::test]
async fn a_foreign_tag_never_leaves() {
    for source in [CONTENT, CONTENT_EXCLUSIVE, VERSION] {
        let (backend, proxy, tag) = start(source, "on_write = \"omit\"").await;
        let foreign = || Answer::status(200).header("ETag", "\"foreign\"").applied();
        for method in ["PUT", "POST", "DELETE"] {
            backend.once(method, "/doc", foreign());
        }
        let addr = proxy.addr();
        let answers = [
            put_if_match(addr, "/doc", &tag, "two").await,
            send(addr, "POST", "/doc", &[], "+").await,
            send(addr, "DELETE", "/doc", &[("If-Match", &get(addr, "/doc").await.etag())], "").await,
        ];
        for answer in answers {
            assert_eq!((answer.status, answer.header("etag")), (200, None), "{source}");
        }
        backend.once("GET", "/doc", Answer::status(200).header("ETag", "\"a\"").header("ETag", "\"b\"").body("x"));
        let read = get(addr, "/doc").await;
        assert!(!["\"a\"", "\"b\""].contains(&read.etag().as_str()), "{source}: exactly one tag, ours");
    }
}

/// RFC 9110 section 8.8.3: a representation has one tag. The same twice is one; two that contradict are none.
#[tokio::test]
async fn one_tag_of_the_backend_leaves_at_most() {
    let (backend, setup) = UPSTREAM.start("/doc", "one").await;
    let proxy = setup.start().await;
    let twice = |first, second| Answer::status(200).header("ETag", first).header("ETag", second).body("x");
    backend.once("GET", "/doc", twice("\"a\"", "\"a\""));
    assert_eq!(get(proxy.addr(), "/doc").await.etag(), "\"a\"");
    backend.once("GET", "/doc", twice("\"a\"", "\"b\""));
    assert_eq!(get(proxy.addr(), "/doc").await.header("etag"), None);
}

/// There is nothing left that a tag could label.
#[tokio::test]
async fn a_delete_is_answered_without_a_tag() {
    for source in source::ALL {
        let (_backend, proxy, tag) = start(source, "on_write = \"probe\"\netag_after_write = \"always\"").await;
        assert_untagged(&send(proxy.addr(), "DELETE", "/doc", &[("If-Match", &tag)], "").await, source);
    }
}

/// RFC 9110 section 15.3.2: the tag of a 201 is that of what was created, which is not the target of a POST.
#[tokio::test]
async fn the_answer_to_a_judged_post_carries_no_tag_of_its_target() {
    for source in source::ALL {
        let (backend, proxy, tag) = start(source, "on_write = \"probe\"\netag_after_write = \"always\"").await;
        let created = Answer::status(201).header("Location", "/doc/7").header("ETag", "\"seven\"").applied();
        backend.once("POST", "/doc", created);
        let posted = send(proxy.addr(), "POST", "/doc", &[("If-Match", &tag)], "+").await;
        let own = if source == UPSTREAM || source == UPSTREAM_EXCLUSIVE { Some("seven") } else { None };
        let tag = posted.header("etag").map(|tag| tag.split(['~', '"']).nth(1).unwrap_or_default());
        assert_eq!((posted.status, tag), (201, own), "{source}");
    }
}
