//! Tests of the turns of writes and grants below trees that are written again and again (DESIGN, section 3, rule 16).

use std::time::Duration;

use http::Method;

use super::{
    testing::{Fixture, until},
    tree_tests::elsewhere::{
        FOLDER, MEMBER, OTHER, begin_tree_elsewhere, end_elsewhere, key, on, patient, rules, trees,
    },
};
use crate::core::{
    lease,
    policy::GuardRules,
    records::{
        record::{Availability, Revision, Snapshot},
        steps::Outcome,
    },
};

/// The process of the fixture, and that of the trees which are written elsewhere.
const HERE: u64 = 1;
const ELSEWHERE: u64 = 99;

async fn look(fixture: &Fixture) -> Snapshot {
    fixture.store.look(&trees()).await
}

/// Rule 16: a process that waits below a tree goes before the next write of a tree of another process.
#[tokio::test]
async fn a_request_that_waits_for_a_tree_is_signed_there() {
    for what in ["PUT", "POST", "DELETE", "lease", "destination", "folder"] {
        let lease = Some(lease::testing::rules());
        let fixture = Fixture::with(GuardRules { lease, ..rules(Duration::from_secs(20)) }).await;
        let elsewhere = begin_tree_elsewhere(&fixture, FOLDER).await;
        let waits = async {
            match what {
                "lease" => fixture.exchange(MEMBER, "/.leases/doc/folder/a", Method::POST, "", "").await,
                "destination" => fixture.transfer((OTHER, MEMBER), "COPY", "").await,
                "folder" => on(&fixture, "backend:/doc/folder/inner-folder", Method::DELETE, "").await,
                method => on(&fixture, MEMBER, method.parse().expect("a method"), "").await,
            }
        };
        let (answer, ()) = tokio::join!(Box::pin(waits), async {
            until("the sign", async || look(&fixture).await.is_signed_by(HERE).is_some()).await;
            assert!(look(&fixture).await.goes_before(ELSEWHERE).is_some(), "{what}");
            end_elsewhere(&fixture, &trees(), elsewhere, Outcome::Applied).await;
        });
        assert!(matches!(answer.status, 201 | 204), "{what}: {}", answer.body);
        until("the sign to go", async || look(&fixture).await.is_signed_by(HERE).is_none()).await;
        assert_eq!(look(&fixture).await.availability(), Availability::Free, "{what}");
    }
}

/// Rule 16: in one process, those that wait for a tree go before the trees that come after them.
#[tokio::test]
async fn a_later_tree_waits_for_requests_that_wait_for_an_earlier_one() {
    let fixture = patient().await;
    let elsewhere = begin_tree_elsewhere(&fixture, FOLDER).await;
    let in_line = async |length| {
        until("the line", async || fixture.line_length(&trees()) == length).await;
    };
    let (put, delete, ()) = tokio::join!(
        Box::pin(on(&fixture, MEMBER, Method::PUT, "")),
        Box::pin(async {
            in_line(1).await;
            on(&fixture, FOLDER, Method::DELETE, "").await
        }),
        async {
            in_line(2).await;
            assert_eq!(fixture.writes(), 0);
            end_elsewhere(&fixture, &trees(), elsewhere, Outcome::Applied).await;
        }
    );
    assert_eq!((put.status, delete.status), (204, 204));
    let written = fixture.store.look(&key(MEMBER)).await.version();
    let changes = look(&fixture).await.record.trees.clone().expect("trees").changes;
    let last = changes.last().expect("a change");
    assert!(last.at.resolve(Revision(0)) > written, "{written:?} {changes:?}");
}

/// A write that gives up keeps no other request back.
#[tokio::test]
async fn the_sign_of_a_write_that_gives_up_is_removed() {
    let fixture = Fixture::with(rules(Duration::from_millis(50))).await;
    begin_tree_elsewhere(&fixture, FOLDER).await;
    assert_eq!(on(&fixture, MEMBER, Method::PUT, "").await.status, 409);
    until("the sign to go", async || look(&fixture).await.is_signed_by(HERE).is_none()).await;
}
