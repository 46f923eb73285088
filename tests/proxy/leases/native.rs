//! Lease operations in the native dialect, row by row of their table (DESIGN, section 8).

use crate::support::{
    backend::{Backend, Validators},
    leases::{
        Grant, IDS, acquire, assert_absent_from_log, assert_silent_about, fence, lease, leasing, leasing_versions,
        put_with, reaches, release, view,
    },
    proxy::{Proxy, Setup},
    raw::{get, put, send},
};

const DOC: &str = "/docs/42";

async fn start(configure: impl FnOnce(Setup) -> Setup) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let proxy = configure(leasing(&backend)).start().await;
    (backend, proxy)
}

#[tokio::test]
async fn a_grant_tells_all_that_its_holder_needs() {
    let (_backend, proxy) = start(|setup| setup).await;
    let granted = lease(proxy.addr(), "POST", DOC, &[("Lease-Duration", "17")]).await;
    assert_eq!((granted.status, granted.header("lease-duration")), (201, Some("17")), "{granted:?}");
    let Grant { id, fence } = Grant::of(&granted);
    assert!(id.len() == 36 && &id[14..15] == "4" && fence > 0, "{granted:?}");
    assert_eq!(granted.headers.all("cache-control"), ["no-store"]);
}

#[tokio::test]
async fn a_grant_tells_the_tag_that_its_holder_may_write_with() {
    let backend = Backend::with(Validators::Tags).await;
    backend.put(DOC, "one");
    let upstream = leasing(&backend).route("etag = \"upstream\"");
    for setup in [leasing(&backend), upstream, leasing_versions(&backend)] {
        let proxy = setup.start().await;
        let granted = lease(proxy.addr(), "POST", DOC, &[]).await;
        let fields = [("If-Match", &*granted.etag()), ("Lease-Id", &*Grant::of(&granted).id)];
        assert_eq!(put(proxy.addr(), DOC, &fields, "two").await.status, 204);
        put(proxy.addr(), DOC, &fields, "three").await.refused(412, "precondition-failed");
    }
}

/// A tag from before the write of another client would only lead to a 412.
#[tokio::test]
async fn a_grant_after_a_wait_tells_no_old_tag() {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let proxy = leasing_versions(&backend).start().await;
    let addr = proxy.addr();
    let first = acquire(addr, DOC, "30").await;
    let waiter = tokio::spawn(async move { lease(addr, "POST", DOC, &[("Prefer", "wait=20")]).await });
    backend.reached("HEAD", DOC, 2).await;
    assert_eq!(put_with(addr, DOC, &first.id, "two").await.status, 204);
    release(addr, DOC, &first.id).await;
    let granted = waiter.await.unwrap();
    assert_eq!((granted.status, granted.header("etag")), (201, None), "{granted:?}");
}

#[tokio::test]
async fn a_grant_without_a_duration_has_the_one_of_the_route() {
    let (_backend, proxy) = start(|setup| setup.route("lease.default = \"23s\"")).await;
    let granted = lease(proxy.addr(), "POST", DOC, &[]).await;
    assert_eq!((granted.status, granted.header("lease-duration")), (201, Some("23")));
}

/// A lost answer costs nothing: the same request is the same lease, with the same fence.
#[tokio::test]
async fn acquiring_with_ones_own_id_can_be_repeated() {
    let (_backend, proxy) = start(|setup| setup).await;
    let fields = [("Lease-Id", IDS[0]), ("Lease-Duration", "30")];
    let grants = [lease(proxy.addr(), "POST", DOC, &fields).await, lease(proxy.addr(), "POST", DOC, &fields).await];
    assert_eq!(grants.each_ref().map(|grant| grant.status), [201, 201]);
    let [first, second] = grants.each_ref().map(Grant::of);
    assert_eq!((&*first.id, &*second.id), (IDS[0], IDS[0]));
    assert_eq!(first.fence, second.fence);
}

#[tokio::test]
async fn a_second_client_is_told_who_holds_the_lease_and_for_how_long() {
    let (_backend, proxy) = start(|setup| setup).await;
    let holder = [("Lease-Duration", "40"), ("Lease-Holder", "worker 7")];
    let id = Grant::of(&lease(proxy.addr(), "POST", DOC, &holder).await).id;
    let refused = lease(proxy.addr(), "POST", DOC, &[]).await;
    let problem = refused.refused(409, "lease-held");
    assert_eq!(problem.json["holder"], "worker 7");
    let seconds = problem.retry_after_seconds.expect("when to come back");
    assert!((20..=40).contains(&seconds), "{seconds}");
    assert_silent_about(&id, &refused);
}

#[tokio::test]
async fn a_renewal_can_be_repeated_and_keeps_the_fence() {
    let (_backend, proxy) = start(|setup| setup).await;
    let grant = acquire(proxy.addr(), DOC, "30").await;
    for _ in 0..2 {
        let renewed = lease(proxy.addr(), "PUT", DOC, &[("Lease-Id", &grant.id)]).await;
        assert_eq!((renewed.status, renewed.header("lease-duration")), (200, Some("30")));
        assert_eq!(fence(&renewed), grant.fence);
    }
}

#[tokio::test]
async fn a_renewal_lasts_from_its_own_time_on() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "3").await;
    while view(addr, DOC).await["remaining"].as_u64() > Some(1) {}
    assert_eq!(lease(addr, "PUT", DOC, &[("Lease-Id", &grant.id)]).await.status, 200);
    assert!(view(addr, DOC).await["remaining"].as_u64() > Some(1));
}

#[tokio::test]
async fn a_change_gives_the_lease_another_id() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "30").await;
    for _ in 0..2 {
        let fields = [("Lease-Id", &*grant.id), ("Proposed-Lease-Id", IDS[1])];
        let changed = lease(addr, "PATCH", DOC, &fields).await;
        assert_eq!((changed.status, changed.header("lease-id")), (200, Some(IDS[1])));
    }
    lease(addr, "PUT", DOC, &[("Lease-Id", &grant.id)]).await.refused(409, "lease-id-mismatch");
    put_with(addr, DOC, &grant.id, "two").await.refused(412, "lease-id-mismatch");
    assert_eq!(put_with(addr, DOC, IDS[1], "two").await.status, 204);
    assert_eq!(backend.seen("PUT", DOC)[0].header("fencing-token"), Some(&*grant.fence.to_string()));
}

#[tokio::test]
async fn a_release_can_be_repeated_and_frees_the_lease() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "30").await;
    release(addr, DOC, &grant.id).await;
    release(addr, DOC, &grant.id).await;
    let next = acquire(addr, DOC, "30").await;
    assert!(next.fence > grant.fence && next.id != grant.id, "{next:?} after {grant:?}");
    lease(addr, "DELETE", DOC, &[("Lease-Id", &grant.id)]).await.refused(409, "lease-id-mismatch");
}

#[tokio::test]
async fn what_is_not_there_is_neither_renewed_nor_changed_nor_released() {
    let (_backend, proxy) = start(|setup| setup).await;
    let fields = [("Lease-Id", IDS[0]), ("Proposed-Lease-Id", IDS[1])];
    for method in ["PUT", "PATCH", "DELETE"] {
        lease(proxy.addr(), method, DOC, &fields).await.refused(409, "lease-not-present");
    }
}

#[tokio::test]
async fn another_id_neither_renews_nor_changes_nor_releases() {
    let (_backend, proxy) = start(|setup| setup).await;
    let grant = acquire(proxy.addr(), DOC, "30").await;
    let fields = [("Lease-Id", IDS[0]), ("Proposed-Lease-Id", IDS[1])];
    for method in ["PUT", "PATCH", "DELETE"] {
        let refused = lease(proxy.addr(), method, DOC, &fields).await;
        refused.refused(409, "lease-id-mismatch");
        assert_silent_about(&grant.id, &refused);
    }
}

#[tokio::test]
async fn clients_break_leases_where_the_route_lets_them() {
    let (_backend, proxy) = start(|setup| setup.route("lease.client_break = true")).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "30").await;
    let broken = lease(addr, "DELETE", DOC, &[("Lease-Break-Period", "20")]).await;
    assert_eq!((broken.status, broken.header("lease-time")), (202, Some("20")), "{broken:?}");
    assert_silent_about(&grant.id, &broken);
    assert_eq!(view(addr, DOC).await["state"], "breaking");
    lease(addr, "PUT", DOC, &[("Lease-Id", &grant.id)]).await.refused(409, "lease-breaking");
    assert_eq!(put_with(addr, DOC, &grant.id, "the last").await.status, 204, "the holder finishes");
    lease(addr, "POST", DOC, &[]).await.refused(409, "lease-held");
    // A break brings the end forward, and never puts it off.
    let longer = lease(addr, "DELETE", DOC, &[("Lease-Break-Period", "25")]).await;
    let left: u64 = longer.header("lease-time").unwrap().parse().unwrap();
    assert!(longer.status == 202 && left <= 20, "{longer:?}");
    let at_once = lease(addr, "DELETE", DOC, &[("Lease-Break-Period", "0")]).await;
    assert_eq!((at_once.status, at_once.header("lease-time")), (202, Some("0")));
    assert_eq!(view(addr, DOC).await["state"], "broken");
    lease(addr, "PUT", DOC, &[("Lease-Id", &grant.id)]).await.refused(409, "lease-broken");
    put_with(addr, DOC, &grant.id, "too late").await.refused(412, "lease-lost");
    assert!(acquire(addr, DOC, "30").await.fence > grant.fence);
}

#[tokio::test]
async fn a_client_breaks_a_lease_and_takes_it_in_one_step() {
    let (_backend, proxy) = start(|setup| setup.route("lease.client_break = true")).await;
    let addr = proxy.addr();
    let first = acquire(addr, DOC, "30").await;
    let taken = lease(addr, "POST", DOC, &[("Lease-Break-Period", "0")]).await;
    assert_eq!(taken.status, 201, "{taken:?}");
    assert_silent_about(&first.id, &taken);
    let second = Grant::of(&taken);
    assert!(second.fence > first.fence);
    put_with(addr, DOC, &first.id, "too late").await.refused(412, "lease-id-mismatch");
    assert_eq!(put_with(addr, DOC, &second.id, "two").await.status, 204);
    lease(addr, "POST", DOC, &[("Lease-Break-Period", "5")]).await.refused(400, "malformed-lease-header");

    let (_backend, proxy) = start(|setup| setup).await;
    acquire(proxy.addr(), DOC, "30").await;
    let refused = lease(proxy.addr(), "POST", DOC, &[("Lease-Break-Period", "0")]).await;
    refused.refused(405, "method-not-allowed");
}

#[tokio::test]
async fn clients_break_no_leases_by_default() {
    let (_backend, proxy) = start(|setup| setup).await;
    let grant = acquire(proxy.addr(), DOC, "30").await;
    let refused = lease(proxy.addr(), "DELETE", DOC, &[("Lease-Break-Period", "0")]).await;
    refused.refused(405, "method-not-allowed");
    assert_eq!(put_with(proxy.addr(), DOC, &grant.id, "two").await.status, 204);
}

#[tokio::test]
async fn leases_without_an_end_are_granted_where_the_route_has_them() {
    let (_backend, proxy) = start(|setup| setup.route("lease.infinite = true")).await;
    let addr = proxy.addr();
    let granted = lease(addr, "POST", DOC, &[("Lease-Duration", "infinite")]).await;
    assert_eq!((granted.status, granted.header("lease-duration")), (201, Some("infinite")));
    let shown = view(addr, DOC).await;
    assert_eq!((&shown["duration"], shown.get("remaining")), (&"infinite".into(), None), "{shown}");
    let renewed = lease(addr, "PUT", DOC, &[("Lease-Id", &Grant::of(&granted).id)]).await;
    assert_eq!((renewed.status, renewed.header("lease-duration")), (200, Some("infinite")));
    let problem = lease(addr, "POST", DOC, &[]).await.refused(409, "lease-held");
    assert!(problem.retry_after_seconds.is_some(), "{problem:?}");
}

#[tokio::test]
async fn what_cannot_be_read_is_refused() {
    let (backend, proxy) = start(|setup| setup.route("lease.client_break = true")).await;
    let id = ("Lease-Id", IDS[0]);
    let version_one = "11111111-1111-1111-8111-111111111111";
    let long = "x".repeat(201);
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("POST", &[("Lease-Duration", "infinite")]),
        ("POST", &[("Lease-Duration", "0")]),
        ("POST", &[("Lease-Duration", "61")]),
        ("POST", &[("Lease-Duration", "-1")]),
        ("POST", &[("Lease-Duration", "1.5")]),
        ("POST", &[("Lease-Duration", "")]),
        ("POST", &[("Lease-Duration", "20"), ("Lease-Duration", "30")]),
        ("POST", &[("Lease-Id", "mine")]),
        ("POST", &[("Lease-Id", version_one)]),
        ("POST", &[id, id]),
        ("POST", &[("Lease-Holder", &long)]),
        ("PUT", &[]),
        ("PATCH", &[id]),
        ("PATCH", &[("Proposed-Lease-Id", IDS[1])]),
        ("PATCH", &[id, ("Proposed-Lease-Id", version_one)]),
        ("DELETE", &[]),
        ("DELETE", &[("Lease-Break-Period", "soon")]),
    ];
    for (method, fields) in cases {
        let refused = lease(proxy.addr(), method, DOC, fields).await;
        assert_eq!(refused.status, 400, "{method} {fields:?}: {refused:?}");
        refused.refused(400, "malformed-lease-header");
    }
    for method in ["GET", "PUT", "DELETE"] {
        let refused = send(proxy.addr(), method, DOC, &[("Lease-Id", "mine")], "").await;
        refused.refused(400, "malformed-lease-header");
    }
    assert_eq!(backend.requests().len(), 0, "nothing of it reached the backend");
}

#[tokio::test]
async fn other_methods_are_not_for_leases() {
    let (_backend, proxy) = start(|setup| setup).await;
    for method in ["LOCK", "TRACE"] {
        lease(proxy.addr(), method, DOC, &[]).await.refused(405, "method-not-allowed");
    }
}

#[tokio::test]
async fn everybody_may_see_a_lease_but_for_its_id() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    assert_eq!(view(addr, DOC).await, serde_json::json!({ "state": "available" }));
    let fields = [("Lease-Duration", "60"), ("Lease-Holder", "worker 7"), ("Lease-Id", IDS[0])];
    let grant = Grant::of(&lease(addr, "POST", DOC, &fields).await);
    let shown = lease(addr, "GET", DOC, &[]).await;
    assert_silent_about(IDS[0], &shown);
    let mut shown = view(addr, DOC).await;
    let remaining = shown["remaining"].take().as_u64().unwrap();
    assert!((40..=60).contains(&remaining), "{remaining}");
    let expected = serde_json::json!({
        "state": "leased", "duration": "fixed", "remaining": null, "holder": "worker 7", "fence": grant.fence
    });
    assert_eq!(shown, expected);
    let head = lease(addr, "HEAD", DOC, &[]).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[tokio::test]
async fn a_holder_may_have_a_name_of_any_script() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let name = "J\u{f6}rg \u{674e}";
    // A character of a field is an octet here.
    let octets: String = name.bytes().map(char::from).collect();
    for sent in [octets.as_str(), "UTF-8''J%C3%B6rg%20%E6%9D%8E"] {
        let grant = Grant::of(&lease(addr, "POST", DOC, &[("Lease-Holder", sent)]).await);
        assert_eq!(view(addr, DOC).await["holder"], name);
        let refused = lease(addr, "POST", DOC, &[]).await.refused(409, "lease-held");
        assert_eq!(refused.json["holder"], name);
        assert_eq!(lease(addr, "DELETE", DOC, &[("Lease-Id", &grant.id)]).await.status, 204);
    }
    lease(addr, "POST", DOC, &[("Lease-Holder", "UTF-8''%FF")]).await.refused(400, "malformed-lease-header");
}

#[tokio::test]
async fn reads_of_the_resource_show_its_lease_where_the_route_says_so() {
    let (_backend, proxy) = start(|setup| setup.route("lease.show = true")).await;
    let addr = proxy.addr();
    let free = get(addr, DOC).await;
    assert_eq!((free.header("lease-state"), free.header("lease-holder")), (Some("available"), None));
    let grant = Grant::of(&lease(addr, "POST", DOC, &[("Lease-Holder", "UTF-8''J%C3%B6rg")]).await);
    for fields in [&[][..], &[("If-None-Match", free.header("etag").unwrap_or("*"))]] {
        let held = send(addr, "GET", DOC, fields, "").await;
        assert_eq!(
            (held.header("lease-state"), held.header("lease-holder")),
            (Some("leased"), Some("UTF-8''J%C3%B6rg"))
        );
        assert_silent_about(&grant.id, &held);
    }
    let (_backend, proxy) = start(|setup| setup).await;
    lease(proxy.addr(), "POST", DOC, &[("Lease-Holder", "ann")]).await;
    let silent = get(proxy.addr(), DOC).await;
    assert_eq!((silent.header("lease-state"), silent.header("lease-holder")), (None, None));
}

#[tokio::test]
async fn a_lease_runs_out_by_itself() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "1").await;
    reaches(addr, DOC, "expired").await;
    assert!(acquire(addr, DOC, "30").await.fence > grant.fence);
}

/// Rule 11: a secret stands in the answer to the one who acquired it, and nowhere else.
#[tokio::test]
async fn no_answer_and_no_log_line_tells_an_id() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "30").await;
    let id = ("Lease-Id", &*grant.id);
    for response in [
        put_with(addr, DOC, &grant.id, "two").await,
        get(addr, DOC).await,
        send(addr, "GET", DOC, &[id], "").await,
        put(addr, DOC, &[], "three").await,
        put_with(addr, DOC, IDS[2], "three").await,
        lease(addr, "POST", DOC, &[]).await,
        lease(addr, "PATCH", DOC, &[id, ("Proposed-Lease-Id", "no id")]).await,
        lease(addr, "DELETE", DOC, &[id]).await,
    ] {
        assert_silent_about(&grant.id, &response);
    }
    assert_eq!(get(addr, "/the-last").await.status, 404);
    assert_absent_from_log(&proxy, &grant.id, "/the-last").await;
}
