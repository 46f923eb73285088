//! Guarded requests while the store fails at each moment in each way (DESIGN, section 3, rule 12).

use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, duplex},
    net::{TcpListener, TcpStream},
    sync::Mutex,
};

use super::{
    testing::{Fault, FaultyStore, When},
    *,
};
use crate::{
    config::Route,
    core::policy::{TagSource, Writers},
    proxy::testing::{config, guard, route},
};

const FAULTS: [Fault; 3] = [Fault::Unavailable, Fault::Hangs, Fault::AnswerLost];
/// Longer than any mark or doubt lives.
const LONG_MILLISECONDS: u64 = 10 * 60 * 1000;

/// A backend with one resource, which holds `one`.
struct Backend {
    content: Mutex<Vec<u8>>,
    writes: AtomicUsize,
}

impl Backend {
    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        while let Some((method, body)) = read_request(&mut stream).await {
            let mut content = self.content.lock().await;
            let answer = if method == "GET" || method == "HEAD" {
                let sent = if method == "GET" { content.clone() } else { Vec::new() };
                [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len()).as_bytes(), &sent].concat()
            } else {
                self.writes.fetch_add(1, Ordering::Relaxed);
                *content = body;
                b"HTTP/1.1 204 No Content\r\nETag: \"of-the-backend\"\r\n\r\n".to_vec()
            };
            drop(content);
            stream.write_all(&answer).await.unwrap();
        }
    }
}

/// The method and the body of the next request; `None` where the connection ends.
async fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some((head.split(' ').next()?.to_ascii_uppercase(), body))
}

/// A guard in front of a backend, on a store that fails when it is told to.
struct Fixture {
    store: Arc<FaultyStore>,
    guards: Guards,
    route: Arc<Route>,
    backend: Arc<Backend>,
}

/// What a client got.
struct Response {
    status: u16,
    head: String,
}

impl Response {
    fn tag(&self) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix("etag: ").or_else(|| line.strip_prefix("ETag: ")))
    }
}

impl Fixture {
    async fn new(etag: TagSource) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let backend = Arc::new(Backend { content: Mutex::new(b"one".to_vec()), writes: AtomicUsize::new(0) });
        let guard = Guard { etag, writers: Writers::Exclusive, ..guard() };
        let route = route("/doc", Some(guard), &[listener.local_addr().unwrap()]);
        let mut config = config(vec![route]);
        config.store.timeout = Duration::from_millis(20);
        let serving = Arc::clone(&backend);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&serving).serve(stream));
            }
        });
        let store = Arc::new(FaultyStore::new());
        let started = store.now().await.unwrap();
        let guards = Guards::new(&config, Arc::<FaultyStore>::clone(&store), 1, started);
        Self { store, guards, route: Arc::clone(&config.routes[0]), backend }
    }

    async fn send(&self, method: Method, fields: &str, body: &str) -> Response {
        let (mut client, server) = duplex(1 << 16);
        let length = body.len();
        let request = format!("{method} /doc HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{fields}\r\n{body}");
        client.write_all(request.as_bytes()).await.unwrap();
        let mut session = Session::new_h1(Box::new(server));
        assert!(session.read_request().await.unwrap());
        let key = ResourceKey::from_text("doc");
        let request = GuardedRequest { route: Arc::clone(&self.route), route_index: 0, key, method };
        self.guards.handle(&mut session, &request, &mut Entry::default()).await.unwrap();
        drop(session);
        let mut response = String::new();
        client.read_to_string(&mut response).await.unwrap();
        let head = response.split("\r\n\r\n").next().unwrap_or_default().to_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Response { status, head }
    }

    async fn put(&self, tag: &str, body: &str) -> Response {
        self.send(Method::PUT, &format!("If-Match: {tag}\r\n"), body).await
    }

    async fn tag(&self) -> String {
        self.send(Method::GET, "", "").await.tag().expect("a tag").to_owned()
    }

    fn writes(&self) -> usize {
        self.backend.writes.load(Ordering::Relaxed)
    }

    async fn content(&self) -> String {
        String::from_utf8(self.backend.content.lock().await.clone()).unwrap()
    }
}

/// How often a write with the current tag asks the store.
async fn operations_of_a_write(etag: TagSource) -> u64 {
    let fixture = Fixture::new(etag).await;
    let tag = fixture.tag().await;
    fixture.store.fail(Fault::Unavailable, When::Never);
    assert_eq!(fixture.put(&tag, "two").await.status, 204);
    fixture.store.operations()
}

/// Whatever operation fails, and however: either nothing was sent and the client gets 503, or the write was sent once
/// and the client gets the upstream's answer, without a tag if the record does not tell. Afterwards nobody overwrites
/// what was applied.
#[tokio::test]
async fn a_write_fails_closed_whatever_operation_of_the_store_fails() {
    for etag in [TagSource::Content, TagSource::Version] {
        let operations = operations_of_a_write(etag).await;
        assert!(operations >= 5, "{operations}");
        for fault in FAULTS {
            for number in 0..operations {
                for when in [When::Once(number), When::From(number)] {
                    write_while_failing(etag, fault, when).await;
                }
            }
        }
    }
}

async fn write_while_failing(etag: TagSource, fault: Fault, when: When) {
    let case = format!("{etag:?} {fault:?} {when:?}");
    let fixture = Fixture::new(etag).await;
    let tag = fixture.tag().await;
    fixture.store.fail(fault, when);
    let response = fixture.put(&tag, "two").await;
    let applied = match fixture.writes() {
        0 => {
            assert_eq!(response.status, 503, "{case}: {}", response.head);
            assert!(response.head.to_ascii_lowercase().contains("\r\nretry-after: "), "{case}: {}", response.head);
            false
        }
        1 => {
            assert_eq!((response.status, response.tag()), (204, None), "{case}: {}", response.head);
            true
        }
        more => panic!("{case}: {more} writes were sent"),
    };

    fixture.store.fail(fault, When::Never);
    fixture.store.pass(LONG_MILLISECONDS);
    let mut next = fixture.put(&tag, "three").await;
    if next.status == 409 {
        // The mark has become a doubt just now.
        fixture.store.pass(LONG_MILLISECONDS);
        next = fixture.put(&tag, "three").await;
    }
    if applied {
        assert_eq!((next.status, &*fixture.content().await), (412, "two"), "{case}");
    }
    let tag = fixture.tag().await;
    assert_eq!(fixture.put(&tag, "four").await.status, 204, "{case}");
    assert_eq!(fixture.content().await, "four", "{case}");
}

/// Rule 12 for writes that need no claim.
#[tokio::test]
async fn an_unclaimed_write_fails_closed_too() {
    for fault in FAULTS {
        let fixture = Fixture::new(TagSource::Version).await;
        fixture.store.fail(fault, When::From(0));
        assert_eq!(fixture.send(Method::POST, "", "two").await.status, 503, "{fault:?}");
        assert_eq!(fixture.writes(), 0, "{fault:?}");
    }
}

/// After the exchange the upstream's answer stands, and the mark keeps others back until it has become a doubt.
#[tokio::test]
async fn a_write_that_cannot_be_settled_holds_others_back() {
    for fault in [Fault::Unavailable, Fault::Hangs] {
        let fixture = Fixture::new(TagSource::Version).await;
        let tag = fixture.tag().await;
        let before_settling = operations_of_a_write(TagSource::Version).await - 2;
        fixture.store.fail(fault, When::Once(before_settling));
        let response = fixture.put(&tag, "two").await;
        assert_eq!((response.status, response.tag()), (204, None), "{fault:?}");
        let next = fixture.put(&tag, "three").await;
        assert_eq!((next.status, fixture.writes()), (409, 1), "{fault:?}: {}", next.head);
    }
}

/// A read never depends on the store; without it there is no version to label it with.
#[tokio::test]
async fn reads_pass_without_the_store() {
    for fault in FAULTS {
        let fixture = Fixture::new(TagSource::Version).await;
        fixture.store.fail(fault, When::From(0));
        let response = fixture.send(Method::GET, "If-None-Match: \"x\"\r\n", "").await;
        assert_eq!((response.status, response.tag()), (200, None), "{fault:?}");
    }
}
