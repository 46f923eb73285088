//! Random mutations of valid requests: the proxy lives, answers in HTTP, and lets no unconditional write through.
//!
//! A method that was mutated into an unknown one is no write of `require_methods`, and passes.

use std::time::{Duration, Instant};

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
    let answered = connection.closed().await;
    if are_responses(&answered) { Ok(()) } else { Err(format!("\"{}\"", answered.escape_ascii())) }
}

/// True if a proxy has answered so, though a reset may have cut it off. An answer to HEAD has none of the content that it
/// declares. Which answers are to a HEAD, mutated bytes do not tell: each reading is tried.
fn are_responses(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return b"HTTP/1.1 ".starts_with(&bytes[..bytes.len().min(9)]);
    };
    let (head, rest) = (String::from_utf8_lossy(&bytes[..end]).to_lowercase(), &bytes[end + 4..]);
    let status = head.strip_prefix("http/1.1 ").and_then(|line| line.get(..3)?.parse::<u16>().ok());
    if !status.is_some_and(|status| (100..600).contains(&status)) {
        return false;
    }
    if head.contains("\r\ntransfer-encoding: chunked") {
        let last = rest.windows(5).position(|five| five == b"0\r\n\r\n");
        return are_responses(rest) || last.is_none_or(|last| are_responses(&rest[last + 5..]));
    }
    let length = head.split("\r\n").find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    are_responses(rest) || rest.len() < length || are_responses(&rest[length..])
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

#[test]
fn only_responses_are_taken_for_some() {
    let (ok, refused) = ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n");
    for (bytes, expected) in [
        (String::new(), true),
        ("HTT".to_owned(), true),
        (format!("{ok}one{refused}"), true),
        (format!("{ok}{refused}"), true),
        (format!("{ok}on"), true),
        (format!("{ok}one{{}}{refused}"), false),
        (format!("{refused}{{}}\r\n\r\n"), false),
        (format!("one{refused}"), false),
        ("HTTP/1.1 099 No\r\n\r\n".to_owned(), false),
    ] {
        assert_eq!(are_responses(bytes.as_bytes()), expected, "{bytes}");
    }
}
