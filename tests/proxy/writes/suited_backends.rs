//! Backends that do not suit their route: what they demand, what they refuse, and what the client and the operator are
//! told of it.

use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{get, put, put_if_match, send},
    source,
};

/// The proof of the right to one request cannot be lent to a probe, so the client would always get 401.
#[tokio::test]
async fn credentials_for_one_request_alone_are_refused_with_the_remedy() {
    let fields = [
        ("Authorization", "Digest username=\"a\", response=\"b\""),
        ("Authorization", "DPoP token"),
        ("Authorization", "HMAC-SHA256 Credential=a"),
        ("Authorization", "Signature keyId=\"a\""),
        ("DPoP", "proof"),
        ("Signature", "sig1=:YQ==:"),
    ];
    for source in ["etag = \"content\"", "etag = \"upstream\""] {
        let backend = Backend::start().await;
        backend.always("*", "/doc", |request| Answer::status(if request.method == "PUT" { 204 } else { 401 }));
        let proxy = Proxy::to(backend.addr()).route(source).start().await;
        for field in fields {
            let refused = put(proxy.addr(), "/doc", &[field, ("If-Match", "\"a\"")], "two").await;
            let problem = refused.refused(502, "validator-unavailable");
            assert!(problem.detail.contains("probe_auth") && problem.detail.contains("401"), "{field:?}: {problem:?}");
        }
        let bearer = [("Authorization", "Bearer token"), ("If-Match", "\"a\"")];
        assert_eq!(put(proxy.addr(), "/doc", &bearer, "two").await.status, 401, "{source}: it speaks for itself");
        assert_eq!(backend.count("PUT", "/doc"), 0, "{source}");
        backend.always("*", "/doc", |_| Answer::status(200).header("ETag", "\"a\"").body("one"));
        let tag = get(proxy.addr(), "/doc").await.etag();
        let write = put(proxy.addr(), "/doc", &[fields[4], ("If-Match", &tag)], "two").await;
        assert_eq!(write.status, 200, "{source}: a backend that lets everybody read");
    }
}

/// A proof of the right to one request is none for another, and would be taken for a forged one.
#[tokio::test]
async fn a_probe_without_the_clients_credentials_has_none_of_its_proofs() {
    let backend = Backend::start().await;
    backend.always("*", "/doc", |_| Answer::status(200).header("ETag", "\"a\"").body("one"));
    let proxy = Proxy::to(backend.addr()).route("etag = \"upstream\"\nprobe_auth = \"none\"").start().await;
    let proofs =
        [("Authorization", "DPoP token"), ("DPoP", "proof"), ("Signature", "s=:YQ==:"), ("Signature-Input", "s=()")];
    put(proxy.addr(), "/doc", &[&proofs[..], &[("If-Match", "\"b\"")]].concat(), "two")
        .await
        .refused(412, "precondition-failed");
    let probes = backend.requests();
    assert!(!probes.is_empty());
    for probe in probes {
        for (name, _) in proofs {
            assert_eq!(probe.headers.all(&name.to_ascii_lowercase()), [""; 0], "{name}: {probe:?}");
        }
    }
}

/// A POST that appends is not checked, and one to a path such as this may change any resource.
#[tokio::test]
async fn a_batch_among_guarded_paths_is_told_of_once() {
    let backend = Backend::start().await;
    backend.serve(|_| Answer::status(200).body("done"));
    for (lines, path, is_told) in [
        ("", "/api/graphql", true),
        ("", "/notes:batch", true),
        ("observe = true", "/api/graphql", true),
        ("", "/notes", false),
        ("observe = true", "/notes", false),
        ("also_changes = [\"/feed\"]", "/api/graphql", false),
    ] {
        let proxy = Proxy::to(backend.addr()).route(lines).start().await;
        for _ in 0..2 {
            assert_eq!(send(proxy.addr(), "POST", path, &[], "changes").await.status, 200, "{path}");
        }
        if is_told {
            assert_eq!(proxy.logged(&[path, "docs/how-to/batches.md"]).await.len(), 1, "{path}: {}", proxy.log());
        } else {
            assert_eq!(proxy.log().matches("docs/how-to/batches.md").count(), 0, "{lines} {path}");
        }
    }
}

/// A target that answers POST alone acts on the resource of its key: its tag is asked for where it was issued.
#[tokio::test]
async fn an_action_is_judged_by_the_tag_of_its_resource() {
    for status in [404, 405] {
        let backend = Backend::start().await;
        backend.always("*", "/x", |_| Answer::status(200).header("X-Version", "1").body("one"));
        backend.always("*", "/x/send", move |request| match request.method.as_str() {
            "POST" => Answer::status(202).body("sent"),
            _ => Answer::status(status),
        });
        let route = |name: &str, path: &str| {
            format!(
                "[[routes]]\nname = \"{name}\"\npath = \"{path}\"\nkey = \"/{{id}}\"\nupstream = \"one\"\npolicy = \"optimistic\"\n\
                 etag = \"header:X-Version\"\n"
            )
        };
        let proxy = Proxy::start(&format!(
            "[server]\n{{listen}}\n[upstreams.one]\nservers = [\"{}\"]\n{}{}",
            backend.addr(),
            route("resources", "/{id}"),
            route("actions", "/{id}/send")
        ))
        .await;
        let addr = proxy.addr();
        let post = async |tag: &str| send(addr, "POST", "/x/send", &[("If-Match", tag)], "").await;
        let unknown = post("\"1\"").await;
        assert_eq!(backend.count("POST", "/x/send"), 0, "{status}: nobody has read the tag");
        assert_eq!(unknown.status, if status == 404 { 412 } else { 502 }, "{unknown:?}");
        let tag = get(addr, "/x").await.etag();
        assert_eq!(post(&tag).await.status, 202, "{status}");
        post("\"0\"").await;
        backend.always("*", "/x", |_| Answer::status(200).header("X-Version", "2").body("two"));
        let stale = post(&tag).await;
        assert_eq!(stale.status, 412, "{status}: {stale:?}");
        assert_eq!(backend.count("POST", "/x/send"), 1, "{status}");
    }
}

/// The backend judges conditions that do not reach it, and its operator gets one warning.
#[tokio::test]
async fn a_backend_that_wants_preconditions_is_told_of_once() {
    for (status, source, told) in
        [(412, source::CONTENT, 1), (428, source::VERSION, 1), (409, source::CONTENT, 0), (412, source::UPSTREAM, 0)]
    {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.start().await;
        let tag = get(proxy.addr(), "/doc").await.etag();
        backend.always("PUT", "/doc", move |_| Answer::status(status));
        for _ in 0..2 {
            assert_eq!(put_if_match(proxy.addr(), "/doc", &tag, "two").await.status, status, "{source}");
        }
        proxy.logged(&["path=/doc", "PUT"]).await;
        let lines = proxy.log().lines().filter(|line| line.contains("refused a write with 412 or 428")).count();
        assert_eq!(lines, told, "{source} {status}");
    }
}

/// RFC 9110 section 8.8.3.2: a weak tag never matches in If-Match, in any spelling.
#[tokio::test]
async fn a_weak_tag_of_the_backend_is_refused_with_the_key_that_helps() {
    for other_writers in [true, false] {
        let backend = Backend::start().await;
        backend.always("*", "/doc", |request| match request.method.as_str() {
            "PUT" => Answer::status(204),
            _ => Answer::status(200).header("ETag", "W/\"x\"").body("one"),
        });
        let route = |compare: &str| format!("etag = \"upstream\"\nother_writers = {other_writers}\n{compare}");
        let proxy = Proxy::to(backend.addr()).route(&route("")).start().await;
        let addr = proxy.addr();
        let tag = get(addr, "/doc").await.etag();
        assert_eq!(tag, "W/\"x\"");
        for tag in ["W/\"x\"", "\"x\""] {
            let problem = put_if_match(addr, "/doc", tag, "two").await.refused(412, "precondition-failed");
            assert!(problem.detail.contains("compare = \"opaque\""), "{tag}: {problem:?}");
        }
        assert_eq!(backend.count("PUT", "/doc"), 0);
        assert_eq!(proxy.logged(&["tags are weak", "set compare"]).await.len(), 1);
        let opaque = Proxy::to(backend.addr()).route(&route("compare = \"opaque\"")).start().await;
        let tag = get(opaque.addr(), "/doc").await.etag();
        assert_eq!(put_if_match(opaque.addr(), "/doc", &tag, "two").await.status, 204);
    }
}
