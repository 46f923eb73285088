//! `If-None-Match` with tags on a write: "unless it is still that". Each tag of the current state counts, no matter
//! which client got it and which variant it labels.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::support::{
    azure::{assert_error, blobs, put_blob},
    backend::{Answer, Backend, Request, Validators},
    proxy::Proxy,
    raw::{Connection, get, put, put_if_match, send},
    source,
};

const ALICE: (&str, &str) = ("Authorization", "Bearer a");
const BOB: (&str, &str) = ("Authorization", "Bearer b");

#[tokio::test]
async fn a_tag_that_another_client_was_given_denies_the_state_too() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.route("require = \"never\"").start().await;
        let addr = proxy.addr();
        let tag = send(addr, "GET", "/doc", &[ALICE], "").await.etag();
        let weak = format!("W/{tag}");
        for client in [ALICE, BOB] {
            for method in ["PUT", "PATCH", "DELETE"] {
                for tags in [&tag, &weak, &format!("\"other\", {tag}")] {
                    let denying = send(addr, method, "/doc", &[client, ("If-None-Match", tags)], "two").await;
                    denying.refused(412, "precondition-failed");
                }
            }
        }
        assert_eq!(backend.content("/doc").as_deref(), Some("one"), "{source}");
        assert_eq!(put_if_match(addr, "/doc", &tag, "two").await.status, 204, "{source}");
        let denying = put(addr, "/doc", &[BOB, ("If-None-Match", &tag)], "three").await;
        assert_eq!(denying.status, 204, "{source}: it is another state now");
    }
}

/// The same in Azure's words: `MatchConditions.IfModified`.
#[tokio::test]
async fn a_blob_is_not_overwritten_on_the_condition_that_it_was_modified() {
    let backend = Backend::with(Validators::Dates).await;
    let proxy = blobs(&backend).start().await;
    let addr = proxy.addr();
    assert_eq!(put_blob(addr, "/blob", &[ALICE], "one").await.status, 201);
    let tag = send(addr, "GET", "/blob", &[ALICE], "").await.etag();
    for client in [ALICE, BOB, ("Authorization", "SharedKey account:MQ==")] {
        let unmodified = put_blob(addr, "/blob", &[client, ("If-None-Match", &tag)], "two").await;
        assert_error(&unmodified, 412, "ConditionNotMet");
    }
    assert_eq!(put_blob(addr, "/blob", &[BOB, ("If-Match", &tag)], "two").await.status, 201);
    assert_eq!(put_blob(addr, "/blob", &[BOB, ("If-None-Match", &tag)], "three").await.status, 201);
}

/// A backend whose `/doc` has a variant for each `Accept`, and one for each query.
async fn variants(source: &str) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    let written = Arc::new(AtomicUsize::new(0));
    let read = Arc::clone(&written);
    backend.always("*", "*", move |request: &Request| match request.method.as_str() {
        "GET" | "HEAD" => {
            let state = read.load(Ordering::SeqCst);
            let accept = request.header("accept").unwrap_or("any").replace('/', "-");
            let name = format!("{}{accept}{state}", request.target.replace(['/', '?', '='], "-"));
            let answer = Answer::status(200).header("Vary", "Accept").header("ETag", &format!("\"{name}\""));
            if request.method == "GET" { answer.body(name) } else { answer }
        }
        _ => {
            written.fetch_add(1, Ordering::SeqCst);
            Answer::status(204)
        }
    });
    let setup = Proxy::to(backend.addr()).route(source).route("require = \"never\"\nhash_wait = \"10s\"");
    (backend, setup.start().await)
}

#[tokio::test]
async fn a_tag_of_another_variant_denies_the_state_too() {
    for (source, other_targets) in [
        ("etag = \"content\"", true),
        ("etag = \"content\"\nother_writers = false", true),
        ("etag = \"version\"\nother_writers = false", true),
        ("etag = \"upstream\"", false),
        ("etag = \"upstream\"\nother_writers = false", false),
    ] {
        let (backend, proxy) = variants(source).await;
        let addr = proxy.addr();
        let mut tags = vec![send(addr, "GET", "/doc", &[("Accept", "text/html")], "").await.etag()];
        if other_targets {
            tags.push(get(addr, "/doc?view=short").await.etag());
        }
        // The remembered state of the write's own variant must not decide.
        get(addr, "/doc").await;
        for tag in &tags {
            put(addr, "/doc", &[("If-None-Match", tag)], "two").await.refused(412, "precondition-failed");
        }
        assert_eq!(backend.count("PUT", "*"), 0, "{source}");
        assert_eq!(put(addr, "/doc", &[("If-None-Match", "\"other\"")], "two").await.status, 204, "{source}");
        for tag in &tags {
            let changed = put(addr, "/doc", &[("If-None-Match", tag)], "two").await;
            assert_eq!(changed.status, 204, "{source}: it was another state's");
        }
    }
}

/// DESIGN, section 3, rule 12: whether the variant has changed is not guessed.
#[tokio::test]
async fn a_variant_of_which_the_backend_tells_nothing_lets_no_write_pass() {
    let (backend, proxy) = variants("etag = \"content\"").await;
    let addr = proxy.addr();
    let tag = get(addr, "/doc?view=short").await.etag();
    for (status, told) in [(500, 502), (403, 412), (429, 412)] {
        backend.always("GET", "/doc?view=short", move |_| Answer::status(status));
        let write = put(addr, "/doc", &[("If-None-Match", &tag)], "two").await;
        assert_eq!(write.status, told, "{status}: {write:?}");
    }
    assert_eq!(backend.count("PUT", "*"), 0);
}

/// A read that could not wait for the end of a body was given the version instead of a hash.
#[tokio::test]
async fn the_version_of_a_body_that_came_too_slowly_denies_the_state_too() {
    let backend = Backend::start().await;
    let setup = Proxy::to(backend.addr()).route("other_writers = false\nrequire = \"never\"\nhash_wait = \"10ms\"");
    let proxy = setup.start().await;
    let addr = proxy.addr();
    // More than pingora gathers into one packet where it knows the length.
    let half = "x".repeat(2000);
    backend.put("/doc", half.repeat(2));
    let held = backend.hold("GET", "/doc");
    let mut client = Connection::open(addr).await;
    client.request("GET", "/doc", &[], "").await;
    let mut held = held.arrived().await;
    held.send_bytes(format!("HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n{half}")).await;
    let (status, fields) = client.read_head().await;
    assert_eq!(status, 200);
    held.send_bytes(&half).await;
    assert_eq!(client.read_bytes(4000).await, half.repeat(2).as_bytes());
    held.close();
    let tag = fields.get("etag").expect("a tag").to_owned();
    assert!(tag.matches('-').count() == 2, "{tag} is that of a version");
    for client in [ALICE, BOB] {
        put(addr, "/doc", &[client, ("If-None-Match", &tag)], "two").await.refused(412, "precondition-failed");
    }
    assert_eq!(put_if_match(addr, "/doc", &tag, "two").await.status, 204);
    assert_eq!(put(addr, "/doc", &[BOB, ("If-None-Match", &tag)], "three").await.status, 204);
}
