//! The common parts of the tests of trees: the resources, and the writes of another process.

use std::time::Duration;

use http::Method;

use crate::{
    core::{
        policy::{Collections, GuardRules, Require, TagSource},
        records::{
            record::{Availability, Mark, Revision},
            steps::{Outcome, Settlement, add_unclaimed, claim, settle},
            trees::TreeRoot,
            under_trees::claim_trees,
        },
        resource::ResourceKey,
    },
    guard::testing::{Fixture, Response},
    testing::{guard, wait_at_most},
};

pub(in crate::guard) const LATE_WRITE_WINDOW: Duration = Duration::from_secs(2);
pub(in crate::guard) const FOLDER: &str = "backend:/doc/folder";
pub(in crate::guard) const MEMBER: &str = "backend:/doc/folder/a";
pub(in crate::guard) const OTHER: &str = "backend:/doc/other";

pub(in crate::guard) fn rules(max_wait: Duration) -> GuardRules {
    let (etag, require, collections) = (TagSource::Version, Require::Never, Collections::WebDav);
    GuardRules { etag, other_writers: false, require, collections, claim: wait_at_most(max_wait), ..guard() }
}

pub(in crate::guard) async fn impatient() -> Fixture {
    Fixture::with(rules(Duration::from_millis(50))).await
}

pub(in crate::guard) async fn patient() -> Fixture {
    Fixture::with(rules(Duration::from_secs(20))).await
}

pub(in crate::guard) fn key(text: &str) -> ResourceKey {
    ResourceKey::from_text(text)
}

pub(in crate::guard) fn trees() -> ResourceKey {
    ResourceKey::of_collections("backend")
}

pub(in crate::guard) async fn on(fixture: &Fixture, resource: &str, method: Method, fields: &str) -> Response {
    let (path, body) =
        (resource.strip_prefix("backend:").expect("a key"), if method == Method::GET { "" } else { "two" });
    fixture.exchange(resource, path, method, fields, body).await
}

pub(in crate::guard) async fn delete(fixture: &Fixture) -> Response {
    on(fixture, FOLDER, Method::DELETE, "").await
}

pub(in crate::guard) fn mark(nonce: u64, now: crate::core::time::StoreTime) -> Mark {
    let deadline = now.plus(Duration::from_secs(60));
    Mark { owner: 99, nonce, deadline, late_write_window: LATE_WRITE_WINDOW, leaves_lease: false }
}

/// Marks a resource for a write of another process.
pub(in crate::guard) async fn begin_elsewhere(fixture: &Fixture, resource: &str, is_claimed: bool) -> (Mark, Revision) {
    let snapshot = fixture.store.look(&key(resource)).await;
    let mark = mark(1, snapshot.now);
    let marked = if is_claimed { claim(&snapshot, mark) } else { add_unclaimed(&snapshot, mark) };
    fixture.store.put(&key(resource), marked.expect("it is free")).await;
    (mark, fixture.store.look(&key(resource)).await.revision)
}

/// Begins the write of a tree in another process.
pub(in crate::guard) async fn begin_tree_elsewhere(fixture: &Fixture, root: &str) -> (Mark, Revision) {
    let snapshot = fixture.store.look(&trees()).await;
    let mark = mark(1, snapshot.now);
    let roots = [TreeRoot { key: root.into(), is_read: false }];
    fixture.store.put(&trees(), claim_trees(&snapshot, mark, &roots).expect("it is free")).await;
    (mark, fixture.store.look(&trees()).await.revision)
}

pub(in crate::guard) async fn end_elsewhere(
    fixture: &Fixture,
    key: &ResourceKey,
    (mark, marked_at): (Mark, Revision),
    outcome: Outcome,
) {
    let snapshot = fixture.store.look(key).await;
    let settlement = Settlement { mark, marked_at, outcome, leaves: None, learned: None, shown: None, end: None };
    fixture.store.put(key, settle(&snapshot, settlement).expect("the mark is there")).await;
}

pub(in crate::guard) async fn is_busy(fixture: &Fixture, key: &ResourceKey) -> bool {
    matches!(fixture.store.look(key).await.availability(), Availability::Busy { .. })
}
