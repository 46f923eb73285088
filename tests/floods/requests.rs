//! Many requests from the address of floods, over a few connections at once.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    sockets::{FLOOD, connect_from},
    support::wait::within,
};

/// The number of requests at once: more of them would measure the queue of the machine.
const CONNECTIONS: usize = 8;

/// Sends `count` requests, made by their numbers, and counts the answers by their status.
pub async fn requests(
    to: SocketAddr,
    count: usize,
    request: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static,
) -> BTreeMap<u16, usize> {
    requests_from(FLOOD, to, count, request).await
}

/// The same from another address.
pub async fn requests_from(
    from: IpAddr,
    to: SocketAddr,
    count: usize,
    request: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static,
) -> BTreeMap<u16, usize> {
    let answers = answers_to(from, to, count, request).await;
    answers.into_iter().map(|(status, count)| (status.expect("an answer before the connection ends"), count)).collect()
}

/// The same for a server that may close a connection before it answers: such a request has no status.
pub async fn answers(
    to: SocketAddr,
    count: usize,
    request: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static,
) -> BTreeMap<Option<u16>, usize> {
    answers_to(FLOOD, to, count, request).await
}

async fn answers_to(
    from: IpAddr,
    to: SocketAddr,
    count: usize,
    request: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static,
) -> BTreeMap<Option<u16>, usize> {
    let request = Arc::new(request);
    let mut clients = JoinSet::new();
    for first in 0..CONNECTIONS {
        let request = Arc::clone(&request);
        clients.spawn(async move {
            let mut stream = connect_from(from, to).await.expect("it is let in");
            let mut answers = BTreeMap::<Option<u16>, usize>::new();
            for number in (first..count).step_by(CONNECTIONS) {
                let answer = attempt(&mut stream, &request(number)).await;
                *answers.entry(answer.map(|(status, _)| status)).or_default() += 1;
                if !answer.is_some_and(|(_, goes_on)| goes_on) {
                    stream = connect_from(from, to).await.expect("it is let in");
                }
            }
            answers
        });
    }
    let mut all = BTreeMap::<Option<u16>, usize>::new();
    for answers in clients.join_all().await {
        for (status, count) in answers {
            *all.entry(status).or_default() += count;
        }
    }
    all
}

/// The status of an answer, and whether its connection carries another request.
pub async fn exchange(stream: &mut TcpStream, request: &[u8]) -> (u16, bool) {
    attempt(stream, request).await.expect("an answer before the connection ends")
}

/// The same; `None` if the connection ends without an answer.
async fn attempt(stream: &mut TcpStream, request: &[u8]) -> Option<(u16, bool)> {
    within("an answer", async {
        // A refusal may come before all is sent.
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        loop {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).await.unwrap_or(0);
            answer.extend_from_slice(&bytes[..count]);
            let text = String::from_utf8_lossy(&answer);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let head = head.to_ascii_lowercase();
                let length: Option<usize> =
                    head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let is_whole = match length {
                    Some(length) => body.len() >= length,
                    None => !head.contains("transfer-encoding: chunked") || body.ends_with("0\r\n\r\n"),
                };
                if is_whole || count == 0 {
                    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
                    return Some((status, !head.contains("connection: close") && count > 0));
                }
            }
            if count == 0 {
                return None;
            }
        }
    })
    .await
}

/// A request with a body.
pub fn request(method: &str, target: &str, fields: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("{method} {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n{fields}\r\n{body}").into_bytes()
}
