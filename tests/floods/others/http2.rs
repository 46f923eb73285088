//! Requests that are given up, frames that carry nothing, and windows that stay shut.

use std::{net::SocketAddr, time::Duration};

use tokio::time::{Instant, sleep};

use super::{Outcome, TIME, most};
use crate::frames::{
    DATA, END_HEADERS, END_STREAM, HEADERS, Http2, RST_STREAM, SETTINGS, WINDOW_UPDATE, fields, frame, initial_window,
};

pub(super) async fn given_up(addr: SocketAddr) -> Outcome {
    let mut client = Http2::open(addr, &frame(SETTINGS, 0, 0, &[])).await;
    for batch in 0..60 {
        let streams = (20 * batch..20 * batch + 20).map(|number| 2 * number + 1);
        for stream in streams.clone() {
            let head = frame(HEADERS, END_HEADERS, stream, &fields("POST", "/silent/a", &[("content-length", "4")]));
            let _ = client.send(&[head, frame(DATA, END_STREAM, stream, b"post")].concat()).await;
        }
        sleep(Duration::from_millis(30)).await;
        for stream in streams {
            let _ = client.send(&frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())).await;
        }
    }
    ended(client, Duration::from_secs(1)).await
}

pub(super) async fn updates(addr: SocketAddr) -> Outcome {
    let mut client = Http2::open(addr, &frame(SETTINGS, 0, 0, &[])).await;
    let many = frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()).repeat(1_000);
    for _ in 0..200 {
        if client.send(&many).await.is_err() {
            break;
        }
    }
    ended(client, Duration::from_secs(2)).await
}

pub(super) async fn shut(addr: SocketAddr) -> Outcome {
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = Http2::open(addr, &initial_window(0)).await;
        for number in 0..60 {
            let head = frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &fields("GET", "/large", &[]));
            let _ = client.send(&head).await;
        }
        clients.push(client);
    }
    sleep(TIME).await;
    let mut outcomes = Vec::new();
    for client in clients {
        outcomes.push(ended(client, Duration::from_millis(100)).await);
    }
    most(outcomes)
}

/// Whether the server has ended a connection within a time.
async fn ended(client: Http2, wait: Duration) -> Outcome {
    let begun = Instant::now();
    while !client.is_over() && begun.elapsed() < wait {
        sleep(Duration::from_millis(10)).await;
    }
    if !client.is_over() {
        return "goes on".to_owned();
    }
    client.end().await.goaway.map_or_else(|| "closed".to_owned(), |code| format!("GOAWAY {code}"))
}
