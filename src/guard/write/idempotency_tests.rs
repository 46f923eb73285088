use std::time::Duration;

use super::*;

const NAME: KeyName = [1; 32];

fn begun(replays: &Arc<Replays>) -> KeyedWrite {
    let fingerprint = Fingerprint::of(b"/", &HeaderMap::new(), &blake3::hash(b"one"));
    replays.in_flight.lock().insert(NAME, fingerprint);
    KeyedWrite(Some(Named {
        replays: Arc::clone(replays),
        name: NAME,
        fingerprint,
        answered: None,
        has_ended: false,
        replay_for: Duration::from_secs(600),
        late_write_window: Duration::from_secs(600),
    }))
}

fn progress(replays: &Replays) -> Option<Progress> {
    replays.first(&NAME, &replays.in_flight.lock()).map(|(_, progress)| progress)
}

/// A write that was dropped without a verdict may have been sent (DESIGN, section 3, rule 3).
#[test]
fn a_write_that_was_dropped_before_its_end_is_in_doubt() {
    let replays = Arc::new(Replays::new());
    let attempt = begun(&replays);
    assert_eq!(progress(&replays), Some(Progress::InFlight));
    drop(attempt);
    assert!(replays.in_flight.lock().is_empty(), "what has ended takes no room");
    let left = match progress(&replays) {
        Some(Progress::InDoubt(left)) => left,
        other => panic!("{other:?}"),
    };
    assert!(left > Duration::from_secs(500), "{left:?}");
}

#[test]
fn a_write_that_was_refused_is_forgotten_and_stays_so() {
    let replays = Arc::new(Replays::new());
    begun(&replays).end(&Ok(missing().into()));
    assert_eq!(progress(&replays), None);
    assert!(replays.in_flight.lock().is_empty());
}
