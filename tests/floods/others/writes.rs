//! Writes with long paths, and with bodies that do not come or do not fit.

use std::{net::SocketAddr, time::Duration};

use tokio::{io::AsyncWriteExt as _, time::sleep};

use super::{Outcome, connections::open};
use crate::{
    requests::{answers, request},
    sockets::connections,
    support::backend::Backend,
    uploads::{begin, under_way},
};

/// The path that the backend refuses.
pub(super) const REFUSED: &str = "/refused/";

/// How long announced bodies are held.
const HELD: Duration = Duration::from_secs(5);

/// Resources with paths of so many digits.
pub(super) async fn paths(addr: SocketAddr, digits: usize) -> Outcome {
    let put = move |number| request("PUT", &format!("/flood/{number:0>digits$}"), "If-None-Match: *\r\n", "x");
    sent(addr, 5_000, put).await
}

pub(super) async fn refused(addr: SocketAddr) -> Outcome {
    sent(addr, 4_000, |number| request("POST", &format!("{REFUSED}{number:0>8000}"), "", "x")).await
}

pub(super) async fn announced(addr: SocketAddr) -> Outcome {
    let mut streams = connections(addr, 338).await;
    for stream in &mut streams {
        let begun = b"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nfour";
        let _ = stream.write_all(begun).await;
    }
    sleep(HELD).await;
    format!("{} are open after it", open(streams).await.len())
}

pub(super) async fn spooled(addr: SocketAddr) -> Outcome {
    let body = "x".repeat(600_000);
    sent(addr, 200, move |number| request("PUT", &format!("/large/{number}"), "If-None-Match: *\r\n", &body)).await
}

/// Uploads that no server may hold back for long: how many of them have taken a connection of the backend.
pub(super) async fn stalled(addr: SocketAddr, backend: &Backend) -> Outcome {
    let before = backend.open_connections();
    let uploads = begin(addr, 1_200).await;
    sleep(HELD).await;
    let taken = backend.open_connections().saturating_sub(before);
    let open = under_way(uploads).len();
    // The rest of their bodies never comes.
    backend.take_malformed();
    format!("{open} are open after it, with {taken} connections to the backend")
}

/// Sends requests, and tells the answers: `201`, or how many of each where they differ.
async fn sent(addr: SocketAddr, count: usize, request: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static) -> Outcome {
    let answers = answers(addr, count, request).await;
    let is_one = answers.len() == 1;
    let told = answers.into_iter().map(|(status, count)| {
        let what = status.map_or_else(|| "closed".to_owned(), |status| status.to_string());
        if is_one { what } else { format!("{count} times {what}") }
    });
    told.collect::<Vec<_>>().join(", ")
}
