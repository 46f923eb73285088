use std::time::Duration;

use http::HeaderMap;

use super::*;

const NAME: KeyName = [1; 32];
const LONG: Duration = Duration::from_secs(600);

fn begun(writes: &Arc<InProcess>) -> ProcessAttempt {
    let fingerprint = Fingerprint::of(b"/", &HeaderMap::new(), &blake3::hash(b"one"));
    writes.begin(NAME, fingerprint, LONG, LONG).expect("it is the first")
}

fn progress(writes: &InProcess) -> Option<Progress> {
    writes.first(&NAME, &writes.in_flight.lock()).map(|(_, progress)| progress)
}

/// A write that was dropped without a verdict may have been sent (DESIGN, section 3, rule 3).
#[test]
fn a_write_that_was_dropped_before_its_end_is_in_doubt() {
    let writes = Arc::new(InProcess::new());
    let attempt = begun(&writes);
    assert_eq!(progress(&writes), Some(Progress::InFlight));
    drop(attempt);
    assert!(writes.in_flight.lock().is_empty(), "what has ended takes no room");
    let left = match progress(&writes) {
        Some(Progress::InDoubt(left)) => left,
        other => panic!("{other:?}"),
    };
    assert!(left > Duration::from_secs(500), "{left:?}");
}

#[test]
fn a_write_that_was_refused_is_forgotten_and_stays_so() {
    let writes = Arc::new(InProcess::new());
    begun(&writes).end(AttemptEnd::Nothing);
    assert_eq!(progress(&writes), None);
    assert!(writes.in_flight.lock().is_empty());
}
