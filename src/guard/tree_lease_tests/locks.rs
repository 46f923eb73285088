//! The common parts of the tests of locks of collections.

use std::time::Duration;

use crate::{
    core::{
        lease::{
            Acquire, Action, Command, LeaseMode, step,
            testing::{TARGET, acquire, fixed, id, rules},
        },
        policy::{AbsentLease, Collections, GuardRules, LeaseRules, Require, TagSource},
        records::{
            record::{Availability, Mark, Revision},
            steps::{Outcome, Settlement, add_unclaimed, claim, settle},
            tree_leases::{LeaseReach, TREE_LEASES, TreeLease, list},
        },
        resource::ResourceKey,
    },
    guard::testing::{Fixture, Response, dialect},
    testing::{guard, wait_at_most},
};

pub(super) const FOLDER: &str = "backend:/doc/folder";
pub(super) const MEMBER: &str = "backend:/doc/folder/a";
pub(super) const ABSENT: &str = "backend:/doc/folder/absent";
pub(super) const INNER: &str = "backend:/doc/folder/inner-folder";
pub(super) const DEEP: &str = "backend:/doc/folder/inner-folder/a";
pub(super) const OTHER: &str = "backend:/doc/other";
/// Submits the id of the client 1.
pub(super) const TOKEN: &str = "If: (<opaquelocktoken:01010101-0101-4101-8101-010101010101>) (Not <DAV:no-lock>)\r\n";

pub(super) fn rules_waiting(max_wait: Duration) -> GuardRules {
    let webdav = dialect("webdav");
    GuardRules {
        dialect: webdav,
        quirks: webdav.quirks(),
        etag: TagSource::Version,
        other_writers: false,
        require: Require::Never,
        collections: Collections::WebDav,
        claim: wait_at_most(max_wait),
        lease: Some(LeaseRules { absent: AbsentLease::Allow, ..rules() }),
        ..guard()
    }
}

pub(super) async fn impatient() -> Fixture {
    Fixture::with(rules_waiting(Duration::from_millis(50))).await
}

pub(super) fn key(text: &str) -> ResourceKey {
    ResourceKey::from_text(text)
}

fn trees() -> ResourceKey {
    ResourceKey::of_collections("backend")
}

pub(super) async fn on(fixture: &Fixture, resource: &str, method: &str, fields: &str) -> Response {
    let path = resource.strip_prefix("backend:").expect("a key");
    let body = match method {
        "LOCK" => {
            let scope = if fields.contains("shared") { "shared" } else { "exclusive" };
            format!(
                "<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:{scope}/></D:lockscope><D:locktype><D:write/></D:locktype>\
                 </D:lockinfo>"
            )
        }
        "PUT" | "POST" => "two".to_owned(),
        _ => String::new(),
    };
    fixture.exchange(resource, path, method.parse().expect("a method"), fields, &body).await
}

pub(super) async fn lock(fixture: &Fixture, fields: &str) -> Response {
    on(fixture, FOLDER, "LOCK", fields).await
}

pub(super) fn token(locked: &Response) -> &str {
    assert!(matches!(locked.status, 200 | 201), "{}", locked.body);
    locked.field("lock-token").expect("a token")
}

/// Grants a lease to the client 1, by another process.
pub(super) async fn lease_elsewhere(fixture: &Fixture, resource: &str, mode: LeaseMode) -> Revision {
    let snapshot = fixture.store.look(&key(resource)).await;
    let Action::Acquire(wanted) = acquire(Some(id(1)), fixed(60)) else { unreachable!() };
    let command = Command {
        action: Action::Acquire(Acquire { mode, ..wanted }),
        principal: None,
        target: TARGET,
        has_signed: false,
    };
    let (record, _) = step(&snapshot, command, &rules()).expect("nobody holds it");
    fixture.store.put(&key(resource), record).await;
    fixture.store.look(&key(resource)).await.fence()
}

/// Puts a lease into the list, by another process.
pub(super) async fn list_elsewhere(fixture: &Fixture, (root, fence): (&str, Revision), reach: LeaseReach) {
    let record = list(&fixture.store.look(&trees()).await, &TreeLease { root: root.into(), fence, reach }, TREE_LEASES);
    fixture.store.put(&trees(), record.expect("there is room")).await;
}

pub(super) async fn lock_elsewhere(fixture: &Fixture, root: &str, mode: LeaseMode, reach: LeaseReach) {
    let fence = lease_elsewhere(fixture, root, mode).await;
    list_elsewhere(fixture, (root, fence), reach).await;
}

/// Marks a resource for a write of another process.
pub(super) async fn begin_elsewhere(fixture: &Fixture, resource: &str, is_claimed: bool) -> (Mark, Revision) {
    let snapshot = fixture.store.look(&key(resource)).await;
    let (deadline, late_write_window) = (snapshot.now.plus(Duration::from_secs(30)), Duration::from_secs(2));
    let mark = Mark { owner: 99, nonce: 1, deadline, late_write_window, leaves_lease: false };
    let marked = if is_claimed { claim(&snapshot, mark) } else { add_unclaimed(&snapshot, mark) };
    fixture.store.put(&key(resource), marked.expect("it is free")).await;
    (mark, fixture.store.look(&key(resource)).await.revision)
}

pub(super) async fn end_elsewhere(
    fixture: &Fixture,
    resource: &str,
    (mark, marked_at): (Mark, Revision),
    outcome: Outcome,
) {
    let snapshot = fixture.store.look(&key(resource)).await;
    let settlement = Settlement { mark, marked_at, outcome, leaves: None, learned: None, shown: None, end: None };
    fixture.store.put(&key(resource), settle(&snapshot, settlement).expect("the mark is there")).await;
}

pub(super) async fn is_busy(fixture: &Fixture, resource: &str) -> bool {
    matches!(fixture.store.look(&key(resource)).await.availability(), Availability::Busy { .. })
}

pub(super) async fn is_leased(fixture: &Fixture) -> bool {
    fixture.store.look(&key(FOLDER)).await.lease_state().is_held()
}

pub(super) async fn listed(fixture: &Fixture) -> usize {
    fixture.store.look(&trees()).await.record.trees.as_ref().map_or(0, |trees| trees.leases.len())
}
