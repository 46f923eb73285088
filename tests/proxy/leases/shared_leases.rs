//! Leases that several clients share (`lease.shared`, `Lease-Mode: shared`).

use std::net::SocketAddr;

use serde_json::json;

use crate::support::{
    admin::{ask, start as start_with_admin, told, without_end},
    backend::Backend,
    leases::{Grant, IDS, acquire, is_in_line, lease, leasing, put_with, reaches, release, view},
    proxy::{Proxy, Setup},
    raw::{get, put, put_if_match, send},
    response::Response,
    wait::within,
};

const DOC: &str = "/doc";

async fn start(configure: impl FnOnce(Setup) -> Setup) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let proxy = configure(leasing(&backend).route("lease.shared = true")).on_one_thread().start().await;
    (backend, proxy)
}

/// Requests a shared lease of the document.
async fn share(addr: SocketAddr, fields: &[(&str, &str)]) -> Response {
    let mode = ("Lease-Mode", "shared");
    lease(addr, "POST", DOC, &[&[mode], fields].concat()).await
}

async fn shared(addr: SocketAddr, duration: &str) -> Grant {
    let response = share(addr, &[("Lease-Duration", duration)]).await;
    assert_eq!(response.status, 201, "{response:?}");
    Grant::of(&response)
}

/// DESIGN, section 8: one id of them suffices to write.
#[tokio::test]
async fn each_client_that_shares_the_lease_writes_and_nobody_else() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let [ann, bob] = [shared(addr, "30").await, shared(addr, "30").await];
    assert!(ann.id != bob.id && ann.fence < bob.fence);
    for (grant, body) in [(&ann, "two"), (&bob, "three"), (&ann, "four")] {
        assert_eq!(put_with(addr, DOC, &grant.id, body).await.status, 204);
        assert_eq!(backend.content(DOC).as_deref(), Some(body));
    }
    put(addr, DOC, &[], "stolen").await.refused(412, "lease-id-missing");
    put_with(addr, DOC, IDS[0], "stolen").await.refused(412, "lease-id-mismatch");
    let fences: Vec<_> =
        backend.seen("PUT", DOC).iter().map(|seen| seen.header("fencing-token").map(str::to_owned)).collect();
    let last = Some(bob.fence.to_string());
    assert_eq!(fences, [last.clone(), last.clone(), last], "a backend that checks fences accepts each");
}

/// Two that share a lease can still lose no update, if they say what they write upon.
#[tokio::test]
async fn those_who_share_a_lease_are_told_of_each_others_writes() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let [ann, bob] = [shared(addr, "30").await, shared(addr, "30").await];
    let tag = get(addr, DOC).await.etag();
    let write =
        async |grant: &Grant| send(addr, "PUT", DOC, &[("Lease-Id", &*grant.id), ("If-Match", &*tag)], "two").await;
    assert_eq!(write(&ann).await.status, 204);
    write(&bob).await.refused(412, "precondition-failed");
    put_if_match(addr, DOC, &tag, "two").await.refused(412, "lease-id-missing");
}

#[tokio::test]
async fn any_shared_id_reads_what_the_lease_keeps_from_readers() {
    let (_backend, proxy) = start(|setup| setup.route("lease.guards = [\"read\", \"write\"]")).await;
    let addr = proxy.addr();
    for grant in [shared(addr, "30").await, shared(addr, "30").await] {
        assert_eq!(send(addr, "GET", DOC, &[("Lease-Id", &grant.id)], "").await.text(), "one");
    }
    get(addr, DOC).await.refused(412, "lease-id-missing");
}

#[tokio::test]
async fn a_shared_and_an_exclusive_lease_exclude_each_other() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let alone = acquire(addr, DOC, "30").await;
    share(addr, &[]).await.refused(409, "lease-held");
    release(addr, DOC, &alone.id).await;
    let [ann, bob] = [shared(addr, "30").await, shared(addr, "20").await];
    for exclusive in [&[][..], &[("Lease-Mode", "Exclusive")]] {
        lease(addr, "POST", DOC, exclusive).await.refused(409, "lease-held");
    }
    release(addr, DOC, &bob.id).await;
    lease(addr, "POST", DOC, &[]).await.refused(409, "lease-held");
    release(addr, DOC, &ann.id).await;
    assert!(acquire(addr, DOC, "30").await.fence > bob.fence);
}

#[tokio::test]
async fn each_shared_lease_lives_for_itself() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let [ann, bob] = [shared(addr, "1").await, shared(addr, "30").await];
    let shown = view(addr, DOC).await;
    assert_eq!((&shown["state"], &shown["fence"]), (&json!("leased"), &json!(bob.fence)));
    let write = async |grant: &Grant| put_with(addr, DOC, &grant.id, "two").await;
    while write(&ann).await.status == 204 {}
    write(&ann).await.refused(412, "lease-lost");
    assert_eq!(view(addr, DOC).await["shared_by"], 1);
    assert_eq!(write(&bob).await.status, 204);
    let renewed = lease(addr, "PUT", DOC, &[("Lease-Id", &ann.id)]).await;
    assert_eq!(renewed.status, 200, "only bob has written: {renewed:?}");
    let change = [("Lease-Id", &*bob.id), ("Proposed-Lease-Id", IDS[0])];
    assert_eq!(lease(addr, "PATCH", DOC, &change).await.status, 200);
    release(addr, DOC, IDS[0]).await;
    write(&bob).await.refused(412, "lease-id-mismatch");
    reaches(addr, DOC, "expired").await;
    assert_eq!(put(addr, DOC, &[], "three").await.status, 204, "the last holder has left");
    lease(addr, "PUT", DOC, &[("Lease-Id", &ann.id)]).await.refused(409, "lease-not-present");
}

#[tokio::test]
async fn a_mode_that_the_route_does_not_grant_is_refused() {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let proxy = leasing(&backend).start().await;
    let refused = share(proxy.addr(), &[]).await;
    refused.refused(400, "malformed-lease-header");
    assert!(refused.text().contains("leave Lease-Mode out"), "{refused:?}");
    acquire(proxy.addr(), DOC, "30").await;
    let (_backend, proxy) = start(|setup| setup).await;
    lease(proxy.addr(), "POST", DOC, &[("Lease-Mode", "common")]).await.refused(400, "malformed-lease-header");
}

/// Rule 16: with any number of clients that come and go, one that waits for the exclusive lease gets its turn.
#[tokio::test]
async fn clients_that_share_a_lease_do_not_keep_away_one_that_waits() {
    let (backend, proxy) = start(|setup| setup.route("etag = \"version\"\nother_writers = false")).await;
    let addr = proxy.addr();
    let ann = shared(addr, "60").await;
    let probes = backend.count("HEAD", DOC);
    let wait = |fields: &'static [(&str, &str)]| tokio::spawn(async move { lease(addr, "POST", DOC, fields).await });
    let alone = wait(&[("Prefer", "wait=30"), ("Lease-Holder", "alone")]);
    backend.reached("HEAD", DOC, probes + 1).await;
    is_in_line(addr, DOC).await;
    share(addr, &[]).await.refused(409, "lease-held");
    let later = wait(&[("Prefer", "wait=30"), ("Lease-Mode", "shared")]);
    backend.reached("HEAD", DOC, probes + 3).await;
    is_in_line(addr, DOC).await;
    assert!(!alone.is_finished() && !later.is_finished());
    release(addr, DOC, &ann.id).await;
    let alone = Grant::of(&within("the exclusive lease", alone).await.unwrap());
    assert_eq!(view(addr, DOC).await["holder"], "alone");
    release(addr, DOC, &alone.id).await;
    let later = Grant::of(&within("the shared lease", later).await.unwrap());
    assert!(ann.fence < alone.fence && alone.fence < later.fence);
}

#[tokio::test]
async fn a_client_that_shares_the_lease_can_have_it_alone_when_the_others_have_left() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let own = [("Lease-Id", IDS[0])];
    assert_eq!(share(addr, &own).await.status, 201);
    let bob = shared(addr, "30").await;
    lease(addr, "POST", DOC, &own).await.refused(409, "lease-held");
    release(addr, DOC, &bob.id).await;
    assert_eq!(lease(addr, "POST", DOC, &own).await.status, 201);
    share(addr, &[]).await.refused(409, "lease-held");
    assert_eq!(share(addr, &own).await.status, 201, "and lets others in again");
    shared(addr, "30").await;
}

/// Rule 13: each shared lease counts.
#[tokio::test]
async fn a_client_may_not_share_one_lease_more_often_than_it_may_lease() {
    let (_backend, proxy) = start(|setup| setup.route("lease.max_per_principal = 2")).await;
    let addr = proxy.addr();
    let first = shared(addr, "60").await;
    shared(addr, "60").await;
    share(addr, &[]).await.refused(429, "too-many-leases");
    release(addr, DOC, &first.id).await;
    shared(addr, "60").await;
}

#[tokio::test]
async fn an_operator_sees_each_shared_lease_and_breaks_one_or_all() {
    let backend = Backend::start().await;
    let (proxy, admin) = start_with_admin(&without_end(&backend).route("lease.shared = true")).await;
    let addr = proxy.addr();
    backend.put(DOC, "one");
    let mut grants = Vec::new();
    for holder in ["ann", "bob", "cid"] {
        let fields = [("Lease-Holder", holder), ("Lease-Duration", "60")];
        grants.push(Grant::of(&share(addr, &fields).await));
    }
    let page = ask(admin, "/leases?prefix=backend:/doc").await;
    let rows: Vec<_> =
        page["leases"].as_array().unwrap().iter().map(|row| (&row["holder"], &row["mode"], &row["fence"])).collect();
    let expected = [json!("ann"), json!("bob"), json!("cid")];
    let fences: Vec<_> = grants.iter().map(|grant| json!(grant.fence)).collect();
    for ((row, holder), fence) in rows.iter().zip(&expected).zip(&fences) {
        assert_eq!(*row, (holder, &json!("shared"), fence));
    }
    let one = told(admin, "/leases/break", &json!({ "key": "backend:/doc", "fence": grants[0].fence })).await;
    assert_eq!((one["leases"].as_array().map(Vec::len), &one["leases"][0]["holder"]), (Some(1), &json!("ann")));
    put_with(addr, DOC, &grants[0].id, "two").await.refused(412, "lease-lost");
    assert_eq!(put_with(addr, DOC, &grants[1].id, "two").await.status, 204);
    let all = told(admin, "/leases/break", &json!({ "key": "backend:/doc" })).await;
    assert_eq!((all["leases"].as_array().map(Vec::len), &all["was_broken"]), (Some(3), &json!(false)));
    put_with(addr, DOC, &grants[1].id, "three").await.refused(412, "lease-lost");
    acquire(addr, DOC, "30").await;
}

/// Rule 16: clients that come and go beside each other keep away no client that waits for a lease that they forbid.
#[tokio::test]
async fn who_waits_until_others_have_left_gets_its_turn() {
    let (backend, proxy) = start(|setup| setup.route("etag = \"version\"\nother_writers = false")).await;
    let addr = proxy.addr();
    let read = [("Lease-Access", "read"), ("Lease-Share", "read")];
    let reader = Grant::of(&share(addr, &read).await);
    let probes = backend.count("HEAD", DOC);
    let fields = [("Lease-Access", "write"), ("Lease-Share", "read"), ("Prefer", "wait=30")];
    let writer = tokio::spawn(async move { share(addr, &fields).await });
    backend.reached("HEAD", DOC, probes + 1).await;
    is_in_line(addr, DOC).await;
    share(addr, &read).await.refused(409, "lease-held");
    release(addr, DOC, &reader.id).await;
    let writer = Grant::of(&within("the lease of the writer", writer).await.unwrap());
    assert!(writer.fence > reader.fence);
}

#[tokio::test]
async fn share_modes_are_read_or_refused() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    for fields in [
        [("Lease-Access", "read, execute"), ("Lease-Share", "read")],
        [("Lease-Access", "none"), ("Lease-Share", "read")],
        [("Lease-Access", "read"), ("Lease-Share", "")],
        [("Lease-Access", "read"), ("Lease-Mode", "exclusive")],
    ] {
        let mode = [("Lease-Mode", "shared")];
        let fields = if fields[1].0 == "Lease-Mode" { fields.to_vec() } else { [&mode[..], &fields].concat() };
        lease(addr, "POST", DOC, &fields).await.refused(400, "malformed-lease-header");
    }
    let granted = share(addr, &[("Lease-Access", "READ,write , delete"), ("Lease-Share", "None")]).await;
    assert_eq!(granted.status, 201, "{granted:?}");
}
