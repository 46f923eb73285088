//! The guides to servers and gateways, with the real ones: each configuration of a page, and its statements about it.

use std::net::SocketAddr;

use crate::{
    servers::{JSON, PROXY, Program, block, nth_block, proxy_of, put},
    support::{
        events::Events,
        nginx::Nginx,
        raw::{get, send},
        response::Response,
    },
};

/// Checks the promise of each guide for a resource that exists: a write with the tag of a read passes, a second one
/// with that tag gets 412, and one without a tag 428. Returns the answer to the write that has passed.
async fn assert_guarded(addr: SocketAddr, target: &str) -> Response {
    let tag = get(addr, target).await.etag();
    let written = put(addr, target, &[("If-Match", &tag)], "bread").await;
    assert!(matches!(written.status, 200 | 204), "{written:?}");
    put(addr, target, &[("If-Match", &tag)], "tea").await.refused(412, "precondition-failed");
    put(addr, target, &[], "tea").await.refused(428, "precondition-required");
    let now = get(addr, target).await;
    assert!(now.text().contains("bread"), "{now:?}");
    written
}

#[tokio::test]
async fn express_is_guarded_by_the_configuration_of_its_page() {
    let express = Program::express().await;
    let proxy = proxy_of(&block("docs/how-to/express.md", "toml"), express.addr).await;
    assert_eq!(put(proxy.addr(), "/notes/1", &[("If-None-Match", "*")], "milk").await.status, 200);
    let tag = get(proxy.addr(), "/notes/1").await.etag();
    let written = assert_guarded(proxy.addr(), "/notes/1").await;
    assert_eq!(written.etag(), get(proxy.addr(), "/notes/1").await.etag(), "it stores the bytes of this client");
    put(proxy.addr(), "/Notes/1", &[("If-Match", &tag)], "by another name").await.refused(412, "precondition-failed");
}

#[tokio::test]
async fn express_sends_weak_tags_of_its_answers() {
    let express = Program::express().await;
    let written = put(express.addr, "/notes/1", &[], "milk").await;
    let [of_answer, of_note] = [written.etag(), get(express.addr, "/Notes/1").await.etag()];
    assert!(of_answer.starts_with("W/") && of_note.starts_with("W/"), "{of_answer} {of_note}");
    assert_ne!(of_answer, of_note);
    assert_eq!(send(express.addr, "HEAD", "/notes/1", &[], "").await.etag(), of_note);
}

/// The failures that the page describes.
#[tokio::test]
async fn the_tags_of_express_are_no_versions() {
    let express = Program::express().await;
    let file = block("docs/how-to/express.md", "toml");
    let by_upstream = file.replacen("\"optimistic\"", "\"optimistic\"\netag = \"upstream\"", 1);
    let proxy = proxy_of(&by_upstream, express.addr).await;
    assert_eq!(put(proxy.addr(), "/notes/1", &[("If-None-Match", "*")], "milk").await.status, 200);
    let tag = get(proxy.addr(), "/notes/1").await.etag();
    put(proxy.addr(), "/notes/1", &[("If-Match", &tag)], "bread").await.refused(412, "precondition-failed");

    let opaque = by_upstream.replacen("etag = \"upstream\"", "etag = \"upstream\"\ncompare = \"opaque\"", 1);
    let proxy = proxy_of(&opaque, express.addr).await;
    let tag = get(proxy.addr(), "/notes/1").await.etag();
    let written = put(proxy.addr(), "/notes/1", &[("If-Match", &tag)], "bread").await;
    assert_eq!(written.status, 200, "{written:?}");
    put(proxy.addr(), "/notes/1", &[("If-Match", &written.etag())], "tea").await.refused(412, "precondition-failed");
}

#[tokio::test]
async fn django_rest_is_guarded_by_the_configuration_of_its_page() {
    let django = Program::django().await;
    let proxy = proxy_of(&block("docs/how-to/django.md", "toml"), django.addr).await;
    let created = send(proxy.addr(), "POST", "/notes/", &[JSON], r#"{"text":"milk"}"#).await;
    assert_eq!(created.status, 201, "{created:?}");
    let tag = get(proxy.addr(), "/notes/1.json").await.etag();
    let written = assert_guarded(proxy.addr(), "/notes/1/").await;
    assert_eq!(written.etag(), get(proxy.addr(), "/notes/1/").await.etag(), "the answer has the version");
    put(proxy.addr(), "/notes/1.json", &[("If-Match", &tag)], "by another name")
        .await
        .refused(412, "precondition-failed");
    // A redirect: nothing was written, but ifmatch cannot know that.
    let before = get(proxy.addr(), "/notes/1/").await;
    let fields = [("If-Match", &*before.etag())];
    assert_eq!(put(proxy.addr(), "/notes/1", &fields, "without the slash").await.status, 301);
    assert_eq!(get(proxy.addr(), "/notes/1/").await.text(), before.text());
    put(proxy.addr(), "/notes/1/", &fields, "with it").await.refused(412, "precondition-failed");
}

#[tokio::test]
async fn django_tags_get_alone_and_ignores_conditions() {
    let django = Program::django().await;
    assert_eq!(send(django.addr, "POST", "/notes/", &[JSON], r#"{"text":"milk"}"#).await.status, 201);
    let tag = get(django.addr, "/notes/1/").await.etag();
    assert!(tag.starts_with('"'), "{tag}");
    assert_eq!(send(django.addr, "HEAD", "/notes/1/", &[], "").await.header("etag"), None);
    assert_eq!(put(django.addr, "/notes/1/", &[("If-Match", "\"another\"")], "bread").await.status, 200);
}

#[tokio::test]
async fn vite_passes_tags_conditions_and_streams() {
    let express = Program::express().await;
    let proxy = proxy_of(&block("docs/how-to/vite.md", "toml"), express.addr).await;
    let vite = Program::vite(proxy.addr()).await;
    let page = send(vite.addr, "GET", "/", &[("Accept", "text/html")], "").await;
    assert!(page.text().contains("notes"), "{page:?}");
    assert_eq!(put(vite.addr, "/notes/1", &[("If-None-Match", "*")], "milk").await.status, 200);
    assert_guarded(vite.addr, "/notes/1").await;

    let mut watch = Events::open(vite.addr, "/.watch/notes/1", &[]).await;
    watch.expect("state").await;
    let mut lease = Events::post(vite.addr, "/.leases/notes/1", &[("Lease-Duration", "15")]).await;
    lease.expect("granted").await;
    let taken = watch.next().await.expect("the watch goes on");
    assert!(taken.data.to_string().contains("leased"), "{taken:?}");
}

#[tokio::test]
async fn caddy_passes_tags_conditions_and_streams() {
    let express = Program::express().await;
    let file = block("docs/how-to/caddy.md", "toml");
    let file = file.replacen("\"optimistic\"", "\"optimistic\"\nwatch = true", 1);
    let proxy = proxy_of(&file, express.addr).await;
    let caddy = Program::caddy(proxy.addr()).await;
    let long = "milk ".repeat(1000);
    assert_eq!(put(caddy.addr, "/notes/1", &[("If-None-Match", "*")], &long).await.status, 200);
    let compressed = send(caddy.addr, "GET", "/notes/1", &[("Accept-Encoding", "gzip")], "").await;
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    // The tag of the installed Caddy, and the one that newer versions make.
    let tag = get(proxy.addr(), "/notes/1").await.etag();
    let appended = format!("{}-gzip\"", tag.trim_end_matches('"'));
    assert!([tag, appended.clone()].contains(&compressed.etag()), "{compressed:?}");
    assert_eq!(
        put(caddy.addr, "/notes/1", &[("If-Match", &appended)], &long.replace("milk", "rice")).await.status,
        200
    );
    assert_guarded(caddy.addr, "/notes/1").await;
    let mut watch = Events::open(caddy.addr, "/.watch/notes/1", &[("Accept-Encoding", "gzip")]).await;
    watch.expect("state").await;
}

#[tokio::test]
async fn nginx_with_files_is_guarded_by_the_configuration_of_its_page() {
    let nginx = Nginx::with_etags().await;
    let addr = nginx.addr();
    let proxy = proxy_of(&block("docs/how-to/nginx.md", "toml"), addr).await;
    assert_eq!(put(proxy.addr(), "/notes/1", &[("If-None-Match", "*")], "milk").await.status, 201);
    assert_guarded(proxy.addr(), "/notes/1").await;
    assert_eq!(put(addr, "/notes/1", &[("If-Match", "\"another\"")], "milk").await.status, 204, "it ignores If-Match");

    // Two states of one size, and most likely of one second: nginx itself gives both one tag then.
    let tag = get(proxy.addr(), "/notes/1").await.etag();
    assert_eq!(put(proxy.addr(), "/notes/1", &[("If-Match", &tag)], "beer").await.status, 204);
    let of_beer = get(proxy.addr(), "/notes/1").await.etag();
    assert_eq!(put(proxy.addr(), "/notes/1", &[("If-Match", &of_beer)], "wine").await.status, 204);
    assert_ne!(get(proxy.addr(), "/notes/1").await.etag(), of_beer);
    put(proxy.addr(), "/notes/1", &[("If-Match", &of_beer)], "late").await.refused(412, "precondition-failed");
}

#[tokio::test]
async fn nginx_in_front_passes_tags_conditions_and_streams() {
    let express = Program::express().await;
    let file = nth_block("docs/how-to/nginx.md", "toml", 1);
    let file = file.replacen("\"optimistic\"", "\"optimistic\"\nwatch = true", 1);
    let proxy = proxy_of(&file, express.addr).await;
    let front = Nginx::with(&block("docs/how-to/nginx.md", "nginx").replace(PROXY, &proxy.addr().to_string())).await;
    let long = "milk ".repeat(1000);
    assert_eq!(put(front.addr(), "/notes/1", &[("If-None-Match", "*")], &long).await.status, 200);
    let compressed = send(front.addr(), "GET", "/notes/1", &[("Accept-Encoding", "gzip")], "").await;
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    assert!(compressed.etag().starts_with("W/"), "{compressed:?}");
    let rice = long.replace("milk", "rice");
    assert_eq!(put(front.addr(), "/notes/1", &[("If-Match", &compressed.etag())], &rice).await.status, 200);
    assert_guarded(front.addr(), "/notes/1").await;
    let mut watch = Events::open(front.addr(), "/.watch/notes/1", &[]).await;
    watch.expect("state").await;
}
