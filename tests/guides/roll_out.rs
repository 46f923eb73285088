//! docs/how-to/roll-out.md: each stage, with clients of the old kind and of the new one.

use crate::{
    pages::{Page, page},
    support::{
        document::{Block, blocks},
        nginx::Nginx,
        proxy::Proxy,
        raw::{put, put_if_match},
        wait::until,
    },
};

/// The answers to a client that creates and to one that changes without a condition, and to one with a stale tag.
async fn answers(proxy: &Proxy) -> [u16; 3] {
    let addr = proxy.addr();
    let creates = put(addr, "/documents/new", &[], "one").await.status;
    assert_eq!(put(addr, "/documents/old", &[("If-None-Match", "*")], "one").await.status, 201);
    let changes = put(addr, "/documents/old", &[], "two").await.status;
    [creates, changes, put_if_match(addr, "/documents/old", "\"stale\"", "three").await.status]
}

/// Returns the rows of the table about each stage: the answers, where `passes` is any success.
fn said(page: &Page) -> Vec<Vec<&str>> {
    let rows = page.text.lines().filter(|line| line.starts_with("| `observe =") || line.starts_with("| `require ="));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).skip(1).collect()).collect()
}

#[tokio::test]
async fn each_stage_answers_as_its_row_says() {
    let page = page("docs/how-to/roll-out.md");
    let blocks = blocks(&page.text);
    let of_kind = |kind: &'static str| blocks.iter().filter(move |block: &&Block| block.kind == kind);
    let stages = said(&page);
    assert_eq!((stages.len(), of_kind("toml").count(), of_kind("log").count()), (4, 4, 2));
    for (number, (stage, file)) in stages.iter().zip(of_kind("toml")).enumerate() {
        let nginx = Nginx::start().await;
        let file = file.text.replace("listen = [\"127.0.0.1:8080\"]", "{listen}");
        let file = file.replace("127.0.0.1:9000", &nginx.addr().to_string());
        let file = file.replace("/run/ifmatch/control.sock", "{control}");
        // The metrics are looked at by tests of their own.
        let proxy = Proxy::start(&file.replace("[admin]\nlisten = \"127.0.0.1:9901\"\n", "")).await;
        let found = answers(&proxy).await.map(|status| match status {
            200..300 => "passes".to_owned(),
            refused => refused.to_string(),
        });
        assert_eq!(found, stage[..], "stage {}", number + 1);
        assert_eq!(put(proxy.addr(), "/login", &[], "not guarded").await.status, 201, "stage {}", number + 1);
        if number == 0 {
            let by_another = [("User-Agent", "another program")];
            assert_eq!(put(proxy.addr(), "/documents/old", &by_another, "unread").await.status, 204);
            let lines = of_kind("log").flat_map(|block| block.text.lines());
            for line in lines {
                until(line, || proxy.log().contains(line)).await;
            }
        }
    }
}
