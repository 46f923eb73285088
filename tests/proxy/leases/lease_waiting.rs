//! Waiting for a lease (`Prefer: wait=N`, RFC 7240 section 4.3): first come, first served.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use h2::Reason;
use tokio::task::JoinHandle;

use crate::support::{
    backend::{Answer, Backend},
    h2c,
    leases::{Grant, acquire, is_in_line, lease, leasing, leasing_versions, release, view},
    proxy::{Proxy, Setup},
    raw::{Connection, get},
    response::Response,
    wait::until,
};

const DOC: &str = "/doc";
const LEASE: &str = "/.leases/doc";

/// One thread, so that clients are served in the order in which they came.
async fn start(configure: impl FnOnce(Setup) -> Setup) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let proxy = configure(leasing_versions(&backend)).on_one_thread().start().await;
    (backend, proxy)
}

/// Sends a request that waits for the lease, and comes back when it does so.
async fn begin_wait(backend: &Backend, addr: SocketAddr, label: &str, seconds: u32) -> JoinHandle<Response> {
    let probes = backend.count("HEAD", DOC);
    let fields = [("Prefer".to_owned(), format!("wait={seconds}")), ("Lease-Holder".to_owned(), label.to_owned())];
    let waiter = tokio::spawn(async move {
        let fields = fields.each_ref().map(|(name, value)| (&**name, &**value));
        lease(addr, "POST", DOC, &fields).await
    });
    settle_down(backend, addr, probes).await;
    waiter
}

/// Waits until the client that comes after so many probes is in the line.
async fn settle_down(backend: &Backend, addr: SocketAddr, probes: usize) {
    backend.reached("HEAD", DOC, probes + 1).await;
    is_in_line(addr, DOC).await;
}

#[track_caller]
fn granted_after_wait(response: &Response) -> Grant {
    assert_eq!((response.status, response.header("preference-applied")), (201, Some("wait")), "{response:?}");
    Grant::of(response)
}

#[tokio::test]
async fn waiters_get_the_lease_in_the_order_of_their_coming() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let first = acquire(addr, DOC, "60").await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = Vec::new();
    for number in 0..5 {
        let waiter = begin_wait(&backend, addr, "in line", 20).await;
        let order = Arc::clone(&order);
        waiters.push(tokio::spawn(async move {
            let grant = granted_after_wait(&waiter.await.unwrap());
            order.lock().unwrap().push((number, grant.fence));
            release(addr, DOC, &grant.id).await;
        }));
    }
    release(addr, DOC, &first.id).await;
    for waiter in waiters {
        waiter.await.unwrap();
    }
    let (numbers, fences): (Vec<_>, Vec<_>) = order.lock().unwrap().iter().copied().unzip();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    assert!(fences.is_sorted_by(|one, next| one < next) && first.fence < fences[0], "{fences:?}");
}

/// The lease is free, and the first of the line has not taken it yet: its condition is being judged.
#[tokio::test]
async fn who_does_not_wait_does_not_get_in_before_those_who_do() {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let proxy =
        leasing(&backend).route("etag = \"content\"\nlease.auth = \"none\"\nlease.absent = \"allow\"").start().await;
    let addr = proxy.addr();
    let tag = get(addr, DOC).await.etag();
    let held = backend.hold("GET", DOC);
    let first = tokio::spawn(async move {
        lease(addr, "POST", DOC, &[("Prefer", "wait=20"), ("Lease-Holder", "first"), ("If-Match", &tag)]).await
    });
    let probe = held.arrived().await;
    lease(addr, "POST", DOC, &[("Lease-Holder", "late")]).await.refused(409, "lease-held");
    probe.answer(Answer::stored()).await;
    assert_eq!(first.await.unwrap().status, 201);
    assert_eq!(view(addr, DOC).await["holder"], "first");
}

#[tokio::test]
async fn a_lease_that_is_free_is_granted_without_a_wait() {
    let (_backend, proxy) = start(|setup| setup).await;
    let granted = lease(proxy.addr(), "POST", DOC, &[("Prefer", "wait=20")]).await;
    assert_eq!((granted.status, granted.header("preference-applied")), (201, None));
}

#[tokio::test]
async fn a_waiter_wakes_when_the_lease_runs_out() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let (began, first) = (Instant::now(), acquire(addr, DOC, "2").await);
    let granted = lease(addr, "POST", DOC, &[("Prefer", "wait=20")]).await;
    assert!(granted_after_wait(&granted).fence > first.fence);
    let took = began.elapsed();
    assert!((Duration::from_secs(2)..Duration::from_secs(10)).contains(&took), "{took:?}");
}

/// A waiter goes by the end as it is, not as it was when it came.
#[tokio::test]
async fn a_waiter_does_not_wake_before_the_end_of_a_renewed_lease() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let first = acquire(addr, DOC, "3").await;
    let waiter = begin_wait(&backend, addr, "next", 20).await;
    let renewed = Instant::now();
    assert_eq!(lease(addr, "PUT", DOC, &[("Lease-Id", &first.id)]).await.status, 200);
    granted_after_wait(&waiter.await.unwrap());
    let took = renewed.elapsed();
    assert!((Duration::from_secs(3)..Duration::from_secs(10)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn a_waiter_wakes_when_the_lease_is_broken() {
    let (backend, proxy) = start(|setup| setup.route("lease.client_break = true")).await;
    let addr = proxy.addr();
    let first = acquire(addr, DOC, "60").await;
    let waiter = begin_wait(&backend, addr, "next", 20).await;
    let (began, at_once) = (Instant::now(), [("Lease-Break-Period", "0")]);
    assert_eq!(lease(addr, "DELETE", DOC, &at_once).await.status, 202);
    assert!(granted_after_wait(&waiter.await.unwrap()).fence > first.fence);
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// A client that waited in vain, at any place in the line, gets the same answer as one that did not wait.
#[tokio::test]
async fn a_wait_that_is_too_long_ends_with_the_word_of_the_holder() {
    let (backend, proxy) = start(|setup| setup.route("lease.max_wait = \"3s\"")).await;
    let addr = proxy.addr();
    let fields = [("Lease-Duration", "60"), ("Lease-Holder", "worker 7")];
    assert_eq!(lease(addr, "POST", DOC, &fields).await.status, 201);
    let began = Instant::now();
    let waiters = [begin_wait(&backend, addr, "a", 60).await, begin_wait(&backend, addr, "b", 1).await];
    for waiter in waiters {
        let problem = waiter.await.unwrap().refused(409, "lease-held");
        assert_eq!(problem.json["holder"], "worker 7", "{problem:?}");
        let seconds = problem.retry_after_seconds.unwrap();
        assert!((30..60).contains(&seconds), "{seconds}");
    }
    let took = began.elapsed();
    assert!((Duration::from_secs(3)..Duration::from_secs(15)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn only_so_many_wait_at_once() {
    let (backend, proxy) = start(|setup| setup.route("lease.max_waiters = 1")).await;
    let addr = proxy.addr();
    let fields = [("Lease-Duration", "60"), ("Lease-Holder", "worker 7")];
    let first = Grant::of(&lease(addr, "POST", DOC, &fields).await);
    let waiter = begin_wait(&backend, addr, "in line", 20).await;
    let began = Instant::now();
    let problem = lease(addr, "POST", DOC, &[("Prefer", "wait=20")]).await.refused(409, "lease-held");
    assert!(began.elapsed() < Duration::from_secs(10), "it did not wait");
    assert_eq!(problem.json["holder"], "worker 7", "{problem:?}");
    release(addr, DOC, &first.id).await;
    granted_after_wait(&waiter.await.unwrap());
}

/// How a client leaves while it waits.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    Closes,
    Resets,
    ResetsStream,
    ClosesHttp2,
}

#[tokio::test]
async fn a_waiter_that_leaves_makes_room_for_the_next() {
    for leaves in [Leaves::Closes, Leaves::Resets, Leaves::ResetsStream, Leaves::ClosesHttp2] {
        let (backend, proxy) = start(|setup| setup).await;
        let addr = proxy.addr();
        let first = acquire(addr, DOC, "60").await;
        let (probes, fields) = (backend.count("HEAD", DOC), [("prefer", "wait=30"), ("lease-holder", "gone")]);
        let posts = || proxy.log().matches("method=\"POST\"").count();
        until("the grant to be logged", || posts() == 1).await;
        let next = if matches!(leaves, Leaves::Closes | Leaves::Resets) {
            let mut client = Connection::open(addr).await;
            client.request("POST", LEASE, &fields, "").await;
            settle_down(&backend, addr, probes).await;
            let next = begin_wait(&backend, addr, "next", 20).await;
            if matches!(leaves, Leaves::Resets) {
                client.reset();
            } else {
                drop(client);
            }
            next
        } else {
            let mut client = h2c::Connection::open(addr).await;
            let stream = client.begin_without_body("POST", LEASE, &fields).await;
            settle_down(&backend, addr, probes).await;
            let next = begin_wait(&backend, addr, "next", 20).await;
            if matches!(leaves, Leaves::ResetsStream) {
                stream.reset(Reason::CANCEL);
            } else {
                drop((stream, client));
            }
            next
        };
        until("the end of the request whose client is gone", || posts() == 2).await;
        release(addr, DOC, &first.id).await;
        granted_after_wait(&next.await.unwrap());
        assert_eq!(view(addr, DOC).await["holder"], "next", "{leaves:?}");
    }
}

/// The same where it stands further back in the line.
#[tokio::test]
async fn a_waiter_that_leaves_from_the_middle_is_not_waited_for() {
    let (backend, proxy) = start(|setup| setup.route("lease.max_waiters = 2")).await;
    let addr = proxy.addr();
    let first = acquire(addr, DOC, "60").await;
    let second = begin_wait(&backend, addr, "second", 20).await;
    let (probes, posts) = (backend.count("HEAD", DOC), || proxy.log().matches("method=\"POST\"").count());
    let mut gone = Connection::open(addr).await;
    gone.request("POST", LEASE, &[("Prefer", "wait=30")], "").await;
    settle_down(&backend, addr, probes).await;
    until("the line of the holder", || posts() == 1).await;
    drop(gone);
    until("the end of the request whose client is gone", || posts() == 2).await;
    let third = begin_wait(&backend, addr, "third", 20).await;
    release(addr, DOC, &first.id).await;
    release(addr, DOC, &granted_after_wait(&second.await.unwrap()).id).await;
    granted_after_wait(&third.await.unwrap());
}
