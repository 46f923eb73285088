//! A client that reads and writes while others flood: it comes from an address of its own, keeps to the rules, and is
//! never refused. It has a thread of its own: what floods here keep busy is no matter of the proxy.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    runtime::Builder,
    time::{Instant, sleep},
};

use crate::{
    sockets::{HONEST, connect_from},
    support::wait::within,
};

/// The pause between two of its requests.
const PAUSE: Duration = Duration::from_millis(10);
/// After this number of requests it opens a new connection: no client is kept out.
const REQUESTS_A_CONNECTION: usize = 10;

/// Each of them has a resource of its own.
static NUMBER: AtomicUsize = AtomicUsize::new(0);

pub struct Honest {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Honest {
    /// Creates its resource, and begins.
    pub async fn start(addr: SocketAddr) -> Self {
        let target = format!("/honest/{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut stream = connect_from(HONEST, addr).await.expect("it is let in");
        let create = format!("PUT {target} HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\nContent-Length: 1\r\n\r\n1");
        let created = exchange(&mut stream, &create).await;
        assert!(created.starts_with("HTTP/1.1 201"), "{created}");
        let ends = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ends);
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { ends, thread: thread::spawn(move || runtime.block_on(run(addr, &target, &seen))) }
    }

    /// How long it waited, of a hundred times the longest but one.
    pub async fn end(self) -> Duration {
        self.ends.store(true, Ordering::SeqCst);
        let ended = tokio::task::spawn_blocking(|| self.thread.join()).await.expect("it ends");
        let mut waits = ended.expect("each of its requests is answered as it should be");
        waits.sort_unstable();
        waits[(waits.len() * 99).div_ceil(100) - 1]
    }
}

async fn run(addr: SocketAddr, target: &str, ends: &AtomicBool) -> Vec<Duration> {
    let mut waits = Vec::new();
    let mut number = 0;
    while !ends.load(Ordering::SeqCst) {
        let begun = Instant::now();
        let mut stream = connect_from(HONEST, addr).await.expect("it is let in");
        let mut connecting = begun.elapsed();
        for _ in 0..REQUESTS_A_CONNECTION / 2 {
            let begun = Instant::now();
            let read = exchange(&mut stream, &format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            waits.push(begun.elapsed() + std::mem::take(&mut connecting));
            assert!(read.starts_with("HTTP/1.1 200"), "{read}");
            let tag = read.lines().find_map(|line| line.strip_prefix("ETag: ")).expect("a tag").to_owned();
            number += 1;
            let body = number.to_string();
            let put = format!(
                "PUT {target} HTTP/1.1\r\nHost: a\r\nIf-Match: {tag}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let begun = Instant::now();
            let written = exchange(&mut stream, &put).await;
            waits.push(begun.elapsed());
            assert!(written.starts_with("HTTP/1.1 204"), "{written}");
            sleep(PAUSE).await;
        }
    }
    waits
}

/// Sends a request and reads the head of its answer, with a body that comes with it.
async fn exchange(stream: &mut TcpStream, request: &str) -> String {
    within("an answer to an honest client", async {
        stream.write_all(request.as_bytes()).await.expect("the connection stays");
        let mut answer = Vec::new();
        while !is_complete(&answer) {
            let mut bytes = [0; 2048];
            let count = stream.read(&mut bytes).await.expect("the connection stays");
            assert!(count > 0, "closed after {:?}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&bytes[..count]);
        }
        String::from_utf8(answer).expect("text")
    })
    .await
}

fn is_complete(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}
