//! Tests of grants whose answer was lost, between the store and the proxy or before the client: no lease stands without
//! a client that has its id (DESIGN, section 3, rule 15).

use std::time::Duration;

use http::Method;
use tokio::time::{sleep, timeout};

use super::testing::{Fault, Fixture, Response, When};
use crate::{
    core::{
        lease::testing::rules,
        policy::{GuardRules, LeaseAuth, LeaseRules, Require, TagSource},
        resource::ResourceKey,
    },
    testing::guard,
};

const FAULTS: [Fault; 3] = [Fault::AnswerLost, Fault::Hangs, Fault::Unavailable];
const ID: &str = "Lease-Id: 11111111-1111-4111-8111-111111111111\r\n";

async fn start() -> Fixture {
    let rules = LeaseRules { auth: LeaseAuth::None, ..rules() };
    let (etag, require) = (TagSource::Version, Require::Never);
    Fixture::with(GuardRules { etag, other_writers: false, require, lease: Some(rules), ..guard() }).await
}

async fn acquire(fixture: &Fixture, fields: &str) -> Response {
    fixture.lease("doc", Method::POST, &format!("Lease-Duration: infinite\r\n{fields}")).await
}

async fn is_leased(fixture: &Fixture) -> bool {
    fixture.store.look(&ResourceKey::from_text("doc")).await.lease_state().is_held()
}

async fn until_free(fixture: &Fixture, case: &str) {
    let freed = async {
        while is_leased(fixture).await {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), freed).await.unwrap_or_else(|_| panic!("{case}: the lease stands"));
}

/// The client has repeated its request through another process before the grant is taken back.
#[tokio::test]
async fn a_lost_grant_that_its_holder_has_learned_of_stands() {
    let (fixture, key) = (start().await, ResourceKey::from_text("doc"));
    fixture.store.fail(Fault::AnswerLost, When::From(1));
    assert_eq!(acquire(&fixture, ID).await.status, 503);
    // A repeated acquisition puts the same lease into the record again, and gives the client its id.
    let granted = fixture.store.look(&key).await;
    fixture.store.put(&key, granted.draft()).await;
    fixture.store.fail(Fault::Unavailable, When::Never);
    let looked_for = async {
        while fixture.store.asked().reads == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), looked_for).await.expect("the grant is looked for");
    // A late attempt to take the grant back comes with the same look.
    sleep(Duration::from_millis(50)).await;
    assert!(is_leased(&fixture).await, "its holder works under it");
}

/// Either the proxy made the id, which the client never received, or the client chose it.
/// Rule 15: no lease stands without a client that has its id.
#[tokio::test]
async fn a_grant_whose_answer_was_lost_is_taken_back() {
    for id in ["", ID] {
        for fault in FAULTS {
            let case = format!("{fault:?} {id:?}");
            let fixture = start().await;
            fixture.store.fail(fault, When::Once(1));
            let refused = acquire(&fixture, id).await;
            assert_eq!(refused.status, 503, "{case}: {}", refused.body);
            until_free(&fixture, &case).await;
            let other = acquire(&fixture, "").await;
            assert_eq!(other.status, 201, "{case}: {}", other.body);
            // A late attempt to take the first grant back must not remove this one.
            sleep(Duration::from_millis(200)).await;
            assert!(is_leased(&fixture).await, "{case}: the lease was granted and the client got its id");
        }
    }
}

/// Rule 15: a client that has not received the id of its lease leaves none behind, no matter how long it would last.
#[tokio::test]
async fn a_grant_whose_answer_reached_no_client_is_taken_back() {
    for duration in ["60", "infinite"] {
        let fixture = start().await;
        fixture.lease_unheard("doc", Method::POST, &format!("Lease-Duration: {duration}\r\n")).await;
        until_free(&fixture, duration).await;
    }
}

#[tokio::test]
async fn a_client_that_has_chosen_its_id_keeps_its_lease_without_an_answer() {
    let fixture = start().await;
    fixture.lease_unheard("doc", Method::POST, &format!("Lease-Duration: 60\r\n{ID}")).await;
    // A late attempt to take the grant back comes at once, or never.
    sleep(Duration::from_millis(50)).await;
    assert!(is_leased(&fixture).await, "its holder knows the id");
}
