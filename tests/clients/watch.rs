//! The programs of docs/watch.md.

use crate::{
    packages::proxy,
    program::Program,
    support::{
        nginx::Nginx,
        raw::{get, put_if_match, send},
        wait::until,
    },
};

#[tokio::test]
async fn the_programs_that_watch_print_the_state_and_each_change() {
    let program = Program::of_document("watch", &["mjs", "py"]);
    let nginx = Nginx::start().await;
    let proxy = proxy(nginx.addr(), "").await;
    assert_eq!(send(proxy.addr(), "PUT", "/documents/1", &[("If-None-Match", "*")], "one").await.status, 201);
    let url = format!("http://{}/documents/1", proxy.addr());
    let running = ["mjs", "py"].map(|language| program.start(language, language, &[&url]));
    let first = get(proxy.addr(), "/documents/1").await.etag();
    for child in &running {
        until("the state", || child.log().contains(&first)).await;
    }
    let second = put_if_match(proxy.addr(), "/documents/1", &first, "two").await.etag();
    for child in &running {
        until("the change", || child.log().contains(&second)).await;
    }
}
