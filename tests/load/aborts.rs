//! Clients that go away in the middle: of their own body, of the answer, or of the wait for it.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::task::JoinSet;

use crate::{
    clients::Tally,
    support::{random::Random, raw::Connection},
};

/// Clients of this kind.
const ABORTERS: usize = 4;
/// A file that is larger than what sockets hold.
pub const LARGE: &str = "large";
/// A guarded file that is written only by clients that leave early.
pub const ABANDONED: &str = "abandoned";

/// Runs them until they are to stop, and tells how often they went away.
pub async fn run(addr: SocketAddr, tally: Arc<Tally>) -> usize {
    let (mut random, gone) = (Random::new("aborts"), Arc::new(AtomicUsize::new(0)));
    let mut clients = JoinSet::new();
    for _ in 0..ABORTERS {
        let (mut random, tally, gone) = (random.fork(), Arc::clone(&tally), Arc::clone(&gone));
        clients.spawn(async move {
            while !tally.stop.load(Ordering::SeqCst) {
                go_away(addr, random.below(5)).await;
                gone.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.expect("they see nothing that must not be");
    }
    gone.load(Ordering::SeqCst)
}

async fn go_away(addr: SocketAddr, how: usize) {
    let mut connection = Connection::open(addr).await;
    match how {
        // In its own body, on a guarded route and on another one.
        0 | 1 => {
            let target = if how == 0 { "/docs/0" } else { "/open/half" };
            let head =
                format!("PUT {target} HTTP/1.1\r\nHost: a\r\nIf-Match: \"x\"\r\nContent-Length: 9000\r\n\r\nhalf");
            connection.send_bytes(head).await;
        }
        // In the answer.
        2 | 3 => {
            let target = if how == 2 { format!("/docs/{LARGE}") } else { format!("/open/{LARGE}") };
            connection.request("GET", &target, &[], "").await;
            assert_eq!(connection.read_head().await.0, 200);
            connection.read_bytes(1_000).await;
        }
        // While its write is in flight.
        _ => {
            let target = format!("/docs/{ABANDONED}");
            let tag = connection.exchange("GET", &target, &[], "").await.header("etag").map(str::to_owned);
            connection.request("PUT", &target, &[("If-Match", tag.as_deref().unwrap_or("\"x\""))], "x").await;
        }
    }
    connection.reset();
}
