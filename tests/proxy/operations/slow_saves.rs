//! The parts of a request's time: in the access line for the operator, and for the client if `server_timing` permits
//! it.

use crate::support::{
    backend::{Answer, Backend},
    message::Headers,
    proxy::Proxy,
    raw::{get, put, put_if_match},
};

/// The names in `Server-Timing`, and whether each has a duration.
fn parts(headers: &Headers) -> Vec<String> {
    let told = headers.all("server-timing").join(", ");
    let part = |metric: &str| {
        let (name, duration) = metric.split_once(";dur=").expect("a duration");
        assert!(duration.parse::<f64>().is_ok(), "{told}");
        name.to_owned()
    };
    told.split(", ").filter(|metric| !metric.is_empty()).map(part).collect()
}

#[tokio::test]
async fn an_access_line_tells_the_parts_of_a_write() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let proxy = Proxy::to(backend.addr()).route("etag = \"content\"").start().await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    let written = put_if_match(proxy.addr(), "/doc", &tag, "two").await;
    assert_eq!(parts(&written.headers), [""; 0], "no client is told unless the operator wants it");
    let line = proxy.logged(&["method=\"PUT\"", "path=/doc"]).await.pop().expect("a line");
    for field in ["upstream_milliseconds=", "probe_milliseconds=", "claim_milliseconds=", "store_milliseconds="] {
        assert!(line.contains(field), "{field} {line}");
    }
}

#[tokio::test]
async fn a_client_is_told_what_took_time_beside_what_the_backend_tells() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let proxy = Proxy::to(backend.addr()).server("server_timing = true").route("etag = \"content\"").start().await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    let written = put_if_match(proxy.addr(), "/doc", &tag, "two").await;
    assert_eq!(parts(&written.headers), ["claim", "probe", "store", "upstream"]);
    let refused = put_if_match(proxy.addr(), "/doc", &tag, "three").await;
    assert_eq!(refused.status, 412);
    assert_eq!(parts(&refused.headers), ["claim", "probe", "store", "upstream"]);
    let unasked = put(proxy.addr(), "/doc", &[], "three").await;
    assert_eq!(unasked.status, 428);
    backend.always("GET", "/told", |_| Answer::status(200).header("Server-Timing", "database;dur=3").body("one"));
    let read = get(proxy.addr(), "/told").await;
    let told = parts(&read.headers);
    assert!(told.contains(&"database".to_owned()) && told.contains(&"upstream".to_owned()), "{told:?}");
}
