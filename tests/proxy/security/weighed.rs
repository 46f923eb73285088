//! The cost of requests is counted in bytes and not in pieces: targets, records, bodies (DESIGN, section 3, rule 13).

use std::{net::SocketAddr, time::Instant};

use crate::support::{
    admin,
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{Connection, get, put, put_if_match, request_bytes, send},
    wait::DEADLINE,
};

/// The one value of a metric.
async fn metric(admin: SocketAddr, name: &str) -> u64 {
    let text = admin::look(admin, "/metrics").await.text().to_owned();
    let line = text.lines().find(|line| line.starts_with(name) && !line.starts_with('#'));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
}

/// Returns the memory that bodies hold, in bytes, as soon as it is at least this much.
async fn held(admin: SocketAddr, least: u64) -> u64 {
    let end = Instant::now() + DEADLINE;
    loop {
        let held = metric(admin, "ifmatch_body_held_bytes{ifmatch_body_place=\"memory\"").await;
        if held >= least {
            return held;
        }
        assert!(Instant::now() < end, "{held} bytes are held in place of {least}");
    }
}

#[tokio::test]
async fn a_target_that_is_too_long_is_refused_on_every_route() {
    let backend = Backend::start().await;
    for policy in ["last-writer-wins", "optimistic", "pessimistic"] {
        let setup = Proxy::to(backend.addr()).server("max_target_size = \"300B\"");
        let proxy = setup.route(&format!("policy = \"{policy}\"")).start().await;
        let longest = format!("/{policy}?{}", "q".repeat(298 - policy.len()));
        let created = send(proxy.addr(), "PUT", &longest, &[("If-None-Match", "*")], "x").await;
        assert_eq!((longest.len(), created.status), (300, 201));
        for method in ["GET", "PUT", "POST", "OPTIONS", "DELETE"] {
            send(proxy.addr(), method, &format!("{longest}q"), &[], "").await.refused(414, "target-too-long");
        }
        let absolute = format!("http://x/{}", "a".repeat(292));
        let mut connection = Connection::open(proxy.addr()).await;
        connection.send_bytes(request_bytes("GET", &absolute, &[("Host", "x")], b"")).await;
        connection.expect_response_to("GET");
        connection.read_response().await.refused(414, "target-too-long");
    }
    assert!(backend.requests().iter().all(|request| request.target.len() <= 300));
}

/// 4,000 POSTs that the backend answered with 403 took 258 MB for a day.
#[tokio::test]
async fn a_write_that_the_backend_refuses_leaves_no_record() {
    let backend = Backend::start().await;
    let route = "etag = \"version\"\nother_writers = false\nrequire = \"never\"";
    let (proxy, admin) = admin::start(&Proxy::to(backend.addr()).route(route)).await;
    for status in [400, 403, 404, 409, 412, 422] {
        for method in ["POST", "PUT", "DELETE"] {
            let target = format!("/{status}/{method}");
            backend.put(&target, "one");
            let tag = get(proxy.addr(), &target).await.etag();
            backend.once(method, &target, Answer::status(status));
            assert_eq!(send(proxy.addr(), method, &target, &[], "two").await.status, status);
            let written = put_if_match(proxy.addr(), &target, &tag, "three").await.status;
            assert_eq!(written, 204, "{target}: nobody's tag is refused for a write that did nothing");
            assert_eq!(send(proxy.addr(), "POST", &format!("{target}/other"), &[], "").await.status, 201);
        }
    }
    // The records of writes that were applied are there.
    let written = 6 * 3 * 2;
    for number in 0..200 {
        let target = format!("/refused/{number}");
        backend.once("POST", &target, Answer::status(403));
        assert_eq!(send(proxy.addr(), "POST", &target, &[], "x").await.status, 403);
    }
    assert_eq!(metric(admin, "ifmatch_records").await, written);
}

/// 5,000 PUTs with paths of 60 KB took 317 MB.
#[tokio::test]
async fn records_take_no_more_memory_than_they_may() {
    const MAX_BYTES: u64 = 1 << 20;
    let backend = Backend::start().await;
    let setup = Proxy::to(backend.addr()).store("max_size = \"1MiB\"").route("require = \"never\"");
    let (proxy, admin) = admin::start(&setup).await;
    for number in 0..300 {
        let target = format!("/{number:0>8000}");
        assert_eq!(put(proxy.addr(), &target, &[], "x").await.status, 201);
    }
    let bytes = metric(admin, "ifmatch_records_size").await;
    assert!((MAX_BYTES / 2..=MAX_BYTES).contains(&bytes), "{bytes}");
}

/// A busy record of any weight is never forgotten: there is no room for one more.
#[tokio::test]
async fn a_store_that_is_full_of_large_busy_records_says_so() {
    let backend = Backend::start().await;
    let route =
        "policy = \"pessimistic\"\nlease.absent = \"allow\"\nlease.auth = \"none\"\nlease.max_per_principal = 1000";
    let setup = Proxy::to(backend.addr()).store("max_size = \"1MiB\"").route(route);
    let proxy = setup.start().await;
    let mut granted = 0;
    let refused = loop {
        let response = send(proxy.addr(), "POST", &format!("/.leases/{granted:0>8000}"), &[], "").await;
        if response.status != 201 {
            break response;
        }
        granted += 1;
    };
    assert_eq!(refused.refused(503, "store-full").retry_after_seconds, Some(1));
    assert!((100..140).contains(&granted), "{granted} of 8,000 bytes and more in 1 MiB");
}

/// A client that announces much content, and sends none, holds no memory. A client that uploads much and slowly leaves
/// readers their tags and small writes the memory.
/// Rule 13: bodies together hold no more memory than they may.
#[tokio::test]
async fn large_uploads_leave_room_for_readers_and_small_writes() {
    const UPLOADS: usize = 40;
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let limits = "max_body_memory_total = \"16MiB\"\nmax_body_memory = \"1MiB\"\nmax_spool_size = \"1GiB\"";
    let (proxy, admin) = admin::start(&Proxy::to(backend.addr()).server(limits)).await;
    let mut uploads = Vec::new();
    for number in 0..UPLOADS {
        let mut upload = Connection::open(proxy.addr()).await;
        let fields = [("Content-Length", "1000000"), ("If-None-Match", "*")];
        upload.send_bytes(request_bytes("PUT", &format!("/{number}"), &fields, b"")).await;
        for _ in 0..2 {
            upload.send_bytes("xy").await;
            tokio::task::yield_now().await;
        }
        uploads.push(upload);
    }
    let begun = held(admin, 2).await;
    assert!(begun <= 2 * 4 * UPLOADS as u64, "{begun} bytes are held for four of each client");
    for upload in &mut uploads {
        upload.send_bytes(vec![b'x'; 999_000]).await;
    }
    let full = held(admin, 6 << 20).await;
    // A body is small until more than 64 KiB of it are there, and all small ones have an eighth.
    assert!(full <= 10 << 20, "large bodies hold half of the memory and no more: {full}");
    let read = get(proxy.addr(), "/doc").await;
    assert_eq!(put_if_match(proxy.addr(), "/doc", &read.etag(), "two").await.status, 204);
    drop(uploads);
}
