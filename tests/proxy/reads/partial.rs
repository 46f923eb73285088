//! Reads that are not answered with a whole representation at once: parts, heads and streams.

use crate::support::{
    backend::Answer,
    raw::{Connection, get, put_if_match, send},
    source::{self, VERSION},
};

/// RFC 9110 section 15.3.7.3: parts with the same strong tag are combined. A version is that of the record before the
/// backend was asked, so a write in between would give a part of its content the tag of the old one.
#[tokio::test]
async fn a_part_of_what_a_write_has_made_never_has_the_old_tag() {
    for conditional in [true, false] {
        let (backend, setup) = VERSION.start("/doc", "old old").await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let tag = get(addr, "/doc").await.etag();
        let held = backend.hold("GET", "/doc");
        let reader = tokio::spawn({
            let tag = tag.clone();
            async move {
                let fields = [("Range", "bytes=4-"), ("If-Range", tag.as_str())];
                send(addr, "GET", "/doc", &fields[..=usize::from(conditional)], "").await
            }
        });
        let read = held.arrived().await;
        assert_eq!(put_if_match(addr, "/doc", &tag, "new new").await.status, 204);
        read.answer(Answer::status(206).header("Content-Range", "bytes 4-6/7").body("new")).await;
        let answer = reader.await.unwrap();
        assert_eq!((answer.status, answer.text()), (200, "new new"), "the whole, since the part is of another state");
    }
}

/// The same while the write is in flight: whether its content is there already cannot be known.
#[tokio::test]
async fn beside_a_write_the_whole_is_answered() {
    let (backend, setup) = VERSION.start("/doc", "old old").await;
    let proxy = setup.start().await;
    let addr = proxy.addr();
    let tag = get(addr, "/doc").await.etag();
    let held = backend.hold("PUT", "/doc");
    let writer = tokio::spawn({
        let tag = tag.clone();
        async move { put_if_match(addr, "/doc", &tag, "new new").await }
    });
    let mut write = held.arrived().await;
    write.apply().await;
    send(addr, "GET", "/doc", &[("Range", "bytes=4-")], "").await;
    assert_eq!(backend.seen("GET", "/doc")[1].header("range"), None);
    write.answer(Answer::status(204)).await;
    assert_eq!(writer.await.unwrap().status, 204);
}

/// Without an event in between, a part is a part.
#[tokio::test]
async fn a_part_of_a_version_is_labelled_with_it() {
    let (backend, setup) = VERSION.start("/doc", "old old").await;
    let proxy = setup.start().await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    backend.once("GET", "/doc", Answer::status(206).header("Content-Range", "bytes 4-6/7").body("old"));
    let fields = [("Range", "bytes=4-"), ("If-Range", tag.as_str())];
    let part = send(proxy.addr(), "GET", "/doc", &fields, "").await;
    assert_eq!((part.status, part.text(), part.etag()), (206, "old", tag.clone()));
    assert_eq!(backend.seen("GET", "/doc")[1].header("range"), Some("bytes=4-"));
}

/// An answer without a body leaves its connection to the requests that follow; one that comes at the very moment of its
/// return may miss it.
#[tokio::test]
async fn a_head_does_not_cost_the_backend_a_connection() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.start().await;
        for _ in 0..10 {
            assert_eq!(send(proxy.addr(), "HEAD", "/doc", &[], "").await.status, 200, "{source}");
        }
        assert!(backend.connections() < 10, "{source}");
    }
}

/// DESIGN, section 6: what does not end within `hash_wait` is passed on as it comes.
#[tokio::test]
async fn a_stream_is_passed_on_while_it_lasts() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "").await;
        let proxy = setup.start().await;
        let held = backend.hold("GET", "/doc");
        let mut client = Connection::open(proxy.addr()).await;
        client.request("GET", "/doc", &[], "").await;
        let mut stream = held.arrived().await;
        let first = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.send_bytes(format!("{first}5\r\none\n\n\r\n")).await;
        assert_eq!(client.read_head().await.0, 200, "{source}");
        assert_eq!(client.read_bytes(10).await, b"5\r\none\n\n\r\n", "{source}");
        stream.send_bytes("5\r\ntwo\n\n\r\n").await;
        assert_eq!(client.read_bytes(10).await, b"5\r\ntwo\n\n\r\n", "{source}");
    }
}
