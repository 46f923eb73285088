//! Routes that only watch (DESIGN, section 5): everything passes unchanged, and the log names the refusals that would
//! have been.

use crate::support::{
    admin::{look, start},
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

/// The updates that the log says were lost, in order.
fn lost(proxy: &Proxy) -> Vec<String> {
    let words = |line: &str| Some(line.split("lost=\"").nth(1)?.split('"').next()?.to_owned());
    proxy.log().lines().filter_map(words).collect()
}

/// Ann and Bob read one version, and each saves. Bob's save replaces Ann's.
#[tokio::test]
async fn an_update_that_another_client_replaces_unread_is_counted() {
    let backend = Backend::with(Validators::Tags).await;
    backend.put("/doc", "one");
    let setup = Proxy::to(backend.addr()).route("observe = true");
    let (proxy, admin) = start(&setup).await;
    let addr = proxy.addr();
    let [ann, bob] = ["ann", "bob"].map(|name| ("Authorization", name));
    for client in [ann, bob] {
        send(addr, "GET", "/doc", &[client], "").await;
        assert!(send(addr, "PUT", "/doc", &[client], "first").await.status < 300);
    }
    assert_eq!(lost(&proxy), [""; 0], "Bob has read what Ann wrote");
    send(addr, "PUT", "/doc", &[ann], "second").await;
    until("the update of Bob", || lost(&proxy) == ["unread"]).await;

    let tag = send(addr, "GET", "/doc", &[bob], "").await.etag();
    let based = ("If-Match", tag.as_str());
    backend.always("PUT", "/doc", |_| Answer::status(204));
    send(addr, "PUT", "/doc", &[bob, based], "third").await;
    send(addr, "PUT", "/doc", &[ann, based], "fourth").await;
    until("the update that a stale tag replaced", || lost(&proxy) == ["unread", "stale-tag"]).await;

    backend.always("PUT", "/doc", |_| Answer::status(412));
    send(addr, "PUT", "/doc", &[bob, based], "fifth").await;
    let metrics = look(admin, "/metrics").await;
    for reason in ["stale-tag", "unread"] {
        let line = format!("ifmatch_observed_lost_updates_total{{ifmatch_reason=\"{reason}\",ifmatch_route=\"all\"");
        let value = metrics.text().lines().find(|told| told.starts_with(&line)).map(str::to_owned);
        assert!(value.as_ref().is_some_and(|told| told.ends_with(" 1")), "{reason}: {value:?}");
    }
    assert_eq!(lost(&proxy).len(), 2, "what the backend refused replaced nothing");
}

/// Clients without credentials are distinguished by their program and address.
#[tokio::test]
async fn programs_without_credentials_are_different_clients() {
    let backend = Backend::start().await;
    let proxy = observed(&backend).await;
    let addr = proxy.addr();
    let put = |program| async move { send(addr, "PUT", "/doc", &[("User-Agent", program)], "x").await };
    for program in ["editor", "editor", "job"] {
        assert!(put(program).await.status < 300);
    }
    until("the update of the editor", || lost(&proxy) == ["unread"]).await;
    assert!(proxy.log().contains("key=backend:/doc"), "{}", proxy.log());
}
