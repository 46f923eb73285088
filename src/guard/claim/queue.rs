//! The line of a resource, in which the claims, unclaimed writes and grants of this process stand, first come first
//! served (DESIGN, section 3, rule 16, and section 4, step 4).
//!
//! A place in the line decides nothing: the mark in the store does. The line keeps the writers of one process from
//! racing for the same swap, and orders them.
//!
//! # Design
//!
//! *What is the front for?* The member in front waits until the record admits it, and steps aside as soon as its mark
//! is there. An unclaimed write is admitted at once, so that the next one runs beside it. A claim or a grant waits for
//! the end of all that it cannot run beside. Later members stand behind it meanwhile, and so do not prolong its wait.
//!
//! *Why a second place, for the claim?* The write of a claim stays in flight long after the claim has stepped aside.
//! The next claim waits in front for its end without a request to the store. Unclaimed writes in between run beside.
//!
//! *Why can no member wait for ever?* A member that waits in front holds no mark, and one that has a mark waits for no
//! place. No member waits for a client: the body has arrived before, and the answer goes out after.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use crate::{core::resource::ResourceKey, counted::Counted, telemetry::metrics::Gauged};

/// A power of two, far above the number of threads, so that two threads rarely meet at one lock.
const SHARDS: usize = 64;

/// The lines of all resources.
pub(crate) struct Queues {
    shards: Vec<Mutex<HashMap<ResourceKey, TurnLine>>>,
    waiters: AtomicUsize,
    waiters_max: usize,
    is_for_leases: bool,
}

/// The line of one resource. It exists while it has a member that stands in it or has a claim in flight.
struct TurnLine {
    front: Arc<Semaphore>,
    claim: Arc<Semaphore>,
    /// The claims that wait, and the one in flight.
    claims: usize,
    /// All other members.
    others: usize,
    /// The members that have not stepped aside.
    standing: usize,
}

/// The kind of a member of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    /// A claim: its write excludes the next claim until it has ended.
    Claim,
    /// An unclaimed write or a grant: its turn is over when it steps aside.
    Passing,
}

/// Why a member gets no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoTurn {
    /// Too many members wait for this resource.
    LineFull,
    /// Too many members wait in all lines together.
    AllFull,
    /// The wait took too long.
    TimedOut,
}

/// The turn of one member. The next one comes to the front when this one steps aside, and the next claim when it is
/// dropped.
pub(crate) struct Turn {
    front: Option<OwnedSemaphorePermit>,
    _claim: Option<OwnedSemaphorePermit>,
    place: LinePlace,
    /// Whether others had their turn during the wait for this one.
    pub(crate) came_after_others: bool,
}

impl Turn {
    /// Lets the next member come to the front.
    pub(crate) fn step_aside(&mut self) {
        self.front = None;
        self.place.step_aside();
    }
}

/// A place in a line. Dropping it gives the place up, whatever happens to its write.
struct LinePlace {
    queues: Arc<Queues>,
    key: ResourceKey,
    member: Member,
    is_standing: bool,
}

impl Queues {
    /// Creates empty lines, in which at most `waiters_max` members wait.
    pub(crate) fn new(waiters_max: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, waiters: AtomicUsize::new(0), waiters_max, is_for_leases: false }
    }

    /// Like [`new`](Self::new), but the members wait for leases.
    pub(crate) fn for_leases(waiters_max: usize) -> Self {
        Self { is_for_leases: true, ..Self::new(waiters_max) }
    }

    /// Waits for a turn, until `end` and behind at most `line_max` other members of the same kind.
    pub(crate) async fn turn(
        self: &Arc<Self>,
        key: &ResourceKey,
        member: Member,
        line_max: usize,
        end: Instant,
    ) -> Result<Turn, NoTurn> {
        let (place, [front, claim]) = self.join(key, member, line_max)?;
        let (front, front_was_taken) = self.permit(front, end).await?;
        let (claim, claim_was_taken) = match member {
            Member::Claim => self.permit(claim, end).await.map(|(permit, was_taken)| (Some(permit), was_taken))?,
            Member::Passing => (None, false),
        };
        Ok(Turn { front: Some(front), _claim: claim, place, came_after_others: front_was_taken || claim_was_taken })
    }

    /// Returns a turn in passing if no other member stands in front.
    pub(crate) fn turn_at_once(self: &Arc<Self>, key: &ResourceKey, line_max: usize) -> Option<Turn> {
        let (place, [front, _]) = self.join(key, Member::Passing, line_max).ok()?;
        let front = front.try_acquire_owned().ok()?;
        Some(Turn { front: Some(front), _claim: None, place, came_after_others: false })
    }

    /// Whether any member stands in the line of a resource.
    pub(crate) fn has_line(&self, key: &ResourceKey) -> bool {
        self.lines(key).get(key).is_some_and(|line| line.standing > 0)
    }

    /// Returns a permit, and whether the member had to wait for it.
    async fn permit(&self, semaphore: Arc<Semaphore>, end: Instant) -> Result<(OwnedSemaphorePermit, bool), NoTurn> {
        if let Ok(permit) = Arc::clone(&semaphore).try_acquire_owned() {
            return Ok((permit, false));
        }
        let _waiter = Counted::up_to(self.waiters_max, &self.waiters).ok_or(NoTurn::AllFull)?;
        // The semaphores of a line are never closed.
        let permit = timeout_at(end, semaphore.acquire_owned()).await.ok().and_then(Result::ok);
        permit.map(|permit| (permit, true)).ok_or(NoTurn::TimedOut)
    }

    fn join(
        self: &Arc<Self>,
        key: &ResourceKey,
        member: Member,
        line_max: usize,
    ) -> Result<(LinePlace, [Arc<Semaphore>; 2]), NoTurn> {
        let mut lines = self.lines(key);
        let line = lines.entry(key.clone()).or_insert_with(TurnLine::new);
        let members = line.members(member);
        if *members > line_max {
            return Err(NoTurn::LineFull);
        }
        *members += 1;
        line.standing += 1;
        let place = LinePlace { queues: Arc::clone(self), key: key.clone(), member, is_standing: true };
        Ok((place, [Arc::clone(&line.front), Arc::clone(&line.claim)]))
    }

    fn leave(&self, place: &mut LinePlace) {
        let mut lines = self.lines(&place.key);
        if let Some(line) = lines.get_mut(&place.key) {
            line.standing -= usize::from(std::mem::take(&mut place.is_standing));
            *line.members(place.member) -= 1;
            if line.claims + line.others == 0 {
                lines.remove(&place.key);
            }
        }
    }

    fn lines(&self, key: &ResourceKey) -> MutexGuard<'_, HashMap<ResourceKey, TurnLine>> {
        let shard = usize::from(key.bucket()) % SHARDS;
        // A panic under the lock leaves every line whole: each change is one step.
        #[expect(clippy::indexing_slicing, reason = "the remainder is smaller than the number of shards")]
        self.shards[shard].lock()
    }
}

impl TurnLine {
    fn new() -> Self {
        let one = || Arc::new(Semaphore::new(1));
        Self { front: one(), claim: one(), claims: 0, others: 0, standing: 0 }
    }

    fn members(&mut self, member: Member) -> &mut usize {
        match member {
            Member::Claim => &mut self.claims,
            Member::Passing => &mut self.others,
        }
    }
}

impl Gauged for Queues {
    fn waiters(&self) -> (u64, u64) {
        let waiters = u64::try_from(self.waiters.load(Ordering::Relaxed)).unwrap_or(u64::MAX);
        if self.is_for_leases { (0, waiters) } else { (waiters, 0) }
    }
}

impl LinePlace {
    fn step_aside(&mut self) {
        let mut lines = self.queues.lines(&self.key);
        if let (true, Some(line)) = (self.is_standing, lines.get_mut(&self.key)) {
            line.standing -= 1;
            self.is_standing = false;
        }
    }
}

impl Drop for LinePlace {
    fn drop(&mut self) {
        Arc::clone(&self.queues).leave(self);
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
