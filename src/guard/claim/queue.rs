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
//! place. A write that stands in several lines joins them in one order. No member waits for a client: the body has
//! arrived before, and the answer goes out after.

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
    /// The reason for which the members wait, as metrics name it.
    queue: &'static str,
}

/// The permits of a front. A member that keeps all others behind takes all of them.
const FRONT: u32 = 1 << 20;

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
    /// A write of another resource that changes this one too. Such members stand in front beside each other: none of
    /// them is judged by the state that the others change.
    Touch,
}

impl Member {
    /// The permits of the front that the member takes.
    fn front(self) -> u32 {
        match self {
            Self::Claim | Self::Passing => FRONT,
            Self::Touch => 1,
        }
    }
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

/// A request that is counted among those that wait, and has no turn. Dropping it ends the count.
pub(crate) struct Waiter<'a> {
    _count: Counted<'a>,
    _place: LinePlace,
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
        Self { shards, waiters: AtomicUsize::new(0), waiters_max, queue: "claim" }
    }

    /// Like [`new`](Self::new), but the members wait for leases.
    pub(crate) fn for_leases(waiters_max: usize) -> Self {
        Self { queue: "lease", ..Self::new(waiters_max) }
    }

    /// Like [`new`](Self::new), but for reads that wait for the end of writes, each without a turn ([`Waiter`]).
    pub(crate) fn for_reads(waiters_max: usize) -> Self {
        Self { queue: "read", ..Self::new(waiters_max) }
    }

    /// Counts a request that waits without a turn, beside less than `waiters_max` others at this resource.
    pub(crate) fn waiter(self: &Arc<Self>, key: &ResourceKey, waiters_max: usize) -> Result<Waiter<'_>, NoTurn> {
        let count = self.count_waiter()?;
        let others_max = waiters_max.checked_sub(1).ok_or(NoTurn::LineFull)?;
        let (place, _) = self.join(key, Member::Passing, others_max)?;
        Ok(Waiter { _count: count, _place: place })
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
        let (front, front_was_taken) = self.permit(front, member.front(), end).await?;
        let (claim, claim_was_taken) = match member {
            Member::Claim => self.permit(claim, 1, end).await.map(|(permit, was_taken)| (Some(permit), was_taken))?,
            Member::Passing | Member::Touch => (None, false),
        };
        Ok(Turn { front: Some(front), _claim: claim, place, came_after_others: front_was_taken || claim_was_taken })
    }

    /// Returns a turn in passing if no other member stands in front.
    pub(crate) fn turn_at_once(self: &Arc<Self>, key: &ResourceKey, line_max: usize) -> Option<Turn> {
        let (place, [front, _]) = self.join(key, Member::Passing, line_max).ok()?;
        let front = front.try_acquire_many_owned(FRONT).ok()?;
        Some(Turn { front: Some(front), _claim: None, place, came_after_others: false })
    }

    /// Whether any member stands in the line of a resource.
    pub(crate) fn has_line(&self, key: &ResourceKey) -> bool {
        self.lines(key).get(key).is_some_and(|line| line.standing > 0)
    }

    /// Whether any member stands in the line of a resource, or has a claim in flight there.
    pub(crate) fn is_used(&self, key: &ResourceKey) -> bool {
        self.lines(key).contains_key(key)
    }

    /// Returns this number of permits, and whether the member had to wait for them.
    async fn permit(
        &self,
        semaphore: Arc<Semaphore>,
        permits: u32,
        end: Instant,
    ) -> Result<(OwnedSemaphorePermit, bool), NoTurn> {
        if let Ok(permit) = Arc::clone(&semaphore).try_acquire_many_owned(permits) {
            return Ok((permit, false));
        }
        let _waiter = self.count_waiter()?;
        // The semaphores of a line are never closed.
        let permit = timeout_at(end, semaphore.acquire_many_owned(permits)).await.ok().and_then(Result::ok);
        permit.map(|permit| (permit, true)).ok_or(NoTurn::TimedOut)
    }

    fn count_waiter(&self) -> Result<Counted<'_>, NoTurn> {
        Counted::up_to(self.waiters_max, &self.waiters).ok_or(NoTurn::AllFull)
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
        let of = |permits: u32| Arc::new(Semaphore::new(permits as usize));
        Self { front: of(FRONT), claim: of(1), claims: 0, others: 0, standing: 0 }
    }

    fn members(&mut self, member: Member) -> &mut usize {
        match member {
            Member::Claim => &mut self.claims,
            Member::Passing | Member::Touch => &mut self.others,
        }
    }
}

impl Gauged for Queues {
    fn waiters(&self) -> Option<(&'static str, u64)> {
        Some((self.queue, u64::try_from(self.waiters.load(Ordering::Relaxed)).unwrap_or(u64::MAX)))
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
