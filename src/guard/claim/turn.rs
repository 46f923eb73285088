//! The turn of a write or a grant: its place in the line of this process, and the sign of the process among others
//! (DESIGN, section 3, rule 16).
//!
//! A write that changes several resources has a place in each of their lines ([`Places`](super::places::Places)).

use std::{sync::Arc, time::Duration};

use tokio::{
    runtime::Handle,
    time::{Instant, timeout},
};

use super::{
    Claims,
    queue::{Member, NoTurn, Queues, Turn},
};
use crate::{
    core::{
        cause::Reason,
        policy::GuardRules,
        records::{
            record::{Availability, Revision, Snapshot},
            steps::UNCLAIMED_MARKS_MAX,
            waiting::{sign, unsign},
        },
        refusal::Refusal,
        resource::ResourceKey,
        shares::line_share::LineClient,
    },
    guard::{refusals, request::Request},
    store::{Records, StoreError, Swapped},
    telemetry::{TimedPart, timing},
};

/// How much longer a sign counts than a verdict takes. A live process renews its sign within this time.
const SIGN_GRACE: Duration = Duration::from_secs(5);

/// The longest wait before a sign is renewed.
const SIGN_PAUSE: Duration = Duration::from_secs(2);

/// How often a sign is swapped in against changes of others before the record is judged again.
const SIGN_ATTEMPTS_MAX: usize = 16;

/// A place in front of a line, and the sign that was put up from there.
pub(crate) struct PlaceInFront {
    // Must be dropped before the sign, whose drop checks whether any member still stands in the line.
    turn: Turn,
    sign: Sign,
}

/// The sign of this process in a record.
struct Sign {
    records: Records,
    queues: Arc<Queues>,
    key: ResourceKey,
    owner: u64,
    is_up: bool,
}

impl PlaceInFront {
    /// True if others had their turn during the wait for this one.
    pub(crate) const fn came_after_others(&self) -> bool {
        self.turn.came_after_others
    }

    /// Lets the next member come to the front: the mark is in the record, and has taken the sign's place.
    pub(crate) fn step_aside(&mut self) {
        self.sign.is_up = false;
        self.turn.step_aside();
    }

    /// The resource.
    pub(crate) const fn key(&self) -> &ResourceKey {
        &self.sign.key
    }

    /// Renews the sign, if there is one, while the write waits for another resource. Returns false if the record has
    /// changed.
    pub(crate) async fn keep_sign(&mut self, snapshot: &Snapshot, rules: &GuardRules) -> Result<bool, StoreError> {
        if !self.sign.is_up {
            return Ok(true);
        }
        Ok(self.sign.put_up(snapshot, sign_lasts(rules)).await? == Some(snapshot.revision))
    }

    /// Takes down the sign, if there is one, so that other processes go first here. The next member that waits in
    /// front puts it up again.
    pub(crate) async fn take_down_sign(&mut self) -> Result<(), StoreError> {
        if self.sign.is_up {
            let owner = self.sign.owner;
            self.sign.records.update(&self.sign.key, None, |snapshot| unsign(snapshot, owner)).await?;
            self.sign.is_up = false;
        }
        Ok(())
    }

    /// True if another process goes first, by the record as it was read.
    pub(crate) fn is_behind(&mut self, snapshot: &Snapshot) -> bool {
        self.sign.is_up = snapshot.is_signed_by(self.sign.owner).is_some();
        snapshot.goes_before(self.sign.owner).is_some()
    }
}

impl Claims {
    /// Waits until a grant stands in front of the line.
    pub(crate) async fn stand_in_passing(&self, request: &Request, end: Instant) -> Result<PlaceInFront, NoTurn> {
        let member = (Member::Passing, request.line_client());
        self.stand(&request.key, member, UNCLAIMED_MARKS_MAX, end).await
    }

    /// Returns a place in front of the line for a grant if no other member stands there.
    pub(crate) fn stand_at_once(&self, key: &ResourceKey) -> Option<PlaceInFront> {
        self.queues.turn_at_once(key, UNCLAIMED_MARKS_MAX).map(|turn| self.standing(key, turn))
    }

    /// Waits until the claim of a write stands in front of the line of its resource, among others that it claims.
    pub(crate) async fn stand_to_claim_one(&self, request: &Request, end: Instant) -> Result<PlaceInFront, Refusal> {
        let (member, line_max) = ((Member::Claim, request.line_client()), request.place.line_max());
        self.stand(&request.key, member, line_max, end).await.map_err(refusals::of_turn)
    }

    /// Waits in front of the line of one of several resources until its record, read as `snapshot`, has changed. Other
    /// processes go first at those that come after it.
    pub(crate) async fn wait_for_one(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        (places, number): (&mut [PlaceInFront], usize),
        end: Instant,
    ) -> Result<(), Refusal> {
        self.may_write(snapshot)?;
        for later in places.iter_mut().skip(number + 1) {
            later.take_down_sign().await.map_err(|error| refusals::of_store(&error))?;
        }
        match places.get_mut(number) {
            Some(place) => self.wait_until_free(request, snapshot, place, end).await,
            None => Ok(()),
        }
    }

    pub(super) async fn stand(
        &self,
        key: &ResourceKey,
        member: (Member, LineClient),
        line_max: usize,
        end: Instant,
    ) -> Result<PlaceInFront, NoTurn> {
        let begun = Instant::now();
        let waiting = timing(TimedPart::Claim);
        let turn = self.queues.turn(key, member, line_max, end).await;
        drop(waiting);
        if let Some(activity) = self.activity.get() {
            activity.waited(key, begun.elapsed());
        }
        turn.map(|turn| self.standing(key, turn))
    }

    fn standing(&self, key: &ResourceKey, turn: Turn) -> PlaceInFront {
        let sign = Sign {
            records: self.records.clone(),
            queues: Arc::clone(&self.queues),
            key: key.clone(),
            owner: self.marker.owner,
            is_up: false,
        };
        PlaceInFront { turn, sign }
    }

    /// Waits in front for a change of this record: for the end of the writes in flight, and for the turns of other
    /// processes. A sign in the record tells those processes that a member waits here.
    pub(crate) async fn wait_in_front(
        &self,
        snapshot: &Snapshot,
        rules: &GuardRules,
        standing: &mut PlaceInFront,
        end: Instant,
    ) -> Result<(), Refusal> {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            // The other process may be alive, so the client stays away no longer than it has waited here.
            let rest = snapshot.held_by_others(standing.sign.owner).min(rules.claim.max_wait);
            return Err(refusals::write_in_flight(rest.max(refusals::RETRY_SOON), Reason::WriteInFlight));
        }
        let put_up =
            standing.sign.put_up(snapshot, sign_lasts(rules)).await.map_err(|error| refusals::of_store(&error))?;
        let Some(revision) = put_up else { return Ok(()) };
        let busy = match snapshot.availability() {
            Availability::Busy { deadline } => Some(deadline),
            _ => None,
        };
        let ends = busy.into_iter().chain(snapshot.goes_before(standing.sign.owner));
        let wait = ends.min().map_or(Duration::ZERO, |until| snapshot.now.until(until));
        let wait = wait.min(left).min(SIGN_PAUSE);
        let change = timeout(wait, self.records.changed(&standing.sign.key, snapshot, revision));
        let _waiting = timing(TimedPart::Claim);
        let _ = change.await;
        Ok(())
    }
}

/// Returns how long a sign counts.
const fn sign_lasts(rules: &GuardRules) -> Duration {
    rules.probe.timeout.saturating_add(SIGN_GRACE)
}

impl Sign {
    /// Puts the sign up, or renews it, if other processes have to see it. Returns the revision of the record with the
    /// sign, or `None` if the record has changed.
    async fn put_up(&mut self, snapshot: &Snapshot, lasts: Duration) -> Result<Option<Revision>, StoreError> {
        let until = snapshot.is_signed_by(self.owner).map(|until| snapshot.now.until(until));
        let counts = until.is_some_and(|remaining| remaining > lasts.saturating_sub(SIGN_PAUSE));
        if counts || !snapshot.is_shared_with_others(self.owner) {
            return Ok(Some(snapshot.revision));
        }
        let mut swapped = match self.swap_in(snapshot, lasts).await? {
            None => return Ok(Some(snapshot.revision)),
            Some(Swapped::Done(signed)) => return Ok(Some(signed.revision)),
            conflict => conflict,
        };
        // A busy process changes the record again before it is read again.
        for _ in 0..SIGN_ATTEMPTS_MAX {
            match swapped {
                Some(Swapped::Conflict(current)) if current.is_shared_with_others(self.owner) => {
                    swapped = self.swap_in(&current, lasts).await?;
                }
                _ => break,
            }
        }
        Ok(None)
    }

    /// Swaps the sign in, unless the record has no room for it.
    async fn swap_in(&mut self, snapshot: &Snapshot, lasts: Duration) -> Result<Option<Swapped>, StoreError> {
        let Some(signed) = sign(snapshot, self.owner, snapshot.now.plus(lasts)) else { return Ok(None) };
        // The swap may take effect even if it reports a failure.
        self.is_up = true;
        self.records.swap(&self.key, snapshot.revision, signed).await.map(Some)
    }

    /// Removes the sign, unless another member of this process has come to the front and needs it.
    async fn take_down(self) -> Result<(), StoreError> {
        let unsign = |snapshot: &Snapshot| {
            if self.queues.has_line(&self.key) { None } else { unsign(snapshot, self.owner) }
        };
        self.records.update(&self.key, None, unsign).await.map(drop)
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        if !self.is_up || self.queues.has_line(&self.key) {
            return;
        }
        let (records, queues) = (self.records.clone(), Arc::clone(&self.queues));
        let left = Self { records, queues, key: self.key.clone(), is_up: false, ..*self };
        // Without a runtime the process is ending: the sign ends on its own.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = left.take_down().await {
                    tracing::debug!(%error, "cannot remove the sign of a write that gave up; it will expire");
                }
            });
        }
    }
}
