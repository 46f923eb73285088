//! Tests of turns beside another process, which has signed the record because its write waits (DESIGN, section 3, rule
//! 16).

use std::time::Duration;

use http::Method;
use tokio::time::{sleep, timeout};

use super::testing::{Fixture, Response};
use crate::{
    core::{
        lease::{await_exclusive, testing::rules},
        policy::{GuardRules, LeaseAuth, LeaseRules, Require, TagSource},
        records::waiting::sign,
        resource::ResourceKey,
        route::{PathPattern, TouchTemplate},
    },
    testing::{guard, wait_at_most},
};

async fn start() -> Fixture {
    let path = PathPattern::parse("/doc").unwrap();
    Fixture::with(GuardRules {
        etag: TagSource::Version,
        other_writers: false,
        require: Require::Never,
        claim: wait_at_most(Duration::from_millis(50)),
        // The path of the fixture's requests has a key other than that of the requests.
        also_changes: vec![TouchTemplate::parse("/doc", &path).unwrap()],
        lease: Some(LeaseRules { auth: LeaseAuth::None, ..rules() }),
        ..guard()
    })
    .await
}

/// Signs a record for another process.
async fn wait_elsewhere(fixture: &Fixture, key: &str) {
    let key = ResourceKey::from_text(key);
    let snapshot = fixture.store.look(&key).await;
    let until = snapshot.now.plus(Duration::from_secs(60));
    fixture.store.put(&key, sign(&snapshot, 99, until).expect("there is room")).await;
}

fn assert_waited(refused: &Response) {
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body.contains("\"code\":\"write-in-flight\""), "{}", refused.body);
}

#[tokio::test]
async fn a_write_waits_for_the_turn_of_another_process() {
    // The resource itself, and one that the write changes too.
    for key in ["doc", "backend:/doc"] {
        let fixture = start().await;
        wait_elsewhere(&fixture, key).await;
        assert_waited(&fixture.send(Method::PUT, "", "two").await);
        assert_eq!(fixture.writes(), 0, "{key}");
        fixture.store.pass(60_000);
        assert_eq!(fixture.send(Method::PUT, "", "two").await.status, 204, "{key}: the other process is gone");
    }
}

#[tokio::test]
async fn a_grant_waits_for_the_turn_of_another_process() {
    let fixture = start().await;
    wait_elsewhere(&fixture, "doc").await;
    assert_waited(&fixture.lease("doc", Method::POST, "").await);
    fixture.store.pass(60_000);
    assert_eq!(fixture.lease("doc", Method::POST, "").await.status, 201, "the other process is gone");
}

/// Clients of another process that share a lease must not keep this one's waiting client away.
#[tokio::test]
async fn nobody_shares_a_lease_while_a_client_of_another_process_waits_to_have_it_alone() {
    let (fixture, key) = (start().await, ResourceKey::from_text("doc"));
    let share = "Lease-Duration: infinite\r\nLease-Mode: shared\r\n";
    assert_eq!(fixture.lease("doc", Method::POST, share).await.status, 201);
    let snapshot = fixture.store.look(&key).await;
    fixture.store.put(&key, await_exclusive(&snapshot, snapshot.now.plus(Duration::from_secs(5)))).await;
    let refused = fixture.lease("doc", Method::POST, share).await;
    assert_eq!((refused.status, refused.field("retry-after")), (409, Some("5")), "{}", refused.body);
    fixture.store.pass(5_000);
    assert_eq!(fixture.lease("doc", Method::POST, share).await.status, 201, "the other process is gone");
}

#[tokio::test]
async fn a_client_that_waits_for_holders_of_shared_leases_tells_other_processes() {
    for wanted in ["", "Lease-Mode: shared\r\nLease-Share: none\r\n"] {
        let (fixture, key) = (start().await, ResourceKey::from_text("doc"));
        let shared = fixture.lease("doc", Method::POST, "Lease-Duration: infinite\r\nLease-Mode: shared\r\n").await;
        let fields = format!("Prefer: wait=20\r\n{wanted}");
        let waits = fixture.lease("doc", Method::POST, &fields);
        let told = async {
            while !fixture.store.look(&key).await.is_exclusive_awaited(Duration::from_secs(1)) {
                sleep(Duration::from_millis(1)).await;
            }
            let id = shared.field("lease-id").expect("it is granted");
            assert_eq!(fixture.lease("doc", Method::DELETE, &format!("Lease-Id: {id}\r\n")).await.status, 204);
        };
        let both = async { tokio::join!(waits, told) };
        let (granted, ()) = timeout(Duration::from_secs(10), both).await.expect("a turn");
        assert_eq!(granted.status, 201, "{wanted}: {}", granted.body);
        assert!(!fixture.store.look(&key).await.is_exclusive_awaited(Duration::ZERO), "it waits no more");
    }
}
