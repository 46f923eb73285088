//! Routes that only watch (DESIGN, section 5): everything passes unchanged, and the log says what would have been.

use crate::support::{
    backend::{Answer, Backend, Validators},
    proxy::Proxy,
    raw::{Connection, send},
    wait::until,
};

async fn observed(backend: &Backend) -> Proxy {
    Proxy::to(backend.addr()).route("observe = true").start().await
}

/// The verdicts in the log, in order.
fn verdicts(proxy: &Proxy) -> Vec<String> {
    let words = |line: &str| Some(line.split("would=\"").nth(1)?.split('"').next()?.to_owned());
    proxy.log().lines().filter_map(words).collect()
}

#[tokio::test]
async fn what_the_policy_would_refuse_passes_and_is_counted() {
    let backend = Backend::with(Validators::Tags).await;
    backend.put("/doc", "one");
    let proxy = observed(&backend).await;
    let read = send(proxy.addr(), "GET", "/doc", &[], "").await;
    let upstreams = send(backend.addr(), "GET", "/doc", &[], "").await;
    assert_eq!(read.etag(), upstreams.etag(), "no tag is added or changed");
    for (fields, expected) in [
        (&[][..], "precondition-required"),
        (&[("If-Match", "no tag")], "malformed-precondition"),
        (&[("X-HTTP-Method-Override", "PATCH")], "method-override"),
    ] {
        let written = send(proxy.addr(), "PUT", "/doc", fields, "two").await;
        assert!((200..300).contains(&written.status), "{} for {expected}", written.status);
        until(expected, || verdicts(&proxy).last().is_some_and(|last| last == expected)).await;
    }
    assert_eq!(backend.count("PUT", "/doc"), 3);
    assert_eq!(backend.content("/doc").as_deref(), Some("two"));
}

#[tokio::test]
async fn a_stale_tag_of_the_upstream_is_noticed() {
    let backend = Backend::with(Validators::Tags).await;
    backend.put("/doc", "one");
    let proxy = observed(&backend).await;
    let tag = send(proxy.addr(), "GET", "/doc", &[], "").await.etag();
    backend.always("PUT", "/doc", |_| Answer::status(204));
    let condition = [("If-Match", tag.as_str())];
    send(proxy.addr(), "PUT", "/doc", &condition, "two").await;
    backend.put("/doc", "elsewhere");
    send(proxy.addr(), "GET", "/doc", &[], "").await;
    send(proxy.addr(), "PUT", "/doc", &condition, "three").await;
    until("both verdicts", || verdicts(&proxy) == ["passed", "precondition-failed"]).await;
}

#[tokio::test]
async fn two_writes_at_once_are_noticed_and_neither_waits() {
    let backend = Backend::start().await;
    let proxy = observed(&backend).await;
    let first = backend.hold("PUT", "/doc");
    let mut slow = Connection::open(proxy.addr()).await;
    slow.request("PUT", "/doc", &[("If-None-Match", "*")], "slow").await;
    let held = first.arrived().await;
    let fast = send(proxy.addr(), "PUT", "/doc", &[("If-None-Match", "*")], "fast").await;
    assert!((200..300).contains(&fast.status), "{}", fast.status);
    held.answer(Answer::stored()).await;
    slow.read_response().await;
    until("both verdicts", || verdicts(&proxy) == ["unknown", "write-in-flight"]).await;
}
