//! Random mutations of valid requests: the proxy lives, answers in HTTP, and lets no unconditional write through.
//!
//! A method that was mutated into an unknown one is no write of `require_methods`, and passes.

use std::{
    io::ErrorKind,
    time::{Duration, Instant},
};

use proptest::{
    collection::vec,
    prelude::*,
    sample::Index,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use crate::support::{
    backend::Backend,
    proxy::Proxy,
    raw::{Connection, get},
    wait::DEADLINE,
};

/// How long requests are made up and sent, and how many there are at the least: a busy machine takes longer for them.
const DURATION: Duration = Duration::from_secs(3);
const REQUESTS_MIN: usize = 200;

/// Requests of which none may write: no precondition of theirs is both sufficient and true.
const VALID: [&str; 7] = [
    "GET /docs/1 HTTP/1.1\r\nHost: a\r\nIf-None-Match: W/\"a\", \"b\"\r\n\r\n",
    "HEAD /docs/1?a=b HTTP/1.1\r\nHost: a:80\r\nRange: bytes=0-1\r\nIf-Range: \"a\"\r\n\r\n",
    "PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello",
    "PUT /docs/1 HTTP/1.1\r\nHost: a\r\nIf-Match: \"stale\", W/\"x\"\r\nContent-Length: 5\r\n\r\nhello",
    "PUT http://a/docs/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nhel\r\n2\r\nlo\r\n0\r\nA: b\r\n\r\n",
    "DELETE /docs/%31 HTTP/1.1\r\nHost: a\r\nConnection: close, X\r\nX: y\r\nVia: 1.0 b\r\n\r\n",
    "PATCH /docs//1/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}",
];

/// Bytes that mean something somewhere in a request.
const PIECES: [&[u8]; 36] = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b" ",
    b"\t",
    b":",
    b",",
    b";",
    b"\"",
    b"*",
    b"/",
    b"//",
    b"/../",
    b"\\",
    b"%",
    b"%2f",
    b"%00",
    b"%2e%2e",
    b"?",
    b"#",
    b"\0",
    b"\x7f",
    b"\xff",
    b"0",
    b"-1",
    b"ffffffffffffffff",
    b"HTTP/1.0",
    b"Host: b\r\n",
    b"Content-Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"If-Match: *\r\n",
    b"If-Match: \"\"\r\n",
    b"Connection: If-Match, Host\r\n",
    b"X-HTTP-Method: PUT\r\n",
    b"0\r\n\r\n",
];

#[derive(Clone, Debug)]
enum Mutation {
    Insert(Index, Vec<u8>),
    Replace(Index, u8),
    Remove(Index, usize),
    RepeatLine(Index),
    SwapLines(Index, Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    let piece =
        prop_oneof![4 => prop::sample::select(PIECES.to_vec()).prop_map(<[u8]>::to_vec), 1 => vec(any::<u8>(), 1..4)];
    prop_oneof![
        3 => (at(), piece).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        2 => (at(), 1..6_usize).prop_map(|(at, count)| Mutation::Remove(at, count)),
        1 => at().prop_map(Mutation::RepeatLine),
        1 => (at(), at()).prop_map(|(one, other)| Mutation::SwapLines(one, other)),
    ]
}

impl Mutation {
    fn apply(&self, request: &mut Vec<u8>) {
        match self {
            Self::Insert(at, piece) => {
                let at = at.index(request.len() + 1);
                request.splice(at..at, piece.iter().copied());
            }
            Self::Replace(at, byte) => {
                let at = at.index(request.len());
                request[at] = *byte;
            }
            Self::Remove(at, count) => {
                let at = at.index(request.len());
                request.drain(at..request.len().min(at + count));
            }
            Self::RepeatLine(at) => with_lines(request, |lines| lines.insert(0, lines[at.index(lines.len())].clone())),
            Self::SwapLines(one, other) => {
                with_lines(request, |lines| {
                    let (one, other) = (one.index(lines.len()), other.index(lines.len()));
                    lines.swap(one, other);
                });
            }
        }
    }
}

/// Changes the order of the lines after the first one.
fn with_lines(request: &mut Vec<u8>, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let mut lines: Vec<Vec<u8>> = request.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.len() > 1 {
        let mut rest = lines.split_off(1);
        change(&mut rest);
        *request = [lines, rest].concat().concat();
    }
}

fn request() -> impl Strategy<Value = Vec<u8>> {
    (prop::sample::select(VALID.to_vec()), vec(mutation(), 1..5)).prop_map(|(valid, mutations)| {
        let mut request = valid.as_bytes().to_vec();
        for mutation in mutations {
            if !request.is_empty() {
                mutation.apply(&mut request);
            }
        }
        request
    })
}

/// Sends bytes and the end of the stream, and reads what comes until the proxy closes: responses and nothing else.
async fn exchange(proxy: &Proxy, request: &[u8]) -> Result<(), String> {
    let mut connection = Connection::open(proxy.addr()).await;
    // A proxy that has answered already may have closed.
    let _sent_or_not = connection.try_send_bytes(request).await;
    let _sent_or_not = connection.try_half_close().await;
    loop {
        connection.expect_response_to(if request.starts_with(b"HEAD") { "HEAD" } else { "GET" });
        match connection.try_read_response().await {
            Ok(response) if (200..600).contains(&response.status) => {}
            Ok(response) => return Err(format!("{response:?}")),
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                return Ok(());
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[tokio::test]
async fn no_mutated_request_harms_the_proxy_or_writes() {
    let backend = Backend::start().await;
    backend.put("/docs/1", "current");
    let file = Proxy::to(backend.addr()).configuration().replace("/{*rest}", "/docs/{*id}");
    let proxy = Proxy::start(&file).await;
    let mut seed = [0; 32];
    match std::env::var("IFMATCH_TEST_SEED") {
        Ok(text) => seed[..8].copy_from_slice(&text.parse::<u64>().expect("a number").to_le_bytes()),
        Err(_) => getrandom::fill(&mut seed[..8]).expect("random numbers"),
    }
    let number = seed.first_chunk::<8>().map(|chunk| u64::from_le_bytes(*chunk)).unwrap();
    println!("again with IFMATCH_TEST_SEED={number}");
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let (start, strategy) = (Instant::now(), request());
    let mut sent = 0;
    while start.elapsed() < DURATION || sent < REQUESTS_MIN {
        assert!(start.elapsed() < DEADLINE, "only {sent} requests were answered");
        let request = strategy.new_tree(&mut runner).unwrap().current();
        let outcome = exchange(&proxy, &request).await;
        let reached: Vec<_> = ["PUT", "PATCH", "DELETE"].iter().flat_map(|method| backend.seen(method, "*")).collect();
        let malformed = backend.take_malformed();
        let whole = outcome.is_ok() && reached.is_empty() && malformed.is_empty();
        assert!(whole, "{outcome:?}, {reached:?}, {malformed:?} after \"{}\"", request.escape_ascii());
        sent += 1;
    }
    println!("{sent} requests");
    assert_eq!(get(proxy.addr(), "/docs/1").await.status, 200);
    assert!(!proxy.log().contains("panicked"));
}
