//! Clients that watch resources, and do not read, or do not stay.

use std::{collections::BTreeMap, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    downloads::connect,
    requests::{request, requests},
    sockets::{FLOOD, connect_from, flood},
    support::{proxy::Setup, wait::within},
};

fn watched(setup: Setup) -> Setup {
    setup.route("watch = true\nrequire = \"never\"\nother_writers = false")
}

/// Asks for a stream of events, and returns the status of the answer.
async fn watch(stream: &mut TcpStream) -> String {
    let ask = b"GET /.watch/warm HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n";
    stream.write_all(ask).await.expect("it is taken");
    let mut begun = [0; 12];
    within("an answer", stream.read_exact(&mut begun)).await.expect("an answer");
    String::from_utf8_lossy(&begun[9..]).into_owned()
}

/// Streams from two addresses, with small buffers in the system of their reader.
async fn watches(to: SocketAddr, count: usize) -> BTreeMap<String, Vec<TcpStream>> {
    let mut streams: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for number in 0..count {
        let mut stream = connect(flood(u8::try_from(number % 2).expect("0 or 1")), to).await;
        let status = watch(&mut stream).await;
        streams.entry(status).or_default().push(stream);
    }
    streams
}

/// Two clients watch as much as they may, and read no events. Each stream holds the newest state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_watch_and_do_not_read_hold_little() {
    let share = times(100, 400);
    let arena = Arena::before(&format!("max_watches_per_client = {share}"), watched, "", None).await;
    let ceiling = Ceiling { resident_mib: 8 + share / 10, descriptors: 4 * share + 60, honest_wait: 2 * HONEST_WAIT };
    let changes = times(100, 2_000);
    let flood = async {
        let streams = watches(arena.addr(), 3 * share).await;
        let put = |number: usize| request("PUT", "/warm", "", &number.to_string());
        let written = requests(arena.addr(), changes, put).await;
        (streams.into_iter().map(|(status, all)| (status, all.len())).collect::<Vec<_>>(), written)
    };
    let ((streams, written), _) = arena.flood("streams of two clients that do not read", ceiling, flood).await;
    assert_eq!(streams, [("200".to_owned(), 2 * share), ("503".to_owned(), share)]);
    assert_eq!(written.keys().collect::<Vec<_>>(), [&204]);
}

/// A client that opens streams and goes at once leaves nothing behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_watch_and_go_leave_their_places() {
    let arena = Arena::before("max_watches_per_client = 50", watched, "", None).await;
    let ceiling = Ceiling { resident_mib: 16, descriptors: 150, honest_wait: HONEST_WAIT };
    let count = times(1_000, 10_000);
    let flood = async {
        let mut opened = 0;
        for _ in 0..count {
            let mut stream = connect_from(FLOOD, arena.addr()).await.expect("it is let in");
            opened += usize::from(watch(&mut stream).await == "200");
        }
        opened
    };
    let (opened, _) = arena.flood("streams whose client goes at once", ceiling, flood).await;
    assert!(opened > count / 2, "{opened} of {count}: the places of those who have gone are given back");
}
