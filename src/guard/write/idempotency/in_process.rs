//! Writes with a key in the memory of this process, for the stores that no other process uses.
//!
//! # Design
//!
//! *Why is nothing evicted?* The retry of a write that was forgotten would be applied once more. For want of room an
//! answer loses its fields and its body first, the oldest one before the others. If that does not suffice, further
//! writes with keys are refused until the time of an earlier one is over.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::KeyName;
use crate::core::records::{
    attempt_end::AttemptEnd,
    first_attempt::{KeptAnswer, SentWrite},
    idempotency::Progress,
};

/// The approximate bytes of all that is remembered: 260,000 writes whose answers have lost their fields.
const MEMORY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The approximate bytes of a remembered write in all tables, besides the fields and the body of its answer.
const WRITE_BYTES: usize = 256;

/// The writes that came with a key.
pub(crate) struct InProcess {
    writes: Mutex<KnownWrites>,
    bytes_max: usize,
}

#[derive(Default)]
struct KnownWrites {
    /// The writes in flight are at most as many as requests.
    known: HashMap<KeyName, KnownWrite>,
    /// The ended writes, by the time at which they are forgotten.
    ends: BTreeSet<(Instant, KeyName)>,
    /// The ended writes with a whole answer, the oldest first, and some that were forgotten since.
    whole: VecDeque<KeyName>,
    bytes: usize,
}

struct KnownWrite {
    sent: SentWrite,
    /// `None` while it is in flight.
    ended: Option<Ended>,
}

struct Ended {
    answer: Option<Box<KeptAnswer>>,
    /// The end of its doubt; past if it is in none.
    in_doubt_until: Instant,
    until: Instant,
}

/// The result of the beginning of a write with a key.
pub(super) enum Begun {
    /// It is the first one.
    First(ProcessAttempt),
    /// There is a first one already.
    Known(SentWrite, Progress),
    /// There is no room for another one.
    Full,
}

/// The first attempt at a write. Dropping it without an end makes it a doubt, if it may have been sent.
pub(super) struct ProcessAttempt {
    writes: Arc<InProcess>,
    name: KeyName,
    remembered_for: Duration,
    late_write_window: Duration,
    may_be_sent: bool,
    has_ended: bool,
}

impl InProcess {
    /// Creates an empty memory.
    pub(super) fn new() -> Self {
        Self::of_size(MEMORY_BYTES_MAX)
    }

    fn of_size(bytes_max: usize) -> Self {
        Self { writes: Mutex::default(), bytes_max }
    }

    /// True if there is a first attempt at this write.
    pub(super) fn has(&self, name: &KeyName) -> bool {
        let mut writes = self.writes.lock();
        writes.forget_past(Instant::now());
        writes.known.contains_key(name)
    }

    /// Begins the first attempt at a write. It counts for this long after its end.
    pub(super) fn begin(
        self: &Arc<Self>,
        name: KeyName,
        sent: SentWrite,
        remembered_for: Duration,
        late_write_window: Duration,
    ) -> Begun {
        let now = Instant::now();
        let mut writes = self.writes.lock();
        writes.forget_past(now);
        if let Some(first) = writes.known.get(&name) {
            return Begun::Known(first.sent, first.progress(now));
        }
        if !writes.make_room(WRITE_BYTES, self.bytes_max) {
            return Begun::Full;
        }
        writes.bytes += WRITE_BYTES;
        writes.known.insert(name, KnownWrite { sent, ended: None });
        let writes = Arc::clone(self);
        let (may_be_sent, has_ended) = (false, false);
        Begun::First(ProcessAttempt { writes, name, remembered_for, late_write_window, may_be_sent, has_ended })
    }
}

impl KnownWrites {
    fn forget_past(&mut self, now: Instant) {
        while let Some((until, name)) = self.ends.first().copied().filter(|(until, _)| *until <= now) {
            self.ends.remove(&(until, name));
            self.forget(&name);
        }
        // Names of forgotten writes are at the front sooner or later.
        while self.whole.front().is_some_and(|name| !self.known.contains_key(name)) {
            self.whole.pop_front();
        }
    }

    fn forget(&mut self, name: &KeyName) {
        if let Some(write) = self.known.remove(name) {
            self.bytes -= WRITE_BYTES + write.answer_bytes();
        }
    }

    /// Takes the fields and bodies of the oldest answers for these further bytes. Returns false if that is not enough.
    fn make_room(&mut self, bytes: usize, bytes_max: usize) -> bool {
        while self.bytes + bytes > bytes_max {
            let Some(oldest) = self.whole.pop_front() else { return false };
            let answer = self.known.get_mut(&oldest).and_then(|write| write.ended.as_mut()?.answer.as_mut());
            if let Some(answer) = answer {
                self.bytes -= answer.bytes();
                **answer = answer.status_alone();
            }
        }
        true
    }

    fn end(&mut self, name: KeyName, ended: Ended, bytes_max: usize) {
        let bytes = ended.answer.as_ref().map_or(0, |answer| answer.bytes());
        let has_room = self.make_room(bytes, bytes_max);
        let Some(write) = self.known.get_mut(&name) else { return };
        self.ends.insert((ended.until, name));
        let answer = ended.answer.map(|answer| if has_room { answer } else { answer.status_alone().into() });
        write.ended = Some(Ended { answer, ..ended });
        self.bytes += write.answer_bytes();
        if bytes > 0 && has_room {
            self.whole.push_back(name);
        }
    }
}

impl KnownWrite {
    fn answer_bytes(&self) -> usize {
        self.ended.as_ref().and_then(|ended| ended.answer.as_ref()).map_or(0, |answer| answer.bytes())
    }

    fn progress(&self, now: Instant) -> Progress {
        match &self.ended {
            None => Progress::InFlight,
            Some(Ended { answer: Some(answer), .. }) => Progress::Answered(KeptAnswer::clone(answer)),
            Some(Ended { in_doubt_until, .. }) if now < *in_doubt_until => Progress::InDoubt(*in_doubt_until - now),
            Some(_) => Progress::Unknown,
        }
    }
}

impl ProcessAttempt {
    /// Notes that the write is about to be sent.
    pub(super) fn may_be_sent(&mut self) {
        self.may_be_sent = true;
    }

    /// Remembers the end of the write.
    pub(super) fn end(&mut self, end: AttemptEnd) {
        let now = Instant::now();
        let ended = match end {
            AttemptEnd::Nothing => None,
            AttemptEnd::Doubt => Some((None, now + self.late_write_window)),
            AttemptEnd::Unknown | AttemptEnd::Answered(_) => Some((end.answer().map(Box::new), now)),
        };
        let mut writes = self.writes.writes.lock();
        match ended {
            None => writes.forget(&self.name),
            Some((answer, in_doubt_until)) => {
                let until = in_doubt_until + self.remembered_for;
                writes.end(self.name, Ended { answer, in_doubt_until, until }, self.writes.bytes_max);
            }
        }
        self.has_ended = true;
    }
}

impl Drop for ProcessAttempt {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end(if self.may_be_sent { AttemptEnd::Doubt } else { AttemptEnd::Nothing });
        }
    }
}

#[cfg(test)]
#[path = "in_process_tests.rs"]
mod tests;
