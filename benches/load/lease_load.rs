//! The client of `make bench-leases`: it takes leases and gives them back, and does as much with Redis.
//!
//! ```text
//! lease_load ADDR pairs KIND CONNECTIONS SECONDS   the pairs done; KIND is `leases`, `redis`, or the path of a resource
//!                                                  of which two reads answered with 304 make a pair
//! lease_load ADDR hold CONNECTIONS COUNT           takes so many leases, each of another resource, and keeps them
//! lease_load ADDR one-more COUNT                   so many pairs, one after the other: microseconds of an acquisition,
//!                                                  the median and the 99th percentile
//! ```

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a benchmark stops at the first surprise")]

use std::{
    env,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    task::JoinSet,
};

/// Only the needed parts of an answer are kept.
struct Answer {
    status: u16,
    lease_id: String,
    tag: String,
}

struct Connection(BufReader<TcpStream>);

impl Connection {
    async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        Self(BufReader::new(stream))
    }

    async fn send(&mut self, request: &str) {
        self.0.get_mut().write_all(request.as_bytes()).await.expect("the server reads");
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.expect("an answer");
        line.truncate(line.trim_end().len());
        line
    }

    async fn http(&mut self, method: &str, path: &str, field: &str) -> Answer {
        self.send(&format!("{method} {path} HTTP/1.1\r\nHost: bench\r\n{field}\r\n\r\n")).await;
        let status_line = self.line().await;
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let (mut answer, mut length) = (Answer { status, lease_id: String::new(), tag: String::new() }, 0);
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().expect("a length"),
                "lease-id" => value.clone_into(&mut answer.lease_id),
                "etag" => value.clone_into(&mut answer.tag),
                _ => {}
            }
        }
        if status != 304 {
            self.0.read_exact(&mut vec![0; length]).await.expect("a body");
        }
        answer
    }

    async fn acquire(&mut self, resource: &str) -> String {
        let answer = self.http("POST", &format!("/.leases/locks/{resource}"), "Lease-Duration: 3600").await;
        assert_eq!(answer.status, 201, "{resource} is acquired");
        answer.lease_id
    }

    async fn release(&mut self, resource: &str, id: &str) {
        let answer = self.http("DELETE", &format!("/.leases/locks/{resource}"), &format!("Lease-Id: {id}")).await;
        assert_eq!(answer.status, 204, "{resource} is released");
    }

    async fn redis(&mut self, words: &[&str], expected: &str) {
        let words_sent: Vec<String> = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
        self.send(&format!("*{}\r\n{}", words.len(), words_sent.concat())).await;
        assert_eq!(self.line().await, expected, "{words:?}");
    }
}

/// Pairs on one connection until the end.
async fn pairs(address: String, kind: String, number: usize, end: Instant) -> u64 {
    let mut connection = Connection::open(&address).await;
    let resource = format!("pair-{number}");
    let value = format!("0123456789abcdef0123456789abcd{number:06}");
    let mut condition = String::new();
    if kind.starts_with('/') {
        condition = format!("If-None-Match: {}", connection.http("GET", &kind, "If-None-Match: \"-\"").await.tag);
    }
    let mut done = 0;
    while Instant::now() < end {
        match kind.as_str() {
            "leases" => {
                let id = connection.acquire(&resource).await;
                connection.release(&resource, &id).await;
            }
            "redis" => {
                connection.redis(&["SET", &resource, &value, "NX", "PX", "3600000"], "+OK").await;
                connection.redis(&["DEL", &resource], ":1").await;
            }
            path => {
                for _ in 0..2 {
                    assert_eq!(connection.http("GET", path, &condition).await.status, 304, "{path}");
                }
            }
        }
        done += 1;
    }
    done
}

async fn hold(address: String, numbers: impl Iterator<Item = usize>) -> u64 {
    let mut connection = Connection::open(&address).await;
    let mut done = 0;
    for number in numbers {
        connection.acquire(&format!("held-{number}")).await;
        done += 1;
    }
    done
}

async fn one_more(address: &str, count: usize) -> String {
    let mut connection = Connection::open(address).await;
    let mut times = Vec::new();
    for number in 0..count {
        let resource = format!("one-more-{}", number % 100);
        let start = Instant::now();
        let id = connection.acquire(&resource).await;
        times.push(start.elapsed());
        connection.release(&resource, &id).await;
    }
    times.sort_unstable();
    format!("{} {}", times[count / 2].as_micros(), times[count * 99 / 100].as_micros())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |place: usize| -> usize { arguments[place].parse().expect("a number") };
    let address = &arguments[0];
    let mut clients = JoinSet::new();
    match arguments[1].as_str() {
        "pairs" => {
            let end = Instant::now() + Duration::from_secs(number(4) as u64);
            for client in 0..number(3) {
                clients.spawn(pairs(address.clone(), arguments[2].clone(), client, end));
            }
        }
        "hold" => {
            let (connections, count) = (number(2), number(3));
            for client in 0..connections {
                clients.spawn(hold(address.clone(), (client..count).step_by(connections)));
            }
        }
        _ => return println!("{}", one_more(address, number(2)).await),
    }
    println!("{}", clients.join_all().await.iter().sum::<u64>());
}
