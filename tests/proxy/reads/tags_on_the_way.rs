//! Tags that a proxy between the client and ifmatch changes: nginx makes them weak where it compresses, and Apache's
//! `mod_deflate` appends to them. A write passes if and only if what was issued is the current tag.

use std::net::SocketAddr;

use crate::support::{
    backend::{Answer, Backend},
    nginx::Nginx,
    proxy::Proxy,
    raw::{get, put_if_match, send},
    response::Response,
    scene::all_at_once,
    source::{self, CONTENT, Source, UPSTREAM, UPSTREAM_EXCLUSIVE},
};

const GZIP: (&str, &str) = ("Accept-Encoding", "gzip");

/// An nginx that compresses, in front of a proxy with these lines, in front of a backend that keeps `/doc`.
async fn behind_nginx(source: Source, route: &str) -> (Backend, Proxy, Nginx) {
    let (backend, setup) = source.start("/doc", "one").await;
    let proxy = setup.route(route).start().await;
    let compresses = "gzip on; gzip_types text/plain; gzip_min_length 1; gzip_proxied any; gzip_http_version 1.0;";
    let nginx = Nginx::with(&format!("location / {{ proxy_pass http://{}; {compresses} }}", proxy.addr())).await;
    (backend, proxy, nginx)
}

async fn get_compressed(addr: SocketAddr) -> Response {
    let read = send(addr, "GET", "/doc", &[GZIP], "").await;
    assert_eq!((read.status, read.header("content-encoding")), (200, Some("gzip")));
    read
}

#[tokio::test]
async fn p1_a_tag_that_nginx_has_weakened_lets_its_client_write() {
    all_at_once(source::ALL.map(|source| {
        (source.to_string(), async move {
            let (backend, _proxy, nginx) = behind_nginx(source, "accept_weak_own = true").await;
            let weak = get_compressed(nginx.addr()).await.etag();
            assert!(weak.starts_with("W/\""), "nginx weakens: {weak}");
            let same = send(nginx.addr(), "GET", "/doc", &[GZIP, ("If-None-Match", &weak)], "").await;
            assert_eq!(same.status, 304);
            assert_eq!(same.etag(), weak[2..], "a 304 carries the tag; nginx has nothing to compress there");
            put_if_match(nginx.addr(), "/doc", "W/\"another\"", "lost").await.refused(412, "precondition-failed");
            assert_eq!(put_if_match(nginx.addr(), "/doc", &weak, "two").await.status, 204);
            put_if_match(nginx.addr(), "/doc", &weak, "lost").await.refused(412, "precondition-failed");
            let fresh = get_compressed(nginx.addr()).await;
            assert_eq!(send(nginx.addr(), "DELETE", "/doc", &[("If-Match", &fresh.etag())], "").await.status, 204);
            assert_eq!(backend.count("PUT", "/doc"), 1);
        })
    }))
    .await;
}

/// RFC 9110 section 13.1.1: by default no weak tag matches, and the refusal says why.
#[tokio::test]
async fn p1_without_the_key_a_weak_tag_is_refused_with_its_reason() {
    let (backend, _proxy, nginx) = behind_nginx(CONTENT, "").await;
    let weak = get_compressed(nginx.addr()).await.etag();
    let refused = put_if_match(nginx.addr(), "/doc", &weak, "lost").await.refused(412, "precondition-failed");
    assert!(refused.detail.contains("weak tag"), "{}", refused.detail);
    assert_eq!(backend.count("PUT", "/doc"), 0);
}

/// Returns the tag that `mod_deflate` makes of a tag.
fn deflated(tag: &str) -> String {
    format!("{}-gzip\"", &tag[..tag.len() - 1])
}

#[tokio::test]
async fn p2_a_tag_with_a_suffix_lets_its_client_write() {
    all_at_once(source::ALL.map(|source| {
        (source.to_string(), async move {
            let (backend, setup) = source.start("/doc", "one").await;
            let proxy = setup.route("etag_suffixes = [\"-gzip\", \";gzip\", \"-br\"]").start().await;
            let addr = proxy.addr();
            let issued = get(addr, "/doc").await.etag();
            let tag = deflated(&issued);
            let same = send(addr, "GET", "/doc", &[("If-None-Match", &tag)], "").await;
            assert_eq!((same.status, same.etag()), (304, issued.clone()));
            let other = send(addr, "GET", "/doc", &[("If-None-Match", "\"other-gzip\"")], "").await;
            assert_eq!(other.status, 200);
            put_if_match(addr, "/doc", "\"other-gzip\"", "lost").await.refused(412, "precondition-failed");
            put_if_match(addr, "/doc", &deflated(&tag), "lost").await.refused(412, "precondition-failed");
            put_if_match(addr, "/doc", &format!("W/{tag}"), "lost").await.refused(412, "precondition-failed");
            assert_eq!(put_if_match(addr, "/doc", &tag, "two").await.status, 204);
            put_if_match(addr, "/doc", &tag, "lost").await.refused(412, "precondition-failed");
            let brotli = get(addr, "/doc").await.etag().replace('"', "").replace("W/", "");
            let deleted = send(addr, "DELETE", "/doc", &[("If-Match", &format!("\"{brotli}-br\""))], "").await;
            assert_eq!((deleted.status, backend.count("PUT", "/doc")), (204, 1));
        })
    }))
    .await;
}

/// The proxy does not guess: a suffix that no route names is a part of the tag.
#[tokio::test]
async fn p2_a_suffix_that_is_not_named_is_a_part_of_the_tag() {
    let (backend, setup) = CONTENT.start("/doc", "one").await;
    let proxy = setup.route("etag_suffixes = [\"-br\"]").start().await;
    let tag = deflated(&get(proxy.addr(), "/doc").await.etag());
    put_if_match(proxy.addr(), "/doc", &tag, "lost").await.refused(412, "precondition-failed");
    assert_eq!(send(proxy.addr(), "GET", "/doc", &[("If-None-Match", &tag)], "").await.status, 200);
    assert_eq!(backend.count("PUT", "/doc"), 0);
}

/// A backend that knows its tags gets them in their first form: it would refuse a tag that it never issued.
#[tokio::test]
async fn p2_the_backend_sees_its_own_tag() {
    const DELEGATE: Source = Source::of_tags("etag = \"delegate\"");
    for source in [UPSTREAM, UPSTREAM_EXCLUSIVE, DELEGATE] {
        let (backend, setup) = source.start("/doc", "one").await;
        // The backend says that it has written, and changes nothing.
        let lines = "etag_suffixes = [\"-gzip\"]\naccept_weak_own = true\nunique_tags = true";
        let proxy = setup.route(lines).start().await;
        let forms: [fn(&str) -> String; 3] = [deflated, |tag| format!("W/{tag}"), |tag| format!("W/{}", deflated(tag))];
        for (number, changed) in forms.into_iter().enumerate() {
            let target = &format!("/doc-{number}");
            backend.put(target, "one");
            let tag = get(proxy.addr(), target).await.etag();
            let sent = changed(&tag);
            send(proxy.addr(), "GET", target, &[("If-Match", &sent), ("Cache-Control", "no-cache")], "").await;
            let seen = backend.seen("GET", target).pop().unwrap();
            assert!(seen.header("if-match").unwrap().split(", ").any(|each| each == tag), "{source}: {seen:?}");
            backend.once("PUT", target, Answer::status(204));
            assert_eq!(put_if_match(proxy.addr(), target, &sent, "two").await.status, 204, "{source}: {sent}");
            let seen = backend.seen("PUT", target).pop().unwrap();
            let seen = seen.header("if-match").unwrap();
            assert!(seen.split(", ").any(|each| each == tag), "{source}: {sent} became {seen}");
        }
    }
}

/// A part that is put to what the client has must be a part of that: a changed tag names changed bytes.
#[tokio::test]
async fn p2_a_range_is_not_taken_of_what_a_suffix_changed() {
    let (_backend, setup) = source::VERSION.start("/doc", "one").await;
    let proxy = setup.route("etag_suffixes = [\"-gzip\"]\naccept_weak_own = true").start().await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    for sent in [deflated(&tag), format!("W/{tag}")] {
        let read = send(proxy.addr(), "GET", "/doc", &[("Range", "bytes=1-1"), ("If-Range", &sent)], "").await;
        assert_eq!((read.status, read.text()), (200, "one"), "{sent}");
    }
}

/// The tag goes out a second time, in a field that no intermediary changes.
#[tokio::test]
async fn p3_a_second_field_carries_the_tag() {
    all_at_once(source::ALL.map(|source| {
        (source.to_string(), async move {
            let route = "mirror_header = \"X-Document-Tag\"\non_write = \"probe\"";
            let (backend, proxy, nginx) = behind_nginx(source, route).await;
            let read = get_compressed(nginx.addr()).await;
            let tag = read.header("x-document-tag").expect("the tag").to_owned();
            assert_eq!(read.etag(), format!("W/{tag}"));
            let same = send(nginx.addr(), "GET", "/doc", &[("If-None-Match", &tag)], "").await;
            assert_eq!((same.status, same.headers.all("x-document-tag")), (304, vec![tag.as_str()]));
            let written = put_if_match(nginx.addr(), "/doc", &tag, "two").await;
            assert_eq!((written.status, written.headers.all("x-document-tag")), (204, vec![written.etag().as_str()]));
            put_if_match(nginx.addr(), "/doc", &tag, "lost").await.refused(412, "precondition-failed");
            // The value of the backend in that field is not the tag.
            let foreign = Answer::status(404).header("X-Document-Tag", "\"foreign\"");
            backend.once("GET", "/doc", foreign);
            assert_eq!(get(proxy.addr(), "/doc").await.header("x-document-tag"), None);
        })
    }))
    .await;
}

/// A page of another origin reads the second field as it reads the first.
#[tokio::test]
async fn p3_pages_of_other_origins_can_read_the_second_field() {
    let (backend, setup) = CONTENT.start("/doc", "one").await;
    let proxy = setup.route("mirror_header = \"X-Document-Tag\"").start().await;
    backend.always("GET", "/doc", |_| Answer::status(200).header("Access-Control-Allow-Origin", "*").body("one"));
    let read = send(proxy.addr(), "GET", "/doc", &[("Origin", "https://app.example")], "").await;
    let exposed = read.headers.all("access-control-expose-headers").join(", ").to_lowercase();
    assert!(exposed.contains("x-document-tag") && exposed.contains("etag"), "{exposed}");
}
