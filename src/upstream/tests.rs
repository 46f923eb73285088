//! Connecting, pools, and reads that are sent again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{
    testing::{SHORT, TURN, at, body, collect, head, listen, read_request, refusing_server, upstream, write},
    *,
};
use crate::config::Queue;

const NO_CONTENT: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// Answers every request on every connection with 204. Returns the number of connections so far.
fn answer_all(listener: TcpListener) -> Arc<AtomicUsize> {
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    tokio::spawn(async move {
        loop {
            let mut stream = listener.accept().await.unwrap().0;
            counter.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                while read_request(&mut stream).await.is_some() {
                    stream.write_all(NO_CONTENT).await.unwrap();
                }
            });
        }
    });
    connections
}

#[tokio::test]
async fn a_finished_exchange_leaves_its_connection_to_the_next_one() {
    let (listener, server) = listen().await;
    let connections = answer_all(listener);
    let (exchanger, upstream) = (Exchanger::new(), Arc::new(upstream(&[&server])));
    for expected in [false, true] {
        let connected = exchanger.connect(&upstream, TURN, Purpose::Write).await.unwrap();
        assert_eq!(connected.is_reused(), expected);
        connected.send(head(Method::PUT, &body("x")), &body("x")).await.unwrap().finish().await;
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_write_does_not_ride_on_the_connection_of_a_read() {
    let (listener, server) = listen().await;
    answer_all(listener);
    let (exchanger, upstream) = (Exchanger::new(), Arc::new(upstream(&[&server])));
    let none = Body::empty();
    exchanger.read(&upstream, TURN, head(Method::GET, &none), &none).await.unwrap().finish().await;
    let connected = exchanger.connect(&upstream, TURN, Purpose::Write).await.unwrap();
    assert!(!connected.is_reused());
}

#[tokio::test]
async fn a_connection_that_was_idle_too_long_for_a_write_is_closed() {
    let (listener, server) = listen().await;
    let upstream = Arc::new(Upstream { reuse_idle_writes: SHORT, ..upstream(&[&server]) });
    let exchanger = Exchanger::new();
    let script = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        stream.write_all(NO_CONTENT).await.unwrap();
        stream.read(&mut [0]).await.unwrap()
    });
    write(&exchanger, &upstream, Method::PUT, &body("x")).await.unwrap().finish().await;
    assert_eq!(script.await.unwrap(), 0, "the idle connection ends without another request");
}

#[tokio::test]
async fn a_zero_idle_time_means_a_new_connection_for_each_write() {
    let (listener, server) = listen().await;
    answer_all(listener);
    let upstream = Arc::new(Upstream { reuse_idle_writes: Duration::ZERO, ..upstream(&[&server]) });
    let exchanger = Exchanger::new();
    write(&exchanger, &upstream, Method::PUT, &body("x")).await.unwrap().finish().await;
    assert!(!exchanger.connect(&upstream, TURN, Purpose::Write).await.unwrap().is_reused());
}

#[tokio::test]
async fn an_unreachable_server_is_passed_over_for_the_next() {
    let (_listener, server) = listen().await;
    let (_deaf, refusing) = refusing_server();
    let (exchanger, upstream) = (Exchanger::new(), Arc::new(upstream(&[&refusing, &server])));
    let connected = exchanger.connect(&upstream, TURN, Purpose::Write).await.unwrap();
    assert_eq!(connected.server(), 1);
    assert!(exchanger.upstreams.states().iter().any(|state| state.server == refusing && state.comes_last));
}

#[tokio::test]
async fn what_concerns_one_server_goes_to_no_other() {
    let (_listener, server) = listen().await;
    let (_deaf, refusing) = refusing_server();
    let (exchanger, upstream) = (Exchanger::new(), Arc::new(upstream(&[&server, &refusing])));
    let connected = exchanger.connect(&upstream, at(Choice::Only(0)), Purpose::Write).await.unwrap();
    assert_eq!(connected.server(), 0);
    let failure = exchanger.connect(&upstream, at(Choice::Only(1)), Purpose::Write).await.err();
    assert_eq!(failure, Some(Failure::NotSent { timed_out: false }));
}

#[tokio::test]
async fn what_hashes_to_a_server_goes_there_each_time() {
    let (_first, first) = listen().await;
    let (_second, second) = listen().await;
    let (exchanger, upstream) = (Exchanger::new(), Arc::new(upstream(&[&first, &second])));
    let mut seen = [false; 2];
    for number in 0..32 {
        let key = format!("test:/{number}");
        let choice = at(Choice::Hash(key.as_bytes()));
        let server = exchanger.connect(&upstream, choice, Purpose::Write).await.unwrap().server();
        assert_eq!(exchanger.connect(&upstream, choice, Purpose::Write).await.unwrap().server(), server);
        seen[server] = true;
    }
    assert_eq!(seen, [true; 2]);
}

#[tokio::test]
async fn a_server_has_no_more_exchanges_at_once_than_it_is_given() {
    let (listener, server) = listen().await;
    answer_all(listener);
    let queue = Queue { max_wait: SHORT, ..Queue::default() };
    let upstream = Arc::new(Upstream { max_connections: 1, queue, ..upstream(&[&server]) });
    let exchanger = Exchanger::new();
    let connected = exchanger.connect(&upstream, TURN, Purpose::Read).await.unwrap();
    assert_eq!(exchanger.connect(&upstream, TURN, Purpose::Read).await.err(), Some(Failure::Full));
    drop(connected);
    assert!(exchanger.connect(&upstream, TURN, Purpose::Read).await.is_ok());
}

/// The guard reads back after a write while the write's own exchange is still open.
#[tokio::test]
async fn an_exchange_that_was_read_to_its_end_is_none_of_those_at_once() {
    let (listener, server) = listen().await;
    answer_all(listener);
    let queue = Queue { max_wait: SHORT, ..Queue::default() };
    let upstream = Arc::new(Upstream { max_connections: 1, queue, ..upstream(&[&server]) });
    let exchanger = Exchanger::new();
    let mut exchange = write(&exchanger, &upstream, Method::PUT, &body("x")).await.unwrap();
    collect(&mut exchange).await.unwrap();
    assert!(exchanger.connect(&upstream, TURN, Purpose::Read).await.is_ok());
}

#[tokio::test]
async fn nothing_is_sent_when_no_server_can_be_reached() {
    let (_deaf, refusing) = refusing_server();
    let upstream = Arc::new(upstream(&[&refusing]));
    let failure = Exchanger::new().connect(&upstream, TURN, Purpose::Write).await.err();
    assert_eq!(failure, Some(Failure::NotSent { timed_out: false }));
}

#[tokio::test]
async fn a_name_is_tried_at_each_of_its_addresses() {
    let (_listener, server) = listen().await;
    let by_name = server.replace("127.0.0.1", "localhost");
    let upstream = Arc::new(upstream(&[&by_name]));
    assert!(Exchanger::new().connect(&upstream, TURN, Purpose::Read).await.is_ok());
}

/// Runs an upstream whose first connection answers one request and dies at the second. The next connection answers.
async fn die_at_the_second_request(listener: TcpListener) {
    let (mut first, _) = listener.accept().await.unwrap();
    read_request(&mut first).await.unwrap();
    first.write_all(NO_CONTENT).await.unwrap();
    read_request(&mut first).await.unwrap();
    drop(first);
    let (mut second, _) = listener.accept().await.unwrap();
    read_request(&mut second).await.unwrap();
    second.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain").await.unwrap();
}

/// RFC 9112 section 9.3.1: safe methods may be retried.
#[tokio::test]
async fn a_read_that_a_pooled_connection_swallowed_is_sent_again() {
    let (listener, server) = listen().await;
    tokio::spawn(die_at_the_second_request(listener));
    let (exchanger, upstream, none) = (Exchanger::new(), Arc::new(upstream(&[&server])), Body::empty());
    exchanger.read(&upstream, TURN, head(Method::GET, &none), &none).await.unwrap().finish().await;
    let mut exchange = exchanger.read(&upstream, TURN, head(Method::GET, &none), &none).await.unwrap();
    assert_eq!(collect(&mut exchange).await.unwrap(), b"again");
}

/// Both pooled connections are dead: the one that the read is sent on first, and the one that is left in the pool.
#[tokio::test]
async fn a_read_is_sent_again_on_a_fresh_connection_even_if_another_is_pooled() {
    let (listener, server) = listen().await;
    tokio::spawn(async move {
        let mut pooled = [listener.accept().await.unwrap().0, listener.accept().await.unwrap().0];
        for stream in &mut pooled {
            read_request(stream).await.unwrap();
            stream.write_all(NO_CONTENT).await.unwrap();
        }
        for mut stream in pooled {
            tokio::spawn(async move { read_request(&mut stream).await.map(|_| ()) });
        }
        let (mut fresh, _) = listener.accept().await.unwrap();
        read_request(&mut fresh).await.unwrap();
        fresh.write_all(NO_CONTENT).await.unwrap();
    });
    let (exchanger, upstream, none) = (Exchanger::new(), Arc::new(upstream(&[&server])), Body::empty());
    let read = || exchanger.read(&upstream, TURN, head(Method::GET, &none), &none);
    let (first, second) = tokio::join!(read(), read());
    first.unwrap().finish().await;
    second.unwrap().finish().await;
    assert_eq!(read().await.unwrap().head().status, 204);
}

/// Rule 6: the upstream would answer a second copy with 200.
#[tokio::test]
async fn a_write_that_a_pooled_connection_swallowed_is_never_sent_again() {
    let (listener, server) = listen().await;
    tokio::spawn(die_at_the_second_request(listener));
    let (exchanger, upstream, body) = (Exchanger::new(), Arc::new(upstream(&[&server])), body("x"));
    write(&exchanger, &upstream, Method::PUT, &body).await.unwrap().finish().await;
    let failure = write(&exchanger, &upstream, Method::PUT, &body).await.err();
    assert_eq!(failure, Some(Failure::Abandoned { timed_out: false }));
}

/// Rule 6: wherever in its answer a server breaks off, the outcome of a write is unknown, and nothing is sent again but a
/// read whose answer has not begun.
#[tokio::test]
async fn an_answer_may_break_off_behind_each_byte() {
    const ANSWER: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let (none, body) = (Body::empty(), body("x"));
    for (end, purpose) in (0..ANSWER.len()).flat_map(|end| [(end, Purpose::Read), (end, Purpose::Write)]) {
        let (listener, server) = listen().await;
        let backend = tokio::spawn(async move {
            for answers in [&[NO_CONTENT, &ANSWER[..end]][..], &[NO_CONTENT]] {
                let (mut stream, _) = listener.accept().await.unwrap();
                for answer in answers {
                    read_request(&mut stream).await.unwrap();
                    stream.write_all(answer).await.unwrap();
                }
            }
        });
        let (exchanger, upstream) = (Exchanger::new(), Arc::new(upstream(&[&server])));
        let ask = async || match purpose {
            Purpose::Read => exchanger.read(&upstream, TURN, head(Method::GET, &none), &none).await,
            Purpose::Write => write(&exchanger, &upstream, Method::PUT, &body).await,
        };
        ask().await.unwrap().finish().await;
        let status = async {
            let mut exchange = ask().await?;
            collect(&mut exchange).await?;
            Ok(exchange.head().status.as_u16())
        };
        let is_repeated = purpose == Purpose::Read && end < ANSWER.len() - 2;
        let expected = if is_repeated { Ok(204) } else { Err(Failure::Abandoned { timed_out: false }) };
        assert_eq!(status.await, expected, "{purpose:?} {end}");
        backend.abort();
    }
}

#[tokio::test]
async fn a_read_is_not_sent_again_when_a_fresh_connection_dies() {
    let (listener, server) = listen().await;
    let script = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        read_request(&mut first).await.unwrap();
        drop(first);
        let (mut second, _) = listener.accept().await.unwrap();
        second.write_all(NO_CONTENT).await.unwrap();
    });
    let (exchanger, upstream, none) = (Exchanger::new(), Arc::new(upstream(&[&server])), Body::empty());
    let failure = exchanger.read(&upstream, TURN, head(Method::GET, &none), &none).await.err();
    assert_eq!(failure, Some(Failure::Abandoned { timed_out: false }));
    script.abort();
}

/// The guard's futures run on any executor.
#[test]
fn futures_may_move_between_threads() {
    fn send<T: Send>(_: T) {}
    let (exchanger, upstream, body) = (Exchanger::new(), Arc::new(upstream(&[])), Body::empty());
    send(write(&exchanger, &upstream, Method::PUT, &body));
    send(exchanger.read(&upstream, TURN, head(Method::GET, &body), &body));
}
