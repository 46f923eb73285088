//! The right of a client to know of a resource: it may know what the backend has let it read (DESIGN, sections 4 and
//! 8).
//!
//! # Design
//!
//! *Why does a client without rights get the backend's own refusal?* The state of a lease, a write in flight and a
//! known idempotency key reveal as much about the resource as its content does. So each refusal that rests on one of
//! these waits until the backend has let the client read.
//!
//! *What is a 404 worth?* It may tell the truth, or hide the resource from this client. It hides if the resource was
//! shown to another client, or if its lease was granted where nothing absent can be leased. Otherwise it tells the
//! truth: a client that wants to create the resource must not be sent away.
//!
//! *Why does a lease id suffice?* It is the proof of its holder. A resource may be gone, or hidden, while its holder still
//! has to release the lease.

use http::StatusCode;

use super::{policy::AbsentLease, tags::validators::tells_absence};

/// The answer of the backend to a client that asks for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordOfBackend {
    /// It shows the resource.
    Shows,
    /// It says that there is none.
    Misses,
    /// It refuses the client.
    Refuses,
    /// It does not show the resource, and perhaps to no client.
    Evades,
    /// It has failed, which says nothing of the client.
    Fails,
}

impl WordOfBackend {
    /// Returns what a backend says with this status.
    pub fn of_status(status: StatusCode) -> Self {
        match status.as_u16() {
            200..300 => Self::Shows,
            _ if tells_absence(status) => Self::Misses,
            401 | 403 | 407 | 429 => Self::Refuses,
            300..500 => Self::Evades,
            _ => Self::Fails,
        }
    }
}

/// The obstacle that keeps a request from the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The lease of another client, on a route with this rule. It may be one that needs no resource.
    Lease(AbsentLease),
    /// The lease fields of the request itself: it would be refused without any lease too.
    OwnLease,
    /// Another write, which the request would wait for.
    Write,
    /// An earlier attempt at the same write, by another client.
    Attempt,
    /// An earlier attempt by a client of the same identity, with other credentials.
    OwnAttempt,
}

/// True if a client that got this answer of the backend may know of the obstacle. If not, the client gets the backend's
/// answer itself. `is_shown` is true if the backend has recently shown the resource to any client.
pub fn may_be_told(word: WordOfBackend, obstacle: Obstacle, is_shown: bool) -> bool {
    use Obstacle::{Attempt, Lease, OwnAttempt, OwnLease, Write};
    match (word, obstacle) {
        (WordOfBackend::Shows, _) | (WordOfBackend::Misses, OwnLease) => true,
        // A client that may wait is not sent away because of a failure, which may be over by then.
        (WordOfBackend::Fails, _) => matches!(obstacle, Write),
        // A resource that was shown to no client may be absent, and clients only write to some targets.
        (WordOfBackend::Misses, Lease(AbsentLease::Allow) | Write | Attempt)
        | (WordOfBackend::Evades, Attempt | OwnAttempt) => !is_shown,
        (WordOfBackend::Refuses, _)
        | (WordOfBackend::Misses, Lease(AbsentLease::Refuse) | OwnAttempt)
        | (WordOfBackend::Evades, Lease(_) | OwnLease | Write) => false,
    }
}

/// True if a lease operation is for a resource that its client must not know of, since the backend says that there is
/// none. `needs_presence` is true if the operation is for present resources alone. `is_proved` is true if the request
/// has the id of a lease that is held or remembered.
pub fn is_missing_to_lease(absent: AbsentLease, needs_presence: bool, is_proved: bool, is_shown: bool) -> bool {
    match absent {
        AbsentLease::Refuse => needs_presence || !is_proved,
        AbsentLease::Allow => is_shown && !is_proved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_one_word() {
        let of = |status| WordOfBackend::of_status(StatusCode::from_u16(status).unwrap());
        for status in 200..300 {
            assert_eq!(of(status), WordOfBackend::Shows);
        }
        for status in 300..500 {
            let expected = match status {
                404 | 410 => WordOfBackend::Misses,
                401 | 403 | 407 | 429 => WordOfBackend::Refuses,
                _ => WordOfBackend::Evades,
            };
            assert_eq!(of(status), expected, "{status}");
        }
        for status in [100, 101, 500, 502, 503, 504, 599] {
            assert_eq!(of(status), WordOfBackend::Fails, "{status}");
        }
    }

    /// A client learns nothing of resources that it may not read.
    #[test]
    fn only_clients_that_may_know_learn_of_each_obstacle() {
        use AbsentLease::{Allow, Refuse};
        use Obstacle::{Attempt, Lease, OwnAttempt, OwnLease, Write};
        let obstacles = [Lease(Allow), Lease(Refuse), OwnLease, Write, Attempt, OwnAttempt];
        for (word, is_shown, expected) in [
            (WordOfBackend::Shows, false, [true; 6]),
            (WordOfBackend::Shows, true, [true; 6]),
            (WordOfBackend::Refuses, false, [false; 6]),
            (WordOfBackend::Refuses, true, [false; 6]),
            (WordOfBackend::Fails, false, [false, false, false, true, false, false]),
            (WordOfBackend::Fails, true, [false, false, false, true, false, false]),
            (WordOfBackend::Misses, false, [true, false, true, true, true, false]),
            (WordOfBackend::Misses, true, [false, false, true, false, false, false]),
            (WordOfBackend::Evades, false, [false, false, false, false, true, true]),
            (WordOfBackend::Evades, true, [false; 6]),
        ] {
            assert_eq!(
                obstacles.map(|obstacle| may_be_told(word, obstacle, is_shown)),
                expected,
                "{word:?} {is_shown}"
            );
        }
    }

    #[test]
    fn a_holder_is_not_hindered_and_an_absent_resource_is_leased_where_that_is_allowed() {
        use AbsentLease::{Allow, Refuse};
        for (absent, needs_presence, is_proved, is_shown, expected) in [
            (Refuse, false, false, false, true),
            (Refuse, false, false, true, true),
            (Refuse, false, true, false, false),
            (Refuse, false, true, true, false),
            (Refuse, true, false, false, true),
            (Refuse, true, false, true, true),
            (Refuse, true, true, false, true),
            (Refuse, true, true, true, true),
            (Allow, false, false, false, false),
            (Allow, false, false, true, true),
            (Allow, false, true, false, false),
            (Allow, false, true, true, false),
        ] {
            let missing = is_missing_to_lease(absent, needs_presence, is_proved, is_shown);
            assert_eq!(missing, expected, "{absent:?} {needs_presence} {is_proved} {is_shown}");
        }
    }
}
