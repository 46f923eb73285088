//! Leases beside writes in flight: a write that began under a lease ends under it (DESIGN, section 4).

use std::net::SocketAddr;

use tokio::task::JoinHandle;

use crate::support::{
    backend::{Answer, Backend, Held},
    leases::{acquire, fence, lease, leasing_versions, put_with, reaches, view},
    proxy::{Proxy, Setup},
    raw::put,
    response::Response,
};

const DOC: &str = "/doc";

async fn start(configure: impl FnOnce(Setup) -> Setup) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let proxy = configure(leasing_versions(&backend)).start().await;
    (backend, proxy)
}

/// Sends a PUT that the backend has received and not applied.
async fn begin_put(backend: &Backend, addr: SocketAddr, id: Option<&str>) -> (JoinHandle<Response>, Held) {
    let held = backend.hold("PUT", DOC);
    let id = id.map(str::to_owned);
    let writer = tokio::spawn(async move {
        match id {
            Some(id) => put_with(addr, DOC, &id, "two").await,
            None => put(addr, DOC, &[], "two").await,
        }
    });
    (writer, held.arrived().await)
}

#[tokio::test]
async fn a_renewal_passes_beside_ones_own_write_and_stays() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "2").await;
    let (writer, write) = begin_put(&backend, addr, Some(&grant.id)).await;
    // The lease goes on past its first end, while the write is at the backend all the time.
    let end = tokio::time::Instant::now() + std::time::Duration::from_millis(2_500);
    while tokio::time::Instant::now() < end {
        let renewed = lease(addr, "PUT", DOC, &[("Lease-Id", &grant.id)]).await;
        assert_eq!((renewed.status, fence(&renewed)), (200, grant.fence));
    }
    write.answer(Answer::stored()).await;
    assert_eq!(writer.await.unwrap().status, 204);
    assert_eq!(lease(addr, "PUT", DOC, &[("Lease-Id", &grant.id)]).await.status, 200, "the settlement has kept it");
    assert_eq!(put_with(addr, DOC, &grant.id, "three").await.status, 204);
}

#[tokio::test]
async fn nobody_is_granted_a_lease_beside_the_write_of_one_that_ran_out() {
    let (backend, proxy) = start(|setup| setup.route("claim = { max_wait = \"100ms\", max_waiters = 64 }")).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "2").await;
    let (writer, write) = begin_put(&backend, addr, Some(&grant.id)).await;
    reaches(addr, DOC, "expired").await;
    let refused = lease(addr, "POST", DOC, &[]).await;
    assert!(refused.refused(409, "write-in-flight").retry_after_seconds.is_some());
    write.answer(Answer::stored()).await;
    assert_eq!(writer.await.unwrap().status, 204, "what was admitted is finished");
    assert_eq!(backend.content(DOC).as_deref(), Some("two"));
    let next = acquire(addr, DOC, "30").await;
    assert!(next.fence > grant.fence);
    put_with(addr, DOC, &grant.id, "late").await.refused(412, "lease-id-mismatch");
}

/// The same, and the other one waits until the write is over.
#[tokio::test]
async fn a_grant_waits_for_the_write_of_a_lease_that_ran_out() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "2").await;
    let (writer, write) = begin_put(&backend, addr, Some(&grant.id)).await;
    let next = tokio::spawn(async move { lease(addr, "POST", DOC, &[("Prefer", "wait=20")]).await });
    reaches(addr, DOC, "expired").await;
    // The view is answered after the next client could have been granted the lease.
    for _ in 0..20 {
        assert_eq!(view(addr, DOC).await["state"], "expired");
    }
    assert!(!next.is_finished());
    write.answer(Answer::stored()).await;
    assert_eq!(writer.await.unwrap().status, 204);
    let granted = next.await.unwrap();
    assert!(granted.status == 201 && fence(&granted) > grant.fence, "{granted:?}");
}

/// The same for a write whose outcome is unknown (rule 3).
#[tokio::test]
async fn nobody_is_granted_a_lease_beside_a_doubt() {
    let (backend, proxy) = start(|setup| setup.upstream("late_write_window = \"3s\"")).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "2").await;
    let (writer, write) = begin_put(&backend, addr, Some(&grant.id)).await;
    reaches(addr, DOC, "expired").await;
    write.close();
    assert!(writer.await.unwrap().refused(502, "upstream-failed").in_doubt);
    let refused = lease(addr, "POST", DOC, &[]).await;
    let seconds = refused.refused(409, "write-in-flight").retry_after_seconds;
    assert!(seconds.is_some_and(|seconds| seconds <= 3), "{refused:?}");
    let end = tokio::time::Instant::now() + crate::support::wait::DEADLINE;
    while lease(addr, "POST", DOC, &[]).await.status != 201 {
        assert!(tokio::time::Instant::now() < end, "a doubt ends");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_lease_that_ran_out_is_renewed_where_nobody_else_has_written() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "2").await;
    assert_eq!(put_with(addr, DOC, &grant.id, "mine").await.status, 204);
    reaches(addr, DOC, "expired").await;
    let renewed = lease(addr, "PUT", DOC, &[("Lease-Id", &grant.id)]).await;
    assert_eq!((renewed.status, fence(&renewed)), (200, grant.fence));
    assert_eq!(put_with(addr, DOC, &grant.id, "mine again").await.status, 204);
}

/// A renewal proves that no other client has written.
#[tokio::test]
async fn a_lease_that_ran_out_is_not_renewed_where_somebody_else_has_written() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "1").await;
    reaches(addr, DOC, "expired").await;
    assert_eq!(put(addr, DOC, &[], "another's").await.status, 204);
    lease(addr, "PUT", DOC, &[("Lease-Id", &grant.id)]).await.refused(409, "lease-not-present");
}

/// The same while that write is still at the backend.
#[tokio::test]
async fn a_lease_that_ran_out_is_not_renewed_beside_a_write_of_somebody_else() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "1").await;
    reaches(addr, DOC, "expired").await;
    let (writer, write) = begin_put(&backend, addr, None).await;
    let id = grant.id.clone();
    let renewal = tokio::spawn(async move { lease(addr, "PUT", DOC, &[("Lease-Id", &id)]).await });
    for _ in 0..20 {
        assert_eq!(view(addr, DOC).await["state"], "expired");
    }
    write.answer(Answer::stored()).await;
    assert_eq!(writer.await.unwrap().status, 204);
    renewal.await.unwrap().refused(409, "lease-not-present");
}

#[tokio::test]
async fn a_release_passes_beside_ones_own_write() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "30").await;
    let (writer, write) = begin_put(&backend, addr, Some(&grant.id)).await;
    assert_eq!(lease(addr, "DELETE", DOC, &[("Lease-Id", &grant.id)]).await.status, 204);
    write.answer(Answer::stored()).await;
    assert_eq!(writer.await.unwrap().status, 204);
    assert!(acquire(addr, DOC, "30").await.fence > grant.fence);
}
