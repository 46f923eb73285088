use bytes::Bytes;
use http::StatusCode;

use super::*;

const LONG: Duration = Duration::from_secs(600);
const WINDOW: Duration = Duration::from_secs(20);

fn named(number: u8) -> KeyName {
    [number; 32]
}

fn begun(writes: &Arc<InProcess>, number: u8) -> Option<ProcessAttempt> {
    match writes.begin(named(number), SentWrite::default(), LONG, WINDOW) {
        Begun::First(attempt) => Some(attempt),
        Begun::Known(..) | Begun::Full => None,
    }
}

fn ended(writes: &Arc<InProcess>, number: u8, end: AttemptEnd) {
    begun(writes, number).expect("it is the first, and there is room").end(end);
}

fn answered(body_bytes: usize) -> AttemptEnd {
    AttemptEnd::Answered(KeptAnswer::of(
        StatusCode::OK,
        &http::HeaderMap::new(),
        Some(Bytes::from(vec![0; body_bytes])),
    ))
}

fn progress(writes: &Arc<InProcess>, number: u8) -> Option<Progress> {
    match writes.begin(named(number), SentWrite::default(), LONG, WINDOW) {
        Begun::Known(_, progress) => Some(progress),
        Begun::First(_) | Begun::Full => None,
    }
}

/// A write that was dropped without a verdict may have been sent (DESIGN, section 3, rule 3).
#[tokio::test(start_paused = true)]
async fn a_write_that_was_dropped_before_its_end_is_in_doubt_if_it_was_sent() {
    let writes = Arc::new(InProcess::new());
    drop(begun(&writes, 1));
    assert_eq!(progress(&writes, 1), None, "no byte of it was sent");
    let mut attempt = begun(&writes, 1).expect("the first one came to nothing");
    attempt.may_be_sent();
    assert_eq!(progress(&writes, 1), Some(Progress::InFlight));
    drop(attempt);
    assert_eq!(progress(&writes, 1), Some(Progress::InDoubt(WINDOW)));
}

/// Rule 21: a write that may have been applied is known for its whole time.
#[tokio::test(start_paused = true)]
async fn a_key_counts_until_its_time_is_over() {
    let writes = Arc::new(InProcess::new());
    ended(&writes, 1, AttemptEnd::Doubt);
    ended(&writes, 2, answered(3));
    ended(&writes, 3, AttemptEnd::Nothing);
    ended(&writes, 4, AttemptEnd::Unknown);
    assert!(!writes.has(&named(3)));
    assert_eq!(progress(&writes, 4), Some(Progress::Unknown));
    tokio::time::advance(WINDOW).await;
    assert_eq!(progress(&writes, 1), Some(Progress::Unknown));
    assert!(matches!(progress(&writes, 2), Some(Progress::Answered(_))));
    tokio::time::advance(LONG.saturating_sub(WINDOW + Duration::from_secs(1))).await;
    assert!(writes.has(&named(1)) && writes.has(&named(2)));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(writes.has(&named(1)) && !writes.has(&named(2)) && !writes.has(&named(4)));
    tokio::time::advance(WINDOW).await;
    assert!(!writes.has(&named(1)));
    let writes = writes.writes.lock();
    assert_eq!((writes.known.len(), writes.ends.len(), writes.bytes), (0, 0, 0), "what is forgotten takes no room");
}

/// Rules 8, 13 and 21: the oldest answers lose their content, no write is forgotten, and one without room is refused.
#[tokio::test(start_paused = true)]
async fn for_want_of_room_answers_shrink_and_then_writes_are_refused() {
    let body_bytes = 1_000;
    let writes = Arc::new(InProcess::of_size(4 * WRITE_BYTES + 2 * body_bytes));
    let body_of = |number| match progress(&writes, number) {
        Some(Progress::Answered(answer)) => answer.body.map(|body| body.len()),
        other => panic!("{other:?}"),
    };
    for number in 1..=3 {
        ended(&writes, number, answered(body_bytes));
    }
    assert_eq!([1, 2, 3].map(body_of), [None, Some(body_bytes), Some(body_bytes)]);
    for number in 4..=7 {
        ended(&writes, number, answered(body_bytes));
    }
    assert_eq!([6, 7].map(body_of), [None, Some(body_bytes)]);
    for number in 8..=11 {
        ended(&writes, number, answered(0));
    }
    assert!(matches!(writes.begin(named(12), SentWrite::default(), LONG, WINDOW), Begun::Full));
    assert!((1..=11).all(|number| writes.has(&named(number))));
    tokio::time::advance(LONG).await;
    assert!(begun(&writes, 12).is_some());
}
