//! Tests of locks of collections, which reach the resources below them (DESIGN, section 3, rules 1 and 10).

use std::time::Duration;

use super::testing::{Fault, Fixture, When, until};
use crate::core::{
    lease::LeaseMode,
    policy::{Collections, GuardRules},
    records::{record::Revision, steps::Outcome, tree_leases::LeaseReach},
};
use locks::{
    ABSENT, DEEP, FOLDER, INNER, MEMBER, OTHER, TOKEN, begin_elsewhere, end_elsewhere, impatient, is_busy, is_leased,
    key, lease_elsewhere, list_elsewhere, listed, lock, lock_elsewhere, on, rules_waiting, token,
};

mod locks;

/// Rule 10: a client without the token writes nothing below a locked collection, by any request.
#[tokio::test]
async fn a_lock_keeps_others_from_all_below() {
    let fixture = impatient().await;
    lock_elsewhere(&fixture, FOLDER, LeaseMode::Exclusive, LeaseReach::Tree).await;
    for (resource, method) in [
        (MEMBER, "PUT"),
        (MEMBER, "DELETE"),
        (ABSENT, "PUT"),
        (ABSENT, "MKCOL"),
        (DEEP, "PROPPATCH"),
        (INNER, "DELETE"),
        (FOLDER, "DELETE"),
        (MEMBER, "POST"),
    ] {
        let refused = on(&fixture, resource, method, "").await;
        assert_eq!((refused.status, fixture.writes()), (423, 0), "{method} {resource}: {}", refused.body);
        assert!(refused.body.contains("<D:href>/doc/folder</D:href>"), "{}", refused.body);
        let other = TOKEN.replace("0101-4101", "0202-4101");
        let refused = on(&fixture, resource, method, &other).await;
        assert_eq!((refused.status, fixture.writes()), (423, 0), "{method} {resource}: {}", refused.body);
    }
    for (source, destination, method) in [(MEMBER, OTHER, "MOVE"), (OTHER, MEMBER, "MOVE"), (OTHER, MEMBER, "COPY")] {
        let refused = fixture.transfer((source, destination), method, "").await;
        assert_eq!((refused.status, fixture.writes()), (423, 0), "{method}: {}", refused.body);
    }
    assert_eq!(on(&fixture, MEMBER, "GET", "").await.status, 200, "a lock guards writes");
    assert_eq!(on(&fixture, OTHER, "PUT", "").await.status, 204, "it is elsewhere");
    assert_eq!(fixture.transfer((MEMBER, OTHER), "COPY", "").await.status, 204, "it only reads");
}

#[tokio::test]
async fn its_holder_writes_all_below() {
    for (resource, method) in [(MEMBER, "PUT"), (MEMBER, "DELETE"), (ABSENT, "PUT"), (DEEP, "PUT"), (INNER, "DELETE")] {
        let fixture = impatient().await;
        lock_elsewhere(&fixture, FOLDER, LeaseMode::Exclusive, LeaseReach::Tree).await;
        let fence = fixture.store.look(&key(FOLDER)).await.fence();
        let answer = on(&fixture, resource, method, TOKEN).await;
        assert_eq!((answer.status, fixture.writes()), (204, 1), "{method} {resource}: {}", answer.body);
        assert!(fixture.last_fence().await.is_some_and(|sent| sent >= fence.0.to_string()), "{method} {resource}");
        assert!(is_leased(&fixture).await, "{method} {resource}: the lock stays");
    }
}

/// Rule 1: the lock is taken while the write has a mark. Its client learns of the lock only when that write has ended.
#[tokio::test]
async fn a_lock_waits_for_writes_below_that_have_begun() {
    for (depth, is_claimed) in [("infinity", true), ("infinity", false), ("0", true)] {
        let fields = format!("Depth: {depth}\r\n");
        let fixture = impatient().await;
        let elsewhere = begin_elsewhere(&fixture, MEMBER, is_claimed).await;
        let refused = lock(&fixture, &fields).await;
        assert_eq!(refused.status, 503, "{depth}: {}", refused.body);
        assert_eq!((is_leased(&fixture).await, listed(&fixture).await), (false, 0), "nothing is left");
        end_elsewhere(&fixture, MEMBER, elsewhere, Outcome::Applied).await;
        assert_eq!(lock(&fixture, &fields).await.status, 200, "{depth}");
        let patient = Fixture::with(rules_waiting(Duration::from_secs(20))).await;
        let elsewhere = begin_elsewhere(&patient, MEMBER, is_claimed).await;
        let (locked, ()) = tokio::join!(Box::pin(lock(&patient, &fields)), async {
            until("the lock", async || listed(&patient).await == 1).await;
            let refused = on(&patient, MEMBER, "DELETE", "").await;
            assert_eq!(refused.status, 423, "{depth}: no other write begins: {}", refused.body);
            end_elsewhere(&patient, MEMBER, elsewhere, Outcome::Applied).await;
        });
        assert_eq!(locked.status, 200, "{depth}: {}", locked.body);
    }
}

/// Publish, then check: the lock comes after the verdict on a write below, and before its mark.
#[tokio::test]
async fn a_mark_that_comes_after_a_lock_gives_way() {
    for method in ["PUT", "POST"] {
        let fixture = Fixture::sharing(rules_waiting(Duration::from_millis(50))).await;
        assert_eq!(on(&fixture, MEMBER, "GET", "").await.status, 200, "the record is recalled from here on");
        lock_elsewhere(&fixture, FOLDER, LeaseMode::Exclusive, LeaseReach::Tree).await;
        let refused = on(&fixture, MEMBER, method, "").await;
        assert_eq!((refused.status, fixture.writes()), (423, 0), "{method}: {}", refused.body);
        assert!(!is_busy(&fixture, MEMBER).await, "{method}: its mark is gone");
    }
}

/// A lease that is granted after the look of a lock below its collection is taken back.
#[tokio::test]
async fn a_lock_below_that_comes_after_a_lock_gives_way() {
    let fixture = Fixture::sharing(rules_waiting(Duration::from_millis(50))).await;
    assert_eq!(on(&fixture, MEMBER, "GET", "").await.status, 200);
    lock_elsewhere(&fixture, FOLDER, LeaseMode::Exclusive, LeaseReach::Tree).await;
    let refused = on(&fixture, MEMBER, "LOCK", "").await;
    assert_eq!(refused.status, 423, "{}", refused.body);
    assert!(refused.body.contains("no-conflicting-lock><D:href>/doc/folder</D:href>"), "{}", refused.body);
    assert!(!fixture.store.look(&key(MEMBER)).await.lease_state().is_held());
}

/// Between the look at a file and the grant, another client replaces the file by a collection. Its lock would not reach
/// the resources below.
#[tokio::test]
async fn what_becomes_a_collection_meanwhile_is_not_locked_as_a_file() {
    for becomes_folder in [true, false] {
        let patient = Fixture::with(rules_waiting(Duration::from_secs(20))).await;
        let elsewhere = begin_elsewhere(&patient, OTHER, true).await;
        let (answer, ()) = tokio::join!(Box::pin(on(&patient, OTHER, "LOCK", "")), async {
            until("the line", async || patient.has_line(&key(OTHER))).await;
            if becomes_folder {
                patient.show_folders();
            }
            end_elsewhere(&patient, OTHER, elsewhere, Outcome::Applied).await;
        });
        assert_eq!(answer.status, if becomes_folder { 503 } else { 200 }, "{}", answer.body);
        let is_held = patient.store.look(&key(OTHER)).await.lease_state().is_held();
        assert_eq!(is_held, !becomes_folder);
        if becomes_folder {
            assert_eq!(answer.field("retry-after"), Some("1"));
            assert_eq!(on(&patient, OTHER, "LOCK", "").await.status, 200);
            assert_eq!(listed(&patient).await, 1, "it is a lock of all below");
        }
    }
}

/// Rule 3: a write below may still come.
#[tokio::test]
async fn a_collection_is_not_locked_while_a_write_below_is_in_doubt() {
    let fixture = impatient().await;
    let elsewhere = begin_elsewhere(&fixture, MEMBER, true).await;
    end_elsewhere(&fixture, MEMBER, elsewhere, Outcome::Doubt).await;
    let refused = lock(&fixture, "").await;
    assert_eq!((refused.status, refused.field("retry-after")), (503, Some("2")), "{}", refused.body);
    assert!(!is_leased(&fixture).await);
    fixture.store.pass(2_000);
    assert_eq!(lock(&fixture, "").await.status, 200);
}

/// Rule 7: the owner of a mark below has died.
#[tokio::test]
async fn the_write_of_a_dead_owner_below_becomes_a_doubt() {
    let fixture = impatient().await;
    begin_elsewhere(&fixture, MEMBER, true).await;
    fixture.store.pass(30_000);
    assert_eq!(lock(&fixture, "").await.status, 503);
    fixture.store.pass(2_000);
    assert_eq!(lock(&fixture, "").await.status, 200);
}

/// RFC 4918 section 9.10.3: the answer names the lock in the way, and says that the collection is not locked for it.
#[tokio::test]
async fn a_lock_below_keeps_a_collection_from_being_locked() {
    for resource in [MEMBER, DEEP, INNER] {
        for (mode, scope, status) in [
            (LeaseMode::Exclusive, "", 207),
            (LeaseMode::Exclusive, "X: shared\r\n", 207),
            (LeaseMode::SHARED, "", 207),
            (LeaseMode::SHARED, "X: shared\r\n", 200),
        ] {
            let fixture = impatient().await;
            lease_elsewhere(&fixture, resource, mode).await;
            let answer = lock(&fixture, scope).await;
            assert_eq!(answer.status, status, "{resource} {mode:?} {scope}: {}", answer.body);
            if status == 207 {
                let path = resource.strip_prefix("backend:").expect("a key");
                let below = format!("<D:href>{path}</D:href><D:status>HTTP/1.1 423 Locked</D:status>");
                let own = "<D:href>/doc/folder</D:href><D:status>HTTP/1.1 424 Failed Dependency</D:status>";
                assert!(answer.body.contains(&below) && answer.body.contains(own), "{}", answer.body);
            }
            assert_eq!(
                (is_leased(&fixture).await, listed(&fixture).await),
                (status == 200, usize::from(status == 200))
            );
        }
        let fixture = impatient().await;
        lease_elsewhere(&fixture, resource, LeaseMode::Exclusive).await;
        assert_eq!(lock(&fixture, "Depth: 0\r\n").await.status, 200, "{resource}: it guards only who is a member");
    }
}

#[tokio::test]
async fn a_lock_ends_with_its_time_and_by_its_holder() {
    let fixture = impatient().await;
    lock_elsewhere(&fixture, FOLDER, LeaseMode::Exclusive, LeaseReach::Tree).await;
    fixture.store.pass(60_000);
    assert_eq!(on(&fixture, MEMBER, "PUT", "").await.status, 204, "it has ended");
    let locked = lock(&fixture, "Timeout: Second-60\r\n").await;
    let of_folder = token(&locked);
    assert_eq!(on(&fixture, MEMBER, "PUT", "").await.status, 423);
    fixture.store.pass(30_000);
    let submitted = format!("If: ({of_folder})\r\n");
    let refreshed = fixture.exchange(FOLDER, "/doc/folder", "LOCK".parse().expect("a method"), &submitted, "").await;
    assert_eq!(refreshed.status, 200, "{}", refreshed.body);
    fixture.store.pass(59_000);
    assert_eq!(on(&fixture, MEMBER, "PUT", "").await.status, 423, "it was refreshed");
    assert_eq!(on(&fixture, FOLDER, "UNLOCK", &format!("Lock-Token: {of_folder}\r\n")).await.status, 204);
    assert_eq!(on(&fixture, MEMBER, "PUT", "").await.status, 204);
    assert_eq!(listed(&fixture).await, 0, "both have ended");
}

/// A write below leaves no trace in the record of the collection, so it is unknown whether one has come.
#[tokio::test]
async fn a_lock_is_not_refreshed_after_its_end() {
    let fixture = impatient().await;
    let locked = lock(&fixture, "Timeout: Second-60\r\n").await;
    fixture.store.pass(60_000);
    // The field is true for any lock.
    let submitted = format!("If: ({}) (Not <DAV:no-lock>)\r\n", token(&locked));
    let refused = fixture.exchange(FOLDER, "/doc/folder", "LOCK".parse().expect("a method"), &submitted, "").await;
    assert_eq!(refused.status, 412, "{}", refused.body);
    assert_eq!(on(&fixture, MEMBER, "PUT", "").await.status, 204);
}

#[tokio::test]
async fn shared_locks_of_a_collection_stand_beside_each_other() {
    let fixture = impatient().await;
    let locks = [lock(&fixture, "X: shared\r\n").await, lock(&fixture, "X: shared\r\n").await];
    assert_eq!(lock(&fixture, "").await.status, 423, "an exclusive one does not");
    assert_eq!(on(&fixture, MEMBER, "LOCK", "").await.status, 423);
    let member = on(&fixture, MEMBER, "LOCK", "X: shared\r\n").await;
    for locked in locks.iter().chain([&member]) {
        let submitted = format!("If: ({})\r\n", token(locked));
        assert_eq!(on(&fixture, MEMBER, "PUT", &submitted).await.status, 204, "one of them suffices");
    }
    assert_eq!(on(&fixture, FOLDER, "UNLOCK", &format!("Lock-Token: {}\r\n", token(&locks[0]))).await.status, 204);
    assert_eq!(on(&fixture, FOLDER, "DELETE", "").await.status, 423, "the other one holds");
    assert_eq!(listed(&fixture).await, 1);
}

/// RFC 4918 section 7.4: with depth 0, a lock guards who is a member, and not what the members are.
#[tokio::test]
async fn a_lock_of_depth_0_guards_the_list_of_members() {
    for token in ["", TOKEN] {
        let fixture = impatient().await;
        lock_elsewhere(&fixture, FOLDER, LeaseMode::Exclusive, LeaseReach::Membership).await;
        let changes = if token.is_empty() { 423 } else { 204 };
        for (resource, method, status) in [
            (MEMBER, "PUT", 204),
            (MEMBER, "PROPPATCH", 204),
            (DEEP, "DELETE", 204),
            (ABSENT, "PUT", changes),
            (ABSENT, "MKCOL", changes),
            (ABSENT, "POST", changes),
            (MEMBER, "POST", 204),
            (FOLDER, "POST", changes),
            (MEMBER, "DELETE", changes),
            (INNER, "DELETE", changes),
        ] {
            let before = fixture.writes();
            let answer = on(&fixture, resource, method, token).await;
            assert_eq!(answer.status, status, "{method} {resource} {token}: {}", answer.body);
            assert_eq!(fixture.writes() - before, usize::from(status == 204), "{method} {resource} {token}");
            assert!(status == 204 || answer.body.contains("<D:href>/doc/folder</D:href>"), "{}", answer.body);
        }
        let moved = fixture.transfer((MEMBER, OTHER), "MOVE", token).await;
        assert_eq!(moved.status, changes, "{token}: {}", moved.body);
    }
}

/// Publish, then check, for the list of members too.
#[tokio::test]
async fn a_member_is_not_removed_beside_a_lock_of_depth_0() {
    let fixture = Fixture::sharing(rules_waiting(Duration::from_millis(50))).await;
    assert_eq!(on(&fixture, MEMBER, "GET", "").await.status, 200, "the record is recalled from here on");
    lock_elsewhere(&fixture, FOLDER, LeaseMode::Exclusive, LeaseReach::Membership).await;
    let refused = on(&fixture, MEMBER, "DELETE", "").await;
    assert_eq!((refused.status, fixture.writes()), (423, 0), "{}", refused.body);
}

/// For any failure of the store, a client that is refused has no lock, and no other client is kept away for it.
#[tokio::test]
async fn a_lock_that_was_not_told_leaves_nothing_behind() {
    let mut refused = 0;
    for failing in 0..12 {
        let fixture = impatient().await;
        fixture.store.fail(Fault::AnswerLost, When::Once(failing));
        let answer = lock(&fixture, "").await;
        fixture.store.fail(Fault::AnswerLost, When::Never);
        if answer.status == 200 {
            continue;
        }
        refused += 1;
        assert_eq!(answer.status, 503, "{failing}: {}", answer.body);
        until("the lock to be given back", async || !is_leased(&fixture).await).await;
        assert_eq!(on(&fixture, MEMBER, "PUT", "").await.status, 204, "{failing}");
    }
    assert!(refused >= 4, "each read and each swap failed once: {refused}");
}

/// The list is full of locks that have ended: their places are taken.
#[tokio::test]
async fn an_ended_lock_leaves_its_place() {
    let fixture = impatient().await;
    for number in 0..256 {
        list_elsewhere(&fixture, (OTHER, Revision(1_000 + number)), LeaseReach::Tree).await;
    }
    assert_eq!(lock(&fixture, "").await.status, 200);
    assert_eq!(listed(&fixture).await, 1);
    assert_eq!(on(&fixture, MEMBER, "PUT", "").await.status, 423);
}

/// Rule 12: whether a lock reaches a resource is known, or nothing is written.
#[tokio::test]
async fn a_write_below_fails_closed() {
    let fixture = impatient().await;
    lock_elsewhere(&fixture, FOLDER, LeaseMode::Exclusive, LeaseReach::Tree).await;
    for failing in 0..4 {
        fixture.store.fail(Fault::Unavailable, When::Once(failing));
        let refused = on(&fixture, MEMBER, "PUT", "").await;
        assert!(matches!(refused.status, 423 | 503), "{failing}: {}", refused.body);
    }
    assert_eq!(fixture.writes(), 0);
}

#[tokio::test]
async fn a_collection_is_not_locked_where_the_lock_would_not_hold() {
    let fixture = Fixture::with(GuardRules { collections: Collections::None, ..rules_waiting(Duration::ZERO) }).await;
    for depth in ["0", "infinity"] {
        let refused = lock(&fixture, &format!("Depth: {depth}\r\n")).await;
        assert_eq!(refused.status, 403, "{}", refused.body);
    }
    assert_eq!(on(&fixture, MEMBER, "GET", "").await.status, 200);
}
