//! One file and one variant make a dialect: the whole guard speaks the dialect of the tests (`dialect/toy.rs`).

use http::Method;

use super::testing::{Fault, Fixture, When};
use crate::{
    core::{
        lease::testing::rules,
        policy::{Dialect, GuardRules, LeaseAuth, LeaseRules},
    },
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

#[tokio::test]
async fn a_service_of_one_folder_uses_the_verbs_of_the_guard() {
    let (_, toy) = *Dialect::NAMES.iter().find(|(name, _)| *name == "toy").expect("the toy dialect has a name");
    let lease = Some(LeaseRules { infinite: true, auth: LeaseAuth::None, ..rules() });
    let fixture = Fixture::with(GuardRules { dialect: toy, quirks: toy.quirks(), lease, ..guard() }).await;
    let method = |name: &str| Method::from_bytes(name.as_bytes()).expect("a method");
    let kept = fixture.send(method("KEEP"), "", "").await;
    assert_eq!((kept.status, &*kept.body), (200, "one"));
    let id = kept.field("toy-lease").expect("the holder learns its lease").to_owned();
    assert_eq!((fixture.send(method("TAKE"), "", "two").await.status, fixture.writes()), (412, 0), "another holds it");
    assert_eq!(fixture.send(method("KEEP"), "", "").await.status, 409);
    assert_eq!(fixture.send(method("TAKE"), &format!("Toy-Lease: {id}\r\n"), "two").await.status, 204);
    assert_eq!(fixture.content().await, "two");
}
