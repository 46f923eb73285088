//! Locks over a guard with a store and a clock under the test's control.

use http::Method;
use serde_json::Value;

use crate::{
    core::{
        lease::{LeaseId, testing::rules},
        policy::{AbsentLease, GuardRules, LeaseAuth, LeaseRules, OnWrite, Require, TagSource},
        records::{record::Record, tree_leases::LISTED_LEASES},
        resource::ResourceKey,
    },
    guard::testing::{Fault, Fixture, OWNER, Response, When, dialect},
    store::Store as _,
    testing::guard,
};

const LOCKS: &str = "/doc/locks";
const KEY: &str = "backend:/doc/locks/art/hero";

fn of_locks(lease: LeaseRules) -> GuardRules {
    let git_lfs = dialect("git-lfs");
    GuardRules {
        dialect: git_lfs,
        quirks: git_lfs.quirks(),
        etag: TagSource::Upstream,
        on_write: OnWrite::Omit,
        require: Require::Never,
        append_methods: Vec::new(),
        lease: Some(lease),
        ..guard()
    }
}

fn locks() -> LeaseRules {
    LeaseRules { auth: LeaseAuth::Probe, absent: AbsentLease::Allow, ..rules() }
}

fn list() -> ResourceKey {
    ResourceKey::of_leases_below(&ResourceKey::from_text("backend:/doc/locks"))
}

async fn lock(fixture: &Fixture, fields: &str, path: &str) -> Response {
    fixture.send_for(LOCKS, Method::POST, fields, &format!(r#"{{"path":{path:?}}}"#)).await
}

fn document(response: &Response) -> Value {
    serde_json::from_str(&response.body).expect("JSON")
}

async fn shown(fixture: &Fixture, query: &str) -> Vec<String> {
    let told = document(&fixture.send_for(&format!("{LOCKS}{query}"), Method::GET, "", "").await);
    let locks = told["locks"].as_array().expect("a list");
    locks.iter().map(|lock| lock["id"].as_str().expect("an id").to_owned()).collect()
}

/// Rules 10 and 11: a lock is the lease of its path, and its id is not that of the lease.
#[tokio::test]
async fn a_lock_is_a_lease_whose_id_no_client_gets() {
    let fixture = Fixture::of_all_paths(of_locks(locks())).await;
    let held = lock(&fixture, OWNER, "art/hero").await;
    assert_eq!(held.status, 201, "{}", held.body);
    let found = fixture.store.look(&ResourceKey::from_text(KEY)).await;
    let lease = found.held_leases().next().expect("a lease");
    assert!(lease.end().is_none() && lease.principal.is_some());
    assert!(!held.body.contains(&lease.id.reveal()) && !held.head.contains(&lease.id.reveal()));
    let id = document(&held)["lock"]["id"].as_str().expect("an id").to_owned();
    assert_eq!(LeaseId::parse(id.as_bytes()).ok().filter(|id| *id == lease.id), None);
    for query in ["", "?path=art/hero", &format!("?id={id}")] {
        assert_eq!(shown(&fixture, query).await, [&*id], "{query}");
    }
    assert_eq!((shown(&fixture, "?path=other").await, shown(&fixture, "?id=0").await), (vec![], vec![]));
    let refused = lock(&fixture, "", "art/hero").await;
    assert_eq!((refused.status, &document(&refused)["lock"]["id"]), (409, &id.as_str().into()), "{}", refused.body);
}

/// The process that granted a lock may have died before it listed it.
#[tokio::test]
async fn a_lock_that_is_on_no_list_is_listed_before_it_is_shown() {
    for ask in [("POST", ""), ("GET", "?path=art/hero")] {
        let fixture = Fixture::of_all_paths(of_locks(locks())).await;
        assert_eq!(lock(&fixture, OWNER, "art/hero").await.status, 201);
        let listed = fixture.store.look(&list()).await;
        fixture.store.swap(&list(), listed.revision, Record { trees: None, ..listed.draft() }).await.expect("a store");
        assert_eq!(shown(&fixture, "").await.len(), 0);
        let target = format!("{LOCKS}{}", ask.1);
        fixture.send_for(&target, ask.0.parse().expect("a method"), "", r#"{"path":"art/hero"}"#).await;
        assert_eq!(shown(&fixture, "").await.len(), 1, "{ask:?}");
    }
}

/// Rule 15: a lock that cannot be listed is in force for no client.
#[tokio::test]
async fn a_lock_without_a_place_on_the_list_is_given_back() {
    let fixture = Fixture::of_all_paths(of_locks(locks())).await;
    assert_eq!(lock(&fixture, OWNER, &"a".repeat(LISTED_LEASES.bytes)).await.status, 413);
    // The grant is the first swap, and the entry of the list the second.
    fixture.store.fail(Fault::Unavailable, When::Never);
    assert_eq!(lock(&fixture, OWNER, "first").await.status, 201);
    let operations = fixture.store.asked();
    fixture.store.fail(Fault::Unavailable, When::Once(operations.reads + operations.swaps + operations.times - 1));
    let refused = lock(&fixture, OWNER, "second").await;
    assert_eq!(refused.status, 503, "{}", refused.body);
    fixture.store.fail(Fault::Unavailable, When::Never);
    let second = fixture.store.look(&ResourceKey::from_text("backend:/doc/locks/second")).await;
    assert!(second.leases().next().is_some() && second.held_leases().next().is_none(), "it was granted");
    assert_eq!(lock(&fixture, OWNER, "second").await.status, 201);
}

/// Rule 13: a list has an end.
#[tokio::test]
async fn a_repository_has_so_many_locks() {
    let rules = LeaseRules { max_per_principal: 1_000_000, max_per_address: 1_000_000, ..locks() };
    let fixture = Fixture::of_all_paths(of_locks(LeaseRules { auth: LeaseAuth::None, ..rules })).await;
    let long = "b".repeat(1_000);
    let mut count = 0;
    let refused = loop {
        let refused = lock(&fixture, OWNER, &format!("{long}/{count}")).await;
        if refused.status != 201 {
            break refused;
        }
        count += 1;
    };
    assert_eq!((refused.status, document(&refused)["code"].as_str()), (503, Some("store-full")), "{}", refused.body);
    assert_eq!(count, LISTED_LEASES.bytes / 1_024);
    let id = shown(&fixture, &format!("?path={long}/0")).await.remove(0);
    let unlocked = fixture.send_for(&format!("{LOCKS}/{id}/unlock"), Method::POST, OWNER, "").await;
    assert_eq!((unlocked.status, lock(&fixture, OWNER, &format!("{long}/{count}")).await.status), (200, 201));
}
