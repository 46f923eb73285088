//! The guides to forms and lists, with the servers that they describe.

use std::net::SocketAddr;

use crate::{
    servers::{JSON, Program, block, proxy_of, put},
    support::{
        raw::{get, send},
        response::Response,
    },
};

/// Sends the request of a browser for the form of a page with this text.
async fn submit(addr: SocketAddr, page: &str, text: &str) -> Response {
    let (_, action) = page.split_once("action=\"").expect("a form");
    let (action, _) = action.split_once('"').expect("the end of the address");
    let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let fields = [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", accept)];
    send(addr, "POST", action, &fields, format!("text={text}")).await
}

#[tokio::test]
async fn a_form_with_the_version_in_its_address_is_guarded() {
    let express = Program::express_with_forms().await;
    let proxy = proxy_of(&block("docs/how-to/forms.md", "toml"), express.addr).await;
    let addr = proxy.addr();
    let [ann, bob] = [get(addr, "/notes/1").await, get(addr, "/notes/1").await];
    assert_eq!(submit(addr, ann.text(), "bread").await.status, 303);
    let stale = submit(addr, bob.text(), "tea").await;
    assert_eq!((stale.status, stale.header("Content-Type")), (412, Some("text/html; charset=utf-8")), "{stale:?}");
    assert!(stale.text().contains("<h1>This was changed in the meantime</h1>"), "{stale:?}");
    let now = get(addr, "/notes/1").await;
    assert!(now.text().contains("bread"), "{now:?}");
    assert_eq!(submit(addr, now.text(), "bread, tea").await.status, 303);
    let unversioned = submit(addr, &now.text().replace("&version=", "&other="), "no version").await;
    assert_eq!(unversioned.status, 428);
    assert!(unversioned.text().contains("precondition-required: "), "{unversioned:?}");
}

/// The form on the page is the one that the server writes.
#[tokio::test]
async fn the_form_of_the_page_is_that_of_the_server() {
    let express = Program::express_with_forms().await;
    assert_eq!(get(express.addr, "/notes/1").await.text(), block("docs/how-to/forms.md", "html"));
}

#[tokio::test]
async fn a_row_of_a_list_is_written_with_its_own_version() {
    let django = Program::django().await;
    let file = block("docs/how-to/lists.md", "toml");
    let proxy = proxy_of(&file, django.addr).await;
    let addr = proxy.addr();
    assert_eq!(send(addr, "POST", "/notes/", &[JSON], r#"{"text":"milk"}"#).await.status, 201);
    // The second time, the tag is one that a write has left behind.
    for _ in 0..2 {
        let rows: serde_json::Value = serde_json::from_str(get(addr, "/notes/").await.text()).expect("JSON");
        let tag = rows[0]["updated_at"].to_string();
        assert_eq!(put(addr, "/notes/1/", &[("If-Match", &tag)], "bread").await.status, 200);
        put(addr, "/notes/1/", &[("If-Match", &tag)], "tea").await.refused(412, "precondition-failed");
    }
    let without = file.replace("unique_tags = true\n", "");
    let proxy = proxy_of(&without, django.addr).await;
    let addr = proxy.addr();
    let tag = get(addr, "/notes/1/").await.etag();
    assert_eq!(put(addr, "/notes/1/", &[("If-Match", &tag)], "bread").await.status, 200);
    let rows: serde_json::Value = serde_json::from_str(get(addr, "/notes/").await.text()).expect("JSON");
    let bare = rows[0]["updated_at"].to_string();
    put(addr, "/notes/1/", &[("If-Match", &bare)], "tea").await.refused(412, "precondition-failed");
}
