//! Tests of the time after a start, when writes of the previous process may come late without a record of them. No read
//! from that time counts afterwards (DESIGN, section 3, rules 2 and 7).

use std::time::Duration;

use http::Method;

use super::testing::Fixture;
use crate::{
    core::policy::{GuardRules, Require, TagSource},
    testing::guard,
};

const HOLD: Duration = Duration::from_secs(30);

async fn started(etag: TagSource) -> Fixture {
    let guard = GuardRules { etag, other_writers: false, require: Require::Never, ..guard() };
    Fixture::held_back(guard, HOLD).await
}

#[tokio::test]
async fn a_read_carries_no_tag_while_writes_are_held_back() {
    for etag in [TagSource::Version, TagSource::Content] {
        let fixture = started(etag).await;
        let read = fixture.send(Method::GET, "", "").await;
        assert_eq!((read.status, read.tag(), read.body.as_str()), (200, None, "one"));
        let refused = fixture.send(Method::PUT, "", "two").await;
        assert_eq!((refused.status, refused.field("retry-after"), fixture.writes()), (409, Some("30"), 0));
        fixture.store.pass(30_000);
        let tag = fixture.tag().await;
        assert_eq!(fixture.put(&tag, "two").await.status, 204);
    }
}

#[tokio::test]
async fn a_write_beside_others_is_held_back_too() {
    let fixture = started(TagSource::Version).await;
    let refused = fixture.send(Method::POST, "", "two").await;
    assert_eq!((refused.status, refused.field("retry-after"), fixture.writes()), (409, Some("30"), 0));
    fixture.store.pass(30_000);
    assert_eq!(fixture.send(Method::POST, "", "two").await.status, 204);
}

#[tokio::test]
async fn what_a_read_has_shown_before_a_late_write_is_not_confirmed_after_it() {
    let tag_of_one = Fixture::new(TagSource::Content).await.tag().await;
    let fixture = started(TagSource::Content).await;
    fixture.send(Method::GET, "", "").await;
    fixture.write_late("late").await;
    fixture.store.pass(30_000);
    let read = fixture.send(Method::GET, &format!("If-None-Match: {tag_of_one}\r\n"), "").await;
    assert_eq!((read.status, read.body.as_str()), (200, "late"));
}
