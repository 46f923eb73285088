//! The reasons for a connection to end, on a paused clock.

use tokio::time::{advance, timeout};

use super::*;
use crate::downstream::unread::{self, UNREAD};

const TIME: Duration = Duration::from_secs(15);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A list of fields with one byte, of which more follows.
const UNFINISHED: &[u8] = &[0, 0, 1, 1, 0, 0, 0, 0, 1, b'x'];

fn begun() -> FrameWatch {
    let watch = FrameWatch::new();
    watch.receive(PREFACE);
    watch
}

#[tokio::test(start_paused = true)]
async fn a_list_of_fields_has_its_time_from_its_first_byte_on() {
    let watch = begun();
    assert_eq!(timeout(10 * TIME, watch.end(TIME)).await.ok(), None, "a connection may say nothing");
    watch.receive(UNFINISHED);
    let begun = Instant::now();
    let continuation: &[u8] = &[0, 0, 1, 9, 0, 0, 0, 0, 1, b'x'];
    let more = async {
        loop {
            sleep_until(Instant::now() + Duration::from_secs(1)).await;
            watch.receive(continuation);
        }
    };
    tokio::select! {
        end = watch.end(TIME) => assert_eq!((end, begun.elapsed()), (ConnectionEnd::SlowFields, TIME)),
        () = more => {}
    }
}

#[tokio::test(start_paused = true)]
async fn who_sends_one_list_after_the_other_is_not_slow() {
    let watch = begun();
    let complete: &[u8] = &[0, 0, 1, 1, 4, 0, 0, 0, 1, b'x'];
    let more = async {
        watch.receive(&complete[..5]);
        for _ in 0..100 {
            advance(Duration::from_secs(1)).await;
            // Each wait ends within the next list.
            watch.receive(&complete[5..]);
            watch.receive(&complete[..5]);
        }
    };
    tokio::select! {
        end = watch.end(TIME) => panic!("{end:?}"),
        () = more => {}
    }
}

/// Lets `waiting` bytes wait, of which `each_second` are read per second. Returns the end, or none within a minute.
async fn reading(waiting: usize, each_second: u64) -> Option<ConnectionEnd> {
    let watch = begun();
    let sending = async { unread::sending(waiting).expect("it is looked at") };
    let _sending = UNREAD.scope(Arc::clone(&watch.unread), sending).await;
    let reads = async {
        loop {
            sleep_until(Instant::now() + Duration::from_secs(1)).await;
            watch.written_bytes.fetch_add(each_second, Ordering::Relaxed);
        }
    };
    tokio::select! {
        end = timeout(Duration::from_secs(60), watch.end(TIME)) => end.ok(),
        () = reads => None,
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_much_to_read_has_to_read() {
    assert_eq!(reading(UNREAD_BYTES_MAX, 0).await, None, "not too much");
    assert_eq!(reading(UNREAD_BYTES_MAX + 1, 0).await, Some(ConnectionEnd::Unread));
    assert_eq!(reading(UNREAD_BYTES_MAX + 1, 1_000).await, Some(ConnectionEnd::Unread), "pings");
    assert_eq!(reading(UNREAD_BYTES_MAX + 1, 20_000).await, None, "a slow line");
}
