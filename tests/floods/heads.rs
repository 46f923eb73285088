//! Heads that never end, are too large, or come in the smallest pieces.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    sockets::connections,
    support::wait::within,
};

/// Returns the answer that a client gets before its connection ends.
async fn told(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    // A reset after the answer is no harm, and before it there is none.
    let _ = within("the end of a connection", stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

/// A byte now and then begins no new time: the head as a whole has one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trickled_heads_end() {
    const HEADER_TIMEOUT: Duration = Duration::from_secs(1);
    let arena = Arena::start("header_timeout = \"1s\"").await;
    let count = times(300, 900);
    let ceiling = Ceiling { resident_mib: 8 + count / 20, descriptors: count + 50, honest_wait: HONEST_WAIT };
    let flood = async {
        let begun = Instant::now();
        let mut clients = JoinSet::new();
        for mut stream in connections(arena.addr(), count).await {
            clients.spawn(async move {
                stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nX: ").await.expect("the server takes it");
                let (mut reader, mut writer) = stream.into_split();
                let trickle = tokio::spawn(async move {
                    while writer.write_all(b"x").await.is_ok() {
                        sleep(Duration::from_millis(100)).await;
                    }
                });
                let mut first = [0; 12];
                within("an answer", reader.read_exact(&mut first)).await.expect("an answer");
                trickle.abort();
                String::from_utf8_lossy(&first).into_owned()
            });
        }
        let answers = clients.join_all().await;
        (answers, begun.elapsed())
    };
    let ((answers, time), _) = arena.flood("trickled heads", ceiling, flood).await;
    assert!(answers.iter().all(|answer| answer == "HTTP/1.1 408"), "{answers:?}");
    assert!(time >= HEADER_TIMEOUT && time < 8 * HEADER_TIMEOUT, "{time:?}");
}

/// Heads that are just short of complete, each as large as may be: they are held, within their total.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_heads_have_a_total() {
    let arena = Arena::start("header_timeout = \"3s\"\nmax_header_memory_total = \"4MiB\"").await;
    let count = times(300, 900);
    let ceiling = Ceiling { resident_mib: 40, descriptors: count + 50, honest_wait: HONEST_WAIT };
    let flood = async {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(31_000));
        let mut clients = JoinSet::new();
        for mut stream in connections(arena.addr(), count).await {
            let head = head.clone();
            clients.spawn(async move {
                let _ = stream.write_all(head.as_bytes()).await;
                told(stream).await
            });
        }
        clients.join_all().await
    };
    let (answers, _) = arena.flood("unfinished heads of 31 KB", ceiling, flood).await;
    let count_of = |status: &str| answers.iter().filter(|answer| answer.starts_with(status)).count();
    let (held, refused) = (count_of("HTTP/1.1 408"), count_of("HTTP/1.1 503"));
    assert_eq!(held + refused, count, "{answers:?}");
    assert!((100..=128).contains(&held), "4 MiB have room for 128 of 32 KiB: {held} were held to their time");
}

/// More than a head may have is not taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn huge_heads_are_refused() {
    let arena = Arena::start("").await;
    let count = times(300, 900);
    let ceiling = Ceiling { resident_mib: 60, descriptors: count + 50, honest_wait: HONEST_WAIT };
    let flood = async {
        let piece = "x".repeat(64 << 10);
        let mut clients = JoinSet::new();
        for mut stream in connections(arena.addr(), count).await {
            let piece = piece.clone();
            clients.spawn(async move {
                let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nX: ").await;
                for _ in 0..16 {
                    if stream.write_all(piece.as_bytes()).await.is_err() {
                        break;
                    }
                }
                told(stream).await
            });
        }
        clients.join_all().await
    };
    let (answers, _) = arena.flood("heads of 1 MB", ceiling, flood).await;
    // A client that sends on and on after the answer may be cut off before it has read the answer.
    let told = answers.iter().filter(|answer| answer.starts_with("HTTP/1.1 431")).count();
    let cut_off = answers.iter().filter(|answer| answer.is_empty()).count();
    assert_eq!(told + cut_off, count, "{answers:?}");
}

/// A head in small pieces costs its length, and not the square of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_in_small_pieces_cost_their_length() {
    let arena = Arena::start("max_header_size = \"1000KiB\"").await;
    let count = times(2, 20);
    let ceiling = Ceiling { resident_mib: 40 + 4 * count, descriptors: count + 50, honest_wait: HONEST_WAIT };
    let flood = async {
        let mut clients = JoinSet::new();
        for mut stream in connections(arena.addr(), count).await {
            clients.spawn(async move {
                stream.write_all(b"TRACE / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n").await.expect("it is taken");
                for _ in 0..100 {
                    stream.write_all(b"X: ").await.expect("it is taken");
                    for _ in 0..150 {
                        stream.write_all(&[b'x'; 64]).await.expect("it is taken");
                        tokio::task::yield_now().await;
                    }
                    stream.write_all(b"\r\n").await.expect("it is taken");
                }
                stream.write_all(b"\r\n").await.expect("it is taken");
                told(stream).await
            });
        }
        clients.join_all().await
    };
    let (answers, cost) = arena.flood("heads of 1 MB in pieces of 64 bytes", ceiling, flood).await;
    // It was read to its end, and refused for its method.
    assert!(answers.iter().all(|answer| answer.starts_with("HTTP/1.1 405")), "{answers:?}");
    let each = cost.processor / u32::try_from(count).expect("a few");
    assert!(each < Duration::from_secs(3), "{each:?} of processor time for each");
}
