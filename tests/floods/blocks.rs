//! Clients that send blocks of uploads that never end.

use std::collections::BTreeMap;

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    requests::{request, requests_from},
    sockets::flood,
    support::{backend::Answer, backend::Request, raw::send},
};

/// A second route, of blobs that all clients may read.
const BLOBS: &str = "\n[[routes]]\nname = \"blobs\"\npath = \"/blobs/{*rest}\"\nupstream = \"backend\"\n\
     policy = \"pessimistic\"\ndialect = \"azure\"\netag = \"version\"\nother_writers = false\n";
const OWNER: (&str, &str) = ("Authorization", "Bearer owner");
/// The id of each block, in Base64.
const ID: &str = "YWFh";

/// One upload of one byte for each request.
fn block(number: usize, address: u8) -> Vec<u8> {
    request("PUT", &format!("/blobs/{address}-{number}?comp=block&blockid={ID}"), "", "x")
}

async fn upload(arena: &Arena, target: &str) -> (u16, u16) {
    let staged = send(arena.addr(), "PUT", &format!("{target}?comp=block&blockid={ID}"), &[OWNER], "content").await;
    let list = format!("<BlockList><Latest>{ID}</Latest></BlockList>");
    let joined = send(arena.addr(), "PUT", &format!("{target}?comp=blocklist"), &[OWNER], &list).await;
    (staged.status, joined.status)
}

/// Rule 13: clients who may only read leave room for each other, and for those who write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_without_the_right_to_write_end_nobodys_upload() {
    let arena = Arena::before("", |setup| setup, BLOBS, None).await;
    let may_not_write = |request: &Request| {
        request.method == "PUT" && request.target.starts_with("/blobs/") && request.header("authorization").is_none()
    };
    arena.backend.always_where(may_not_write, |_| Answer::status(403));
    let count = times(60, 600);
    let ceiling = Ceiling { resident_mib: 24, descriptors: 240, honest_wait: HONEST_WAIT };
    let blocks = async {
        let mut kept = Vec::new();
        for address in 1..=2 {
            let answers =
                requests_from(flood(address), arena.addr(), count, move |number| block(number, address)).await;
            assert_eq!(answers.values().sum::<usize>(), answers[&201] + answers[&503]);
            kept.push(answers[&201]);
        }
        assert_eq!(kept, [32, 24], "each leaves room for the next");
        assert_eq!(upload(&arena, "/blobs/first").await, (201, 201), "who has not written yet finds room too");
        for address in 3..=40 {
            requests_from(flood(address), arena.addr(), times(33, 600), move |number| block(number, address)).await;
        }
    };
    arena.flood("staged blocks", ceiling, blocks).await;
    let mut answers = BTreeMap::<_, usize>::new();
    for number in 0..20 {
        *answers.entry(upload(&arena, &format!("/blobs/later-{number}")).await).or_default() += 1;
    }
    assert_eq!(answers, BTreeMap::from([((201, 201), 20)]), "from however many addresses the others come");
    let waiting = send(arena.addr(), "PUT", &format!("/blobs/x?comp=block&blockid={ID}"), &[], "x").await;
    assert_eq!(waiting.status, 503, "the half of those that have not written is full");
}
