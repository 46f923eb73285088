use super::*;
use crate::core::{
    records::{
        first_attempt::{AttemptSender, Fingerprint, KeptAnswer},
        record::{Floor, Revision},
        steps::take_over,
    },
    time::StoreTime,
};

const WINDOW: Duration = Duration::from_secs(50);
const REPLAY_FOR: Duration = Duration::from_secs(600);
const SAME: SentWrite =
    SentWrite { fingerprint: Fingerprint([1; 32]), sender: AttemptSender { owner: [2; 16], credentials: [3; 16] } };

fn at(seconds: u64) -> StoreTime {
    StoreTime::from_milliseconds(seconds * 1_000)
}

fn mark(nonce: u64) -> Mark {
    Mark { owner: 1, nonce, deadline: at(100), late_write_window: WINDOW, leaves_lease: false }
}

fn answer() -> KeptAnswer {
    KeptAnswer { status: 201, fields: Vec::new(), body: None }
}

/// Returns what the store holds after this record was swapped in, read at this time.
fn after(record: Record, seconds: u64) -> Snapshot {
    Snapshot::new(Revision(8), record.resolved(Revision(8)), at(seconds))
}

fn absent() -> Snapshot {
    Snapshot::new(Revision(7), Record::absent(Revision(7)), at(10))
}

fn begun(seconds: u64) -> Snapshot {
    after(begin(&absent(), mark(1), SAME, REPLAY_FOR).expect("there is no earlier attempt"), seconds)
}

/// Returns the record of an attempt that was begun and then ended like this at 10 seconds, read at this time.
fn ended(by: AttemptEnd, seconds: u64) -> Snapshot {
    after(end(&begun(10), mark(1), by, REPLAY_FOR).expect("its mark is there"), seconds)
}

fn said(snapshot: &Snapshot) -> Option<Progress> {
    progress(snapshot).map(|(sent, progress)| {
        assert_eq!(sent, SAME);
        progress
    })
}

/// Rule 21: each progress at each time that changes it, and what a further attempt finds. The mark of the attempt lasts
/// until 100 seconds, so that an attempt without an answer counts for `REPLAY_FOR` from then on.
#[test]
fn an_attempt_counts_until_its_term_is_over() {
    for (snapshot, expected) in [
        (absent(), None),
        (begun(10), Some(Progress::InFlight)),
        (begun(99), Some(Progress::InFlight)),
        (ended(AttemptEnd::Nothing, 10), None),
        (ended(AttemptEnd::Doubt, 10), Some(Progress::InDoubt(WINDOW))),
        (ended(AttemptEnd::Doubt, 59), Some(Progress::InDoubt(Duration::from_secs(1)))),
        (ended(AttemptEnd::Doubt, 60), Some(Progress::Unknown)),
        (ended(AttemptEnd::Doubt, 699), Some(Progress::Unknown)),
        (ended(AttemptEnd::Doubt, 700), None),
        (ended(AttemptEnd::Unknown, 10), Some(Progress::Unknown)),
        (ended(AttemptEnd::Unknown, 609), Some(Progress::Unknown)),
        (ended(AttemptEnd::Unknown, 610), None),
        (ended(AttemptEnd::Answered(answer()), 10), Some(Progress::Answered(answer()))),
        (ended(AttemptEnd::Answered(answer()), 609), Some(Progress::Answered(answer()))),
        (ended(AttemptEnd::Answered(answer()), 610), None),
    ] {
        assert_eq!(said(&snapshot), expected, "{snapshot:?}");
        let again = begin(&snapshot, mark(2), SAME, REPLAY_FOR);
        assert_eq!(again.is_none(), expected.is_some(), "{snapshot:?}");
    }
}

/// Rule 7: a dead owner's mark is a doubt for the owner's own late write window, from its deadline on.
#[test]
fn a_dead_owners_attempt_is_in_doubt_and_then_unknown() {
    assert_eq!(take_over(&begun(99)), None);
    let orphaned = begun(100);
    assert_eq!(said(&orphaned), Some(Progress::InFlight), "until somebody takes it over");
    assert_eq!(begin(&orphaned, mark(2), SAME, REPLAY_FOR), None);
    let taken = |seconds| after(take_over(&orphaned).expect("its owner is dead"), seconds);
    assert_eq!(said(&taken(100)), Some(Progress::InDoubt(WINDOW)));
    assert_eq!(said(&taken(150)), Some(Progress::Unknown));
    assert_eq!(said(&taken(699)), Some(Progress::Unknown));
    assert_eq!(said(&taken(700)), None);
    for late in [AttemptEnd::Nothing, AttemptEnd::Doubt, AttemptEnd::Unknown, AttemptEnd::Answered(answer())] {
        assert_eq!(end(&taken(100), mark(1), late, REPLAY_FOR), None, "the owner comes too late");
    }
}

/// Rule 8: no store forgets what a retry may ask for.
#[test]
fn a_record_is_idle_when_its_attempt_counts_no_more() {
    assert_eq!(begun(10).record.idle_from(), Some(at(700)), "its owner may have died");
    assert_eq!(ended(AttemptEnd::Nothing, 10).record.idle_from(), Some(at(0)));
    assert_eq!(ended(AttemptEnd::Doubt, 10).record.idle_from(), Some(at(700)));
    assert_eq!(ended(AttemptEnd::Answered(answer()), 10).record.idle_from(), Some(at(610)));
    assert!(ended(AttemptEnd::Answered(answer()), 10).record.has_moments(), "the term is one");
}

#[test]
fn an_attempt_that_came_to_nothing_leaves_nothing() {
    let record = ended(AttemptEnd::Nothing, 10).record;
    assert!(record.says_no_more_than_absence(Floor::at(Revision(7))), "{record:?}");
}

#[test]
fn a_later_attempt_takes_the_place_of_one_that_counts_no_more() {
    let other = SentWrite { fingerprint: Fingerprint([2; 32]), ..SAME };
    for earlier in [ended(AttemptEnd::Doubt, 700), ended(AttemptEnd::Answered(answer()), 610)] {
        let mark = Mark { deadline: at(1_000), ..mark(2) };
        let later = after(begin(&earlier, mark, other, REPLAY_FOR).expect("the earlier one counts no more"), 700);
        assert_eq!(progress(&later), Some((other, Progress::InFlight)));
        assert_eq!(end(&later, self::mark(1), AttemptEnd::Nothing, REPLAY_FOR), None, "the earlier one has no mark");
    }
}
