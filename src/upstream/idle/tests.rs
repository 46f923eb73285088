//! Idle connections that are used again, kept apart, and closed.

use std::time::Duration;

use pingora::protocols::l4;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
};

use super::*;
use crate::{
    tls::UpstreamTls,
    upstream::testing::{PATIENCE, listen, upstream},
};

/// A pool, and a server whose connections it keeps.
struct Case {
    pool: Arc<IdleConnections>,
    listener: TcpListener,
    destination: Destination,
}

impl Case {
    async fn with_room_for(count_max: usize) -> Self {
        let (listener, server) = listen().await;
        let destination = Destination::of(&upstream(&[&server]), &server, Address::Tcp(server.parse().unwrap()), false);
        Self { pool: IdleConnections::new(count_max), listener, destination }
    }

    /// Opens a connection. Returns both its sides.
    async fn connect(&self) -> (Stream, TcpStream) {
        let ours = TcpStream::connect(self.listener.local_addr().unwrap()).await.unwrap();
        (Box::new(l4::stream::Stream::from(ours)), self.listener.accept().await.unwrap().0)
    }

    /// Lets a new connection become idle. Returns its number and the server's side.
    async fn keep(&self, idle_max: Duration) -> (i32, TcpStream) {
        let (ours, theirs) = self.connect().await;
        let number = ours.id();
        self.pool.home().keep(self.destination.clone(), ours, idle_max);
        (number, theirs)
    }

    fn take(&self) -> Option<i32> {
        self.pool.take(&self.destination).map(|(stream, _)| stream.id())
    }
}

/// Waits until the other side has closed the connection.
async fn closed(stream: &mut TcpStream) -> bool {
    matches!(tokio::time::timeout(PATIENCE, stream.read(&mut [0])).await, Ok(Ok(0)))
}

fn worker() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[tokio::test]
async fn the_connection_that_became_idle_last_is_taken_first() {
    let case = Case::with_room_for(8).await;
    let ((one, _first), (two, _second)) = (case.keep(PATIENCE).await, case.keep(PATIENCE).await);
    assert_eq!([case.take(), case.take(), case.take()], [Some(two), Some(one), None]);
}

/// Rule 14: a server that was authenticated in one way gets nothing that is meant for another.
#[test]
fn exchanges_that_are_authenticated_differently_have_different_destinations() {
    let address = || Address::Tcp("127.0.0.1:1".parse().unwrap());
    let of = |name: Option<&str>, server| {
        let tls = name.map(|name| UpstreamTls::new((!name.is_empty()).then(|| name.to_owned()), &[], None).into());
        Destination::of(&Upstream { tls, ..upstream(&[server]) }, server, address(), false)
    };
    let all = [of(None, "a:1"), of(Some(""), "a:1"), of(Some(""), "b:1"), of(Some("a"), "a:1"), of(Some("c"), "a:1")];
    for (place, one) in all.iter().enumerate() {
        assert!(!all[place + 1..].contains(one), "{one:?} is there twice");
    }
    assert_eq!(of(Some("c"), "a:1"), of(Some("c"), "b:1"), "the same settings and the same name");
}

#[tokio::test]
async fn another_destination_does_not_get_a_connection() {
    let case = Case::with_room_for(8).await;
    let (_, _theirs) = case.keep(PATIENCE).await;
    let secured = Some((1, "localhost".to_owned()));
    assert!(case.pool.take(&Destination { secured, ..case.destination.clone() }).is_none());
    assert!(case.take().is_some());
}

#[tokio::test]
async fn a_connection_that_the_server_closed_or_wrote_to_is_not_taken() {
    let case = Case::with_room_for(8).await;
    let ((_, gone), (_, mut talkative)) = (case.keep(PATIENCE).await, case.keep(PATIENCE).await);
    drop(gone);
    talkative.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").await.unwrap();
    // The driver has seen both once another connection is readable.
    let (mut ours, mut theirs) = case.connect().await;
    theirs.write_all(b"x").await.unwrap();
    ours.read_exact(&mut [0]).await.unwrap();
    assert_eq!(case.take(), None);
}

#[tokio::test]
async fn a_full_pool_closes_the_connection_that_was_idle_longest() {
    let case = Case::with_room_for(2).await;
    let (_, mut first) = case.keep(PATIENCE).await;
    let ((two, _second), (three, _third)) = (case.keep(PATIENCE).await, case.keep(PATIENCE).await);
    assert!(closed(&mut first).await);
    assert_eq!([case.take(), case.take(), case.take()], [Some(three), Some(two), None]);
    assert_eq!(case.pool.count.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_connection_is_closed_after_its_idle_time() {
    let case = Case::with_room_for(8).await;
    let (_, mut short) = case.keep(Duration::from_millis(1)).await;
    let (two, _long) = case.keep(PATIENCE).await;
    assert!(closed(&mut short).await);
    assert_eq!([case.take(), case.take()], [Some(two), None]);
}

/// The first task ends with the last connection.
#[tokio::test]
async fn connections_are_closed_each_time_that_the_pool_fills_again() {
    let case = Case::with_room_for(8).await;
    for _ in 0..2 {
        let (_, mut theirs) = case.keep(Duration::from_millis(1)).await;
        assert!(closed(&mut theirs).await);
        assert_eq!(case.pool.count.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_worker_lends_its_connections_to_others_and_gets_them_back() {
    let home = worker();
    let case = home.block_on(Case::with_room_for(8));
    let ((one, _first), (two, _second)) =
        home.block_on(async { (case.keep(PATIENCE).await, case.keep(PATIENCE).await) });
    std::thread::scope(|threads| {
        let other = || {
            worker().block_on(async {
                let (stream, home) = case.pool.take(&case.destination).unwrap();
                assert_eq!(stream.id(), two);
                home.keep(case.destination.clone(), stream, PATIENCE);
            });
        };
        threads.spawn(other).join().unwrap();
    });
    let own = Arc::clone(case.pool.workers.get().unwrap());
    let numbers = |idle: &Vec<IdleConnection>| idle.iter().map(|idle| idle.stream.id()).collect::<Vec<_>>();
    assert_eq!(own.lock().0.values().map(numbers).collect::<Vec<_>>(), [[one, two]]);
}
