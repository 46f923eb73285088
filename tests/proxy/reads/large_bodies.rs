//! Bodies that are too large or too slow for a tag of their bytes, and those that have no end. P22: a proxy that
//! buffers kills streams.

use std::{env, net::SocketAddr, time::Duration};

use tokio::task::JoinSet;

use crate::support::{
    backend::{Backend, Held},
    nginx::Nginx,
    proxy::{Proxy, Setup},
    raw::{Connection, get, put, send},
    source::{self, CONTENT, CONTENT_EXCLUSIVE},
};

/// No test waits for so long: what is held back until it is over is never seen.
const NEVER: &str = "hash_wait = \"60s\"";

/// A response of known length, whose first half is on its way. It is more than what pingora gathers into one packet
/// where it knows the length.
const KNOWN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4000";
const HALF: usize = 2000;

/// Begins a GET that the backend has received.
async fn begin(backend: &Backend, addr: SocketAddr, fields: &[(&str, &str)]) -> (Connection, Held) {
    let held = backend.hold("GET", "/doc");
    let mut client = Connection::open(addr).await;
    client.request("GET", "/doc", fields, "").await;
    (client, held.arrived().await)
}

/// Checks that the client gets what the backend has sent of a response, while the backend holds the rest back.
async fn assert_first_bytes_pass(client: &mut Connection, stream: &mut Held, head: &str, first: &str) {
    stream.send_bytes(format!("{head}\r\n\r\n{first}")).await;
    let (status, _) = client.read_head().await;
    assert!(head.contains(&status.to_string()), "{status} for {head}");
    assert_eq!(client.read_bytes(first.len()).await, first.as_bytes(), "{head}");
}

/// How often the log has told of this key.
async fn told(proxy: &Proxy, key: &str) -> usize {
    proxy.logged(&[&format!("{key} "), "this is logged once"]).await.len()
}

fn setup(backend: &Backend, lines: &str) -> Setup {
    Proxy::to(backend.addr()).route("etag = \"content\"").route(lines)
}

#[tokio::test]
async fn p22_a_large_body_is_sent_on_and_the_log_says_once_what_to_configure() {
    for source in [CONTENT, CONTENT_EXCLUSIVE] {
        let (backend, setup) = source.start("/doc", &"x".repeat(2000)).await;
        let proxy = setup.route("max_hash_size = \"1KiB\"").start().await;
        for _ in 0..3 {
            let read = get(proxy.addr(), "/doc").await;
            assert_eq!((read.status, read.body.len()), (200, 2000), "{source}");
            assert_eq!(read.header("etag").is_some(), source == CONTENT_EXCLUSIVE, "{source}: the version's, or none");
        }
        assert_eq!(told(&proxy, "than max_hash_size").await, 1, "{source}: {}", proxy.log());
        let (mut client, mut held) = begin(&backend, proxy.addr(), &[]).await;
        assert_first_bytes_pass(&mut client, &mut held, KNOWN, &"x".repeat(HALF)).await;
    }
}

/// No client could satisfy the advice to read the resource for its tag.
#[tokio::test]
async fn a_write_of_a_resource_that_is_too_large_for_a_tag_is_told_the_reason() {
    let backend = Backend::start().await;
    let proxy = setup(&backend, "max_hash_size = \"1KiB\"").start().await;
    let addr = proxy.addr();
    let detail = async |fields: &[(&str, &str)]| {
        let problem = send(addr, "DELETE", "/doc", fields, "").await.refused(428, "precondition-required");
        problem.json["detail"].as_str().unwrap().to_owned()
    };
    assert_eq!(put(addr, "/doc", &[("If-None-Match", "*")], "x".repeat(2000)).await.status, 201);
    assert_eq!(told(&proxy, "than max_hash_size").await, 1, "{}", proxy.log());
    for fields in [&[][..], &[("If-Match", "*")]] {
        let detail = detail(fields).await;
        assert!(detail.contains("no ETag") && detail.contains("raise that limit"), "{fields:?}: {detail}");
    }
    backend.put("/doc", "small");
    assert!(get(addr, "/doc").await.header("etag").is_some());
    assert!(detail(&[]).await.starts_with("read the resource"), "it has a tag now");
}

#[tokio::test]
async fn p22_a_slow_body_is_sent_on_after_hash_wait_and_the_log_says_once_what_to_configure() {
    let backend = Backend::start().await;
    let proxy = setup(&backend, "hash_wait = \"50ms\"").start().await;
    for _ in 0..2 {
        let (mut client, mut held) = begin(&backend, proxy.addr(), &[]).await;
        assert_first_bytes_pass(&mut client, &mut held, KNOWN, &"x".repeat(HALF)).await;
        held.send_bytes("y".repeat(HALF)).await;
        assert_eq!(client.read_bytes(HALF).await, [b'y'; HALF]);
    }
    assert_eq!(told(&proxy, "within hash_wait:").await, 1, "{}", proxy.log());
}

/// A JSON backend that takes 80 ms for a body is common. If the length of the body is known, the tag is worth the wait.
#[tokio::test]
async fn a_body_of_known_length_gets_its_tag_however_slowly_it_comes() {
    let backend = Backend::start().await;
    let proxy = setup(&backend, "").start().await;
    let (mut client, mut held) = begin(&backend, proxy.addr(), &[]).await;
    held.send_bytes(format!("{KNOWN}\r\n\r\n{}", "x".repeat(HALF))).await;
    // Longer than a body of unknown length may take.
    tokio::time::sleep(Duration::from_millis(150)).await;
    held.send_bytes("y".repeat(HALF)).await;
    let (status, fields) = client.read_head().await;
    assert_eq!((status, fields.get("etag").is_some()), (200, true), "{fields:?}");
    assert_eq!(client.read_bytes(2 * HALF).await.len(), 2 * HALF);
}

/// The first byte of what is a stream by its head waits for nothing.
#[tokio::test]
async fn p22_events_trailers_and_parts_are_never_held_back() {
    let backend = Backend::start().await;
    let chunked = "Transfer-Encoding: chunked";
    let heads = [
        ("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream", "data: 1\n\n"),
        ("HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream ; charset=utf-8", "data: 1\n\n"),
        ("HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=a", "--a\r\n"),
        ("HTTP/1.1 200 OK\r\nTrailer: X-Sum", "begin"),
        ("HTTP/1.1 206 Part\r\nContent-Range: bytes 0-99/100", "begin"),
    ];
    for lines in ["", "other_writers = false"] {
        let proxy = setup(&backend, lines).route(NEVER).start().await;
        for (head, first) in heads {
            let first = format!("{:x}\r\n{first}\r\n", first.len());
            let (mut client, mut held) = begin(&backend, proxy.addr(), &[]).await;
            assert_first_bytes_pass(&mut client, &mut held, &format!("{head}\r\n{chunked}"), &first).await;
            held.send_bytes("4\r\nmore\r\n0\r\n\r\n").await;
            assert_eq!(client.read_bytes(14).await, b"4\r\nmore\r\n0\r\n\r\n", "{head}");
        }
        assert_eq!(told(&proxy, "with trailers):").await, 1, "{}", proxy.log());
    }
}

/// If tags are not made of bodies, nothing ever waits for one.
#[tokio::test]
async fn p22_the_first_byte_is_not_held_back_where_tags_are_not_made_of_bodies() {
    for source in [source::UPSTREAM, source::UPSTREAM_EXCLUSIVE, source::VERSION] {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.route("max_hash_size = \"1MiB\"").start().await;
        let (mut client, mut held) = begin(&backend, proxy.addr(), &[]).await;
        assert_first_bytes_pass(&mut client, &mut held, KNOWN, &"x".repeat(HALF)).await;
        assert_eq!(proxy.log().matches("this is logged once").count(), 0, "{source}");
    }
}

/// A write that is answered by a stream is settled by its head, and others go on while it lasts.
#[tokio::test]
async fn p22_a_write_that_is_answered_by_a_stream_is_settled_at_once() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.route("require = \"never\"").start().await;
        let held = backend.hold("PUT", "/doc");
        let mut client = Connection::open(proxy.addr()).await;
        client.request("PUT", "/doc", &[], "two").await;
        let mut write = held.arrived().await;
        write.apply().await;
        let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked";
        assert_first_bytes_pass(&mut client, &mut write, answer, "3\r\nd\n\n\r\n").await;
        assert_eq!(send(proxy.addr(), "PUT", "/doc", &[], "three").await.status, 204, "{source}");
    }
}

/// Reads a download in small pieces, and gives back its length.
async fn download(addr: SocketAddr, target: &str, length: usize) {
    const PIECE: usize = 64 * 1024;
    let mut client = Connection::open(addr).await;
    client.request("GET", target, &[], "").await;
    assert_eq!(client.read_head().await.0, 200);
    let mut left = length;
    while left > 0 {
        let piece = left.min(PIECE);
        client.read_bytes(piece).await;
        left -= piece;
    }
}

/// The proxy does not keep the content that it forwards. `make soak-downloads` does the same with more and larger
/// downloads.
#[tokio::test]
async fn p22_memory_stays_flat_while_many_download() {
    let number = |name, default| env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let (clients, mebibytes): (usize, usize) = (number("DOWNLOAD_CLIENTS", 20), number("DOWNLOAD_MEBIBYTES", 10));
    let nginx = Nginx::start().await;
    let file = std::fs::File::create(nginx.root().join("large")).expect("a file");
    file.set_len((mebibytes as u64) << 20).expect("a sparse file");
    let route = "etag = \"content\"\nother_writers = false";
    let proxy = Proxy::to(nginx.addr()).route(route).start().await;
    let addr = proxy.addr();
    download(addr, "/large", mebibytes << 20).await;
    let before = proxy.peak_memory_kib();
    let mut downloads = JoinSet::new();
    for _ in 0..clients {
        downloads.spawn(download(addr, "/large", mebibytes << 20));
    }
    downloads.join_all().await;
    let grown = proxy.peak_memory_kib() - before;
    println!("{clients} downloads of {mebibytes} MiB: the peak of memory grew by {grown} KiB from {before} KiB");
    // Some buffers and a connection for each of them; any piece of the bodies that is kept would be more.
    let bound = 16 * 1024 + clients as u64 * 512;
    assert!(grown < bound, "the peak of memory grew by {grown} KiB, more than {bound}");
}
