//! Backends to which several paths name one resource, and what the configuration says of them: letter case, a format at
//! the end, and slashes in names (DESIGN, section 3, rules 10 and 18).

use crate::support::{
    backend::{
        Answer, Backend,
        style::{Dates, Named, Shown, Style, Tags},
    },
    proxy::Proxy,
    raw::{get, put_if_match, send},
};

/// A proxy with these routes and upstream lines, all to the backend.
async fn proxy(backend: &Backend, upstream: &str, routes: &[&str]) -> Proxy {
    let table = |lines: &&str| ["[[routes]]\nupstream = \"backend\"\n", lines, "\n"].concat();
    let tables: String = routes.iter().map(table).collect();
    Proxy::start(&format!(
        "[server]\n{{listen}}\nspool_dir = \"{{spool}}\"\nthreads = 2\n\n[upstreams.backend]\nservers = [\"{}\"]\n{upstream}\n{tables}",
        backend.addr()
    ))
    .await
}

/// A backend to which these targets are one.
async fn backend(named: fn(&str) -> Named) -> Backend {
    let style = Style { tags: Tags::Precise, dates: Dates::Absent, shown: Shown::Nowhere, tells: false, named };
    Backend::in_style(style).await
}

async fn without_case() -> Backend {
    let backend = backend(|target| Named { own: target.to_lowercase(), whole: None }).await;
    backend.put("/api/notes/1", "one");
    backend
}

const API: &str = "path = \"/api/{*rest}\"\npolicy = \"optimistic\"";
const OPEN: &str = "path = \"/{*rest}\"\npolicy = \"last-writer-wins\"";
const IGNORE_CASE: &str = "ignore_case = true";

/// The targets by which a method has come.
fn targets(backend: &Backend, method: &str) -> Vec<String> {
    let requests = backend.requests();
    requests.iter().filter(|request| request.method == method).map(|request| request.target.clone()).collect()
}

/// Rule 18: a path in another letter case is the same route and the same resource, and is forwarded as it came.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_in_another_case_needs_the_tag_of_the_resource() {
    let backend = without_case().await;
    let proxy = proxy(&backend, IGNORE_CASE, &[API, OPEN]).await;
    let addr = proxy.addr();
    send(addr, "PUT", "/API/Notes/1", &[], "thief").await.refused(428, "precondition-required");
    let tag = get(addr, "/api/notes/1").await.etag();
    assert_eq!(get(addr, "/Api/NOTES/1").await.etag(), tag);
    assert_eq!(put_if_match(addr, "/API/Notes/1", &tag, "two").await.status, 204);
    put_if_match(addr, "/api/notes/1", &tag, "three").await.refused(412, "precondition-failed");
    assert_eq!(targets(&backend, "PUT"), ["/API/Notes/1"]);
    assert_eq!(backend.content("/api/notes/1").as_deref(), Some("two"));
}

/// Rule 18: of two writers by two spellings, one waits for the other.
#[tokio::test(flavor = "multi_thread")]
async fn two_cases_of_one_resource_share_its_claim() {
    let backend = without_case().await;
    let versions = format!("{API}\netag = \"version\"\nother_writers = false");
    let proxy = proxy(&backend, IGNORE_CASE, &[&versions]).await;
    let addr = proxy.addr();
    let tag = get(addr, "/api/notes/1").await.etag();
    let held = backend.hold("PUT", "/API/NOTES/1");
    let first = tokio::spawn({
        let tag = tag.clone();
        async move { put_if_match(addr, "/API/NOTES/1", &tag, "two").await }
    });
    let mut write = held.arrived().await;
    let second = tokio::spawn(async move { put_if_match(addr, "/api/notes/1", &tag, "three").await });
    write.read_body().await;
    write.apply().await;
    write.answer(Answer::status(204)).await;
    assert_eq!((first.await.unwrap().status, second.await.unwrap().status), (204, 412));
    assert_eq!(targets(&backend, "PUT"), ["/API/NOTES/1"]);
}

/// Rule 18: a lease by one spelling guards all of them, and the DELETE by another ends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_by_one_case_guards_the_others() {
    let backend = without_case().await;
    let leased = API.replace("optimistic", "pessimistic");
    let proxy = proxy(&backend, IGNORE_CASE, &[&leased, OPEN]).await;
    let addr = proxy.addr();
    let taken = send(addr, "POST", "/.Leases/API/notes/1", &[("Lease-Duration", "30")], "").await;
    assert_eq!(taken.status, 201, "{taken:?}");
    let lease = taken.header("Lease-Id").expect("its id").to_owned();
    for target in ["/api/notes/1", "/API/Notes/1"] {
        send(addr, "PUT", target, &[], "thief").await.refused(412, "lease-id-missing");
    }
    assert_eq!(send(addr, "DELETE", "/Api/Notes/1", &[("Lease-Id", &lease)], "").await.status, 204);
    assert_eq!(send(addr, "PUT", "/api/notes/1", &[], "new").await.status, 201, "the lease has ended");
    assert_eq!(targets(&backend, "PUT"), ["/api/notes/1"]);
}

/// Rule 18: the whole of a touched resource is known by any case, as that of a `Location` is.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_write_touches_is_known_in_any_case() {
    let backend = without_case().await;
    backend.put("/api/list", "[]");
    let from_memory = "other_writers = false\nallow_any = true";
    let list = format!("path = \"/api/List\"\npolicy = \"optimistic\"\n{from_memory}");
    let notes = "path = \"/api/notes/{id}\"\npolicy = \"optimistic\"\nallow_any = true\nalso_changes = [\"/API/list\"]";
    let proxy = proxy(&backend, IGNORE_CASE, &[&list, notes]).await;
    let addr = proxy.addr();
    let old = get(addr, "/api/list").await.etag();
    let local = send(addr, "GET", "/api/list", &[("If-None-Match", &old)], "").await;
    assert_eq!((local.status, backend.count("GET", "/api/list")), (304, 1), "it is answered from memory");
    assert_eq!(put_if_match(addr, "/API/Notes/1", "*", "two").await.status, 204);
    send(addr, "GET", "/api/list", &[("If-None-Match", &old)], "").await;
    assert_eq!(backend.count("GET", "/api/list"), 2, "it is asked for again");
}

/// Rule 18: a format at the end is another name of the resource: a write by one name ends the tags of both.
#[tokio::test(flavor = "multi_thread")]
async fn a_stale_tag_of_the_name_with_a_format_is_refused() {
    let backend = backend(|target| Named { own: target.trim_end_matches(".json").to_owned(), whole: None }).await;
    backend.put("/items/1", "one");
    let versions = "policy = \"optimistic\"\netag = \"version\"\nother_writers = false";
    let plain = format!("path = \"/items/{{id}}\"\n{versions}");
    let json = format!("path = \"/items/{{id}}.json\"\nkey = \"/items/{{id}}\"\n{versions}");
    let proxy = proxy(&backend, "", &[&plain, &json]).await;
    let addr = proxy.addr();
    let (tag, of_json) = (get(addr, "/items/1").await.etag(), get(addr, "/items/1.json").await.etag());
    assert_eq!(put_if_match(addr, "/items/1", &tag, "two").await.status, 204);
    put_if_match(addr, "/items/1.json", &of_json, "three").await.refused(412, "precondition-failed");
    let again = get(addr, "/items/1.json").await.etag();
    assert_eq!(put_if_match(addr, "/items/1.json", &again, "four").await.status, 204);
    put_if_match(addr, "/items/1", &tag, "five").await.refused(412, "precondition-failed");
    assert_eq!(targets(&backend, "PUT"), ["/items/1", "/items/1.json"]);
}

/// Rule 10: an id with an encoded slash passes an open route beside a guarded one, unless its decoded reading is guarded.
#[tokio::test(flavor = "multi_thread")]
async fn an_encoded_slash_passes_as_sent_where_nothing_guarded_is_meant() {
    let backend = Backend::start().await;
    backend.put("/projects/a%2Fb", "one");
    let proxy = proxy(&backend, "", &["path = \"/documents/{id}\"\npolicy = \"optimistic\"", OPEN]).await;
    let addr = proxy.addr();
    let read = get(addr, "/projects/a%2Fb").await;
    assert_eq!((read.status, read.body.as_slice()), (200, &b"one"[..]));
    assert_eq!(send(addr, "PUT", "/projects/a%2fb", &[], "two").await.status, 201);
    assert_eq!(targets(&backend, "PUT"), ["/projects/a%2fb"]);
    for target in ["/documents%2F1", "/x/..%2Fdocuments%2F1", "/documents/a%2Fb", "/x%2F../documents/1"] {
        send(addr, "PUT", target, &[], "thief").await.refused(400, "ambiguous-target");
    }
    assert_eq!(targets(&backend, "PUT").len(), 1);
}

/// Rule 10: a route that keeps encoded slashes guards a name with one under a key of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_with_an_encoded_slash_is_guarded_where_it_is_kept() {
    let backend = backend(|target| Named { own: target.replace("%2f", "%2F"), whole: None }).await;
    backend.put("/projects/a%2Fb", "one");
    let guarded = "path = \"/projects/{id}\"\npolicy = \"optimistic\"\nencoded_slash = \"keep\"";
    let proxy = proxy(&backend, "", &[guarded, OPEN]).await;
    let addr = proxy.addr();
    send(addr, "PUT", "/projects/a%2fb", &[], "thief").await.refused(428, "precondition-required");
    let tag = get(addr, "/projects/a%2Fb").await.etag();
    assert_eq!(put_if_match(addr, "/projects/a%2fb", &tag, "two").await.status, 204);
    put_if_match(addr, "/projects/a%2Fb", &tag, "three").await.refused(412, "precondition-failed");
    assert_eq!(targets(&backend, "PUT"), ["/projects/a%2fb"]);
    send(addr, "PUT", "/projects/a%2F..%2Fb", &[], "thief").await.refused(400, "ambiguous-target");
}
