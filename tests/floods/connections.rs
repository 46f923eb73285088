//! More connections than there is room for, from one client and from many.

use std::net::{IpAddr, Ipv4Addr};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    sockets::{connect_from, connections},
    support::{proxy::Proxy, wait::within},
};

/// How many of these connections stay open: one that is refused is closed without an answer.
async fn stay_open(streams: Vec<TcpStream>) -> (usize, Vec<TcpStream>) {
    let mut kept = Vec::new();
    for mut stream in streams {
        let asked = stream.write_all(b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n").await;
        if asked.is_ok() && matches!(stream.read(&mut [0]).await, Ok(1)) {
            kept.push(stream);
        }
    }
    (kept.len(), kept)
}

/// A client gets its share, and others get in beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_client_gets_its_share() {
    let share = times(100, 1_000);
    let arena = Arena::start(&format!("max_connections_per_client = {share}")).await;
    let ceiling = Ceiling { resident_mib: 8 + share / 20, descriptors: share + 150, honest_wait: HONEST_WAIT };
    let flood = async {
        let streams = connections(arena.addr(), 5 * share).await;
        within("the last to be judged", stay_open(streams)).await
    };
    let ((open, _streams), _) = arena.flood("idle connections of one client", ceiling, flood).await;
    assert_eq!(open, share);
}

/// Many clients get what there is in all; it is given to others when they have gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_clients_together_have_a_total() {
    let arena = Arena::start("max_connections = 50\nmax_connections_per_client = 10").await;
    let flood = async {
        let mut streams = Vec::new();
        for client in 0..10 {
            let from = IpAddr::V4(Ipv4Addr::new(127, 0, 1, client));
            for _ in 0..10 {
                streams.push(connect_from(from, arena.addr()).await.expect("the kernel accepts"));
            }
        }
        within("the last to be judged", stay_open(streams)).await
    };
    let (open, streams) = flood.await;
    assert_eq!(open, 50);
    drop(streams);
    // The proxy learns later than its clients that they have gone.
    let all_get_in = async {
        loop {
            let mut streams = Vec::new();
            for _ in 0..10 {
                let from = IpAddr::V4(Ipv4Addr::new(127, 0, 1, 0));
                streams.push(connect_from(from, arena.addr()).await.expect("the kernel accepts"));
            }
            if stay_open(streams).await.0 == 10 {
                return;
            }
        }
    };
    within("those who have gone to be forgotten", all_get_in).await;
    let again = Ceiling { resident_mib: 16, descriptors: 70, honest_wait: HONEST_WAIT };
    arena.flood("the total is free again", again, async {}).await;
}

/// With few descriptors there are fewer connections, and the requests of those who are in are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_descriptors_refuse_the_new_and_keep_those_under_way() {
    // With one thread, nothing is examined as long as the listener accepts.
    let configuration = |addr| Proxy::to(addr).on_one_thread().configuration();
    let arena = Arena::with(configuration, Some(140)).await;
    let flood = async {
        // The connections that come while the proxy is stopped reach it all at once.
        arena.proxy.signal("STOP");
        let mut streams = connections(arena.addr(), 110).await;
        arena.proxy.signal("CONT");
        streams.append(&mut connections(arena.addr(), 190).await);
        within("the last to be judged", stay_open(streams)).await
    };
    let ceiling = Ceiling { resident_mib: 16, descriptors: 40, honest_wait: HONEST_WAIT };
    let ((open, _streams), _) = arena.flood("connections beyond 140 descriptors", ceiling, flood).await;
    assert!(!arena.proxy.log().contains("Accept() failed"), "the reserve is not for new connections");
    assert!((10..=20).contains(&open), "{open} were let in, and half of a third of 140 is what one client may have");
    assert!(arena.proxy.log().contains("the limit of open files has room"), "it says so at the start");
}
