//! Uploads that take the connections of an upstream, and do not end.

use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    requests::exchange,
    sockets::{FLOOD, connect_from, flood},
};

/// A second route to the same upstream, which forwards everything as it comes.
pub const OPEN: &str = "\n[[routes]]\nname = \"open\"\npath = \"/open/{*rest}\"\nupstream = \"backend\"\n\
     policy = \"last-writer-wins\"\n";

/// All but one byte of each body stays away.
const BODY_BYTES: usize = 1_000;

/// Uploads that have begun, in turns from two addresses.
pub async fn begin(to: std::net::SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut uploads = Vec::new();
    for number in 0..count {
        let from = flood(u8::try_from(number % 2).expect("0 or 1"));
        let mut stream = connect_from(from, to).await.expect("it is let in");
        let begun = format!("PUT /open/{number} HTTP/1.1\r\nHost: a\r\nContent-Length: {BODY_BYTES}\r\n\r\nx");
        stream.write_all(begun.as_bytes()).await.expect("it is taken");
        uploads.push(stream);
    }
    uploads
}

/// The uploads that were not answered.
pub fn under_way(uploads: Vec<TcpStream>) -> Vec<TcpStream> {
    uploads.into_iter().filter(|stream| stream.try_read(&mut [0; 512]).is_err()).collect()
}

/// Two clients with uploads that trickle leave connections to others and to guarded requests, and end what they began.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_that_trickle_leave_connections_to_others() {
    let max = times(64, 900);
    let limits = format!("max_connections = {max}\nqueue = {{ max_waiters = 0 }}");
    let arena = Arena::before("", |setup| setup.upstream(&limits), OPEN, None).await;
    let ceiling = Ceiling { resident_mib: 16 + max / 8, descriptors: 4 * max + 60, honest_wait: HONEST_WAIT };
    let flood = Box::pin(async {
        let uploads = begin(arena.addr(), 2 * max).await;
        arena.settles().await;
        let uploads = under_way(uploads);
        let mut next = connect_from(FLOOD, arena.addr()).await.expect("it is let in");
        let (read, _) = exchange(&mut next, b"GET /open/0 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(read, 404, "the next client has a connection");
        uploads
    });
    let (uploads, _) = arena.flood("uploads of two clients that trickle", ceiling, flood).await;
    let unkept = max - max / 8;
    assert!((unkept / 2..unkept).contains(&uploads.len()), "{} of {max}", uploads.len());
    for mut stream in uploads {
        assert_eq!(exchange(&mut stream, "x".repeat(BODY_BYTES - 1).as_bytes()).await.0, 201);
    }
}
