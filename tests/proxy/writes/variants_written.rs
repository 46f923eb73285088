//! A write that names the tag of another variant than the one that it selects (DESIGN, section 6): If-Match passes on any
//! tag that was issued for the current state of the resource, and on no other.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::support::{
    backend::{Answer, Backend},
    proxy::{Proxy, Setup},
    raw::{get, put_if_match, send},
    response::Response,
    scene::all_at_once,
};

/// Ways of knowing tags in which each variant has one of its own.
const SOURCES: [&str; 6] = [
    "etag = \"content\"",
    "etag = \"content\"\nother_writers = false",
    "etag = \"upstream\"",
    "etag = \"upstream\"\nother_writers = false",
    "etag = \"header:X-Tag\"",
    "etag = \"json:/tag\"",
];

/// The sources whose tags name their variant.
const CONTENT: [&str; 2] = [SOURCES[0], SOURCES[1]];

/// A resource at `/doc` whose variants change with each write.
struct Document {
    backend: Backend,
    writes: Arc<AtomicU64>,
}

impl Document {
    /// `variant` names the variant that a target and the `Accept` of a request select; a name that ends with `!` is a
    /// variant that writes leave as it is, and a number is the status of a refusal to show it.
    async fn start(variant: impl Fn(&str, &str) -> &'static str + Send + Sync + 'static) -> Self {
        let (backend, writes) = (Backend::start().await, Arc::new(AtomicU64::new(0)));
        let written = Arc::clone(&writes);
        backend.always("PUT", "*", move |_| {
            written.fetch_add(1, Ordering::SeqCst);
            Answer::status(204)
        });
        let written = Arc::clone(&writes);
        let read = move |method: &str, target: &str, accept: &str| {
            let name = variant(target, accept);
            if let Ok(status) = name.parse() {
                return Answer::status(status);
            }
            let state = if name.ends_with('!') { 0 } else { written.load(Ordering::SeqCst) };
            let answer =
                Answer::status(200).header("Vary", "Accept, Origin").header("ETag", &format!("\"{name}-{state}\""));
            let answer = answer.header("X-Tag", &format!("{name}-{state}"));
            let body = format!("{{\"tag\": \"{name}-{state}\"}}");
            if method == "HEAD" { answer } else { answer.body(body) }
        };
        backend.always_where(
            |request| matches!(request.method.as_str(), "GET" | "HEAD"),
            move |request| read(&request.method, &request.target, request.header("accept").unwrap_or("*/*")),
        );
        Self { backend, writes }
    }

    async fn proxy(&self, source: &str) -> Proxy {
        self.setup(source).start().await
    }

    fn setup(&self, source: &str) -> Setup {
        Proxy::to(self.backend.addr()).route(source).route("hash_wait = \"10s\"")
    }

    /// Changes it without the proxy.
    fn change(&self) {
        self.writes.fetch_add(1, Ordering::SeqCst);
    }

    fn writes(&self) -> usize {
        self.backend.count("PUT", "*")
    }
}

fn html_or_json(_target: &str, accept: &str) -> &'static str {
    if accept == "application/json" { "json" } else { "html" }
}

const JSON: (&str, &str) = ("Accept", "application/json");

async fn read_json(proxy: &Proxy, target: &str) -> Response {
    send(proxy.addr(), "GET", target, &[JSON], "").await
}

/// Runs a case for each source.
async fn for_each<F: Future<Output = ()> + Send + 'static>(
    sources: impl IntoIterator<Item = &'static str>,
    case: impl Fn(&'static str) -> F,
) {
    all_at_once(sources.into_iter().map(|source| (source.to_owned(), case(source)))).await;
}

#[tokio::test]
async fn p19_who_reads_json_may_write_with_any_accept() {
    for_each(SOURCES, async |source| {
        let document = Document::start(html_or_json).await;
        let proxy = document.proxy(source).await;
        let write = async |tag: &str| put_with_accept(&proxy, "/doc", tag).await;
        for _ in 0..2 {
            let tag = read_json(&proxy, "/doc").await.etag();
            assert_eq!(write(&tag).await.status, 204);
            write(&tag).await.refused(412, "precondition-failed");
        }
        assert_eq!(document.writes(), 2);
    })
    .await;
}

async fn put_with_accept(proxy: &Proxy, target: &str, tag: &str) -> Response {
    send(proxy.addr(), "PUT", target, &[("Accept", "*/*"), ("If-Match", tag)], "new").await
}

/// A resource that is read with a query is written without one, and the other way round. The answer of GET to the query
/// of a write is the backend's own matter.
#[tokio::test]
async fn p19_a_query_may_be_in_the_read_or_in_the_write_alone() {
    for_each(SOURCES, async |source| {
        let document = Document::start(|target, _| match target {
            "/doc?same" | "/doc" => "whole",
            "/doc?gone" => "404",
            "/doc?bad" => "400",
            "/doc?other" => "other",
            _ => "full",
        })
        .await;
        let proxy = document.proxy(source).await;
        for (read, write) in [("/doc", "/doc?same"), ("/doc", "/doc?bad"), ("/doc?view=full", "/doc?bad")] {
            let tag = get(proxy.addr(), read).await.etag();
            assert_eq!(put_if_match(proxy.addr(), write, &tag, "new").await.status, 204, "{read} {write}");
            put_if_match(proxy.addr(), write, &tag, "lost").await.refused(412, "precondition-failed");
        }
        // Where GET shows something else for the query of the write, or nothing, only tags that name their variant tell.
        for (read, write) in [("/doc?view=full", "/doc"), ("/doc", "/doc?other"), ("/doc?view=full", "/doc?gone")] {
            let tag = get(proxy.addr(), read).await.etag();
            let status = put_if_match(proxy.addr(), write, &tag, "new").await.status;
            assert_eq!(status, if CONTENT.contains(&source) { 204 } else { 412 }, "{read} {write}");
            put_if_match(proxy.addr(), write, &tag, "lost").await.refused(412, "precondition-failed");
        }
    })
    .await;
}

/// A write empties the set of tags: a view that does not show what was written keeps its bytes, and yet of two writers
/// who hold its tag one passes.
#[tokio::test]
async fn p19_of_two_writers_with_the_tag_of_a_part_one_passes() {
    for_each(SOURCES, async |source| {
        let document = Document::start(|target, _| match target {
            "/doc?fields=title" => "title!",
            "/doc" => "400",
            _ => "whole",
        })
        .await;
        let proxy = document.proxy(source).await;
        let tag = get(proxy.addr(), "/doc?fields=title").await.etag();
        assert_eq!(put_if_match(proxy.addr(), "/doc", &tag, "first").await.status, 204);
        put_if_match(proxy.addr(), "/doc", &tag, "second").await.refused(412, "precondition-failed");
        assert_eq!(document.writes(), 1);
    })
    .await;
}

/// A tag of another variant counts only as long as it is that variant's tag; `shared` means that others may write.
#[tokio::test]
async fn p19_a_change_behind_the_proxy_is_seen_in_the_variant_that_was_read() {
    for_each(SOURCES.into_iter().filter(|source| !source.contains("exclusive")), async |source| {
        let document = Document::start(html_or_json).await;
        let proxy = document.proxy(source).await;
        let tag = read_json(&proxy, "/doc").await.etag();
        document.change();
        put_with_accept(&proxy, "/doc", &tag).await.refused(412, "precondition-failed");
        assert_eq!(document.writes(), 0);
    })
    .await;
}

/// RFC 9110 section 13.1.2: If-None-Match is about the selected representation.
#[tokio::test]
async fn p19_if_none_match_looks_at_the_selected_variant_alone() {
    for_each(SOURCES, async |source| {
        let document = Document::start(html_or_json).await;
        let proxy = document.proxy(source).await;
        let tag = read_json(&proxy, "/doc").await.etag();
        let read = send(proxy.addr(), "GET", "/doc", &[("If-None-Match", &tag)], "").await;
        assert_eq!(read.status, 200);
        let same = send(proxy.addr(), "GET", "/doc", &[JSON, ("If-None-Match", &tag)], "").await;
        assert_eq!((same.status, same.etag()), (304, tag.clone()));
        let both = [("If-Match", tag.as_str()), ("If-None-Match", &read.etag())];
        let written = send(proxy.addr(), "PUT", "/doc", &both, "new").await;
        written.refused(412, "precondition-failed");
    })
    .await;
}

/// The query of a read may hold credentials that `identity_query` does not name: it is repeated for no other client.
#[tokio::test]
async fn p26_what_one_client_read_is_not_asked_for_in_the_name_of_another() {
    for_each(SOURCES, async |source| {
        let document = Document::start(|target, _| if target == "/doc" { "400" } else { "full" }).await;
        let proxy = document.proxy(source).await;
        let tag = get(proxy.addr(), "/doc?ticket=secret").await.etag();
        let fields = [("If-Match", tag.as_str()), ("Authorization", "another")];
        send(proxy.addr(), "PUT", "/doc", &fields, "new").await.refused(502, "validator-unavailable");
        assert_eq!(document.backend.count("*", "/doc?ticket=secret"), 1, "the read alone");
        assert_eq!(put_if_match(proxy.addr(), "/doc", &tag, "new").await.status, 204);
    })
    .await;
}

/// Servers may disagree about tags (P24): all requests on one resource ask the same one.
#[tokio::test]
async fn p19_of_two_servers_the_one_that_was_read_is_asked() {
    let tags = |server: &'static str| async move {
        let backend = Backend::start().await;
        for method in ["GET", "HEAD"] {
            backend.always_where(
                move |request| request.method == method,
                move |_| Answer::status(200).header("ETag", &format!("\"{server}\"")).body(server),
            );
        }
        backend.always("PUT", "*", |_| Answer::status(204));
        backend
    };
    for source in SOURCES.into_iter().filter(|source| source.contains("content") || source.contains("upstream")) {
        let (one, two) = (tags("one").await, tags("two").await);
        let setup = Proxy::to(one.addr()).route(source).route("hash_wait = \"10s\"");
        let servers = format!("\"{}\"", one.addr());
        let both = format!("{servers}, \"{}\"", two.addr());
        let proxy = Proxy::start(&setup.configuration().replace(&servers, &both)).await;
        let targets: Vec<String> = (0..24).map(|number| format!("/doc/{number}")).collect();
        for target in &targets {
            let tag = get(proxy.addr(), target).await.etag();
            let written = put_if_match(proxy.addr(), &format!("{target}?now"), &tag, "new").await;
            assert_eq!(written.status, 204, "{source}: {target}");
        }
        let asked = |backend: &Backend| backend.count("PUT", "*");
        assert!(asked(&one) > 0 && asked(&two) > 0, "each has some of the resources");
    }
}

/// The same tag, of two parts of a resource at different times: only content tags tell which part they are of, and those
/// of the upstream count for none but the part that was read.
#[tokio::test]
async fn p19_a_tag_of_one_part_says_nothing_of_another() {
    for_each(SOURCES, async |source| {
        let document = Document::start(|_, _| "400").await;
        let backend = &document.backend;
        for (target, changes) in [("/doc?a", false), ("/doc?b", true)] {
            for method in ["GET", "HEAD"] {
                let writes = Arc::clone(&document.writes);
                backend.always(method, target, move |_| {
                    let tag = if changes && writes.load(Ordering::SeqCst) > 0 { "new" } else { "empty" };
                    let answer = Answer::status(200).header("ETag", &format!("\"{tag}\"")).header("X-Tag", tag);
                    answer.body(format!("{{\"tag\": \"{tag}\"}}"))
                });
            }
        }
        let proxy = document.proxy(source).await;
        let addr = proxy.addr();
        let stale = get(addr, "/doc?b").await.etag();
        assert_eq!(put_if_match(addr, "/doc?b", &stale, "new").await.status, 204);
        get(addr, "/doc?a").await;
        put_if_match(addr, "/doc?b", &stale, "lost").await.refused(412, "precondition-failed");
        backend.always("*", "/doc?b", |_| Answer::status(404));
        put_if_match(addr, "/doc?b", &stale, "lost").await.refused(412, "precondition-failed");
        assert_eq!(document.writes(), 1);
    })
    .await;
}
