//! Bodies that clients send over HTTP/1.1.

use std::path::Path;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::{
    telemetry::metrics::Gauged as _,
    testing::{arrived, put_arrived},
};

const PATIENCE: Duration = Duration::from_secs(10);

fn limits(memory_bytes: usize, max_bytes: u64, spool_dir: &Path) -> BodyLimits {
    let spool_dir = spool_dir.to_owned();
    BodyLimits {
        memory_bytes,
        max_bytes,
        timeout: PATIENCE,
        spool_dir,
        max_uploads: 1,
        max_blocks: 1,
        block_ttl: PATIENCE,
    }
}

/// Tests that keep bodies in memory need no directory.
fn in_memory() -> BodyLimits {
    limits(1 << 20, 1 << 20, Path::new("/nonexistent"))
}

fn ample() -> Arc<BodyBudget> {
    Arc::new(BodyBudget::new(1 << 30, 1 << 30))
}

fn chunked(chunks: &[&[u8]]) -> Vec<u8> {
    let mut request = b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in chunks {
        request.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        request.extend_from_slice(chunk);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    request
}

async fn bytes_of(body: &Body) -> Vec<u8> {
    let (mut reader, mut bytes) = (body.reader(), Vec::new());
    while let Some(chunk) = reader.next_chunk().await.unwrap() {
        assert!(chunk.len() <= 64 * 1024 && !chunk.is_empty());
        bytes.extend_from_slice(&chunk);
    }
    bytes
}

fn patterned(len: usize) -> Vec<u8> {
    (0..len).map(|index| u8::try_from(index % 251).unwrap()).collect()
}

#[tokio::test]
async fn a_request_without_a_body_is_complete_at_once() {
    let (mut session, _client) = arrived(b"PUT / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let body = receive(&mut session, &in_memory(), &ample()).await.unwrap();
    assert!(body.is_empty());
    assert_eq!(body.digest(), blake3::hash(b""));
}

#[tokio::test]
async fn a_small_body_is_kept_in_memory() {
    let (mut session, _client) = put_arrived(b"hello").await;
    let body = receive(&mut session, &in_memory(), &ample()).await.unwrap();
    assert_eq!((body.len(), body.digest()), (5, blake3::hash(b"hello")));
    assert_eq!(bytes_of(&body).await, b"hello");
}

#[tokio::test]
async fn chunks_of_unknown_number_are_joined_in_memory() {
    let pieces = patterned(3000);
    let (mut session, _client) = arrived(&chunked(&pieces.chunks(7).collect::<Vec<_>>())).await;
    let body = receive(&mut session, &in_memory(), &ample()).await.unwrap();
    assert_eq!(body.digest(), blake3::hash(&pieces));
    assert_eq!(bytes_of(&body).await, pieces);
}

/// The spool directory does not exist, so nothing was spooled.
#[tokio::test]
async fn a_body_of_exactly_the_memory_limit_is_kept_in_memory() {
    let pieces = patterned(3000);
    let (mut session, _client) = arrived(&chunked(&pieces.chunks(1000).collect::<Vec<_>>())).await;
    let limits = limits(3000, 3000, Path::new("/nonexistent"));
    let body = receive(&mut session, &limits, &Arc::new(BodyBudget::new(6000, 0))).await.unwrap();
    assert_eq!(bytes_of(&body).await, pieces);
}

#[tokio::test]
async fn a_body_above_the_memory_limit_is_spooled_and_can_be_read_twice() {
    let (dir, bytes) = (TempDir::new().unwrap(), patterned(700_000));
    let (mut session, _client) = put_arrived(&bytes).await;
    let limits = limits(1000, 1 << 20, dir.path());
    let body = receive(&mut session, &limits, &Arc::new(BodyBudget::new(1000, 700_000))).await.unwrap();
    assert_eq!(body.digest(), blake3::hash(&bytes));
    assert_eq!(bytes_of(&body).await, bytes);
    assert_eq!(bytes_of(&body).await, bytes);
    assert_eq!(dir.path().read_dir().unwrap().count(), 0, "the spool file has no name");
}

#[tokio::test]
async fn a_chunked_body_moves_to_the_spool_when_it_outgrows_memory() {
    let (dir, pieces) = (TempDir::new().unwrap(), patterned(3000));
    let (mut session, _client) = arrived(&chunked(&pieces.chunks(100).collect::<Vec<_>>())).await;
    let budget = Arc::new(BodyBudget::new(2000, 3000));
    let body = receive(&mut session, &limits(1000, 3000, dir.path()), &budget).await.unwrap();
    assert_eq!(bytes_of(&body).await, pieces);
    assert_eq!(budget.body_bytes(), (0, 3000), "its memory is free again, and its file is not");
}

#[tokio::test]
async fn a_small_body_is_spooled_when_the_memory_of_all_is_used_up() {
    let dir = TempDir::new().unwrap();
    let (mut session, _client) = put_arrived(b"hello").await;
    let budget = Arc::new(BodyBudget::new(4, 5));
    let body = receive(&mut session, &limits(1000, 1000, dir.path()), &budget).await.unwrap();
    assert_eq!(bytes_of(&body).await, b"hello");
}

#[tokio::test]
async fn a_body_is_refused_when_both_totals_are_used_up() {
    let (mut session, _client) = put_arrived(b"hello").await;
    let outcome = receive(&mut session, &in_memory(), &Arc::new(BodyBudget::new(4, 4))).await;
    assert!(matches!(outcome, Err(ReceiveError::Full)));
}

#[tokio::test]
async fn the_totals_are_given_back_with_the_body() {
    let (dir, budget) = (TempDir::new().unwrap(), Arc::new(BodyBudget::new(8, 2000)));
    let limits = limits(1000, 5000, dir.path());
    let (mut first, _first_client) = put_arrived(b"hello").await;
    let (mut second, _second_client) = put_arrived(&patterned(2000)).await;
    let small = receive(&mut first, &limits, &budget).await.unwrap();
    let large = receive(&mut second, &limits, &budget).await.unwrap();
    assert_eq!(budget.body_bytes(), (5, 2000));
    drop((small, large));
    assert_eq!(budget.body_bytes(), (0, 0));
}

/// Rule 13: 338 clients that declared "1 MiB" and sent four bytes held the memory of all bodies.
#[tokio::test]
async fn a_body_holds_what_has_arrived_and_not_what_it_says() {
    for (declared, memory_bytes) in [(900_000, 1 << 20), (50_000_000, 1 << 20)] {
        let budget = ample();
        let head = format!("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: {declared}\r\n\r\n");
        let (mut session, mut client) = arrived(head.as_bytes()).await;
        let limits = limits(memory_bytes, 100_000_000, Path::new("/nonexistent"));
        let receiving = receive(&mut session, &limits, &budget);
        let sending = async {
            for sent in 1..=4 {
                client.write_all(b"x").await.unwrap();
                while budget.body_bytes().0 < sent {
                    tokio::task::yield_now().await;
                }
                assert!(budget.body_bytes().0 <= 2 * sent, "{:?} after {sent} bytes", budget.body_bytes());
            }
        };
        tokio::select! {
            biased;
            outcome = receiving => panic!("it is not complete: {outcome:?}"),
            () = sending => {}
        }
        assert_eq!(budget.body_bytes().1, 0, "no file is created for four bytes");
    }
}

/// A body that is declared large, and arrives, goes to a file.
#[tokio::test]
async fn a_large_body_moves_to_the_spool_when_it_is_no_longer_small() {
    let (dir, bytes) = (TempDir::new().unwrap(), patterned(300_000));
    let (mut session, _client) = put_arrived(&bytes).await;
    let budget = ample();
    let body = receive(&mut session, &limits(200_000, 1 << 20, dir.path()), &budget).await.unwrap();
    assert_eq!(budget.body_bytes(), (0, 300_000));
    assert_eq!(bytes_of(&body).await, bytes);
}

/// The client waits for 100, and must not get it.
#[tokio::test]
async fn a_body_that_says_it_is_too_large_is_not_asked_for() {
    let head = b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n";
    let (mut session, mut client) = arrived(head).await;
    let outcome = receive(&mut session, &limits(10, 10, Path::new("/nonexistent")), &ample()).await;
    assert!(matches!(outcome, Err(ReceiveError::TooLarge)));
    drop(session);
    let mut sent = Vec::new();
    client.read_to_end(&mut sent).await.unwrap();
    assert_eq!(sent, b"");
}

#[tokio::test]
async fn a_chunked_body_that_grows_too_large_is_given_up() {
    let (mut session, _client) = arrived(&chunked(&[b"hello", b" world"])).await;
    let outcome = receive(&mut session, &limits(10, 10, Path::new("/nonexistent")), &ample()).await;
    assert!(matches!(outcome, Err(ReceiveError::TooLarge)));
}

/// RFC 9110 section 10.1.1; the connection is kept afterwards.
#[tokio::test]
async fn a_client_that_waits_for_100_gets_it_before_it_sends() {
    let head = b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    let (mut session, mut client) = arrived(head).await;
    let client = tokio::spawn(async move {
        let mut interim = [0; 25];
        client.read_exact(&mut interim).await.unwrap();
        client.write_all(b"hello").await.unwrap();
        (interim, client)
    });
    let body = receive(&mut session, &in_memory(), &ample()).await.unwrap();
    assert_eq!(bytes_of(&body).await, b"hello");
    assert_eq!(&client.await.unwrap().0, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert!(session.stays());
}

#[tokio::test]
async fn a_body_that_takes_too_long_is_given_up() {
    let (mut session, _client) = arrived(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel").await;
    let limits = BodyLimits { timeout: Duration::from_millis(20), ..in_memory() };
    let received = tokio::time::timeout(PATIENCE, receive(&mut session, &limits, &ample())).await;
    assert!(matches!(received, Ok(Err(ReceiveError::TimedOut))));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_body() {
    let (mut session, client) = arrived(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel").await;
    drop(client);
    assert!(matches!(receive(&mut session, &in_memory(), &ample()).await, Err(ReceiveError::Client(_))));
}

#[tokio::test]
async fn a_spool_directory_that_cannot_be_used_is_an_error_of_ours() {
    let (mut session, _client) = put_arrived(b"hello").await;
    let limits = limits(1, 1000, Path::new("/nonexistent"));
    assert!(matches!(receive(&mut session, &limits, &ample()).await, Err(ReceiveError::Spool(_))));
}
