//! Heads that do not end, and connections that say nothing.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{Outcome, TIME, most};
use crate::sockets::connections;

pub(super) async fn trickled(addr: SocketAddr) -> Outcome {
    let mut clients = JoinSet::new();
    for mut stream in connections(addr, 300).await {
        clients.spawn(async move {
            let begun = Instant::now();
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nX: ").await;
            while begun.elapsed() < TIME {
                let ended = timeout(Duration::from_millis(100), stream.read(&mut [0; 512])).await;
                if ended.is_ok() || stream.write_all(b"x").await.is_err() {
                    return false;
                }
            }
            true
        });
    }
    let open = clients.join_all().await.into_iter().filter(|is_open| *is_open).count();
    format!("{open} are open after it")
}

pub(super) async fn huge(addr: SocketAddr) -> Outcome {
    let piece = "x".repeat(64 << 10);
    let mut clients = JoinSet::new();
    for mut stream in connections(addr, 300).await {
        let piece = piece.clone();
        clients.spawn(async move {
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nX: ").await;
            for _ in 0..16 {
                if stream.write_all(piece.as_bytes()).await.is_err() {
                    break;
                }
            }
            status(stream).await
        });
    }
    most(clients.join_all().await)
}

pub(super) async fn pieces(addr: SocketAddr) -> Outcome {
    let mut stream = connections(addr, 1).await.remove(0);
    let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").await;
    for _ in 0..16_000 {
        if stream.write_all(&[b'X'; 64]).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    status(stream).await
}

pub(super) async fn idle(addr: SocketAddr) -> Outcome {
    let kept = open(connections(addr, 2_000).await).await;
    sleep(Duration::from_secs(1)).await;
    format!("{} are let in", kept.len())
}

/// The connections that the server has neither closed nor answered.
pub(super) async fn open(streams: Vec<TcpStream>) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for mut stream in streams {
        if timeout(Duration::from_millis(1), stream.read(&mut [0])).await.is_err() {
            open.push(stream);
        }
    }
    open
}

async fn status(mut stream: TcpStream) -> Outcome {
    let mut answer = Vec::new();
    let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
    let line = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
    line.split(' ').nth(1).map_or_else(|| "closed".to_owned(), str::to_owned)
}
