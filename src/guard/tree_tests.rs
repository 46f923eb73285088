//! Tests of DELETE, COPY and MOVE of collections, which change all resources below (DESIGN, section 3, rules 1 to 4).

use std::time::Duration;

use http::Method;

use super::testing::{Fault, Fixture, When, code, until};
use crate::core::{
    lease,
    policy::{GuardRules, TagSource},
    records::{record::Availability, steps::Outcome},
};
use elsewhere::{
    FOLDER, MEMBER, OTHER, begin_elsewhere, begin_tree_elsewhere, delete, end_elsewhere, impatient, is_busy, key, on,
    patient, rules, trees,
};

pub(super) mod elsewhere;

/// Rule 1: the collection, its destination and the trees are claimed before the first byte.
#[tokio::test]
async fn a_tree_is_claimed_and_settled() {
    for method in ["DELETE", "MOVE", "COPY"] {
        let fixture = impatient().await;
        let held = fixture.hold_writes().await;
        let write = async {
            match method {
                "DELETE" => delete(&fixture).await,
                _ => fixture.transfer((FOLDER, OTHER), method, "").await,
            }
        };
        let (answer, ()) = tokio::join!(Box::pin(write), async {
            until("the marks", async || is_busy(&fixture, &trees()).await && is_busy(&fixture, &key(FOLDER)).await)
                .await;
            assert_eq!(is_busy(&fixture, &key(OTHER)).await, method != "DELETE", "{method}");
            drop(held);
        });
        assert_eq!((answer.status, fixture.writes()), (204, 1), "{method}: {}", answer.body);
        for key in [trees(), key(FOLDER), key(OTHER)] {
            assert_eq!(fixture.store.look(&key).await.availability(), Availability::Free, "{method} {key}");
        }
        let kept = fixture.store.look(&trees()).await.record.trees.clone().expect("trees");
        let changed: Vec<_> = kept.changes.iter().map(|change| &*change.root).collect();
        let expected: &[&str] = match method {
            "DELETE" => &[FOLDER],
            "MOVE" => &[FOLDER, OTHER],
            _ => &[OTHER],
        };
        assert_eq!((changed.as_slice(), kept.roots.as_slice()), (expected, &[][..]), "{method}");
    }
}

/// Rule 1: no write below a tree begins while it is written, and each is carried out afterwards.
#[tokio::test]
async fn a_write_below_a_tree_waits_for_it() {
    for method in [Method::PUT, Method::POST, Method::DELETE] {
        let fixture = impatient().await;
        let elsewhere = begin_tree_elsewhere(&fixture, FOLDER).await;
        let refused = on(&fixture, MEMBER, method.clone(), "").await;
        assert_eq!((code(&refused), fixture.writes()), ((409, "write-in-flight"), 0), "{method}: {}", refused.body);
        assert_eq!(on(&fixture, OTHER, method.clone(), "").await.status, 204, "{method}: it is elsewhere");
        end_elsewhere(&fixture, &trees(), elsewhere, Outcome::Applied).await;
        assert_eq!(on(&fixture, MEMBER, method.clone(), "").await.status, 204, "{method}");
    }
}

/// Rule 1: the wait ends with the tree, and not before.
#[tokio::test]
async fn a_write_that_waits_for_a_tree_goes_on_at_its_end() {
    let fixture = patient().await;
    let elsewhere = begin_tree_elsewhere(&fixture, FOLDER).await;
    let (answer, ()) = tokio::join!(Box::pin(on(&fixture, MEMBER, Method::PUT, "")), async {
        until("the line", async || fixture.has_line(&key(MEMBER))).await;
        assert_eq!(fixture.writes(), 0);
        end_elsewhere(&fixture, &trees(), elsewhere, Outcome::Applied).await;
    });
    assert_eq!(answer.status, 204, "{}", answer.body);
}

/// Rule 1: two processes. The write of a tree waits for the writes below it that have begun.
#[tokio::test]
async fn a_tree_waits_for_writes_below_it() {
    for is_claimed in [true, false] {
        let fixture = impatient().await;
        let elsewhere = begin_elsewhere(&fixture, MEMBER, is_claimed).await;
        let refused = delete(&fixture).await;
        assert_eq!((code(&refused), fixture.writes()), ((409, "write-in-flight"), 0), "{}", refused.body);
        for key in [trees(), key(FOLDER)] {
            assert!(!is_busy(&fixture, &key).await, "{key}: nothing is held");
        }
        end_elsewhere(&fixture, &key(MEMBER), elsewhere, Outcome::Applied).await;
        assert_eq!(delete(&fixture).await.status, 204);
    }
}

#[tokio::test]
async fn a_tree_goes_on_when_the_last_write_below_it_has_ended() {
    let fixture = patient().await;
    let elsewhere = begin_elsewhere(&fixture, MEMBER, true).await;
    let (answer, ()) = tokio::join!(Box::pin(delete(&fixture)), async {
        until("the claim of trees", async || is_busy(&fixture, &trees()).await).await;
        assert_eq!(fixture.writes(), 0);
        end_elsewhere(&fixture, &key(MEMBER), elsewhere, Outcome::Applied).await;
    });
    assert_eq!(answer.status, 204, "{}", answer.body);
}

/// Publish, then check: the tree is claimed after a write below it was judged, and before that has made its mark.
#[tokio::test]
async fn a_mark_that_comes_after_that_of_a_tree_gives_way() {
    for method in [Method::PUT, Method::POST] {
        let fixture = Fixture::sharing(rules(Duration::from_millis(50))).await;
        assert_eq!(on(&fixture, MEMBER, Method::GET, "").await.status, 200, "the record is recalled from here on");
        let elsewhere = begin_tree_elsewhere(&fixture, FOLDER).await;
        let refused = on(&fixture, MEMBER, method.clone(), "").await;
        assert_eq!((code(&refused), fixture.writes()), ((409, "write-in-flight"), 0), "{method}: {}", refused.body);
        assert!(!is_busy(&fixture, &key(MEMBER)).await, "{method}: its mark is gone");
        end_elsewhere(&fixture, &trees(), elsewhere, Outcome::Applied).await;
        assert_eq!(on(&fixture, MEMBER, method.clone(), "").await.status, 204, "{method}");
    }
}

/// The whole tree may have been replaced between the verdict on a write below it and its mark.
#[tokio::test]
async fn a_write_that_was_judged_before_a_tree_has_changed_is_judged_again() {
    let fixture = Fixture::sharing(rules(Duration::from_millis(50))).await;
    let tag = on(&fixture, MEMBER, Method::GET, "").await.tag().expect("a tag").to_owned();
    let elsewhere = begin_tree_elsewhere(&fixture, FOLDER).await;
    end_elsewhere(&fixture, &trees(), elsewhere, Outcome::Applied).await;
    let refused = on(&fixture, MEMBER, Method::PUT, &format!("If-Match: {tag}\r\n")).await;
    assert_eq!((code(&refused), fixture.writes()), ((412, "precondition-failed"), 0), "{}", refused.body);
    let tag = on(&fixture, MEMBER, Method::GET, "").await.tag().expect("a tag").to_owned();
    assert_eq!(on(&fixture, MEMBER, Method::PUT, &format!("If-Match: {tag}\r\n")).await.status, 204);
}

/// Rule 2: no tag that was given for what a tree held counts for what it holds afterwards.
#[tokio::test]
async fn a_tag_of_before_a_tree_has_changed_is_stale() {
    for (method, changed) in [("DELETE", FOLDER), ("MOVE", FOLDER), ("MOVE", OTHER), ("COPY", OTHER)] {
        let fixture = impatient().await;
        let member = format!("{changed}/a");
        let read = async |fields: &str| on(&fixture, &member, Method::GET, fields).await;
        let tag = read("").await.tag().expect("a tag").to_owned();
        let none_match = format!("If-None-Match: {tag}\r\n");
        assert_eq!(read(&none_match).await.status, 304, "{method}: it is confirmed from memory");
        let answer = match method {
            "DELETE" => delete(&fixture).await,
            _ => fixture.transfer((FOLDER, OTHER), method, "").await,
        };
        assert_eq!(answer.status, 204, "{method}: {}", answer.body);
        assert_eq!(read(&none_match).await.status, 200, "{method} {changed}");
        let refused = on(&fixture, &member, Method::PUT, &format!("If-Match: {tag}\r\n")).await;
        assert_eq!(code(&refused), (412, "precondition-failed"), "{method} {changed}: {}", refused.body);
    }
}

/// A write that the backend has refused changes nothing below it. Known states there are asked for again.
#[tokio::test]
async fn a_tree_that_the_backend_refuses_leaves_all_tags_valid() {
    for status in [403, 404, 409, 410, 412] {
        let fixture = impatient().await;
        let tag = on(&fixture, MEMBER, Method::GET, "").await.tag().expect("a tag").to_owned();
        let fields = format!("If-Match: {tag}\r\n");
        fixture.refuse_writes_with(status);
        assert_eq!(delete(&fixture).await.status, status);
        let current = on(&fixture, MEMBER, Method::GET, "").await.tag().map(str::to_owned);
        assert_eq!(current.as_deref(), Some(&*tag), "{status}");
        fixture.refuse_writes_with(0);
        assert_eq!(on(&fixture, MEMBER, Method::PUT, &fields).await.status, 204, "{status}");
    }
}

/// Rule 2: the backend gives the file that a MOVE brings the tag of the one that it replaces.
#[tokio::test]
async fn an_equal_tag_of_the_backend_is_coarse_after_a_tree_has_changed() {
    let etag = TagSource::Upstream;
    let fixture = Fixture::with(GuardRules { etag, other_writers: true, ..rules(Duration::from_millis(50)) }).await;
    fixture.answer_reads(|_head| "HTTP/1.1 200 OK\r\nETag: \"t\"\r\nContent-Length: 1\r\n\r\n1".to_owned()).await;
    let member = format!("{OTHER}/a");
    let before = on(&fixture, &member, Method::GET, "").await.tag().expect("a tag").to_owned();
    assert_eq!(fixture.transfer((FOLDER, OTHER), "MOVE", "").await.status, 204);
    let refused = on(&fixture, &member, Method::PUT, &format!("If-Match: {before}\r\n")).await;
    assert_eq!(code(&refused), (412, "precondition-failed"), "{}", refused.body);
    let after = on(&fixture, &member, Method::GET, "").await.tag().expect("a tag").to_owned();
    assert_ne!(before, after);
    assert_eq!(on(&fixture, &member, Method::PUT, &format!("If-Match: {after}\r\n")).await.status, 204);
}

/// Rule 2: nothing that a read shows while its tree is written is kept.
#[tokio::test]
async fn a_read_beside_a_tree_is_no_memory() {
    let fixture = impatient().await;
    let elsewhere = begin_tree_elsewhere(&fixture, FOLDER).await;
    let tag = on(&fixture, MEMBER, Method::GET, "").await.tag().map(str::to_owned);
    let none_match = format!("If-None-Match: {}\r\n", tag.clone().unwrap_or_default());
    assert_eq!(on(&fixture, MEMBER, Method::GET, &none_match).await.status, 200, "the tree is being written");
    end_elsewhere(&fixture, &trees(), elsewhere, Outcome::Applied).await;
    assert_eq!(on(&fixture, MEMBER, Method::GET, &none_match).await.status, 200, "the tree was written");
    let write = on(&fixture, MEMBER, Method::PUT, &format!("If-Match: {}\r\n", tag.unwrap_or_default())).await;
    assert_eq!((write.status, fixture.writes()), (412, 0), "{}", write.body);
}

/// Rule 7: the owner of a tree has died. The next request makes a doubt of its write.
#[tokio::test]
async fn the_tree_of_a_dead_owner_is_taken_over_as_a_doubt() {
    for resource in [MEMBER, FOLDER] {
        let fixture = impatient().await;
        let tag = on(&fixture, MEMBER, Method::GET, "").await.tag().expect("a tag").to_owned();
        begin_tree_elsewhere(&fixture, FOLDER).await;
        fixture.store.pass(60_000);
        let method = if resource == FOLDER { Method::DELETE } else { Method::PUT };
        let refused = on(&fixture, resource, method.clone(), "").await;
        assert_eq!((code(&refused), fixture.writes()), ((409, "write-in-flight"), 0), "{resource}: {}", refused.body);
        assert_eq!(refused.field("retry-after"), Some("2"), "{resource}");
        fixture.store.pass(2_000);
        let stale = on(&fixture, MEMBER, Method::PUT, &format!("If-Match: {tag}\r\n")).await;
        assert_eq!(code(&stale), (412, "precondition-failed"), "{resource}: the late write may have come");
        assert_eq!(on(&fixture, resource, method, "").await.status, 204, "{resource}");
    }
}

/// Rule 3: a write below the tree may still come.
#[tokio::test]
async fn a_tree_is_refused_while_a_write_below_it_is_in_doubt() {
    let fixture = impatient().await;
    let elsewhere = begin_elsewhere(&fixture, MEMBER, true).await;
    end_elsewhere(&fixture, &key(MEMBER), elsewhere, Outcome::Doubt).await;
    let refused = delete(&fixture).await;
    assert_eq!((refused.status, refused.field("retry-after"), fixture.writes()), (409, Some("2"), 0));
    fixture.store.pass(2_000);
    assert_eq!(delete(&fixture).await.status, 204);
}

/// Rule 3: the process dies, or a task is dropped, while the tree is written.
#[tokio::test]
async fn a_tree_that_is_dropped_is_a_doubt() {
    let fixture = impatient().await;
    let held = fixture.hold_writes().await;
    tokio::select! {
        answer = Box::pin(delete(&fixture)) => panic!("{}", answer.body),
        () = until("the marks", async || is_busy(&fixture, &trees()).await) => {}
    }
    let in_doubt = async || matches!(fixture.store.look(&trees()).await.availability(), Availability::InDoubt { .. });
    until("the doubt", in_doubt).await;
    drop(held);
    let refused = on(&fixture, MEMBER, Method::PUT, "").await;
    assert_eq!(code(&refused), (409, "write-in-flight"), "{}", refused.body);
}

/// Whichever operation of the store fails before the first byte, all marks are given back.
#[tokio::test]
async fn a_tree_that_was_not_sent_leaves_nothing_behind() {
    let mut unsent = 0;
    for failing in 0..24 {
        let fixture = impatient().await;
        fixture.store.fail(Fault::AnswerLost, When::Once(failing));
        let answer = fixture.transfer((FOLDER, OTHER), "MOVE", "").await;
        if fixture.writes() > 0 {
            continue;
        }
        unsent += 1;
        assert_eq!(answer.status, 503, "{failing}: {}", answer.body);
        for key in [trees(), key(FOLDER), key(OTHER)] {
            let is_free = async || fixture.store.look(&key).await.availability() == Availability::Free;
            until("the mark to be given back", is_free).await;
        }
    }
    assert!(unsent >= 8, "each read and each mark failed once: {unsent}");
}

/// A lease below a tree is in the way of a client that changes the tree without its id. A COPY only reads its source.
#[tokio::test]
async fn a_lease_below_a_tree_counts() {
    let lease = Some(lease::testing::rules());
    let rules = GuardRules { lease, ..rules(Duration::from_millis(50)) };
    let id = "00000000-0000-4000-8000-000000000001";
    for (method, expected) in [("DELETE", 412), ("MOVE", 412), ("COPY", 204)] {
        let fixture = Fixture::with(rules.clone()).await;
        let grant = format!("Lease-Duration: 60\r\nLease-Id: {id}\r\n");
        let granted = fixture.exchange(MEMBER, "/.leases/doc/folder/a", Method::POST, &grant, "").await;
        assert_eq!(granted.status, 201, "{}", granted.body);
        let answer = match method {
            "DELETE" => delete(&fixture).await,
            _ => fixture.transfer((FOLDER, OTHER), method, "").await,
        };
        assert_eq!((answer.status, fixture.writes()), (expected, usize::from(expected == 204)), "{method}");
        assert!(expected == 204 || answer.body.contains("/doc/folder/a, which is below"), "{}", answer.body);
        assert!(fixture.store.look(&key(MEMBER)).await.lease_state().is_held(), "{method}");
        assert!(!is_busy(&fixture, &trees()).await, "{method}");
    }
}

/// No lease is granted below a tree that is written.
#[tokio::test]
async fn a_grant_below_a_tree_waits_for_it() {
    let lease = Some(lease::testing::rules());
    let fixture = Fixture::with(GuardRules { lease, ..rules(Duration::from_millis(50)) }).await;
    let acquire =
        async || fixture.exchange(MEMBER, "/.leases/doc/folder/a", Method::POST, "Lease-Duration: 60\r\n", "").await;
    let elsewhere = begin_tree_elsewhere(&fixture, FOLDER).await;
    let refused = acquire().await;
    assert_eq!(code(&refused), (409, "write-in-flight"), "{}", refused.body);
    end_elsewhere(&fixture, &trees(), elsewhere, Outcome::Applied).await;
    assert_eq!(acquire().await.status, 201);
}

/// RFC 4918 section 9.8.5: the result would hold itself, or the request would remove what it moves.
#[tokio::test]
async fn a_tree_does_not_go_into_itself() {
    for (source, destination) in
        [(FOLDER, "backend:/doc/folder/b"), ("backend:/doc/folder/b/folder", FOLDER), (MEMBER, FOLDER)]
    {
        let fixture = impatient().await;
        let refused = fixture.transfer((source, destination), "MOVE", "").await;
        assert_eq!((refused.status, fixture.writes()), (403, 0), "{source} {destination}: {}", refused.body);
    }
}

/// A file that replaces a collection removes all below it.
#[tokio::test]
async fn a_file_that_replaces_a_tree_changes_all_below_it() {
    let fixture = impatient().await;
    let tag = on(&fixture, MEMBER, Method::GET, "").await.tag().expect("a tag").to_owned();
    assert_eq!(fixture.transfer((OTHER, FOLDER), "COPY", "").await.status, 204);
    let refused = on(&fixture, MEMBER, Method::PUT, &format!("If-Match: {tag}\r\n")).await;
    assert_eq!(code(&refused), (412, "precondition-failed"), "{}", refused.body);
}
