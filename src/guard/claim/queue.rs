//! The line of a resource (DESIGN, section 3, rule 16, and section 4, step 4). The claims, unclaimed writes and grants
//! of this process stand in it, first come first served.
//!
//! A place in the line decides nothing: the mark in the store does. The line keeps the writers of one process from
//! racing for the same swap, and orders them.
//!
//! # Design
//!
//! *What is the front for?* The member in front waits until the record admits it, and steps aside as soon as its mark
//! is there. An unclaimed write is admitted at once, so the next one runs beside it. A claim or a grant waits for the
//! end of all writes that it cannot run beside. Later members stand behind it meanwhile, and so do not prolong its
//! wait.
//!
//! *Why a second place, for the claim?* The write of a claim stays in flight long after the claim has stepped aside.
//! The next claim waits in front for its end without a request to the store. Unclaimed writes in between run beside.
//!
//! *Whose place does a newcomer get in a full line?* One of a client with more places, if there is such a client
//! ([`gives_way`](crate::core::shares::line_share::gives_way)). So no client keeps others out by filling the line.
//!
//! *Why can no member wait without end?* A member that waits in front holds no mark, and one that has a mark waits for
//! no place. A write that stands in several lines joins them in one order. No member waits for a client: the body has
//! arrived before, and the answer goes out after.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use foldhash::HashMap;
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::{Instant, timeout_at},
};

use crate::{
    core::{resource::ResourceKey, shares::line_share::LineClient},
    counted::Counted,
    telemetry::metrics::Gauged,
};
use waiting::WaitingMembers;

/// A power of two, far above the number of threads, so that two threads rarely meet at one lock.
const SHARDS: usize = 64;

/// The lines of all resources.
pub(crate) struct Queues {
    shards: Vec<Mutex<HashMap<ResourceKey, TurnLine>>>,
    waiters: AtomicUsize,
    waiters_max: usize,
    /// How many members have had to wait, in all lines.
    arrivals: AtomicU64,
    /// The reason for which the members wait, as metrics name it.
    queue: &'static str,
}

/// A moment in the order in which members arrive that have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineMoment(u64);

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
    waiting: WaitingMembers,
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

/// The reason why a member gets no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoTurn {
    /// Too many members wait for this resource, and none of them gives way.
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
    /// True if others had their turn during the wait for this one.
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
    loses_place: oneshot::Receiver<()>,
}

impl Waiter<'_> {
    /// Waits until another client has the place.
    pub(crate) async fn loses_place(&mut self) {
        let _ = (&mut self.loses_place).await;
    }
}

/// A place in a line. Dropping it gives the place up, no matter how its write ends.
struct LinePlace {
    queues: Arc<Queues>,
    key: ResourceKey,
    member: Member,
    is_standing: bool,
    /// The number of the member in the order of arrival, once it has had to wait.
    number: Option<u64>,
    /// True if the member waits now.
    waits: bool,
    /// True if another client has the place. It is no longer counted then.
    is_lost: bool,
}

impl Queues {
    /// Creates empty lines, in which at most `waiters_max` members wait.
    pub(crate) fn new(waiters_max: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, waiters: AtomicUsize::new(0), waiters_max, arrivals: AtomicU64::new(0), queue: "claim" }
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
    pub(crate) fn waiter(
        self: &Arc<Self>,
        key: &ResourceKey,
        client: LineClient,
        waiters_max: usize,
    ) -> Result<Waiter<'_>, NoTurn> {
        let count = self.count_waiter()?;
        let others_max = waiters_max.checked_sub(1).ok_or(NoTurn::LineFull)?;
        let (mut place, _) = self.join(key, (Member::Passing, Some(client)), others_max)?;
        let loses_place = place.begin_wait(client);
        Ok(Waiter { _count: count, _place: place, loses_place })
    }

    /// Waits for a turn, until `end` and behind at most `line_max` other members of the same kind.
    pub(crate) async fn turn(
        self: &Arc<Self>,
        key: &ResourceKey,
        (member, client): (Member, LineClient),
        line_max: usize,
        end: Instant,
    ) -> Result<Turn, NoTurn> {
        let (mut place, [front, claim]) = self.join(key, (member, Some(client)), line_max)?;
        let (front, front_was_taken) = self.permit(&mut place, client, (front, member.front()), end).await?;
        let (claim, claim_was_taken) = match member {
            Member::Claim => {
                let (permit, was_taken) = self.permit(&mut place, client, (claim, 1), end).await?;
                (Some(permit), was_taken)
            }
            Member::Passing | Member::Touch => (None, false),
        };
        Ok(Turn { front: Some(front), _claim: claim, place, came_after_others: front_was_taken || claim_was_taken })
    }

    /// Returns a turn in passing if no other member stands in front.
    pub(crate) fn turn_at_once(self: &Arc<Self>, key: &ResourceKey, line_max: usize) -> Option<Turn> {
        let (place, [front, _]) = self.join(key, (Member::Passing, None), line_max).ok()?;
        let front = front.try_acquire_many_owned(FRONT).ok()?;
        Some(Turn { front: Some(front), _claim: None, place, came_after_others: false })
    }

    /// True if any member stands in the line of a resource.
    pub(crate) fn has_line(&self, key: &ResourceKey) -> bool {
        self.lines(key).get(key).is_some_and(|line| line.standing > 0)
    }

    /// This moment in the order of arrival.
    pub(crate) fn arrival(&self) -> LineMoment {
        LineMoment(self.arrivals.load(Ordering::Relaxed))
    }

    /// The number of members that stand in the line of a resource and came before this moment.
    pub(crate) fn came_before(&self, key: &ResourceKey, arrival: LineMoment) -> usize {
        self.lines(key).get(key).map_or(0, |line| line.standing.saturating_sub(line.waiting.since(arrival)))
    }

    /// True if any member stands in the line of a resource, or has a claim in flight there.
    pub(crate) fn is_used(&self, key: &ResourceKey) -> bool {
        self.lines(key).contains_key(key)
    }

    /// Returns this number of permits, and whether the member had to wait for them.
    async fn permit(
        &self,
        place: &mut LinePlace,
        client: LineClient,
        (semaphore, permits): (Arc<Semaphore>, u32),
        end: Instant,
    ) -> Result<(OwnedSemaphorePermit, bool), NoTurn> {
        if let Ok(permit) = Arc::clone(&semaphore).try_acquire_many_owned(permits) {
            return Ok((permit, false));
        }
        let _waiter = self.count_waiter()?;
        let loses_place = place.begin_wait(client);
        let permit = tokio::select! {
            biased;
            // The semaphores of a line are never closed.
            permit = timeout_at(end, semaphore.acquire_many_owned(permits)) => permit.ok().and_then(Result::ok),
            _ = loses_place => None,
        };
        // The member may have lost its place at the moment of its turn.
        if !place.end_wait() {
            return Err(NoTurn::LineFull);
        }
        permit.map(|permit| (permit, true)).ok_or(NoTurn::TimedOut)
    }

    fn count_waiter(&self) -> Result<Counted<'_>, NoTurn> {
        Counted::up_to(self.waiters_max, &self.waiters).ok_or(NoTurn::AllFull)
    }

    /// Gives a member the last place in a line. In a full line, a member with a client may get the place of another one.
    fn join(
        self: &Arc<Self>,
        key: &ResourceKey,
        (member, client): (Member, Option<LineClient>),
        line_max: usize,
    ) -> Result<(LinePlace, [Arc<Semaphore>; 2]), NoTurn> {
        let mut lines = self.lines(key);
        let line = lines.entry(key.clone()).or_insert_with(TurnLine::new);
        if *line.members(member) > line_max && !client.is_some_and(|client| line.make_room(member, client)) {
            return Err(NoTurn::LineFull);
        }
        *line.members(member) += 1;
        line.standing += 1;
        let (queues, key) = (Arc::clone(self), key.clone());
        let place = LinePlace { queues, key, member, is_standing: true, number: None, waits: false, is_lost: false };
        Ok((place, [Arc::clone(&line.front), Arc::clone(&line.claim)]))
    }

    fn leave(&self, place: &mut LinePlace) {
        let mut lines = self.lines(&place.key);
        if let Some(line) = place.line_of_member(&mut lines) {
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
        Self { front: of(FRONT), claim: of(1), claims: 0, others: 0, standing: 0, waiting: WaitingMembers::default() }
    }

    /// Takes a place of a client that has more than its share, for one that has less.
    fn make_room(&mut self, member: Member, client: LineClient) -> bool {
        let is_displaced = self.waiting.displace(member, client);
        if is_displaced {
            *self.members(member) -= 1;
            self.standing -= 1;
        }
        is_displaced
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
    /// Notes that the member waits. The receiver ends when another client has its place.
    fn begin_wait(&mut self, client: LineClient) -> oneshot::Receiver<()> {
        let mut lines = self.queues.lines(&self.key);
        let number = *self.number.get_or_insert_with(|| self.queues.arrivals.fetch_add(1, Ordering::Relaxed));
        self.waits = true;
        match lines.get_mut(&self.key) {
            Some(line) => line.waiting.add(number, self.member, client),
            None => oneshot::channel().1,
        }
    }

    /// Notes that the member no longer waits. Returns whether it still has its place.
    fn end_wait(&mut self) -> bool {
        let queues = Arc::clone(&self.queues);
        let key = self.key.clone();
        self.line_of_member(&mut queues.lines(&key)).is_some()
    }

    /// Ends the wait of the member, if it waits. Returns its line, unless it has lost its place there.
    fn line_of_member<'a>(&mut self, lines: &'a mut HashMap<ResourceKey, TurnLine>) -> Option<&'a mut TurnLine> {
        let Some(line) = lines.get_mut(&self.key).filter(|_| !self.is_lost) else {
            self.is_lost = true;
            return None;
        };
        let waited = std::mem::take(&mut self.waits);
        self.is_lost = waited && !self.number.is_some_and(|number| line.waiting.remove(number));
        (!self.is_lost).then_some(line)
    }

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

mod waiting;

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
