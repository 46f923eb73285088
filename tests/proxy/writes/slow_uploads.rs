//! The claim never waits for the client: a stalled upload blocks no other client, and comes too late when it is done.

use crate::support::{
    backend::Backend,
    h2c,
    raw::{Connection, get, put_if_match},
    source::{CONTENT, CONTENT_EXCLUSIVE, Source, VERSION},
};

/// Each way to know what is current.
const SOURCES: [Source; 3] = [CONTENT, CONTENT_EXCLUSIVE, VERSION];

const HALF: &str = "half of a slow body, ";

/// Checks the writes that the backend has seen, and its content.
fn assert_only_the_fast_write(backend: &Backend, source: Source) {
    assert_eq!(backend.count("PUT", "/doc"), 1, "{source}");
    assert_eq!(backend.content("/doc").as_deref(), Some("fast"), "{source}");
}

/// Rule 5: a stalled upload over HTTP/1.1 holds no claim.
#[tokio::test]
async fn a_fast_upload_overtakes_a_slow_one() {
    for source in SOURCES {
        let (backend, setup) = source.start("/doc", "first").await;
        let proxy = setup.start().await;
        let tag = get(proxy.addr(), "/doc").await.etag();

        let mut slow = Connection::open(proxy.addr()).await;
        let length = 2 * HALF.len();
        slow.expect_response_to("PUT");
        // The 100 says that the proxy has judged the head and waits for the body.
        let expect = "Expect: 100-continue";
        let head = format!(
            "PUT /doc HTTP/1.1\r\nHost: test\r\nIf-Match: {tag}\r\nContent-Length: {length}\r\n{expect}\r\n\r\n"
        );
        slow.send_bytes(head).await;
        assert_eq!(slow.read_head().await.0, 100, "{source}");
        slow.send_bytes(HALF).await;

        assert_eq!(put_if_match(proxy.addr(), "/doc", &tag, "fast").await.status, 204, "{source}");
        slow.send_bytes(HALF).await;
        slow.read_response().await.refused(412, "precondition-failed");
        assert_only_the_fast_write(&backend, source);
    }
}

/// Rule 5: a stalled stream holds no claim, on the very connection of the fast one.
#[tokio::test]
async fn a_fast_stream_overtakes_a_slow_one() {
    for source in SOURCES {
        let (backend, setup) = source.start("/doc", "first").await;
        let proxy = setup.start().await;
        let mut client = h2c::Connection::open(proxy.addr()).await;
        let tag = client.exchange("GET", "/doc", &[], "").await.etag();

        let mut slow = client.begin("PUT", "/doc", &[("if-match", &tag)]).await;
        slow.send(HALF).await;
        assert_eq!(client.exchange("PUT", "/doc", &[("if-match", &tag)], "fast").await.status, 204, "{source}");
        slow.send_last(HALF).await;
        slow.response().await.refused(412, "precondition-failed");
        assert_only_the_fast_write(&backend, source);
    }
}
