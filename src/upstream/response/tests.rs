//! Response bodies in every framing of RFC 9112 section 6.3.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use http::Method;
use tokio::{io::AsyncWriteExt, net::TcpStream, sync::oneshot};

use super::*;
use crate::{
    body::{Body, BoxFuture},
    config::Upstream,
    upstream::{
        Exchanger, Purpose,
        testing::{PATIENCE, SHORT, TURN, collect, head, listen, read_request, upstream},
    },
};

/// An exchange whose upstream sends these bytes. It then closes, or keeps the connection open as long as `_held`
/// lives.
struct Case {
    exchange: Exchange,
    exchanger: Exchanger,
    upstream: Arc<Upstream>,
    _held: Option<TcpStream>,
}

impl Case {
    async fn begin(method: Method, response: &'static str, open: bool, timeout: Duration) -> Self {
        let (listener, server) = listen().await;
        let (keep, held) = oneshot::channel();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_request(&mut stream).await.unwrap();
            stream.write_all(response.as_bytes()).await.unwrap();
            let _ = keep.send(open.then_some(stream));
        });
        let (exchanger, none) = (Exchanger::new(), Body::empty());
        let upstream = Arc::new(Upstream { timeout, read_timeout: timeout, ..upstream(&[&server]) });
        let exchange = exchanger.read(&upstream, TURN, head(method, &none), &none).await.unwrap();
        Self { exchange, exchanger, upstream, _held: held.await.unwrap() }
    }

    async fn open(method: Method, response: &'static str) -> Self {
        Self::begin(method, response, true, PATIENCE).await
    }

    async fn closed(response: &'static str) -> Self {
        Self::begin(Method::GET, response, false, PATIENCE).await
    }

    /// Finishes the exchange. Returns whether its connection can be used again.
    async fn reusable_when_finished(self) -> bool {
        self.exchange.finish().await;
        Self::is_pooled(&self.exchanger, &self.upstream).await
    }

    /// Discards the rest of the response. Returns whether its connection can be used again.
    async fn reusable_when_discarded(self) -> bool {
        self.exchange.discard().await;
        Self::is_pooled(&self.exchanger, &self.upstream).await
    }

    async fn is_pooled(exchanger: &Exchanger, upstream: &Arc<Upstream>) -> bool {
        match exchanger.connect(upstream, TURN, Purpose::Read).await {
            Ok(connected) => connected.is_reused(),
            Err(_) => false,
        }
    }
}

fn budget(memory_bytes: usize) -> Arc<BodyBudget> {
    Arc::new(BodyBudget::new(memory_bytes, 0))
}

#[tokio::test]
async fn a_body_with_a_length_is_read_and_its_connection_kept() {
    let mut case = Case::open(Method::GET, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await;
    assert_eq!(collect(&mut case.exchange).await.unwrap(), b"hello");
    assert!(case.reusable_when_finished().await);
}

#[tokio::test]
async fn a_chunked_body_is_decoded_and_its_connection_kept() {
    let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nX: y\r\n\r\n";
    let mut case = Case::open(Method::GET, response).await;
    assert_eq!(collect(&mut case.exchange).await.unwrap(), b"hello");
    assert!(case.reusable_when_finished().await);
}

#[tokio::test]
async fn a_body_without_framing_ends_with_its_connection() {
    let mut case = Case::closed("HTTP/1.1 200 OK\r\n\r\nhello").await;
    assert_eq!(collect(&mut case.exchange).await.unwrap(), b"hello");
    assert!(!case.reusable_when_finished().await);
}

/// RFC 9112 section 6.3, rule 1: the length is that of the response to GET.
#[tokio::test]
async fn the_response_to_head_has_no_body() {
    let mut case = Case::open(Method::HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await;
    assert_eq!(case.exchange.next_chunk().await, Ok(None));
    assert!(case.reusable_when_finished().await);
}

#[tokio::test]
async fn a_204_has_no_body() {
    let mut case = Case::open(Method::GET, "HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(case.exchange.next_chunk().await, Ok(None));
    assert!(case.reusable_when_finished().await);
}

#[tokio::test]
async fn a_304_has_no_body() {
    let mut case = Case::open(Method::GET, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n").await;
    assert_eq!(case.exchange.next_chunk().await, Ok(None));
    assert!(case.reusable_when_finished().await);
}

#[tokio::test]
async fn a_connection_is_not_kept_where_the_upstream_says_close() {
    let response = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    let mut case = Case::open(Method::GET, response).await;
    collect(&mut case.exchange).await.unwrap();
    assert!(!case.reusable_when_finished().await);
}

#[tokio::test]
async fn a_connection_is_not_kept_while_a_part_of_the_body_is_unread() {
    let case = Case::open(Method::GET, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").await;
    assert!(!case.reusable_when_finished().await);
}

/// RFC 9112 section 9.2: bytes after the response belong to no request.
#[tokio::test]
async fn a_connection_with_bytes_after_the_response_is_not_kept() {
    let mut case = Case::open(Method::GET, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK").await;
    collect(&mut case.exchange).await.unwrap();
    assert!(!case.reusable_when_finished().await);
}

/// RFC 9112 section 8: a body that broke off does not become complete when it is read again.
#[tokio::test]
async fn a_body_that_breaks_off_stays_broken() {
    let mut case = Case::closed("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").await;
    assert_eq!(collect(&mut case.exchange).await, Err(Failure::Abandoned { timed_out: false }));
    assert_eq!(case.exchange.next_chunk().await, Err(Failure::Abandoned { timed_out: false }));
}

#[tokio::test]
async fn a_body_that_stops_arriving_times_out() {
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
    let mut case = Case::begin(Method::GET, response, true, SHORT).await;
    assert_eq!(collect(&mut case.exchange).await, Err(Failure::Abandoned { timed_out: true }));
}

#[tokio::test]
async fn a_whole_body_is_read() {
    let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let mut case = Case::open(Method::GET, response).await;
    let Ok(BufferedBody::Complete(body)) =
        read_whole(&mut case.exchange, 5, PATIENCE, (&budget(5), MemoryUse::Response)).await
    else {
        panic!("the body is small enough");
    };
    assert_eq!(body.chunks(), [Bytes::from("hello")]);
    assert!(case.reusable_when_finished().await);
}

#[tokio::test]
async fn a_body_that_is_too_large_by_its_length_is_not_read() {
    let mut case = Case::open(Method::GET, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await;
    let whole = read_whole(&mut case.exchange, 4, PATIENCE, (&budget(5), MemoryUse::Response)).await;
    assert!(matches!(whole, Ok(BufferedBody::TooLarge(body)) if body.is_empty()));
    assert_eq!(collect(&mut case.exchange).await.unwrap(), b"hello", "the caller can stream it");
}

#[tokio::test]
async fn a_body_that_turns_out_too_large_can_be_streamed_on() {
    let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    let mut case = Case::open(Method::GET, response).await;
    let Ok(BufferedBody::TooLarge(beginning)) =
        read_whole(&mut case.exchange, 4, PATIENCE, (&budget(5), MemoryUse::Response)).await
    else {
        panic!("the body is too large");
    };
    let rest = collect(&mut case.exchange).await.unwrap();
    assert_eq!([beginning.chunks().concat(), rest].concat(), b"hello world");
}

#[tokio::test]
async fn a_body_that_the_total_has_no_room_for_can_be_streamed_on() {
    let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    let mut case = Case::open(Method::GET, response).await;
    let budget = budget(4);
    let Ok(BufferedBody::TooLarge(beginning)) =
        read_whole(&mut case.exchange, 100, PATIENCE, (&budget, MemoryUse::Response)).await
    else {
        panic!("there is no room");
    };
    let rest = collect(&mut case.exchange).await.unwrap();
    assert_eq!([beginning.chunks().concat(), rest].concat(), b"hello world", "what has come is not lost");
}

#[tokio::test]
async fn a_body_gives_its_memory_back() {
    let budget = budget(5);
    for _ in 0..2 {
        let mut case = Case::open(Method::GET, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await;
        let whole = read_whole(&mut case.exchange, 5, PATIENCE, (&budget, MemoryUse::Response)).await;
        assert!(matches!(whole, Ok(BufferedBody::Complete(_))));
    }
}

#[tokio::test]
async fn a_whole_body_is_hashed() {
    let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    let mut case = Case::open(Method::GET, response).await;
    let hashed = hash_whole(&mut case.exchange, 11, PATIENCE).await;
    assert_eq!(hashed, Ok(Hashed::Hash(blake3::hash(b"hello world"))));
    let mut case = Case::open(Method::GET, response).await;
    assert_eq!(hash_whole(&mut case.exchange, 10, PATIENCE).await, Ok(Hashed::TooLarge));
}

#[tokio::test]
async fn an_unwanted_small_body_costs_no_connection() {
    let case = Case::open(Method::GET, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await;
    assert!(case.reusable_when_discarded().await);
}

#[tokio::test]
async fn a_body_that_is_too_slow_can_be_streamed_on() {
    let (listener, server) = listen().await;
    let (go_on, go) = oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n wo").await.unwrap();
        go.await.unwrap();
        stream.write_all(b"rld\r\n0\r\n\r\n").await.unwrap();
    });
    let (upstream, none) = (Arc::new(upstream(&[&server])), Body::empty());
    let mut exchange = Exchanger::new().read(&upstream, TURN, head(Method::GET, &none), &none).await.unwrap();
    let Ok(BufferedBody::TooSlow(beginning)) =
        read_whole(&mut exchange, 1000, SHORT, (&budget(1000), MemoryUse::Response)).await
    else {
        panic!("the upstream waits for us");
    };
    go_on.send(()).unwrap();
    let rest = collect(&mut exchange).await.unwrap();
    assert_eq!([beginning.chunks().concat(), rest].concat(), b"hello world");
}

#[tokio::test]
async fn the_length_in_a_response_to_head_is_not_too_large() {
    let mut case = Case::open(Method::HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n").await;
    let whole = read_whole(&mut case.exchange, 4, PATIENCE, (&budget(4), MemoryUse::Response)).await;
    assert!(matches!(whole, Ok(BufferedBody::Complete(body)) if body.is_empty()));
}

/// RFC 9110 section 14.1.2: the last byte of an HTTP range is included. The end of a range here is not.
#[test]
fn a_part_is_cut_across_chunks() {
    let chunks = ["con", "te", "nt"].map(|text| Bytes::from_static(text.as_bytes()));
    for (part, expected) in [(0..7, "content"), (1..6, "onten"), (3..5, "te"), (6..7, "t"), (5..99, "nt"), (9..12, "")]
    {
        let whole = BodyPrefix { chunks: chunks.to_vec(), len: 7, share: None };
        let cut = whole.part(part.clone());
        assert_eq!((cut.chunks().concat(), cut.len()), (expected.as_bytes().to_vec(), expected.len()), "{part:?}");
        assert_eq!(cut.is_empty(), expected.is_empty());
    }
}

/// A body whose end the protocol does not tell.
struct Endless {
    chunks: Vec<&'static str>,
    has_left: Arc<AtomicBool>,
}

impl Wire for Endless {
    fn next_chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Failure>> {
        let chunk = self.chunks.pop().map(|chunk| Bytes::from_static(chunk.as_bytes()));
        Box::pin(async move { Ok(Some(chunk.expect("no more is asked for"))) })
    }

    fn is_complete(&mut self) -> bool {
        false
    }

    fn leave_slot(&mut self) {
        self.has_left.store(true, Ordering::SeqCst);
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

/// A client that has read the last byte may send its next request at once. That must not meet the slot of this one.
#[tokio::test]
async fn the_server_is_left_with_the_last_declared_byte() {
    for (declared, chunks, left_after) in [
        (Some("0"), vec![], Some(0)),
        (Some("5"), vec!["hello"], Some(1)),
        (Some("5"), vec!["llo", "he"], Some(2)),
        (None, vec!["llo", "he"], None),
    ] {
        let has_left = Arc::new(AtomicBool::new(false));
        let mut head = ResponseHeader::build(200, None).unwrap();
        if let Some(declared) = declared {
            head.insert_header(header::CONTENT_LENGTH, declared).unwrap();
        }
        let count = chunks.len();
        let wire = Box::new(Endless { chunks, has_left: Arc::clone(&has_left) });
        let mut exchange = Exchange::of(wire, Box::new(head), 0);
        for read in 0..=count {
            let is_due = left_after.is_some_and(|after| read >= after);
            assert_eq!(has_left.load(Ordering::SeqCst), is_due, "{declared:?}, {read} chunks");
            if read < count {
                exchange.next_chunk().await.unwrap();
            }
        }
    }
}
