//! Preconditions of writes, end to end, for each source of tags (RFC 9110 section 13).

use std::{
    fs::File,
    net::SocketAddr,
    time::{Duration, SystemTime},
};

use crate::support::{
    backend::Backend,
    nginx::Nginx,
    proxy::Proxy,
    raw::{get, put, send},
    response::Response,
    source::{self, Source},
};

/// How many writes have reached the backend.
fn writes(backend: &Backend) -> usize {
    ["PUT", "PATCH", "DELETE"].iter().map(|method| backend.count(method, "*")).sum()
}

/// A backend with a resource that a proxy demands nothing for, and the resource's tag.
async fn start(source: Source) -> (Backend, Proxy, String) {
    let (backend, setup) = source.start("/doc", "one").await;
    let proxy = setup.route("require = \"never\"").start().await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    (backend, proxy, tag)
}

/// Sends a write of `/doc` with these fields, in whose values TAG stands for the current tag.
async fn write(addr: SocketAddr, method: &str, tag: &str, fields: &[(&str, &str)]) -> Response {
    let fields: Vec<(&str, String)> = fields.iter().map(|(name, value)| (*name, value.replace("TAG", tag))).collect();
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    send(addr, method, "/doc", &fields, if method == "DELETE" { "" } else { "two" }).await
}

/// Sections 13.1.1 and 13.1.2. Several lines of a field are one list.
#[tokio::test]
async fn a_write_with_a_true_precondition_is_applied() {
    let cases: [&[(&str, &str)]; 9] = [
        &[("If-Match", "TAG")],
        &[("If-Match", "\"other\", TAG")],
        &[("If-Match", "\"other\""), ("If-Match", "TAG")],
        &[("If-Match", ", TAG ,, W/\"other\"")],
        &[("If-Match", "*")],
        &[("If-None-Match", "\"other\"")],
        &[("If-None-Match", "\"*\"")],
        &[("If-Match", "TAG"), ("If-None-Match", "\"other\"")],
        &[("If-Match", "TAG"), ("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT")],
    ];
    for source in source::ALL {
        for fields in cases {
            let (backend, proxy, tag) = start(source).await;
            let written = write(proxy.addr(), "PUT", &tag, fields).await;
            assert_eq!((written.status, writes(&backend)), (204, 1), "{source}: {fields:?}");
        }
    }
}

/// Rule 9: If-Match on a write is judged, for any source of the tag.
#[tokio::test]
async fn a_write_with_a_false_precondition_is_refused() {
    let cases: [&[(&str, &str)]; 8] = [
        &[("If-Match", "\"other\"")],
        &[("If-Match", "\"other\", \"another\"")],
        &[("If-Match", "\"*\"")],
        &[("If-None-Match", "*")],
        &[("If-None-Match", "TAG")],
        &[("If-None-Match", "W/TAG")],
        &[("If-None-Match", "\"other\""), ("If-None-Match", "TAG")],
        &[("If-Match", "TAG"), ("If-None-Match", "*")],
    ];
    for source in source::ALL {
        let (backend, proxy, tag) = start(source).await;
        for fields in cases {
            for method in ["PUT", "PATCH", "DELETE"] {
                let written = write(proxy.addr(), method, &tag, fields).await;
                assert_eq!(written.status, 412, "{source}: {method} {fields:?}");
                written.refused(412, "precondition-failed");
            }
        }
        assert_eq!((writes(&backend), backend.content("/doc").as_deref()), (0, Some("one")), "{source}");
    }
}

/// Section 8.8.3.2: a weak tag is never equal in If-Match; the refusal says so, because the client cannot see why.
#[tokio::test]
async fn a_weak_tag_is_refused_and_told_why() {
    for source in source::ALL {
        let (backend, proxy, tag) = start(source).await;
        let written = write(proxy.addr(), "PUT", &tag, &[("If-Match", "\"other\", W/TAG")]).await;
        assert!(written.refused(412, "precondition-failed").detail.contains("weak tag"), "{source}");
        let other = write(proxy.addr(), "PUT", &tag, &[("If-Match", "W/\"other\"")]).await;
        assert!(!other.refused(412, "precondition-failed").detail.contains("weak tag"), "{source}");
        assert_eq!(writes(&backend), 0, "{source}");
    }
}

/// DESIGN, section 4, step 1: what cannot be read is never taken for absent.
#[tokio::test]
async fn a_malformed_precondition_reaches_nobody() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.route("require = \"never\"").start().await;
        for name in ["If-Match", "If-None-Match"] {
            for value in ["one", "\"one", "\"one\" \"two\"", "\"one\", *", "w/\"one\"", "", "*, *"] {
                for method in ["PUT", "PATCH", "DELETE", "POST"] {
                    let written = write(proxy.addr(), method, "", &[(name, value)]).await;
                    assert_eq!(written.status, 400, "{source}: {method} {name}: {value}");
                    written.refused(400, "malformed-precondition");
                }
            }
        }
        assert_eq!(backend.count("*", "*"), 0, "{source}");
    }
}

/// Section 13.1.2: creating, and creating what is there.
#[tokio::test]
async fn a_resource_is_created_once() {
    for source in source::ALL {
        let (backend, setup) = source.start("/elsewhere", "").await;
        let proxy = setup.start().await;
        let creating = [("If-None-Match", "*")];
        assert_eq!(put(proxy.addr(), "/doc", &creating, "one").await.status, 201, "{source}");
        put(proxy.addr(), "/doc", &creating, "two").await.refused(412, "precondition-failed");
        assert_eq!((writes(&backend), backend.content("/doc").as_deref()), (1, Some("one")), "{source}");
    }
}

/// Section 13.2.1: a PUT could make the resource, so the precondition counts; for the others the backend's 404 is the
/// answer that they would get without it.
#[tokio::test]
async fn if_match_on_a_missing_resource() {
    for source in source::ALL {
        for value in ["\"one\"", "*"] {
            let (backend, setup) = source.start("/elsewhere", "").await;
            let proxy = setup.route("allow_any = true").start().await;
            write(proxy.addr(), "PUT", "", &[("If-Match", value)]).await.refused(412, "precondition-failed");
            for method in ["DELETE", "PATCH"] {
                let missing = write(proxy.addr(), method, "", &[("If-Match", value)]).await;
                assert_eq!((missing.status, missing.header("content-type")), (404, Some("text/plain")), "{source}");
            }
            assert_eq!(writes(&backend), 0, "{source}");
        }
    }
}

/// nginx with a file that was last modified then, and a proxy in front of it.
async fn start_nginx(route: &str, modified: SystemTime) -> (Nginx, Proxy) {
    let nginx = Nginx::start().await;
    let file = File::create(nginx.root().join("doc")).unwrap();
    file.set_modified(modified).unwrap();
    let proxy = Proxy::to(nginx.addr()).route(route).start().await;
    (nginx, proxy)
}

const DATED: [&str; 4] = [
    "etag = \"content\"",
    "etag = \"content\"\nother_writers = false",
    "etag = \"upstream\"",
    "etag = \"version\"\nother_writers = false",
];

/// Section 13.1.4, with the dates of a real server.
#[tokio::test]
async fn a_write_can_be_bound_to_a_modification_date() {
    for route in DATED {
        let modified = SystemTime::now() - Duration::from_secs(3600);
        let (nginx, proxy) = start_nginx(route, modified).await;
        let last_modified = get(proxy.addr(), "/doc").await.header("last-modified").unwrap().to_owned();
        let earlier = httpdate::fmt_http_date(modified - Duration::from_secs(1));
        let put_since =
            async |date: &str, body| put(proxy.addr(), "/doc", &[("If-Unmodified-Since", date)], body).await;
        put_since(&earlier, "late").await.refused(412, "precondition-failed");
        assert_eq!(put_since(&last_modified, "in time").await.status, 204, "{route}");
        assert_eq!(get(proxy.addr(), "/doc").await.text(), "in time", "{route}");
        assert_eq!(nginx.access_lines().await.iter().filter(|line| line.starts_with("PUT")).count(), 1, "{route}");
    }
}

/// Section 8.8.2.2: a date that is not older than the response could stand for two states, and protects nothing.
#[tokio::test]
async fn a_weak_modification_date_lets_no_write_pass() {
    for route in DATED {
        let future = SystemTime::now() + Duration::from_secs(3600);
        let (nginx, proxy) = start_nginx(route, future).await;
        let last_modified = httpdate::fmt_http_date(future);
        let written = put(proxy.addr(), "/doc", &[("If-Unmodified-Since", &last_modified)], "x").await;
        assert!(written.refused(412, "precondition-failed").detail.contains("send its ETag"), "{written:?}");
        assert_eq!(nginx.access_lines().await.iter().filter(|line| line.starts_with("PUT")).count(), 0, "{route}");
    }
}
