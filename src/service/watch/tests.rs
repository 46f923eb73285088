//! Watches over a guard with a store and a clock under the test's control.

use http::Method;
use serde_json::Value;

use crate::{
    core::{
        lease::testing::rules,
        policy::{GuardRules, LeaseGuards, LeaseRules, TagSource},
    },
    guard::testing::{Fault, Fixture, Response, When},
    testing::guard,
};

fn watched(lease: LeaseRules) -> GuardRules {
    GuardRules { watch: true, etag: TagSource::Version, other_writers: false, lease: Some(lease), ..guard() }
}

async fn watch(fixture: &Fixture, fields: &str) -> Response {
    fixture.exchange("doc", "/.watch/doc", Method::GET, fields, "").await
}

fn state(response: &Response) -> Value {
    assert_eq!(response.status, 200, "{}", response.body);
    serde_json::from_str(&response.body).expect("JSON")
}

/// Rule 2: a tag that a read would answer is told, and no other.
#[tokio::test]
async fn no_tag_is_told_while_a_lease_keeps_readers_away() {
    for (guards, is_told) in [(LeaseGuards::Write, true), (LeaseGuards::ReadAndWrite, false)] {
        let fixture = Fixture::with(watched(LeaseRules { guards, ..rules() })).await;
        let tag = Value::from(fixture.tag().await);
        assert_eq!(state(&watch(&fixture, "").await)["etag"], tag);
        assert_eq!(fixture.lease("doc", Method::POST, "Lease-Duration: 30\r\n").await.status, 201);
        let told = state(&watch(&fixture, "").await);
        assert_eq!((told["etag"] == tag, told["etag"].is_null()), (is_told, !is_told), "{guards:?}: {told}");
        assert_eq!(told["lease"]["state"], "leased");
    }
}

/// Rule 12: without the store, nothing is told.
#[tokio::test]
async fn a_store_that_fails_is_a_503() {
    let fixture = Fixture::with(watched(rules())).await;
    fixture.store.fail(Fault::Unavailable, When::From(0));
    assert_eq!(watch(&fixture, "").await.status, 503);
}
