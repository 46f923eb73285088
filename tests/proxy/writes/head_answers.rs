//! Backends whose answer to HEAD is not that to GET: routers that register GET alone, and others that leave out the tag
//! or make another one (DESIGN, section 3, rule 19).

use std::net::SocketAddr;

use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{get, put, put_if_match, send},
    response::Response,
    scene::all_at_once,
};

/// The sources of tags for which the proxy asks by HEAD.
const SOURCES: [&str; 4] = [
    "etag = \"upstream\"",
    "etag = \"upstream\"\nother_writers = false",
    "etag = \"header:X-V\"",
    "etag = \"version\"\nother_writers = false",
];

/// The answers to HEAD where GET is 200 with a tag.
fn lies() -> Vec<(&'static str, Answer)> {
    let other = Answer::status(200).header("ETag", "\"h\"").header("X-V", "h");
    let status = |status| (&*format!("{status}").leak(), Answer::status(status));
    let mut lies: Vec<_> = [204, 302, 400, 401, 403, 404, 405, 410, 429, 500, 501, 504].map(status).into();
    lies.extend([("no tag", Answer::status(200)), ("another tag", other)]);
    lies
}

/// A backend that answers HEAD of `/doc` so, and GET with tags in two fields.
async fn lying(lie: Answer) -> Backend {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    backend.always("HEAD", "/doc", move |_| lie.clone());
    backend
}

/// Shows the state of a backend with this tag to GET.
fn shows(backend: &Backend, tag: &'static str) {
    backend.always("GET", "/doc", move |_| {
        Answer::status(200).header("ETag", &format!("\"{tag}\"")).header("X-V", tag).body(tag)
    });
}

async fn write(addr: SocketAddr, fields: &[(&str, &str)]) -> Response {
    put(addr, "/doc", fields, "two").await
}

/// Runs a case with each source in front of each such backend, whose GET shows the tag `a`.
async fn with_each<F: Future<Output = ()> + Send + 'static>(
    route: &'static str,
    case: impl Fn(Backend, Proxy) -> F + Copy + Send + 'static,
) {
    let pairs = SOURCES.into_iter().flat_map(|source| lies().into_iter().map(move |lie| (source, lie)));
    all_at_once(pairs.map(|(source, (name, lie))| {
        let run = async move {
            let backend = lying(lie).await;
            shows(&backend, "a");
            let proxy = Proxy::to(backend.addr()).route(source).route(route).start().await;
            case(backend, proxy).await;
        };
        (format!("{source}: HEAD is {name}"), run)
    }))
    .await;
}

/// Rule 19: a creation does not overwrite what GET shows.
#[tokio::test]
async fn what_head_hides_is_not_created_over() {
    with_each("", |backend, proxy| async move {
        write(proxy.addr(), &[("If-None-Match", "*")]).await.refused(412, "precondition-failed");
        assert_eq!((backend.count("PUT", "/doc"), backend.content("/doc").as_deref()), (0, Some("one")));
    })
    .await;
}

/// Rule 19: an existing resource needs a precondition, no matter what HEAD shows.
#[tokio::test]
async fn what_head_hides_needs_a_precondition() {
    with_each("require = \"existing\"", |backend, proxy| async move {
        write(proxy.addr(), &[]).await.refused(428, "precondition-required");
        assert_eq!((backend.count("PUT", "/doc"), backend.content("/doc").as_deref()), (0, Some("one")));
    })
    .await;
}

/// Rule 19: a client with the right tag is not refused, and one with an old tag is.
#[tokio::test]
async fn the_tag_of_get_counts() {
    with_each("", |backend, proxy| async move {
        let addr = proxy.addr();
        let tag = get(addr, "/doc").await.etag();
        assert_eq!(put_if_match(addr, "/doc", &tag, "two").await.status, 204);
        shows(&backend, "b");
        put_if_match(addr, "/doc", &tag, "lost").await.refused(412, "precondition-failed");
        assert_eq!(backend.content("/doc").as_deref(), Some("two"));
    })
    .await;
}

/// Rule 19: a client's own HEAD gets the backend's answer, and judges no other request.
#[tokio::test]
async fn nothing_is_learned_from_a_head_of_a_client() {
    let backend = lying(Answer::status(200).header("ETag", "\"h\"").header("X-V", "h")).await;
    shows(&backend, "a");
    for source in ["etag = \"upstream\"", "etag = \"header:X-V\""] {
        let proxy = Proxy::to(backend.addr()).route(source).route("other_writers = false").start().await;
        let addr = proxy.addr();
        let tag = get(addr, "/doc").await.etag();
        assert_eq!(send(addr, "HEAD", "/doc", &[], "").await.etag(), "\"h\"", "{source}");
        assert_eq!(send(addr, "GET", "/doc", &[("If-Match", &tag)], "").await.status, 200, "{source}");
        assert_eq!(put_if_match(addr, "/doc", &tag, "two").await.status, 204, "{source}");
    }
}

/// Rule 19: what a write has made is learned by GET.
#[tokio::test]
async fn the_tag_after_a_write_is_that_of_get() {
    for source in ["etag = \"upstream\"", "etag = \"header:X-V\""] {
        for (name, lie) in lies() {
            let backend = lying(lie).await;
            shows(&backend, "a");
            let proxy = Proxy::to(backend.addr())
                .route(source)
                .route("on_write = \"probe\"\netag_after_write = \"always\"\nunique_tags = true");
            let proxy = proxy.start().await;
            let tag = get(proxy.addr(), "/doc").await.etag();
            let held = backend.hold("PUT", "/doc");
            let write = put_if_match(proxy.addr(), "/doc", &tag, "two");
            let (written, ()) = tokio::join!(write, async {
                let held = held.arrived().await;
                shows(&backend, "b");
                held.answer(Answer::status(204)).await;
            });
            assert_eq!((written.status, written.etag()), (204, "\"b\"".to_owned()), "{source}: HEAD is {name}");
        }
    }
}

/// Rule 19: a lease is refused only for what GET does not show either, and its answer has the tag of GET where HEAD has
/// none.
#[tokio::test]
async fn a_lease_of_what_head_hides_is_granted() {
    let route = "policy = \"pessimistic\"\nlease.absent = \"refuse\"";
    with_each(route, |backend, proxy| async move {
        let lease = send(proxy.addr(), "POST", "/.leases/doc", &[("Lease-Duration", "30")], "").await;
        assert_eq!((lease.status, lease.header("etag").is_some()), (201, true), "{lease:?}");
        let id = lease.header("lease-id").expect("an id").to_owned();
        let renewed = send(proxy.addr(), "PUT", "/.leases/doc", &[("Lease-Id", &id)], "").await;
        assert_eq!(renewed.status, 200, "{renewed:?}");
        backend.always("GET", "/doc", |_| Answer::status(404).body("none"));
        backend.always("HEAD", "/doc", |_| Answer::status(404));
        let released = send(proxy.addr(), "DELETE", "/.leases/doc", &[("Lease-Id", &id)], "").await;
        assert_eq!(released.status, 204, "{released:?}");
        let lease = send(proxy.addr(), "POST", "/.leases/doc", &[("Lease-Duration", "30")], "").await;
        lease.refused(404, "lease-target-missing");
    })
    .await;
}

/// Where HEAD shows the client's tag, nothing more is asked; where it does not, one GET decides and one line says so.
#[tokio::test]
async fn a_get_confirms_refusals_alone() {
    let backend = lying(Answer::status(200).header("ETag", "\"a\"")).await;
    shows(&backend, "a");
    let proxy = Proxy::to(backend.addr()).route("etag = \"upstream\"\nunique_tags = true\non_write = \"omit\"");
    let proxy = proxy.start().await;
    let asked = || [backend.count("HEAD", "/doc"), backend.count("GET", "/doc")];
    assert_eq!(put_if_match(proxy.addr(), "/doc", "\"a\"", "two").await.status, 204);
    assert_eq!(asked(), [1, 0]);
    shows(&backend, "b");
    backend.always("HEAD", "/doc", |_| Answer::status(200).header("ETag", "\"b\""));
    put_if_match(proxy.addr(), "/doc", "\"old\"", "lost").await.refused(412, "precondition-failed");
    assert_eq!(asked(), [2, 1]);
    assert!(!proxy.log().contains("answered HEAD and GET"), "they agree");
    backend.always("HEAD", "/doc", |_| Answer::status(404));
    for tag in ["b", "c"] {
        shows(&backend, tag);
        assert_eq!(put_if_match(proxy.addr(), "/doc", &format!("\"{tag}\""), "two").await.status, 204);
    }
    assert_eq!(asked(), [4, 3]);
    assert_eq!(proxy.logged(&["answered HEAD and GET"]).await.len(), 1);
}

/// The backend's place for the only connection is free for the GET that confirms.
#[tokio::test]
async fn a_confirmation_needs_no_second_connection() {
    let backend = lying(Answer::status(404)).await;
    shows(&backend, "a");
    let setup = Proxy::to(backend.addr()).upstream("max_connections = 1\n").route("etag = \"upstream\"");
    let proxy = setup.start().await;
    write(proxy.addr(), &[("If-Match", "\"b\"")]).await.refused(412, "precondition-failed");
    assert_eq!(write(proxy.addr(), &[("If-Match", "\"a\"")]).await.status, 204);
}
