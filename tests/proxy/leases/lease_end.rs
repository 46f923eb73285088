//! A holder that waits for the end of its lease (`GET` with `Lease-Id` and `Prefer: wait=N`).

use crate::support::{
    backend::Backend,
    leases::{IDS, acquire, is_in_line, lease, leasing},
    response::Response,
};

const DOC: &str = "/doc";

fn state(response: &Response) -> String {
    assert_eq!(response.status, 200, "{response:?}");
    let view: serde_json::Value = serde_json::from_slice(&response.body).expect("JSON");
    view["state"].as_str().expect("a word").to_owned()
}

#[tokio::test]
async fn a_holder_is_told_at_once_when_its_lease_has_ended() {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let setup = leasing(&backend).route("lease.client_break = true\nlease.auth = \"none\"");
    let proxy = setup.on_one_thread().start().await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "30").await;
    let waits = [("Lease-Id", &*grant.id), ("Prefer", "wait=20")];
    let breaks = async {
        is_in_line(addr, DOC).await;
        lease(addr, "DELETE", DOC, &[("Lease-Break-Period", "0")]).await
    };
    let (told, broken) = tokio::join!(lease(addr, "GET", DOC, &waits), breaks);
    assert_eq!((state(&told), broken.status), ("broken".to_owned(), 202));

    let short = acquire(addr, DOC, "1").await;
    assert_eq!(state(&lease(addr, "GET", DOC, &[("Lease-Id", &short.id), waits[1]]).await), "expired");

    let held = acquire(addr, DOC, "30").await;
    assert_eq!(state(&lease(addr, "GET", DOC, &[("Lease-Id", &held.id), ("Prefer", "wait=1")]).await), "leased");
    for fields in [&[waits[1]][..], &[("Lease-Id", IDS[2]), waits[1]]] {
        assert_eq!(state(&lease(addr, "GET", DOC, fields).await), "leased", "who does not hold it does not wait");
    }
}
