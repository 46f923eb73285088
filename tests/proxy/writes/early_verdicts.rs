//! The verdict before the upload (DESIGN, section 4, step 2): it is final only if no other write had to do with it.

use std::net::SocketAddr;

use tokio::task::JoinHandle;

use crate::support::{
    backend::{Answer, Backend, Held, Validators},
    proxy::Proxy,
    raw::{Connection, get, put_if_match, send},
    response::Response,
};

/// The status of a resource while the backend replaces it.
const HALF_WAY: [u16; 2] = [404, 500];

async fn scene() -> (Backend, Proxy, String) {
    let backend = Backend::with(Validators::Tags).await;
    backend.put("/doc", "one");
    let proxy = Proxy::to(backend.addr()).route("etag = \"upstream\"").start().await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    (backend, proxy, tag)
}

/// A write that has reached the backend, which has not answered it.
async fn begin_write(backend: &Backend, addr: SocketAddr, tag: &str) -> (JoinHandle<Response>, Held) {
    let (held, tag) = (backend.hold("PUT", "/doc"), tag.to_owned());
    let writer = tokio::spawn(async move { put_if_match(addr, "/doc", &tag, "two").await });
    (writer, held.arrived().await)
}

/// Announces an upload and waits for the answer to that.
async fn announce(addr: SocketAddr, tag: &str) -> Connection {
    let mut connection = Connection::open(addr).await;
    let head = format!(
        "PUT /doc HTTP/1.1\r\nHost: test\r\nIf-Match: {tag}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    );
    connection.send_bytes(head).await;
    connection
}

/// The write before fails without an effect: the upload, based on the same version, passes.
async fn upload_after(mut upload: Connection, status: u16, (writer, held): (JoinHandle<Response>, Held)) {
    assert_eq!(upload.read_head().await.0, 100, "the verdict waits for the write before, not for {status}");
    held.answer(Answer::status(400)).await;
    assert_eq!(writer.await.unwrap().status, 400);
    upload.send_bytes("three").await;
    assert_eq!(upload.read_response().await.status, 204);
}

#[tokio::test]
async fn nothing_is_decided_by_a_probe_while_another_write_is_in_flight() {
    for status in HALF_WAY {
        let (backend, proxy, tag) = scene().await;
        let write = begin_write(&backend, proxy.addr(), &tag).await;
        let probes = backend.count("HEAD", "/doc");
        let upload = announce(proxy.addr(), &tag).await;
        upload_after(upload, status, write).await;
        assert_eq!(backend.count("HEAD", "/doc"), probes + 1, "one probe, under the claim");
        assert_eq!(backend.content("/doc").as_deref(), Some("three"));
    }
}

#[tokio::test]
async fn nothing_is_decided_by_a_probe_during_which_another_write_began() {
    for status in HALF_WAY {
        let (backend, proxy, tag) = scene().await;
        let probe = backend.hold("HEAD", "/doc");
        let upload = announce(proxy.addr(), &tag).await;
        let probe = probe.arrived().await;
        let write = begin_write(&backend, proxy.addr(), &tag).await;
        probe.answer(Answer::status(status)).await;
        upload_after(upload, status, write).await;
        assert_eq!(backend.content("/doc").as_deref(), Some("three"));
    }
}

/// If no other client writes, the upload is spared.
#[tokio::test]
async fn a_stale_upload_is_refused_before_it_is_sent() {
    let (backend, proxy, tag) = scene().await;
    assert_eq!(send(proxy.addr(), "PUT", "/doc", &[("If-Match", &tag)], "two").await.status, 204);
    let mut upload = announce(proxy.addr(), &tag).await;
    upload.read_response().await.refused(412, "precondition-failed");
    assert_eq!(backend.count("PUT", "/doc"), 1);
}
