//! Reads that overlap writes: in any order, no tag is good for a state that its holder has not seen.

use std::net::SocketAddr;

use tokio::task::JoinHandle;

use crate::support::{
    backend::{Answer, Backend, Held},
    raw::{get, put, put_if_match, send},
    response::Response,
    source::{self, Source, UPSTREAM, UPSTREAM_EXCLUSIVE, VERSION},
};

fn spawn_get(addr: SocketAddr) -> JoinHandle<Response> {
    tokio::spawn(async move { get(addr, "/doc").await })
}

fn spawn_put(addr: SocketAddr, tag: &str, body: &'static str) -> JoinHandle<Response> {
    let tag = tag.to_owned();
    tokio::spawn(async move { put_if_match(addr, "/doc", &tag, body).await })
}

/// Sends a GET that the backend has received and not answered.
async fn begin_get(backend: &Backend, addr: SocketAddr) -> (JoinHandle<Response>, Held) {
    let held = backend.hold("GET", "/doc");
    let reader = spawn_get(addr);
    (reader, held.arrived().await)
}

/// Sends a PUT that the backend has received and not applied.
async fn begin_put(backend: &Backend, addr: SocketAddr, tag: &str) -> (JoinHandle<Response>, Held) {
    let held = backend.hold("PUT", "/doc");
    let writer = spawn_put(addr, tag, "new");
    (writer, held.arrived().await)
}

/// The backend itself answers a conditional GET with this tag, and shows the new state: the old one is forgotten.
async fn assert_forgotten(backend: &Backend, addr: SocketAddr, tag: &str, source: Source) {
    let before = backend.count("GET", "/doc");
    let read = send(addr, "GET", "/doc", &[("If-None-Match", tag)], "").await;
    assert_eq!((read.status, read.text()), (200, "new"), "{source}");
    assert_ne!(read.etag(), tag, "{source}");
    assert_eq!(backend.count("GET", "/doc"), before + 1, "{source}: the backend was asked");
}

/// A write with this tag is refused, and the state stays the new one.
async fn assert_refused(backend: &Backend, addr: SocketAddr, tag: &str, source: Source) {
    let written = put_if_match(addr, "/doc", tag, "based on the old state").await;
    assert_eq!(written.status, 412, "{source}: {written:?}");
    written.refused(412, "precondition-failed");
    assert_eq!(backend.content("/doc").as_deref(), Some("new"), "{source}");
}

/// A read that reached the backend before a write and is answered after it, with the old content.
/// Rule 2: its tag labels what it was taken from, and dies with it.
#[tokio::test]
async fn a_read_answered_after_a_write_leaves_no_valid_tag() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "old").await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let (reader, read) = begin_get(&backend, addr).await;
        let old = read.stored();
        let tag = get(addr, "/doc").await.etag();
        assert_eq!(put_if_match(addr, "/doc", &tag, "new").await.status, 204, "{source}");
        read.answer(old).await;
        let late = reader.await.unwrap();
        assert_eq!((late.text(), late.etag()), ("old", tag), "{source}");
        assert_refused(&backend, addr, &late.etag(), source).await;
        assert_forgotten(&backend, addr, &late.etag(), source).await;
    }
}

/// The same, and the record of the write is forgotten before the read is answered: absence has a revision (rule 8).
#[tokio::test]
async fn a_forgotten_write_keeps_old_tags_invalid() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "old").await;
        let proxy = setup.store("capacity = 1").start().await;
        let addr = proxy.addr();
        let (reader, read) = begin_get(&backend, addr).await;
        let old = read.stored();
        let tag = get(addr, "/doc").await.etag();
        assert_eq!(put_if_match(addr, "/doc", &tag, "new").await.status, 204, "{source}");
        // There is room for one record, and this write needs it.
        assert_eq!(put(addr, "/other", &[("If-None-Match", "*")], "x").await.status, 201, "{source}");
        read.answer(old).await;
        let late = reader.await.unwrap();
        assert_eq!((late.text(), late.etag()), ("old", tag), "{source}");
        assert_refused(&backend, addr, &late.etag(), source).await;
        assert_forgotten(&backend, addr, &late.etag(), source).await;
    }
}

/// A read beside a write that the backend has not applied yet is given the old content, and a tag that dies with it.
#[tokio::test]
async fn a_read_beside_an_unapplied_write_labels_the_old_content() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "old").await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let tag = get(addr, "/doc").await.etag();
        let (writer, mut write) = begin_put(&backend, addr, &tag).await;
        let beside = get(addr, "/doc").await;
        assert_eq!(beside.text(), "old", "{source}");
        write.apply().await;
        write.answer(Answer::status(204)).await;
        assert_eq!(writer.await.unwrap().status, 204, "{source}");
        assert_refused(&backend, addr, &beside.etag(), source).await;
        assert_forgotten(&backend, addr, &beside.etag(), source).await;
    }
}

/// The same, and the read is answered only after the write is settled.
#[tokio::test]
async fn a_read_begun_beside_a_write_and_answered_after_it_labels_the_old_content() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "old").await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let tag = get(addr, "/doc").await.etag();
        let (writer, mut write) = begin_put(&backend, addr, &tag).await;
        let (reader, read) = begin_get(&backend, addr).await;
        let old = read.stored();
        write.apply().await;
        write.answer(Answer::status(204)).await;
        assert_eq!(writer.await.unwrap().status, 204, "{source}");
        read.answer(old).await;
        let beside = reader.await.unwrap();
        assert_eq!(beside.text(), "old", "{source}");
        assert_refused(&backend, addr, &beside.etag(), source).await;
        assert_forgotten(&backend, addr, &beside.etag(), source).await;
    }
}

/// A read beside a write that the backend has applied sees the new content. A tag of that content is good; one that
/// counts with a version is not, because that was taken before.
#[tokio::test]
async fn a_read_beside_an_applied_write_is_labelled_with_nothing_newer() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "old").await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let tag = get(addr, "/doc").await.etag();
        let (writer, mut write) = begin_put(&backend, addr, &tag).await;
        write.apply().await;
        let beside = get(addr, "/doc").await;
        assert_eq!(beside.text(), "new", "{source}");
        write.answer(Answer::status(204)).await;
        assert_eq!(writer.await.unwrap().status, 204, "{source}");
        if source == VERSION {
            assert_eq!(beside.etag(), tag, "the version that stood before the read");
        }
        if [VERSION, UPSTREAM, UPSTREAM_EXCLUSIVE].contains(&source) {
            assert_refused(&backend, addr, &beside.etag(), source).await;
            let fresh = get(addr, "/doc").await.etag();
            assert_eq!(put_if_match(addr, "/doc", &fresh, "newest").await.status, 204, "{source}");
        } else {
            assert_eq!(beside.etag(), get(addr, "/doc").await.etag(), "{source}");
            assert_eq!(put_if_match(addr, "/doc", &beside.etag(), "newest").await.status, 204, "{source}");
        }
    }
}

/// RFC 9110 section 13.1.2: 304 says that the client's copy is what is there. Until the write is settled the version of
/// the old state labels the new one too, so it confirms no copy.
#[tokio::test]
async fn no_copy_of_the_old_state_is_confirmed_beside_an_applied_write() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "old").await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let tag = get(addr, "/doc").await.etag();
        let (writer, mut write) = begin_put(&backend, addr, &tag).await;
        write.apply().await;
        let read = send(addr, "GET", "/doc", &[("If-None-Match", &tag)], "").await;
        assert_eq!((read.status, read.text()), (200, "new"), "{source}");
        write.answer(Answer::status(204)).await;
        assert_eq!(writer.await.unwrap().status, 204, "{source}");
    }
}

/// While a write is in flight nothing is answered from memory, neither 304 nor 412.
#[tokio::test]
async fn nothing_is_answered_from_memory_beside_a_write() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "old").await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let tag = get(addr, "/doc").await.etag();
        let (writer, mut write) = begin_put(&backend, addr, &tag).await;
        let before = backend.count("GET", "/doc");
        // It is open which state the version, or a tag that can repeat, is about to name.
        let confirmed = if source.hashes_content() { 304 } else { 200 };
        assert_eq!(send(addr, "GET", "/doc", &[("If-None-Match", &tag)], "").await.status, confirmed, "{source}");
        assert_eq!(send(addr, "GET", "/doc", &[("If-Match", "\"other\"")], "").await.status, 412, "{source}");
        assert_eq!(backend.count("GET", "/doc"), before + 2, "{source}");
        write.apply().await;
        write.answer(Answer::status(204)).await;
        assert_eq!(writer.await.unwrap().status, 204, "{source}");
    }
}

/// A writer bypasses the proxy between a client's read and its write: `other_writers = true` is made for that.
#[tokio::test]
async fn a_write_behind_our_back_after_a_read_is_seen() {
    for source in source::SHARED {
        let (backend, setup) = source.start("/doc", "old").await;
        let proxy = setup.start().await;
        let tag = get(proxy.addr(), "/doc").await.etag();
        assert_eq!(put(backend.addr(), "/doc", &[], "new").await.status, 204);
        assert_refused(&backend, proxy.addr(), &tag, source).await;
        assert_forgotten(&backend, proxy.addr(), &tag, source).await;
    }
}

/// The same after a write through the proxy, whose outcome the record knows.
#[tokio::test]
async fn a_write_behind_our_back_after_a_write_is_seen() {
    for source in source::SHARED {
        let (backend, setup) = source.start("/doc", "oldest").await;
        let proxy = setup.route("on_write = \"probe\"").start().await;
        let tag = get(proxy.addr(), "/doc").await.etag();
        let tag = put_if_match(proxy.addr(), "/doc", &tag, "old").await.etag();
        assert_eq!(put(backend.addr(), "/doc", &[], "new").await.status, 204);
        assert_refused(&backend, proxy.addr(), &tag, source).await;
        assert_forgotten(&backend, proxy.addr(), &tag, source).await;
    }
}
