//! Request heads of HTTP/1.1, each read completely before any other step.
//!
//! # Design
//!
//! *Why is a head scanned before it is parsed?* A parser that begins anew after each read lets a head in small pieces
//! cost the square of its length. Here each byte is scanned once, the head as a whole has a time and a size, and all
//! heads together have a total. Only the complete head is parsed, once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::BytesMut;
use pingora::protocols::Stream;
use pingora_timeout::timeout;
use tokio::{io::AsyncReadExt as _, sync::watch};

use crate::{
    config,
    core::{
        refusal::{Code, Refusal},
        wire::head::{HeadScan, HeadState},
    },
    wire::read_ahead,
};

/// The room for a head that is not counted in the total, because connections are limited and nearly all heads fit.
const FIRST_BYTES: usize = 4 * 1024;
/// When a client that was refused for want of room may retry.
const RETRY_SOON: Duration = Duration::from_secs(1);

/// The limits on heads.
#[derive(Clone, Debug)]
pub(super) struct Heads {
    /// How long a connection may be silent before the first byte of a head.
    pub(super) silence_max: Duration,
    /// How long a head may take from its first byte to the empty line.
    pub(super) time_max: Duration,
    /// The maximum number of bytes of a head.
    pub(super) bytes_max: usize,
    room: Arc<HeadRoom>,
}

/// A complete head, and the bytes that came after it.
#[derive(Debug)]
pub(super) struct ReceivedHead {
    /// The bytes of the head and those after it.
    pub(super) bytes: BytesMut,
    /// The length of the head in bytes; zero if no request begins with these bytes.
    pub(super) length: usize,
    /// The head's share of the total, as long as its request lasts.
    pub(super) held: HeldHead,
}

/// The reason why no head was received.
#[derive(Debug)]
pub(super) enum NoHead {
    /// The client has gone or been silent for too long, or the process ends.
    Gone,
    /// The client receives a refusal. These bytes of the request have come.
    Refused(Refusal, BytesMut),
}

impl Heads {
    /// Creates the limits of a configuration.
    pub(super) fn new(server: &config::Server) -> Self {
        let room = Arc::new(HeadRoom { free_bytes: AtomicUsize::new(server.max_header_memory_bytes) });
        Self {
            silence_max: server.keepalive_timeout,
            time_max: server.header_timeout,
            bytes_max: server.max_header_bytes,
            room,
        }
    }

    /// Returns a share of the total that holds nothing yet.
    pub(super) fn hold_none(&self) -> HeldHead {
        HeldHead { room: Arc::clone(&self.room), bytes: 0 }
    }

    /// Reads the next head of a connection, of which these bytes have come. When the process ends, this function does not wait for a head that has not
    /// begun.
    pub(super) async fn read(
        &self,
        stream: &mut Stream,
        mut bytes: BytesMut,
        ends: &mut watch::Receiver<bool>,
    ) -> Result<ReceivedHead, NoHead> {
        if bytes.is_empty() {
            let read = tokio::select! {
                biased;
                read = timeout(self.silence_max, read_ahead(stream, &mut bytes)) => read.ok(),
                _ = ends.wait_for(|ends| *ends) => None,
            };
            let Some(Ok(1..)) = read else { return Err(NoHead::Gone) };
        }
        let mut head = ReceivedHead { bytes, length: 0, held: self.hold_none() };
        match self.complete(stream, &mut head).await {
            Ok(true) => Ok(head),
            Ok(false) => Err(NoHead::Gone),
            Err(refusal) => Err(NoHead::Refused(refusal, head.bytes)),
        }
    }

    /// Reads the rest of a head. Returns false if the client has gone before.
    async fn complete(&self, stream: &mut Stream, head: &mut ReceivedHead) -> Result<bool, Refusal> {
        let mut scan = HeadScan::default();
        if !self.goes_on(&mut scan, head)? {
            return Ok(true);
        }
        // The first piece is nearly always the whole head: only a second piece needs a clock.
        let rest = async {
            while matches!(stream.read_buf(&mut head.bytes).await, Ok(1..)) {
                if !self.goes_on(&mut scan, head)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        timeout(self.time_max, rest).await.unwrap_or_else(|_elapsed| Err(too_late()))
    }

    /// True if more of a head must come. If so, there is room for it.
    fn goes_on(&self, scan: &mut HeadScan, head: &mut ReceivedHead) -> Result<bool, Refusal> {
        let state = scan.look(&head.bytes);
        let complete = (state == HeadState::Complete).then(|| scan.end());
        head.length = complete.unwrap_or_default();
        if complete.unwrap_or(head.bytes.len()) > self.bytes_max {
            return Err(self.too_large());
        }
        if state != HeadState::Unfinished {
            return Ok(false);
        }
        if head.bytes.len() == head.bytes.capacity() {
            // One byte more than allowed reveals a head that is too large.
            let wanted = (2 * head.bytes.len()).max(FIRST_BYTES).min(self.bytes_max + 1);
            if !head.held.hold_head(wanted) {
                return Err(no_room());
            }
            head.bytes.reserve(wanted - head.bytes.len());
        }
        Ok(true)
    }

    fn too_large(&self) -> Refusal {
        let detail = format!("the head has more than {} bytes; send fewer or shorter fields", self.bytes_max);
        Refusal::new(Code::HeaderTooLarge, detail)
    }
}

fn too_late() -> Refusal {
    Refusal::new(Code::HeaderTimeout, "send the whole head at once")
}

fn no_room() -> Refusal {
    Refusal::new(Code::Overloaded, "too many large heads are being received at this moment").retry_after(RETRY_SOON)
}

/// The room for all heads together.
#[derive(Debug)]
struct HeadRoom {
    free_bytes: AtomicUsize,
}

/// A head's share of that room. Dropping it gives the share back.
#[derive(Debug)]
pub(super) struct HeldHead {
    room: Arc<HeadRoom>,
    bytes: usize,
}

impl HeldHead {
    /// Holds the share of a head of this many bytes. Returns false if that much is not free.
    pub(super) fn hold_head(&mut self, bytes: usize) -> bool {
        bytes <= FIRST_BYTES || self.hold(bytes)
    }

    /// Makes the share at least `bytes`. Returns false and changes nothing if that much is not free.
    pub(super) fn hold(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        // The counter guards no other memory, so relaxed order is enough.
        let take = |free: usize| free.checked_sub(more);
        let taken = self.room.free_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if taken {
            self.bytes += more;
        }
        taken
    }
}

impl Drop for HeldHead {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.room.free_bytes.fetch_add(self.bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn heads(bytes_max: usize, room: usize) -> Heads {
        Heads {
            silence_max: Duration::from_secs(60),
            time_max: Duration::from_secs(60),
            bytes_max,
            room: Arc::new(HeadRoom { free_bytes: AtomicUsize::new(room) }),
        }
    }

    /// Returns the result of reading these pieces. Each one is sent once the previous one was read, and nothing
    /// follows.
    async fn read(heads: &Heads, pieces: &[&str]) -> Result<ReceivedHead, NoHead> {
        let (mut client, server) = tokio::io::duplex(64);
        let pieces = pieces.concat();
        tokio::spawn(async move {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut client, pieces.as_bytes()).await;
            std::future::pending::<()>().await;
        });
        let (_sender, mut ends) = watch::channel(false);
        heads.read(&mut (Box::new(server) as Stream), BytesMut::new(), &mut ends).await
    }

    fn code(result: Result<ReceivedHead, NoHead>) -> Code {
        match result {
            Err(NoHead::Refused(refusal, _received)) => refusal.code,
            other => panic!("{other:?} and no refusal"),
        }
    }

    #[tokio::test]
    async fn a_head_comes_in_any_number_of_pieces() {
        let long = format!("X: {}\r\n", "x".repeat(10_000));
        let head = read(&heads(20_000, 20_000), &["GET / HTTP/1.1\r\n", &long, "\r\n", "body"]).await.unwrap();
        assert!(head.bytes.starts_with(b"GET / HTTP/1.1\r\nX: xxx"));
        assert!(head.held.bytes >= 10_000, "it is counted: {}", head.held.bytes);
    }

    #[tokio::test]
    async fn the_time_counts_from_the_first_byte_on_and_no_piece_begins_it_anew() {
        let (mut client, server) = tokio::io::duplex(64);
        let trickle = tokio::spawn(async move {
            for byte in "GET / HTTP/1.1\r\nX: y".bytes().cycle() {
                if tokio::io::AsyncWriteExt::write_all(&mut client, &[byte]).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        let (_sender, mut ends) = watch::channel(false);
        let begun = Instant::now();
        let heads = Heads { time_max: Duration::from_millis(200), ..heads(20_000, 0) };
        let result = heads.read(&mut (Box::new(server) as Stream), BytesMut::new(), &mut ends).await;
        assert_eq!(code(result), Code::HeaderTimeout);
        assert!(begun.elapsed() >= heads.time_max);
        trickle.await.unwrap();
    }

    #[tokio::test]
    async fn a_head_that_is_too_large_is_refused_before_it_is_there() {
        let endless = "x".repeat(30_000);
        assert_eq!(code(read(&heads(20_000, 40_000), &["GET /", &endless]).await), Code::HeaderTooLarge);
        let fits = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(977));
        assert_eq!(fits.len(), 1_000);
        read(&heads(1_000, 20_000), &[&fits]).await.expect("exactly as large as it may be");
        assert_eq!(code(read(&heads(999, 20_000), &[&fits]).await), Code::HeaderTooLarge);
    }

    #[tokio::test]
    async fn all_heads_together_have_a_total() {
        let heads = heads(20_000, 20_000);
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(10_000));
        let first = read(&heads, &[&long]).await.expect("there is room");
        assert_eq!(code(read(&heads, &[&long]).await), Code::Overloaded);
        drop(first);
        read(&heads, &[&long]).await.expect("the room is free again");
    }

    #[tokio::test]
    async fn a_connection_that_says_nothing_ends_with_the_process() {
        let (_client, server) = tokio::io::duplex(64);
        let (sender, mut ends) = watch::channel(false);
        sender.send_replace(true);
        let result = heads(1_000, 0).read(&mut (Box::new(server) as Stream), BytesMut::new(), &mut ends).await;
        assert!(matches!(result, Err(NoHead::Gone)), "{result:?}");
    }
}
