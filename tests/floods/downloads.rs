//! Downloads from guarded routes that take the connections of an upstream, and are not read.

use std::net::{IpAddr, SocketAddr};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    requests::exchange,
    sockets::{FLOOD, connect_from, flood},
    support::wait::within,
    uploads::OPEN,
};

/// More than the system holds for a connection (`tcp_wmem`), so that the rest of it waits at the backend.
pub const LARGE_BYTES: usize = 8 << 20;
pub const LARGE: &str = "/large";

/// Downloads that have begun, in turns from two addresses. None is read.
pub async fn begin(to: SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut downloads = Vec::new();
    for number in 0..count {
        let mut stream = connect(flood(u8::try_from(number % 2).expect("0 or 1")), to).await;
        let request = format!("GET {LARGE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is taken");
        downloads.push(stream);
    }
    downloads
}

/// A connection on which the system takes next to nothing for its reader.
pub async fn connect(from: IpAddr, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a size");
    socket.bind(SocketAddr::new(from, 0)).expect("an address of this machine");
    within("a connection", socket.connect(to)).await.expect("it is let in")
}

/// The requests that were let through, with the first byte after the version of their answer.
pub async fn under_way(downloads: Vec<TcpStream>) -> Vec<TcpStream> {
    let mut under_way = Vec::new();
    for mut stream in downloads {
        let mut begun = [0; 12];
        within("an answer", stream.read_exact(&mut begun)).await.expect("an answer");
        match &begun {
            b"HTTP/1.1 200" => under_way.push(stream),
            other => assert_eq!(other, b"HTTP/1.1 503"),
        }
    }
    under_way
}

/// Two clients with guarded downloads that they do not read leave connections to others, and get what they began.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn downloads_that_nobody_reads_leave_connections_to_others() {
    let max = times(32, 64);
    let limits = format!("max_connections = {max}\nqueue = {{ max_waiters = 0 }}");
    let hashed = "max_hash_size = \"64KiB\"";
    let arena = Arena::before("", |setup| setup.upstream(&limits).route(hashed), OPEN, None).await;
    arena.backend.put(LARGE, "x".repeat(LARGE_BYTES));
    // The backend of the test has one thread, which is busy with the beginnings of all downloads.
    let honest_wait = 2 * HONEST_WAIT;
    let ceiling = Ceiling { resident_mib: 16 + max / 2, descriptors: 4 * max + 60, honest_wait };
    let reads = Box::pin(async {
        let downloads = begin(arena.addr(), 2 * max).await;
        let downloads = under_way(downloads).await;
        arena.settles().await;
        for (target, expected) in [("/warm", 200), ("/open/0", 404)] {
            let mut next = connect_from(FLOOD, arena.addr()).await.expect("it is let in");
            let read = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(exchange(&mut next, read.as_bytes()).await.0, expected, "the next client has a connection");
        }
        downloads
    });
    let (downloads, _) = arena.flood("guarded downloads of two clients that read nothing", ceiling, reads).await;
    assert!((max / 2..max - max / 8).contains(&downloads.len()), "{} of {max}", downloads.len());
    for mut stream in downloads.into_iter().take(2) {
        let mut rest = Vec::new();
        within("the rest", stream.read_to_end(&mut rest)).await.expect("it goes on");
        assert!(rest.len() > LARGE_BYTES && rest.ends_with(b"xx"));
    }
}
