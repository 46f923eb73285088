//! One step of a lease: read, decide and swap, after all waiting (DESIGN, section 4).

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{Leases, bound_to, untold::UntoldGrant};
use crate::{
    body::Client,
    core::{
        cause::Reason,
        lease::{
            Acquire, Action, BegunLease, Command, Denied, Done, Lease, LostGrant, TargetName, await_exclusive, begun,
            step, take_back, without_lease,
        },
        policy::{LeaseRules, TagSource},
        records::{
            record::{Record, Snapshot},
            tree_leases::LeaseReach,
            waiting::served,
        },
        refusal::Refusal,
    },
    guard::{
        Halt,
        answer::while_client_waits,
        claim::{
            pending_mark::{PendingMark, Tried},
            queue::{Member, NoTurn, Turn},
            turn::PlaceInFront,
        },
        refusals,
        request::Request,
    },
    store::{Sighting, StoreError, Swapped},
    telemetry::{Step, metrics},
};

/// How long the sign of a client that waits for holders of shared leases counts. That of a dead process keeps others from
/// sharing the lease for as long.
const SIGN_LASTS: Duration = Duration::from_secs(5);

/// How often such a sign is renewed while its client waits.
const SIGN_RENEWAL: Duration = Duration::from_secs(2);

/// A successful step.
pub(crate) struct Stepped {
    /// The result of the step.
    pub(crate) done: Done,
    /// The record after the step.
    pub(crate) snapshot: Snapshot,
    /// True if the client had to wait for the lease.
    pub(crate) waited: bool,
    /// When the store was asked for the step.
    pub(crate) asked: Instant,
    /// The new lease, if its client does not know its id yet.
    pub(crate) untold: Option<UntoldGrant>,
}

impl Leases {
    /// Takes one step. If another client holds the lease, waits for as long as this client is willing to. Clients are
    /// served in order of arrival, and only the first in line reads the store.
    pub(crate) async fn take_step(
        &self,
        client: &mut dyn Client,
        request: &Request,
        rules: &LeaseRules,
        action: Action,
        wait: Option<Duration>,
    ) -> Result<Stepped, Halt> {
        let mut span = Step::begin("lease");
        let now = Instant::now();
        // If the route allows no waiters, no client waits.
        let patience = wait.filter(|_| rules.max_waiters > 0).map(|wait| now + wait.min(rules.max_wait));
        let _turn = match patience {
            Some(end) => Some(self.turn_to_wait(client, request, (rules, &action), end).await?),
            None => None,
        };
        // Only a grant records its target, and its name is a hash.
        let target = if matches!(action, Action::Acquire(_)) { request.target() } else { TargetName::default() };
        let (mut waited, end) = (false, patience.unwrap_or(now + request.rules().claim.max_wait));
        // The place in the line of writes. A client that waits for the lease itself gives it up.
        let (mut standing, mut beside_trees, mut has_signed) = (None::<PlaceInFront>, None::<PlaceInFront>, false);
        let mut recalled = self.recall_for_step(request, rules, &action).await;
        loop {
            let pass = request.pass().await?;
            let snapshot = match recalled.take() {
                Some(recalled) => recalled,
                None => self.knowledge.record(request).await?,
            };
            if matches!(action, Action::Acquire(_)) {
                self.claims.may_begin(&snapshot)?;
            }
            self.judge_conditions(request, &snapshot).await?;
            let command = Command { action: action.clone(), principal: bound_to(request, rules), target, has_signed };
            let stepped = step(&snapshot, command, rules);
            let is_new = matches!(stepped, Ok((_, Done::Acquired { is_new: true, .. })));
            // A client that does not wait must not overtake clients that do.
            if is_new && patience.is_none() && self.queues.has_line(&request.key) {
                return Err(refusals::of_lease_turn(NoTurn::LineFull).into());
            }
            let is_busy = matches!(stepped, Err(Denied::Busy(_)));
            if is_busy {
                self.claims.may_write(&snapshot)?;
            }
            if is_new || is_busy {
                if standing.is_none() {
                    standing = self.claims.stand_at_once(&request.key);
                }
                let Some(standing) = &mut standing else {
                    drop(pass);
                    let turn = while_client_waits(client, self.claims.stand_in_passing(request, end)).await?;
                    standing = Some(turn.map_err(refusals::of_turn)?);
                    continue;
                };
                if standing.is_behind(&snapshot) || is_busy {
                    drop(pass);
                    let free = self.claims.wait_to_grant(request, &snapshot, (standing, &mut beside_trees), end);
                    while_client_waits(client, free).await??;
                    continue;
                }
            }
            match stepped {
                Ok((record, done)) => {
                    let record = served(record, self.claims.owner());
                    let _place = self.reserve_place(request, rules, &snapshot, done)?;
                    let asked = Instant::now();
                    let put = self.put_step(request, &snapshot, &action, record, done).await;
                    let (swapped, untold) = put.map_err(|error| refusals::of_lease_store(&error))?;
                    let swapped = self.give_way_to_trees(request, &snapshot, (done, swapped)).await?;
                    if let Swapped::Done(snapshot) = swapped {
                        if let Some(standing) = &mut standing {
                            standing.step_aside();
                        }
                        self.note_lease(request, &snapshot, done);
                        tell(&mut span, request, done);
                        return Ok(Stepped { done, snapshot, waited, asked, untold });
                    }
                    if Instant::now() >= end {
                        return Err(refusals::write_in_flight(refusals::RETRY_SOON, Reason::WriteInFlight).into());
                    }
                }
                Err(Denied::Held { remaining, .. } | Denied::NoPlace { remaining })
                    if patience.is_some_and(|end| Instant::now() < end)
                        && !request.place.gate.has_cancelled_waiters() =>
                {
                    drop((pass, standing.take(), beside_trees.take()));
                    waited = true;
                    let left = end.saturating_duration_since(Instant::now());
                    // Expiry does not change the record, so the wait has to end with the lease.
                    let wait = remaining.map_or(left, |remaining| remaining.min(left));
                    let change = self.wait_for_change(request, &action, &snapshot, wait);
                    let changed = while_client_waits(client, request.place.gate.unless_cancelled(change)).await?;
                    has_signed |= changed.unwrap_or(Ok(false)).map_err(|error| refusals::of_lease_store(&error))?;
                }
                Err(denied) => {
                    let refusal = request.grammar().lease_denied(denied);
                    return Err(self.knowledge.explain_lease(request, &snapshot, refusal).into());
                }
            }
        }
    }

    /// Waits for the turn of a client that is willing to wait for the lease.
    async fn turn_to_wait(
        &self,
        client: &mut dyn Client,
        request: &Request,
        (rules, action): (&LeaseRules, &Action),
        end: Instant,
    ) -> Result<Turn, Halt> {
        // The client whose turn it is counts as a waiter too: it waits for the lease itself.
        let member = (Member::Passing, request.line_client());
        let turn = self.queues.turn(&request.key, member, rules.max_waiters - 1, end);
        match while_client_waits(client, request.place.gate.unless_cancelled(turn)).await? {
            Some(Ok(turn)) => Ok(turn),
            no_turn => {
                let why = no_turn.and_then(Result::err).unwrap_or(NoTurn::TimedOut);
                Err(self.refuse_turn(request, rules, action.clone(), why).await.into())
            }
        }
    }

    /// Returns the record as this process last saw it, if it lets the client acquire or release the lease. The swap of
    /// the step then shows whether it is still current, so the record need not be read. No refusal rests on a
    /// remembered record.
    async fn recall_for_step(&self, request: &Request, rules: &LeaseRules, action: &Action) -> Option<Snapshot> {
        if !request.conditions.is_empty() || self.queues.has_line(&request.key) {
            return None;
        }
        let records = &self.knowledge.records;
        let Sighting { mut snapshot, since } = match action {
            Action::Acquire(_) => records.recall(&request.key).await?,
            // By an earlier time no lease of another client has ended.
            Action::Release { .. } => records.recall_as_seen(&request.key)?,
            _ => return None,
        };
        let principal = bound_to(request, rules);
        let command = Command { action: action.clone(), principal, target: request.target(), has_signed: false };
        let passes = self.claims.may_begin(&snapshot).is_ok() && step(&snapshot, command, rules).is_ok();
        // Without other moments, a later time only lets the new lease end later.
        if !snapshot.record.has_moments() {
            snapshot.now = snapshot.now.plus(since.elapsed());
        }
        passes.then_some(snapshot)
    }

    /// Waits for a change of the record. If the client waits for holders of shared leases, a sign in the record keeps
    /// further clients from joining them. Returns whether there is such a sign.
    async fn wait_for_change(
        &self,
        request: &Request,
        action: &Action,
        snapshot: &Snapshot,
        wait: Duration,
    ) -> Result<bool, StoreError> {
        let (records, mut revision, mut wait) = (&self.knowledge.records, snapshot.revision, wait);
        let around = snapshot.held_around(LeaseReach::Tree).next().filter(|_| !snapshot.lease_state().is_held());
        if let Some(around) = around {
            let _ = timeout(wait, records.changed(&around.root, snapshot, around.seen)).await;
            return Ok(false);
        }
        let signs = waits_for_sharers(action, snapshot);
        if signs {
            wait = wait.min(SIGN_RENEWAL);
            if !snapshot.is_exclusive_awaited(SIGN_LASTS.saturating_sub(SIGN_RENEWAL)) {
                let signed = await_exclusive(snapshot, snapshot.now.plus(SIGN_LASTS));
                let Swapped::Done(signed) = records.swap(&request.key, revision, signed).await? else {
                    return Ok(false);
                };
                revision = signed.revision;
            }
        }
        let _ = timeout(wait, records.changed(&request.key, snapshot, revision)).await;
        Ok(signs)
    }

    /// Swaps a step in. A grant whose fate stays unknown is taken back, since its client is refused. So is a grant
    /// whose client never gets its id.
    async fn put_step(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        action: &Action,
        record: Record,
        done: Done,
    ) -> Result<(Swapped, Option<UntoldGrant>), StoreError> {
        let (Action::Acquire(wanted), Done::Acquired { id, duration, is_new: true }) = (action, done) else {
            let swapped = self.knowledge.records.swap(&request.key, snapshot.revision, record).await?;
            return Ok((swapped, None));
        };
        let grant = LostGrant { id, is_known: wanted.proposed.is_some() };
        let tried = Tried::Grant(grant, duration);
        let attempt = PendingMark::new(&self.knowledge.records, &request.key, tried, snapshot);
        let (swapped, made) = attempt.make(record).await?;
        Ok((swapped, (!grant.is_known).then(|| UntoldGrant::new(made))))
    }

    /// Takes a new lease back if a tree around its resource has changed since the judgement of the step, is about to,
    /// or was leased. So is one that was forgotten before the step took effect. Its client steps again then.
    async fn give_way_to_trees(
        &self,
        request: &Request,
        before: &Snapshot,
        (done, swapped): (Done, Swapped),
    ) -> Result<Swapped, Halt> {
        let Swapped::Done(after) = &swapped else { return Ok(swapped) };
        let Some(begun) = begun(before, after) else { return Ok(swapped) };
        let shown = Snapshot { leases_around: before.leases_around.clone(), ..after.clone() };
        let is_clear = match begun {
            BegunLease::Anew(_) => self.claims.is_clear_of_trees(&request.key, &shown, None).await,
            BegunLease::TooLate(_) => Ok(false),
        };
        if is_clear == Ok(true) {
            return Ok(swapped);
        }
        let without = |current: &Snapshot| match (done, begun) {
            (Done::Acquired { id, is_new: true, .. }, _) => {
                take_back(LostGrant { id, is_known: false }, before, current)
            }
            (_, BegunLease::Anew(fence) | BegunLease::TooLate(fence)) => Some(without_lease(current, fence)),
        };
        let taken = self.knowledge.records.update(&request.key, None, without).await;
        is_clear
            .and(taken)
            .map(|taken| Swapped::Conflict(taken.snapshot))
            .map_err(|error| refusals::of_lease_store(&error).into())
    }

    /// Judges the preconditions of a lease operation, which demand that the resource has not changed.
    async fn judge_conditions(&self, request: &Request, snapshot: &Snapshot) -> Result<(), Halt> {
        if request.conditions.is_empty() {
            return Ok(());
        }
        if request.rules().etag == TagSource::Delegate {
            // The upstream never sees a lease operation, so it cannot judge the conditions itself.
            return self.probes.judge_by_probe(request, snapshot).await.map(drop);
        }
        self.probes.judge(request, snapshot).await.map(drop)
    }

    /// Returns the refusal of a client that got no turn. If the lease is held, it is the refusal of a client that does
    /// not wait.
    async fn refuse_turn(&self, request: &Request, rules: &LeaseRules, action: Action, no_turn: NoTurn) -> Refusal {
        let target = request.target();
        let command = Command { action, principal: bound_to(request, rules), target, has_signed: false };
        match self.knowledge.snapshot(&request.key).await.map(|snapshot| step(&snapshot, command, rules)) {
            Ok(Err(held @ (Denied::Held { .. } | Denied::NoPlace { .. }))) if no_turn != NoTurn::AllFull => {
                request.grammar().lease_denied(held)
            }
            _ => refusals::of_lease_turn(no_turn),
        }
    }
}

/// Reports a step in the trace and in the metrics.
fn tell(span: &mut Step, request: &Request, done: Done) {
    span.set("ifmatch.lease.event", done.word());
    if let Some(metrics) = metrics::get() {
        metrics.lease(&request.route().name, done.word());
    }
}

/// True if a client wants a lease that cannot be beside a shared one that another client holds.
fn waits_for_sharers(action: &Action, snapshot: &Snapshot) -> bool {
    let Action::Acquire(Acquire { mode, proposed, .. }) = action else { return false };
    let is_in_the_way =
        |lease: &Lease| lease.mode.is_shared() && !lease.mode.stands_beside(*mode) && Some(lease.id) != *proposed;
    snapshot.held_leases().any(is_in_the_way)
}
