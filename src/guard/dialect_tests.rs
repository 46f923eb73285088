//! One file and one variant make a dialect: the whole guard speaks the dialect of the tests (`dialect/toy.rs`).

use http::Method;

use super::testing::{Fault, Fixture, When};
use crate::{
    core::policy::{Dialect, GuardRules},
    testing::guard,
};

#[tokio::test]
async fn a_dialect_of_one_file_is_spoken_by_the_whole_guard() {
    let (_, toy) = *Dialect::NAMES.iter().find(|(name, _)| *name == "toy").expect("the toy dialect has a name");
    let fixture = Fixture::with(GuardRules { dialect: toy, quirks: toy.quirks(), ..guard() }).await;
    assert!(fixture.send(Method::GET, "", "").await.tag().is_some());
    let take = || Method::from_bytes(b"TAKE").expect("a method");
    assert_eq!(fixture.send(take(), "", "two").await.status, 204);
    assert_eq!((fixture.writes(), fixture.content().await), (1, "two".to_owned()));
    let named = fixture.send(take(), "Toy-Lease: 11111111-1111-4111-8111-111111111111\r\n", "three").await;
    assert_eq!((named.status, fixture.writes()), (412, 1), "there is no such lease");
    fixture.store.fail(Fault::Unavailable, When::From(0));
    let refused = fixture.send(take(), "", "four").await;
    assert_eq!((refused.status, refused.field("content-type")), (503, Some("text/plain")));
    assert_eq!(refused.body, "the store does not answer; nothing was written");
}
