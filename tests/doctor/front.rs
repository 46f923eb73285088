//! Gateways and caches between `doctor` and ifmatch.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    diagnosis::{Diagnosis, without},
    gateways::RealGateway,
    support::{
        backend::{Answer, Backend},
        nginx::Nginx,
        proxy::Proxy,
        raw::get,
        tls::{Office, nginx},
    },
};

/// A text that is worth compressing.
fn text() -> String {
    "All that is written here is written again. ".repeat(100)
}

/// A proxy with these lines in its route, before a backend that keeps `/doc`.
async fn guarded(route: &str) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put("/doc", text());
    let proxy = Proxy::to(backend.addr()).route(route).start().await;
    (backend, proxy)
}

fn url(addr: SocketAddr) -> String {
    format!("http://{addr}/doc")
}

/// An nginx that passes all on to this address.
async fn nginx_before(upstream: SocketAddr, directives: &str) -> Nginx {
    Nginx::with(&format!("location / {{ proxy_pass http://{upstream}; {directives} }}")).await
}

const COMPRESSES: &str = "gzip on; gzip_types text/plain; gzip_min_length 1; gzip_proxied any; gzip_http_version 1.0;";

#[tokio::test]
async fn ifmatch_alone_is_well() {
    let (backend, proxy) = guarded("").await;
    Diagnosis::of(&[&url(proxy.addr())]).await.reads(&[]);
    assert_eq!(backend.count("PUT", "/doc"), 0, "without --write nothing is written");
    let diagnosis = Diagnosis::of(&[&url(proxy.addr()), "--write"]).await;
    diagnosis.reads_and_writes(&[]);
    assert!(diagnosis.text.starts_with("doctor puts the bytes"), "{}", diagnosis.text);
    assert_eq!(backend.content("/doc"), Some(text()), "the bytes are the same");
    assert!(backend.count("PUT", "/doc") >= 2);
}

#[tokio::test]
async fn haproxy_changes_nothing() {
    let (_backend, proxy) = guarded("").await;
    let haproxy = RealGateway::haproxy(proxy.addr()).await;
    Diagnosis::of(&[&url(haproxy.addr), "--write"]).await.reads_and_writes(&[]);
}

#[tokio::test]
async fn nginx_that_compresses_makes_tags_weak() {
    let (_backend, proxy) = guarded("").await;
    let nginx = nginx_before(proxy.addr(), COMPRESSES).await;
    let diagnosis = Diagnosis::of(&[&url(nginx.addr())]).await;
    diagnosis.reads(&[("gzip", "problem")]);
    diagnosis.mends("problem", "gzip", "accept_weak_own = true");

    let (_backend, mended) = guarded("accept_weak_own = true").await;
    let nginx = nginx_before(mended.addr(), COMPRESSES).await;
    Diagnosis::of(&[&url(nginx.addr()), "--write"]).await.reads_and_writes(&[]);
}

#[tokio::test]
async fn a_gateway_that_strips_if_match_is_found_by_reads_and_writes() {
    let (backend, proxy) = guarded("").await;
    let nginx = nginx_before(proxy.addr(), "proxy_set_header If-Match \"\";").await;
    let diagnosis = Diagnosis::of(&[&url(nginx.addr()), "--write"]).await;
    let missing = ["If-Match list", "no condition", "right tag", "tag in the answer", "read after write", "two writes"];
    diagnosis.checked(&without(&missing, true), &[("If-Match", "problem"), ("wrong tag", "problem")]);
    diagnosis.mends("problem", "If-Match", "proxy_set_header If-Match");
    diagnosis.mends("problem", "wrong tag", "proxy_set_header If-Match");
    assert_eq!(backend.count("PUT", "/doc"), 0, "ifmatch refused it");
}

#[tokio::test]
async fn a_gateway_that_strips_the_tag_leaves_the_mirror() {
    let (_backend, proxy) = guarded("").await;
    let nginx = nginx_before(proxy.addr(), "proxy_hide_header ETag;").await;
    let diagnosis = Diagnosis::of(&[&url(nginx.addr())]).await;
    diagnosis.hides_all_but("tag", &["way", "collections", "cache", "Last-Modified"], &[]);
    diagnosis.mends("problem", "tag", "mirror_header = \"X-ETag\"");

    let (_backend, mended) = guarded("mirror_header = \"X-ETag\"").await;
    let nginx = nginx_before(mended.addr(), "proxy_hide_header ETag;").await;
    let diagnosis = Diagnosis::of(&[&url(nginx.addr()), "--write"]).await;
    diagnosis.reads_and_writes(&[("tag", "note")]);
}

#[tokio::test]
async fn varnish_answers_from_its_cache() {
    let (backend, proxy) = guarded("").await;
    let varnish = RealGateway::varnish(proxy.addr()).await;
    let diagnosis = Diagnosis::of(&[&url(varnish.addr), "--write"]).await;
    diagnosis.hides_all_but("cache", &["way", "tag"], &[("writes", "note")]);
    diagnosis.mends("problem", "cache", "return (pass)");
    assert_eq!(backend.count("PUT", "/doc"), 0, "what a cache shows is not written back");
    // Varnish passes requests with credentials.
    let diagnosis = Diagnosis::of(&[&url(varnish.addr), "--write", "-H", "Authorization: Bearer x"]).await;
    diagnosis.reads_and_writes(&[]);
}

/// The cache of nginx says nothing of itself. It is stale, because its answer is older than the last change.
#[tokio::test]
async fn a_stale_cache_that_says_nothing_is_found() {
    let backend = Backend::start().await;
    let current = Arc::new(AtomicBool::new(false));
    let changed = Arc::clone(&current);
    backend.always_where(
        |request| request.target.starts_with("/doc"),
        move |_| Answer::status(200).body(if changed.load(Ordering::SeqCst) { "two" } else { "one" }),
    );
    let proxy = Proxy::to(backend.addr()).start().await;
    let nginx = nginx_before(proxy.addr(), "proxy_cache answers; proxy_cache_valid 200 10m;").await;
    assert_eq!(get(nginx.addr(), "/doc").await.text(), "one");
    let diagnosis = Diagnosis::of(&[&url(nginx.addr())]).await;
    assert!(diagnosis.text.contains("a read that none can have kept shows the same"), "{}", diagnosis.text);
    current.store(true, Ordering::SeqCst);
    let diagnosis = Diagnosis::of(&[&url(nginx.addr()), "--write"]).await;
    diagnosis.hides_all_but("cache", &["way", "tag"], &[("writes", "note")]);
    diagnosis.mends("problem", "cache", "proxy_cache off");
    assert_eq!(backend.count("PUT", "/doc"), 0, "what a cache shows is not written back");
}

/// B8: what a cache answers says nothing of what is behind it. One that passes on what it is asked to hides nothing.
#[tokio::test]
async fn behind_a_cache_that_lets_itself_be_passed_all_is_checked() {
    let (_backend, proxy) = guarded("").await;
    let varnish = RealGateway::varnish_that_can_be_passed(proxy.addr()).await;
    let diagnosis = Diagnosis::of(&[&url(varnish.addr), "--write"]).await;
    diagnosis.reads_and_writes(&[("cache", "note")]);
    diagnosis.mends("note", "cache", "Cache-Control: no-cache");
}

#[tokio::test]
async fn caddy_that_compresses_keeps_the_tag() {
    let (_backend, proxy) = guarded("").await;
    let caddy = RealGateway::caddy(proxy.addr()).await;
    Diagnosis::of(&[&url(caddy.addr), "--write"]).await.reads_and_writes(&[]);
}

#[tokio::test]
async fn servers_are_checked_over_tls() {
    let (_backend, proxy) = guarded("").await;
    let office = Office::new();
    let directives = format!("location / {{ proxy_pass http://{}; }}", proxy.addr());
    let (_nginx, addr) = nginx("", &office.issue(&["127.0.0.1", "localhost", &own_host()]), &directives).await;
    let url = format!("https://{addr}/doc");
    let ca = office.ca();
    let trusted = [("SSL_CERT_FILE", ca.to_str().expect("UTF-8"))];
    Diagnosis::within(&[&url, "--write"], &trusted).await.reads_and_writes(&[]);
    let refused = Diagnosis::of(&[&url]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.text.contains("cannot be reached"), "{}", refused.text);
}

/// The loopback host that the servers of this process listen on.
fn own_host() -> String {
    crate::support::ports::free().ip().to_string()
}
