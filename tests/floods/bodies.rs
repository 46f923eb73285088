//! Bodies that are announced and do not come, or come and never end.

use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    sockets::connections,
};

/// Clients that begin a body of this length.
async fn begin(arena: &Arena, count: usize, length: usize, sent: &[u8]) -> Vec<TcpStream> {
    let mut streams = connections(arena.addr(), count).await;
    for (number, stream) in streams.iter_mut().enumerate() {
        let head = format!("POST /upload/{number} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("it is taken");
    }
    // In two pieces, so that they are joined.
    let (first, second) = sent.split_at(sent.len() / 2);
    for piece in [first, second] {
        for stream in &mut streams {
            stream.write_all(piece).await.expect("it is taken");
            stream.flush().await.expect("it is taken");
        }
        arena.settles().await;
    }
    streams
}

/// 338 of them held 333 MB, and no reader got a tag.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn announced_bodies_hold_what_has_come() {
    let count = times(338, 900);
    let arena = Arena::start("max_connections_per_client = 1000").await;
    let ceiling = Ceiling { resident_mib: 16 + count / 8, descriptors: count + 50, honest_wait: HONEST_WAIT };
    let flood = begin(&arena, count, 1_000_000, b"four");
    drop(arena.flood("announced bodies of 1 MB", ceiling, flood).await);
}

/// The proxy holds the bytes that have come: up to half of the total in memory, and then in files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_uploads_leave_readers_their_tags() {
    let count = times(40, 200);
    let limits = "max_body_memory_total = \"16MiB\"\nmax_connections_per_client = 1000";
    let arena = Arena::start(limits).await;
    let ceiling = Ceiling { resident_mib: 50 + count / 5, descriptors: 2 * count + 50, honest_wait: HONEST_WAIT };
    let body = vec![b'x'; 999_000];
    let flood = begin(&arena, count, 1_000_000, &body);
    drop(arena.flood("uploads that stop before their end", ceiling, flood).await);
}
