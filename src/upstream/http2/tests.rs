//! The fate of HTTP/2 requests that do not go well. The servers follow a script, over real sockets.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use h2::{
    RecvStream,
    server::{self, SendResponse},
};
use http::{HeaderMap, Method, Request, Response, header};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::{
    config::Upstream,
    upstream::{
        BufferedBody, Exchanger, Failure, Purpose, hash_whole, read_whole,
        testing::{PATIENCE, SHORT, TURN, body, collect, head, listen, upstream, write},
    },
};

type Stream = (Request<RecvStream>, SendResponse<Bytes>);

/// Runs an HTTP/2 server without TLS that answers each request on its own. Returns it with the number of connections
/// so far.
async fn serve<F>(answer: impl Fn(Stream) -> F + Clone + Send + Sync + 'static) -> (Arc<Upstream>, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (listener, name) = listen().await;
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            counter.fetch_add(1, Ordering::Relaxed);
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut connection = server::handshake(stream).await.unwrap();
                while let Some(Ok(stream)) = connection.accept().await {
                    tokio::spawn(answer(stream));
                }
            });
        }
    });
    (over_http2(&name), connections)
}

fn over_http2(server: &str) -> Arc<Upstream> {
    Arc::new(Upstream { http2: true, ..upstream(&[server]) })
}

fn ok() -> Response<()> {
    Response::new(())
}

async fn receive(mut content: RecvStream) -> Vec<u8> {
    let mut received = Vec::new();
    while let Some(chunk) = content.data().await {
        let chunk = chunk.unwrap();
        content.flow_control().release_capacity(chunk.len()).unwrap();
        received.extend_from_slice(&chunk);
    }
    received
}

/// RFC 9113 section 8.3.1.
#[tokio::test]
async fn the_target_and_the_host_become_pseudo_fields() {
    let (upstream, _) = serve(|(request, mut respond)| async move {
        let told = format!("{} {:?} {}", request.uri(), request.headers().get(header::HOST), request.method());
        let is_all = request.body().is_end_stream();
        let mut stream = respond.send_response(ok(), false).unwrap();
        stream.send_data(format!("{told} {is_all}").into(), true).unwrap();
    })
    .await;
    let mut exchange = write(&Exchanger::new(), &upstream, Method::DELETE, &body("")).await.unwrap();
    assert_eq!(collect(&mut exchange).await.unwrap(), b"http://example.com/thing None DELETE true");
}

/// A body larger than the window of a stream (RFC 9113 section 6.9.2), and another exchange on the same connection.
#[tokio::test]
async fn a_large_body_arrives_and_its_connection_is_used_again() {
    let (upstream, connections) = serve(|(request, mut respond)| async move {
        let length = receive(request.into_body()).await.len();
        let mut stream = respond.send_response(ok(), false).unwrap();
        stream.send_data(length.to_string().into(), true).unwrap();
    })
    .await;
    let exchanger = Exchanger::new();
    for length in [1_000_000, 3] {
        let mut exchange = write(&exchanger, &upstream, Method::PUT, &body(vec![b'x'; length])).await.unwrap();
        assert_eq!(collect(&mut exchange).await.unwrap(), length.to_string().into_bytes());
        exchange.finish().await;
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

/// Trailers end at this hop, and are no reason to close the connection.
#[tokio::test]
async fn trailers_end_the_response() {
    let (upstream, connections) = serve(|(_, mut respond)| async move {
        let mut stream = respond.send_response(ok(), false).unwrap();
        stream.send_data("whole".into(), false).unwrap();
        stream.send_trailers(HeaderMap::from_iter([(header::ETAG, "\"late\"".parse().unwrap())])).unwrap();
    })
    .await;
    let exchanger = Exchanger::new();
    for _ in 0..2 {
        let mut exchange = write(&exchanger, &upstream, Method::PUT, &body("x")).await.unwrap();
        assert_eq!(collect(&mut exchange).await.unwrap(), b"whole");
        exchange.finish().await;
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

/// To give up a write means to close its connection: `late_write_window` counts from there.
#[tokio::test]
async fn an_exchange_that_is_given_up_closes_its_connection() {
    let (listener, name) = listen().await;
    let script = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = server::handshake(stream).await.unwrap();
        let _request = connection.accept().await.unwrap().unwrap();
        while connection.accept().await.is_some() {}
    });
    let upstream = Arc::new(Upstream { http2: true, timeout: SHORT, ..upstream(&[&name]) });
    let failure = write(&Exchanger::new(), &upstream, Method::PUT, &body("x")).await.err();
    assert_eq!(failure, Some(Failure::Abandoned { timed_out: true }));
    tokio::time::timeout(PATIENCE, script).await.expect("the connection ends").unwrap();
}

/// Resets the stream of each request with this reason once its head has come.
async fn resetting(reason: h2::Reason) -> Arc<Upstream> {
    serve(move |(_, mut respond)| async move { respond.send_reset(reason) }).await.0
}

/// RFC 9113 section 8.7: a refused stream was not acted on, even if its body was on the way.
#[tokio::test]
async fn a_refused_write_was_not_sent() {
    let upstream = resetting(h2::Reason::REFUSED_STREAM).await;
    for length in [0, 1, 1_000_000] {
        let failure = write(&Exchanger::new(), &upstream, Method::PUT, &body(vec![b'x'; length])).await.err();
        assert_eq!(failure, Some(Failure::NotSent { timed_out: false }), "{length}");
    }
}

/// Any other reset leaves it open whether the server has acted.
#[tokio::test]
async fn a_reset_write_is_in_doubt() {
    for reason in [h2::Reason::INTERNAL_ERROR, h2::Reason::CANCEL, h2::Reason::HTTP_1_1_REQUIRED, h2::Reason::NO_ERROR]
    {
        let upstream = resetting(reason).await;
        for length in [0, 1, 1_000_000] {
            let failure = write(&Exchanger::new(), &upstream, Method::PUT, &body(vec![b'x'; length])).await.err();
            assert_eq!(failure, Some(Failure::Abandoned { timed_out: false }), "{reason:?} {length}");
        }
    }
}

/// Runs a server that reads the first request, sends GOAWAY with this last stream, and closes.
async fn leaving(last_stream: u32) -> Arc<Upstream> {
    let (listener, name) = listen().await;
    tokio::spawn(async move {
        loop {
            go_away(&listener, last_stream).await;
        }
    });
    over_http2(&name)
}

async fn go_away(listener: &TcpListener, last_stream: u32) {
    let (mut stream, _) = listener.accept().await.unwrap();
    stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    until_headers(&mut stream).await;
    let mut frame = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
    frame.extend_from_slice(&last_stream.to_be_bytes());
    frame.extend_from_slice(&0_u32.to_be_bytes());
    stream.write_all(&frame).await.unwrap();
    // The rest is read, so that no reset of the connection overtakes the frame.
    stream.shutdown().await.unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).await;
}

/// Reads the preface of the client and all frames up to a HEADERS frame.
async fn until_headers(stream: &mut TcpStream) {
    stream.read_exact(&mut [0; 24]).await.unwrap();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        stream.read_exact(&mut vec![0; length]).await.unwrap();
        if head[3] == 1 {
            return;
        }
    }
}

/// RFC 9113 section 6.8: streams after the last one were not acted on. Those up to it may have been.
#[tokio::test]
async fn a_server_that_leaves_says_which_writes_it_has_taken() {
    let of = |last_stream| async move {
        write(&Exchanger::new(), &leaving(last_stream).await, Method::PUT, &body("x")).await.err()
    };
    assert_eq!(of(0).await, Some(Failure::NotSent { timed_out: false }));
    assert_eq!(of(1).await, Some(Failure::Abandoned { timed_out: false }));
}

/// RFC 9113 section 8.1: the answer comes before the end of the upload, which then stops.
#[tokio::test]
async fn an_early_answer_is_read_although_the_upload_is_stopped() {
    let (upstream, _) = serve(|(_, mut respond)| async move {
        let response = Response::builder().status(413).body(()).unwrap();
        let mut stream = respond.send_response(response, false).unwrap();
        // The rest of the request is dropped here: the library then resets the stream with NO_ERROR.
        stream.send_data("too large".into(), true).unwrap();
    })
    .await;
    let mut exchange = write(&Exchanger::new(), &upstream, Method::PUT, &body(vec![b'x'; 1_000_000])).await.unwrap();
    assert_eq!(exchange.head().status, 413);
    assert_eq!(collect(&mut exchange).await.unwrap(), b"too large");
}

/// A tag labels whole bodies only: a reset in the middle or right after the head is no end.
#[tokio::test]
async fn a_response_that_breaks_off_is_not_whole() {
    for begun in ["", "begun"] {
        let (upstream, _) = serve(move |(_, mut respond)| async move {
            let mut stream = respond.send_response(ok(), false).unwrap();
            stream.send_data(begun.into(), false).unwrap();
            tokio::task::yield_now().await;
            stream.send_reset(h2::Reason::INTERNAL_ERROR);
        })
        .await;
        let exchanger = Exchanger::new();
        let read = || async {
            let none = body("");
            let sent =
                exchanger.connect(&upstream, TURN, Purpose::Read).await.unwrap().send(head(Method::GET, &none), &none);
            sent.await
        };
        // The reset may also overtake the head.
        if let Ok(mut exchange) = read().await {
            assert!(hash_whole(&mut exchange, 100, PATIENCE).await.is_err(), "{begun:?}");
        }
        if let Ok(mut exchange) = read().await {
            let budget = Arc::new(crate::body::BodyBudget::new(1 << 20, 0));
            assert!(!matches!(
                read_whole(&mut exchange, 100, PATIENCE, (&budget, crate::body::MemoryUse::Response)).await,
                Ok(BufferedBody::Complete(_))
            ));
        }
    }
}

/// RFC 9113 section 8.7: a read that a server refused on an idle connection is sent again on another one.
#[tokio::test]
async fn a_read_that_was_refused_on_a_pooled_connection_is_sent_again() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&requests);
    let (upstream, connections) = serve(move |(_, mut respond)| {
        let number = counter.fetch_add(1, Ordering::Relaxed);
        async move {
            match number {
                1 => respond.send_reset(h2::Reason::REFUSED_STREAM),
                _ => drop(respond.send_response(ok(), true).unwrap()),
            }
        }
    })
    .await;
    let (exchanger, none) = (Exchanger::new(), body(""));
    for _ in 0..2 {
        exchanger.read(&upstream, TURN, head(Method::GET, &none), &none).await.unwrap().finish().await;
    }
    assert_eq!((requests.load(Ordering::Relaxed), connections.load(Ordering::Relaxed)), (3, 2));
}

#[test]
fn octets_beyond_utf8_have_no_place_in_http2() {
    let mut request = RequestHeader::build("GET", b"/a\xff", None).unwrap();
    request.insert_header("Host", "h").unwrap();
    assert!(to_http2(&mut request, true).is_err());
}
