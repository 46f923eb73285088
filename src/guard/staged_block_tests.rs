//! Tests of uploads in blocks through several processes with one store: no list ever joins bytes that the client has
//! replaced (docs/azure.md, "Uploads in blocks").

use std::collections::BTreeMap;

use futures_util::future::join_all;
use http::Method;

use super::testing::{Asked, Fault, Fixture, Response, When, dialect};
use crate::{
    core::policy::{GuardRules, Require, TagSource},
    testing::guard,
};

/// Ids in Base64.
const IDS: [&str; 3] = ["YWFh", "YmJi", "Y2Nj"];
const BEARER: &str = "Authorization: Bearer alice\r\n";

fn rules() -> GuardRules {
    let azure = dialect("azure");
    let quirks = azure.quirks();
    GuardRules {
        etag: TagSource::Version,
        other_writers: false,
        require: Require::Never,
        dialect: azure,
        quirks,
        ..guard()
    }
}

async fn pair() -> [Fixture; 2] {
    let one = Fixture::sharing(rules()).await;
    let other = one.beside().await;
    [one, other]
}

async fn stage(fixture: &Fixture, id: &str, content: &str) -> Response {
    fixture.send_for(&format!("/doc?comp=block&blockid={id}"), Method::PUT, BEARER, content).await
}

async fn staged(fixture: &Fixture, id: &str, content: &str) {
    let response = stage(fixture, id, content).await;
    assert_eq!(response.status, 201, "{} {}", response.head, response.body);
}

async fn list(fixture: &Fixture, ids: &[&str]) -> u16 {
    let listed: Vec<_> = ids.iter().map(|id| format!("<Latest>{id}</Latest>")).collect();
    let document = format!("<BlockList>{}</BlockList>", listed.concat());
    let response = fixture.send_for("/doc?comp=blocklist", Method::PUT, BEARER, &document).await;
    assert!(matches!(response.status, 201 | 400), "{} {}", response.head, response.body);
    response.status
}

/// True if a process shows a block of the upload.
async fn shows(fixture: &Fixture, id: &str) -> bool {
    let target = "/doc?comp=blocklist&blocklisttype=uncommitted";
    fixture.send_for(target, Method::GET, BEARER, "").await.body.contains(id)
}

#[tokio::test]
async fn a_list_never_joins_blocks_that_were_replaced_at_another_process() {
    let [one, other] = pair().await;
    staged(&one, IDS[0], "stale").await;
    staged(&other, IDS[0], "current").await;
    assert_eq!((shows(&one, IDS[0]).await, shows(&other, IDS[0]).await), (false, true));
    assert_eq!((list(&one, &IDS[..1]).await, one.content().await), (400, "one".to_owned()));
    assert_eq!((list(&other, &IDS[..1]).await, one.content().await), (201, "current".to_owned()));
    assert_eq!(list(&one, &IDS[..1]).await, 400, "what was joined elsewhere is no longer staged");
}

#[tokio::test]
async fn a_process_that_takes_an_upload_over_forgets_its_own_earlier_blocks() {
    let [one, other] = pair().await;
    staged(&one, IDS[0], "1").await;
    staged(&other, IDS[1], "2").await;
    staged(&one, IDS[2], "3").await;
    assert_eq!(list(&one, &[IDS[0], IDS[2]]).await, 400);
    staged(&one, IDS[0], "4").await;
    assert_eq!((list(&one, &[IDS[0], IDS[2]]).await, one.content().await), (201, "43".to_owned()));
}

/// SDKs send several blocks at once.
#[tokio::test]
async fn the_first_blocks_of_an_upload_can_come_at_once() {
    let [one, _other] = pair().await;
    join_all(IDS.map(|id| staged(&one, id, id))).await;
    assert_eq!((list(&one, &IDS).await, one.content().await), (201, IDS.concat()));
}

/// Any order of blocks and lists at two processes: an accepted list joins the last block that was sent under each id.
/// If one process gets all of it, no list is refused.
#[tokio::test]
async fn what_is_joined_was_sent_last_in_any_order_of_requests() {
    const SEED: u64 = 0x5eed_0b10;
    const STEPS: u64 = 9;
    println!("seed {SEED}");
    let mut random = fastrand::Rng::with_seed(SEED);
    for run in 0..120 {
        let processes = pair().await;
        let mut latest = BTreeMap::<&str, String>::new();
        let mut all_at: Option<usize> = None;
        let mut is_split = false;
        let mut steps = Vec::new();
        for step in 0..STEPS {
            let (at, id) = (random.usize(..2), IDS[random.usize(..2)]);
            if step + 1 < STEPS && random.u8(..3) > 0 {
                let content = format!("[{run}.{step}]");
                steps.push(format!("{at} stages {id}"));
                staged(&processes[at], id, &content).await;
                latest.insert(id, content);
                is_split |= all_at.replace(at).is_some_and(|other| other != at);
                continue;
            }
            let ids = if random.bool() { &IDS[..2] } else { &IDS[..1] };
            steps.push(format!("{at} joins {ids:?}"));
            let expected = ids.iter().map(|id| latest.get(id).map(String::as_str)).collect::<Option<Vec<_>>>();
            let status = list(&processes[at], ids).await;
            if status == 201 {
                assert_eq!(Some(processes[0].content().await), expected.map(|parts| parts.concat()), "{steps:#?}");
                latest.clear();
                (all_at, is_split) = (None, false);
            } else {
                let is_whole = expected.is_some() && !is_split && all_at == Some(at);
                assert!(!is_whole, "an upload through one process alone is refused: {steps:#?}");
            }
        }
    }
}

/// Rule 12: for any failure of any operation of the store, no list joins a replaced block.
#[tokio::test]
async fn a_store_that_fails_lets_no_stale_block_pass() {
    for fault in [Fault::Unavailable, Fault::AnswerLost, Fault::Hangs, Fault::Late] {
        for which in 0..6 {
            let [one, other] = pair().await;
            staged(&one, IDS[0], "stale").await;
            one.store.fail(fault, When::Once(which));
            if stage(&other, IDS[0], "current").await.status != 201 {
                one.store.fail(fault, When::Never);
                staged(&other, IDS[0], "current").await;
            }
            one.store.fail(fault, When::Never);
            assert_eq!(list(&one, &IDS[..1]).await, 400, "{fault:?} {which}");
            assert_eq!((list(&other, &IDS[..1]).await, one.content().await), (201, "current".to_owned()), "{fault:?}");
        }
    }
}

/// A process alone asks the store for the lease and for nothing else.
#[tokio::test]
async fn turns_cost_nothing_where_no_other_process_can_have_blocks() {
    let alone = Fixture::with(rules()).await;
    staged(&alone, IDS[0], "1").await;
    alone.store.fail(Fault::Unavailable, When::Never);
    staged(&alone, IDS[1], "2").await;
    assert_eq!(alone.store.asked(), Asked { reads: 1, swaps: 0, times: 0 });
    let [shared, _other] = pair().await;
    staged(&shared, IDS[0], "1").await;
    shared.store.fail(Fault::Unavailable, When::Never);
    staged(&shared, IDS[1], "2").await;
    assert_eq!(shared.store.asked(), Asked { reads: 2, swaps: 0, times: 0 });
}
