//! The package of `clients/typescript` in a real browser (docs/browser-client.md). What people do there stands in
//! `browser.cjs`, and the page that they do it in is `editor.html`.

use std::fs;

use crate::support::{
    backend::{Answer, Backend},
    chromium::drive,
    clients::typescript_package,
    leases::{acquire, leasing},
    nginx::Nginx,
    proxy::Proxy,
    raw::{get, put_if_match},
    wait::until,
};

/// The files of the page: where they are, their type and their content.
fn page() -> Vec<(String, &'static str, String)> {
    let mut files = vec![("/editor.html".to_owned(), "text/html", include_str!("editor.html").to_owned())];
    for entry in fs::read_dir(typescript_package().join("dist")).expect("the modules") {
        let file = entry.expect("an entry").path();
        if file.extension().is_some_and(|extension| extension == "js") {
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            files.push((format!("/ifmatch/{name}"), "text/javascript", fs::read_to_string(file).expect("text")));
        }
    }
    files
}

/// The answers to two people who edit one document, on any origin.
const EDITED: [&str; 15] = [
    "Ann: PUT it: no ETag of it is known; read it",
    "Ann: 200 one",
    "Ben: 200 one",
    "Ann: 204",
    "Ben: 412 precondition-failed: read one, current by Ann, written by Ben",
    "Ben: 412 precondition-failed: read one, current by Ann, written blindly",
    "Ben: 204",
    "Ben: 204",
    "Ann: 412 precondition-failed: read by Ann, current once more, written ",
    "Ann: 412 precondition-failed: read nothing, current once more, written new",
    "Ann: 200 once more",
    "Ann: 204",
    "Ben: 412 precondition-failed: read once more, current nothing, written too late",
    "Ann: PUT it: no ETag of it is known; read it",
    "Ann: 201",
];

/// A server that has the page.
async fn with_page() -> Backend {
    let backend = Backend::start().await;
    for (target, kind, text) in page() {
        let answer = Answer::status(200).header("Content-Type", kind).body(&text);
        backend.always_where(move |request| request.target.starts_with(&target), move |_| answer.clone());
    }
    backend
}

/// An nginx that lets pages of this origin in, and the proxy in front of it.
async fn nginx_for(origin: &str) -> (Nginx, Proxy) {
    let nginx = Nginx::with(&format!(
        "etag off; if_modified_since off; types {{ text/html html; text/javascript js; }}
         add_header Access-Control-Allow-Origin '{origin}' always; add_header Vary Origin always;
         location / {{
           if ($request_method = OPTIONS) {{
             add_header Access-Control-Allow-Origin '{origin}'; add_header Vary Origin;
             add_header Access-Control-Allow-Methods 'GET, PUT, DELETE';
             add_header Access-Control-Allow-Headers content-type;
             return 204;
           }}
         }}"
    ))
    .await;
    fs::write(nginx.root().join("doc"), "one").expect("a file");
    let proxy = Proxy::to(nginx.addr()).route("hash_wait = \"10s\"").start().await;
    (nginx, proxy)
}

/// Two people edit one document in this page, and what was refused has never reached the backend.
async fn is_edited(page: &str, nginx: &Nginx) {
    assert_eq!(drive("clients/browser.cjs", &["edit", page]).await, EDITED);
    let writes = ["PUT /doc 204", "PUT /doc 204", "PUT /doc 204", "DELETE /doc 204", "PUT /doc 201"];
    let lines = nginx.access_lines().await;
    let is_write = |line: &&String| line.starts_with("PUT") || line.starts_with("DELETE");
    assert_eq!(lines.iter().filter(is_write).collect::<Vec<_>>(), writes.each_ref());
}

#[tokio::test]
async fn a_page_hands_both_versions_to_whom_was_too_late() {
    let (nginx, proxy) = nginx_for("null").await;
    fs::create_dir(nginx.root().join("ifmatch")).expect("a directory");
    for (target, _, text) in page() {
        fs::write(nginx.root().join(&target[1..]), text).expect("a file");
    }
    is_edited(&format!("http://{}/editor.html?document=/doc", proxy.addr()), &nginx).await;
}

#[tokio::test]
async fn a_page_of_another_origin_does_the_same() {
    let pages = with_page().await;
    let origin = format!("http://{}", pages.addr());
    let (nginx, proxy) = nginx_for(&origin).await;
    is_edited(&format!("{origin}/editor.html?document=http://{}/doc", proxy.addr()), &nginx).await;
}

/// A write that was refused because another one is in flight was not made, so the same may be sent again.
#[tokio::test]
async fn a_page_waits_for_a_write_that_is_under_way() {
    let backend = with_page().await;
    backend.put("/doc", "one");
    let proxy = Proxy::to(backend.addr()).route("claim.max_waiters = 0").start().await;
    let addr = proxy.addr();
    let tag = get(addr, "/doc").await.etag();
    let held = backend.hold("PUT", "/doc");
    let first = tokio::spawn(async move { put_if_match(addr, "/doc", &tag, "never applied").await.status });
    let held = held.arrived().await;
    let page = format!("http://{addr}/editor.html?document=/doc");
    let people = tokio::spawn(async move { drive("clients/browser.cjs", &["wait", &page]).await });
    until("both to be told to wait", || proxy.log().matches("write-in-flight").count() >= 2).await;
    held.answer(Answer::status(400)).await;
    assert_eq!(first.await.expect("no panic"), 400);
    let expected = [
        "hurried: 200 one",
        "hurried: 409 write-in-flight: read one, current one, written by the hurried",
        "patient: 200 one",
        "patient: 204",
    ];
    assert_eq!(people.await.expect("no panic"), expected);
    assert_eq!(backend.content("/doc").as_deref(), Some("by the patient"));
    assert_eq!(backend.count("PUT", "/doc"), 2, "nothing else has reached the backend");
}

#[tokio::test]
async fn a_page_writes_under_its_lease_and_another_one_is_told_of_it() {
    let backend = with_page().await;
    backend.put("/doc", "one");
    let proxy = leasing(&backend).start().await;
    let grant = acquire(proxy.addr(), "/doc", "30").await;
    let page = format!("http://{}/editor.html?document=/doc", proxy.addr());
    let expected =
        ["other: 200 one", "other: 412 lease-id-missing: read one, current one, written by the other", "holder: 204"];
    assert_eq!(drive("clients/browser.cjs", &["lease", &page, &grant.id]).await, expected);
    assert_eq!(backend.content("/doc").as_deref(), Some("by the holder"));
}

/// A closed tab frees its document, and a page that loses its lease learns so at once.
#[tokio::test]
async fn pages_hold_a_lease_while_they_are_open() {
    let backend = with_page().await;
    backend.put("/doc", "one");
    let proxy = leasing(&backend).route("lease.client_break = true").start().await;
    let page = format!("http://{}/editor.html?document=/doc", proxy.addr());
    let expected = [
        "Ann: holds the lease, 36 characters",
        "Ann: 204",
        "Ann: 204",
        "Ben: holds the lease, 36 characters",
        "Ben: 204",
        "Ben: 202",
        "Ben: lost: broken",
    ];
    assert_eq!(drive("clients/browser.cjs", &["hold", &page]).await, expected);
    assert_eq!(backend.content("/doc").as_deref(), Some("by Ben"));
}
