//! The time that a process with leases on disk owes at its end: the next processes hold writes and grants back until it
//! is over, no matter how they end themselves (DESIGN, section 3, rule 20).

use std::{path::Path, time::Duration};

use tokio::time::{Instant, sleep};

use super::disk_crashes::{setup, start};
use crate::support::{
    backend::Backend,
    leases::lease,
    proxy::Proxy,
    raw::{Connection, get, send},
    wait::DEADLINE,
};

const DOC: &str = "/doc";
/// The time for which a write of the first process may come late, and the shorter one of its successors.
const WINDOW: Duration = Duration::from_secs(4);
const SHORTER: &str = "0s";

async fn kill(mut proxy: Proxy) {
    proxy.signal("KILL");
    proxy.exit_status().await;
}

async fn stop(mut proxy: Proxy) {
    proxy.signal("TERM");
    assert!(proxy.exit_status().await.success());
}

/// Kills a process with a write in flight. Returns the moment of its death.
async fn die_with_a_write_in_flight(backend: &Backend, file: &Path) -> Instant {
    let proxy = start(backend, file, "4s").await;
    let (held, addr) = (backend.hold("PUT", DOC), proxy.addr());
    let writer = tokio::spawn(async move { Connection::open(addr).await.try_exchange("PUT", DOC, &[], "late").await });
    let write = held.arrived().await;
    kill(proxy).await;
    drop(write);
    assert!(writer.await.unwrap().is_err(), "nobody was left to answer it");
    Instant::now()
}

async fn assert_all_held_back(proxy: &Proxy, when: &str) {
    send(proxy.addr(), "PUT", DOC, &[], when).await.refused(409, "write-in-flight");
    lease(proxy.addr(), "POST", DOC, &[("Lease-Duration", "30")]).await.refused(409, "write-in-flight");
}

/// Checks that a write is held back until the window since this moment is over, and no longer than it must.
async fn assert_held_back_since(proxy: &Proxy, began: Instant) {
    let end = Instant::now() + DEADLINE;
    while send(proxy.addr(), "PUT", DOC, &[], "next").await.status >= 400 {
        assert!(Instant::now() < end, "it is held back for ever");
        sleep(Duration::from_millis(20)).await;
    }
    assert!(began.elapsed() >= WINDOW, "a late write may still come after {:?}", began.elapsed());
}

/// Rule 20: neither a stop in good order nor a shorter window in the next configuration ends the hold.
#[tokio::test]
async fn the_hold_after_a_death_outlives_a_stop_and_another_configuration() {
    let (backend, directory) = (Backend::start().await, tempfile::tempdir().expect("a directory"));
    let file = directory.path().join("leases");
    let died = die_with_a_write_in_flight(&backend, &file).await;
    for round in ["the first stop", "the second stop"] {
        let proxy = start(&backend, &file, SHORTER).await;
        assert_all_held_back(&proxy, round).await;
        stop(proxy).await;
    }
    let proxy = start(&backend, &file, SHORTER).await;
    assert_all_held_back(&proxy, "the start after them").await;
    assert_held_back_since(&proxy, died).await;
    stop(proxy).await;
    let proxy = start(&backend, &file, SHORTER).await;
    assert_eq!(send(proxy.addr(), "PUT", DOC, &[], "last").await.status, 204, "the hold is over for good");
}

/// Rule 20: nor does a death during it.
#[tokio::test]
async fn the_hold_after_a_death_outlives_another_death() {
    let (backend, directory) = (Backend::start().await, tempfile::tempdir().expect("a directory"));
    let file = directory.path().join("leases");
    let died = die_with_a_write_in_flight(&backend, &file).await;
    let second = start(&backend, &file, SHORTER).await;
    assert_all_held_back(&second, "the second").await;
    kill(second).await;
    let proxy = start(&backend, &file, SHORTER).await;
    assert_all_held_back(&proxy, "the third").await;
    assert_held_back_since(&proxy, died).await;
}

/// Rule 20: a doubt that a client was told of outlives a stop in good order.
#[tokio::test]
async fn a_doubt_outlives_a_stop_and_another_configuration() {
    let (backend, directory) = (Backend::start().await, tempfile::tempdir().expect("a directory"));
    let file = directory.path().join("leases");
    let proxy = start(&backend, &file, "4s").await;
    let (held, addr) = (backend.hold("PUT", DOC), proxy.addr());
    let writer = tokio::spawn(async move { send(addr, "PUT", DOC, &[], "late").await });
    held.arrived().await.close();
    let told = writer.await.unwrap();
    assert_eq!((told.status, told.problem().in_doubt), (502, true), "{told:?}");
    let began = Instant::now();
    stop(proxy).await;
    let proxy = start(&backend, &file, SHORTER).await;
    assert_all_held_back(&proxy, "after the stop").await;
    assert_eq!(get(proxy.addr(), DOC).await.header("etag"), None, "a read may show what is replaced late");
    assert_held_back_since(&proxy, began).await;
}

/// Rule 20: a reload that shortens the window leaves the longer one to the writes before it.
#[tokio::test]
async fn a_reload_to_a_shorter_window_leaves_the_longer_one_owed() {
    let (backend, directory) = (Backend::start().await, tempfile::tempdir().expect("a directory"));
    let file = directory.path().join("leases");
    for (first, second) in [("4s", SHORTER), (SHORTER, "4s")] {
        let configured = |window: &str| setup(&backend, &file, window).server("control_socket = \"{control}\"");
        let proxy = configured(first).start().await;
        proxy.rewrite(&configured(second).configuration());
        let reload = proxy.reload(&[]).await;
        assert_eq!(reload.code, Some(0), "{}", reload.said);
        kill(proxy).await;
        let died = Instant::now();
        let proxy = start(&backend, &file, SHORTER).await;
        assert_all_held_back(&proxy, first).await;
        assert_held_back_since(&proxy, died).await;
        stop(proxy).await;
    }
}
