//! Tests of what a reload keeps: retries are recognised, leases counted, and no write passes the gate of its route
//! (DESIGN, section 3, rules 1, 6 and 13).

use std::time::Duration;

use http::Method;

use super::testing::Fixture;
use crate::{
    core::{
        lease::testing::rules,
        policy::{GuardRules, Idempotency, LeaseRules, Require, TagSource},
    },
    testing::guard,
};

fn versions() -> GuardRules {
    GuardRules { etag: TagSource::Version, other_writers: false, require: Require::Never, ..guard() }
}

#[tokio::test]
async fn a_retry_after_a_reload_is_not_sent_again() {
    let idempotency_ttl = Duration::from_secs(600);
    let rules = GuardRules { idempotency: Idempotency::Accept, idempotency_ttl, ..versions() };
    let mut fixture = Fixture::with(rules).await;
    for _ in 0..2 {
        assert_eq!(fixture.send(Method::POST, "Idempotency-Key: \"k\"\r\n", "two").await.status, 204);
        assert_eq!(fixture.writes(), 1);
        fixture.reload();
    }
}

#[tokio::test]
async fn the_leases_of_a_principal_count_after_a_reload() {
    let lease = Some(LeaseRules { max_per_principal: 1, ..rules() });
    let mut fixture = Fixture::with(GuardRules { lease, ..versions() }).await;
    assert_eq!(fixture.lease("doc", Method::POST, "").await.status, 201);
    fixture.reload();
    let refused = fixture.lease("other", Method::POST, "").await;
    assert!(refused.body.contains("\"code\":\"too-many-leases\""), "{} {}", refused.head, refused.body);
}

/// A reload has given the route other rules: claimed and unclaimed writes go there.
#[tokio::test]
async fn no_write_passes_the_gate_of_a_route_that_is_gone() {
    for method in [Method::PUT, Method::POST] {
        let fixture = Fixture::with(versions()).await;
        fixture.gate().retire();
        assert_eq!((fixture.send(method, "", "two").await.status, fixture.writes()), (409, 0));
    }
}
