//! Backends that know their resources by another beginning of the path, or themselves by another host.

use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{get, put_if_match, send},
    wait::until,
};

const API: &str = "path = \"/api/docs/{*rest}\"\nstrip_prefix = \"/api\"\nadd_prefix = \"/v1\"";

/// A proxy with these routes, all to the backend.
async fn proxy(backend: &Backend, upstream: &str, routes: &[(&str, &str)]) -> Proxy {
    let tables = routes
        .iter()
        .map(|(policy, lines)| format!("[[routes]]\nupstream = \"backend\"\npolicy = \"{policy}\"\n{lines}\n"));
    Proxy::start(&format!(
        "[server]\n{{listen}}\nspool_dir = \"{{spool}}\"\nthreads = 2\n\n[upstreams.backend]\nservers = [\"{}\"]\n{upstream}\n{}",
        backend.addr(),
        tables.collect::<String>()
    ))
    .await
}

/// Targets of all requests that the backend has seen.
fn targets(backend: &Backend) -> Vec<String> {
    backend.requests().iter().map(|request| format!("{} {}", request.method, request.target)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guarded_resource_is_asked_for_and_written_below_the_prefix() {
    let backend = Backend::start().await;
    backend.put("/v1/docs/a?x=/api", "one");
    let proxy = proxy(&backend, "", &[("optimistic", API)]).await;
    let tag = get(proxy.addr(), "/api/docs/a?x=/api").await.etag();
    assert_eq!(put_if_match(proxy.addr(), "/api/docs/a?x=/api", &tag, "two").await.status, 204);
    assert_eq!(put_if_match(proxy.addr(), "/api/docs/a?x=/api", &tag, "three").await.status, 412);
    let own = "/v1/docs/a?x=/api";
    // The read; the question, the write and what it made; the question that refuses.
    let expected = ["GET", "GET", "PUT", "GET", "GET"].map(|method| format!("{method} {own}"));
    assert_eq!(targets(&backend), expected);
    until("the line with the key, of the backend's path", || proxy.log().contains("key=\"backend:/v1/docs/a\"")).await;
}

/// RFC 9110 sections 10.2.2 and 8.7, RFC 8288.
#[tokio::test(flavor = "multi_thread")]
async fn what_responses_refer_to_is_led_back() {
    let backend = Backend::start().await;
    let open = API.replace("docs", "open");
    let proxy = proxy(&backend, "", &[("optimistic", API), ("last-writer-wins", &open)]).await;
    for folder in ["docs", "open"] {
        let own = format!("/v1/{folder}/a");
        let answer = Answer::status(201)
            .header("Location", &format!("/v1/{folder}/b"))
            .header("Content-Location", &format!("http://127.0.0.1/v1/{folder}/c"))
            .header("Link", "</v1/docs/d>; rel=\"next\", <e>; rel=\"prev\"");
        backend.once("POST", &own, answer);
        let made = send(proxy.addr(), "POST", &format!("/api/{folder}/a"), &[("Host", "127.0.0.1")], "x").await;
        assert_eq!(made.status, 201);
        let fields =
            ["Location", "Content-Location", "Link"].map(|name| made.header(name).unwrap_or_default().to_owned());
        let expected = [
            format!("/api/{folder}/b"),
            format!("http://127.0.0.1/api/{folder}/c"),
            "</api/docs/d>; rel=\"next\", <e>; rel=\"prev\"".to_owned(),
        ];
        assert_eq!(fields, expected);
    }
}

/// DESIGN, rule 10: one resource, one key.
#[tokio::test(flavor = "multi_thread")]
async fn two_prefixes_of_one_resource_share_its_claim() {
    let backend = Backend::start().await;
    backend.put("/v1/docs/a", "one");
    let direct = "path = \"/v1/docs/{*rest}\"";
    let proxy = proxy(&backend, "", &[("optimistic", API), ("optimistic", direct)]).await;
    let addr = proxy.addr();
    let tag = get(addr, "/api/docs/a").await.etag();
    assert_eq!(get(addr, "/v1/docs/a").await.etag(), tag);
    let held = backend.hold("PUT", "/v1/docs/a");
    let first = tokio::spawn({
        let tag = tag.clone();
        async move { put_if_match(addr, "/api/docs/a", &tag, "two").await }
    });
    let mut write = held.arrived().await;
    let second = tokio::spawn(async move { put_if_match(addr, "/v1/docs/a", &tag, "three").await });
    write.read_body().await;
    write.apply().await;
    assert_eq!(backend.count("PUT", "*"), 1, "the other one waits");
    write.answer(Answer::status(204)).await;
    assert_eq!((first.await.unwrap().status, second.await.unwrap().status), (204, 412));
}

/// A path that loses another beginning than its prefix is not the path that was judged.
#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_would_leave_its_prefix_is_refused() {
    let backend = Backend::start().await;
    let open = API.replace("docs", "open");
    let proxy = proxy(&backend, "", &[("optimistic", API), ("last-writer-wins", &open)]).await;
    for target in ["/api/../api/docs/a", "/%61pi/docs/a", "/api/../api/open/a", "/%61pi/open/a", "/x/../api/docs/a"] {
        get(proxy.addr(), target).await.refused(400, "ambiguous-target");
    }
    assert_eq!(backend.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_asked_for_by_the_path_of_clients() {
    let backend = Backend::start().await;
    backend.put("/v1/docs/a", "one");
    let proxy = proxy(&backend, "", &[("pessimistic", API)]).await;
    let addr = proxy.addr();
    let taken = send(addr, "POST", "/.leases/api/docs/a", &[("Lease-Duration", "30")], "").await;
    assert_eq!(taken.status, 201, "{taken:?}");
    let lease = taken.header("Lease-Id").expect("its id").to_owned();
    send(addr, "PUT", "/api/docs/a", &[], "two").await.refused(412, "lease-id-missing");
    assert_eq!(send(addr, "PUT", "/api/docs/a", &[("Lease-Id", &lease)], "two").await.status, 204);
    send(addr, "GET", "/.leases/%61pi/docs/a", &[], "").await.refused(400, "ambiguous-target");
    assert!(backend.requests().iter().all(|request| request.target == "/v1/docs/a"), "{:?}", targets(&backend));
}

/// DESIGN, section 6: `also_changes` names other resources by the paths of clients.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_write_touches_is_named_by_the_paths_of_clients() {
    let backend = Backend::start().await;
    backend.put("/v1/docs/list", "[]");
    backend.put("/v1/docs/a", "one");
    let list = format!("{}\nname = \"list\"\nother_writers = false", API.replace("{*rest}", "list"));
    let docs = API.replace("{*rest}", "{id}");
    let docs = format!("{docs}\nname = \"docs\"\nother_writers = false\nalso_changes = [\"/api/docs/list\"]");
    let proxy = proxy(&backend, "", &[("optimistic", &list), ("optimistic", &docs)]).await;
    let addr = proxy.addr();
    let old = get(addr, "/api/docs/list").await.etag();
    let local = send(addr, "GET", "/api/docs/list", &[("If-None-Match", &old)], "").await;
    assert_eq!((local.status, backend.count("GET", "/v1/docs/list")), (304, 1), "it is answered from memory");
    let tag = get(addr, "/api/docs/a").await.etag();
    assert_eq!(put_if_match(addr, "/api/docs/a", &tag, "two").await.status, 204);
    send(addr, "GET", "/api/docs/list", &[("If-None-Match", &old)], "").await;
    assert_eq!(backend.count("GET", "/v1/docs/list"), 2, "it is asked for again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_gets_the_same_beginning() {
    let backend = Backend::start().await;
    let open = API.replace("docs", "open");
    let proxy = proxy(&backend, "", &[("last-writer-wins", &open)]).await;
    let destination = "http://127.0.0.1/api/open/b";
    backend.always("COPY", "/v1/open/a", |_| Answer::status(201));
    send(proxy.addr(), "COPY", "/api/open/a", &[("Host", "127.0.0.1"), ("Destination", destination)], "").await;
    assert_eq!(backend.seen("COPY", "*")[0].header("Destination"), Some("http://127.0.0.1/v1/open/b"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_can_be_called_by_its_own_name() {
    for (words, expected) in
        [("upstream", None), ("docs.internal", Some("docs.internal")), ("preserve", Some("client.test"))]
    {
        let backend = Backend::start().await;
        let own = expected.map_or_else(|| backend.addr().to_string(), str::to_owned);
        let upstream = format!("host_header = \"{words}\"");
        let routes = [("optimistic", "path = \"/docs/{*rest}\""), ("last-writer-wins", "path = \"/open/{*rest}\"")];
        let proxy = proxy(&backend, &upstream, &routes).await;
        for path in ["/docs/a", "/open/a"] {
            let answer = Answer::status(201).header("Location", &format!("http://{own}{path}/b"));
            backend.once("POST", path, answer);
            let made = send(proxy.addr(), "POST", path, &[("Host", "client.test")], "x").await;
            let told = if words == "preserve" { format!("http://client.test{path}/b") } else { format!("{path}/b") };
            assert_eq!(made.header("Location"), Some(&*told), "{words}");
        }
        let hosts = backend.requests();
        assert!(hosts.iter().all(|request| request.header("Host") == Some(&own)), "{words}");
    }
}
