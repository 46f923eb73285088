//! One step of a lease: read, decide, swap, after everything that has to be waited for (DESIGN, section 4).

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{
    Leases, bound_to,
    quota::{Holder, Most, QuotaExceeded, Reservation},
};
use crate::{
    body::Client,
    core::{
        lease::{Action, Command, Denied, Done, LostGrant, step},
        policy::{LeaseRules, TagSource},
        record::{Record, Snapshot},
        refusal::{Code, Refusal},
        waiting::served,
    },
    drain::Gate,
    guard::{
        answer::Answer,
        claim::{
            pending_mark::{PendingMark, Tried},
            queue::{Member, NoTurn},
            turn::PlaceInFront,
        },
        refusals,
        request::Request,
    },
    store::{StoreError, Swapped},
    telemetry::{Step, metrics},
};

/// A step that was done.
pub(crate) struct Stepped {
    /// What it did.
    pub(crate) done: Done,
    /// The record with it.
    pub(crate) snapshot: Snapshot,
    /// Whether the client had to wait for it.
    pub(crate) waited: bool,
}

impl Leases {
    /// Does one lease operation. Where another holds the lease, waits for it as long as the client would: first come,
    /// first served, and only the first of the line looks at the store.
    pub(crate) async fn take_step(
        &self,
        client: &mut dyn Client,
        request: &Request,
        rules: &LeaseRules,
        action: Action,
        wait: Option<Duration>,
    ) -> Result<Stepped, Answer> {
        let mut span = Step::begin("lease");
        let now = Instant::now();
        // Where nobody may wait, nobody does.
        let patience = wait.filter(|_| rules.max_waiters > 0).map(|wait| now + wait.min(rules.max_wait));
        let _turn = match patience {
            Some(end) => {
                // Whoever has its turn waits too, for the lease itself.
                let turn = self.queues.turn(&request.key, Member::Passing, rules.max_waiters - 1, end);
                let turn = unless_cancelled(request.gate(), turn);
                match while_client_waits(client, turn).await?.unwrap_or(Err(NoTurn::TimedOut)) {
                    Ok(turn) => Some(turn),
                    Err(no_turn) => return Err(self.refuse_turn(request, rules, action, no_turn).await.into()),
                }
            }
            None => None,
        };
        let target = request.target();
        let (mut waited, end) = (false, patience.unwrap_or(now + request.rules().claim_max_wait));
        // The place among those who write: whoever waits for the lease itself gives it up.
        let mut standing: Option<PlaceInFront> = None;
        loop {
            let pass = request.pass().await?;
            let snapshot = self.knowledge.record(request).await?;
            if matches!(action, Action::Acquire(_)) {
                self.claims.may_begin(&snapshot)?;
            }
            self.judge_conditions(request, &snapshot).await?;
            let command = Command { action: action.clone(), principal: bound_to(request, rules), target };
            let stepped = step(&snapshot, command, rules);
            let is_new = matches!(stepped, Ok((_, Done::Acquired { is_new: true, .. })));
            // Who does not wait does not get in before those who do.
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
                    let turn = while_client_waits(client, self.claims.stand_in_passing(&request.key, end)).await?;
                    standing = Some(turn.map_err(refusals::of_turn)?);
                    continue;
                };
                if standing.is_behind(&snapshot) || is_busy {
                    drop(pass);
                    let free = self.claims.wait_until_free(request, &snapshot, standing, end);
                    while_client_waits(client, free).await??;
                    continue;
                }
            }
            match stepped {
                Ok((record, done)) => {
                    let record = served(record, self.claims.owner());
                    let _place = self.reserve_place(request, rules, &snapshot, done)?;
                    let swapped = self.put_step(request, &snapshot, &action, record, done).await;
                    if let Swapped::Done(snapshot) = swapped.map_err(|error| refusals::of_lease_store(&error))? {
                        if let Some(standing) = &mut standing {
                            standing.step_aside();
                        }
                        self.note_lease(request, &snapshot, done);
                        span.set("ifmatch.lease.event", done.word());
                        if let Some(metrics) = metrics::get() {
                            metrics.lease(&request.route().name, done.word());
                        }
                        return Ok(Stepped { done, snapshot, waited });
                    }
                    if Instant::now() >= end {
                        return Err(refusals::write_in_flight(refusals::RETRY_SOON).into());
                    }
                }
                Err(Denied::Held { remaining, .. })
                    if patience.is_some_and(|end| Instant::now() < end) && !request.gate().has_cancelled_waiters() =>
                {
                    drop((pass, standing.take()));
                    waited = true;
                    let left = patience.map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now()));
                    let change = self.knowledge.records().changed(&request.key, snapshot.revision);
                    // Expiry changes no record: the wait ends by itself when the lease does.
                    let change = timeout(remaining.map_or(left, |remaining| remaining.min(left)), change);
                    let _ = while_client_waits(client, unless_cancelled(request.gate(), change)).await?;
                }
                Err(denied) => return Err(request.grammar().lease_denied(denied).into()),
            }
        }
    }

    /// Swaps a step in. A grant whose fate stays unknown is taken back: its client is told that there is none.
    async fn put_step(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        action: &Action,
        record: Record,
        done: Done,
    ) -> Result<Swapped, StoreError> {
        let (Action::Acquire(wanted), Done::Acquired { id, duration, is_new: true }) = (action, done) else {
            return self.knowledge.records().swap(&request.key, snapshot.revision, record).await;
        };
        let grant = LostGrant { id, is_known: wanted.proposed.is_some() };
        let tried = Tried::Grant(grant, duration);
        PendingMark::new(self.knowledge.records(), &request.key, tried, snapshot).make(record).await
    }

    /// The preconditions of a lease operation: "only if it was not changed".
    async fn judge_conditions(&self, request: &Request, snapshot: &Snapshot) -> Result<(), Answer> {
        if request.conditions.is_empty() {
            return Ok(());
        }
        if request.rules().etag == TagSource::Delegate {
            // No upstream sees a lease operation.
            return self.probes.judge_by_probe(request, snapshot).await.map(drop);
        }
        self.probes.judge(request, snapshot).await.map(drop)
    }

    /// What a client without a turn is told: the word of the lease, as one is told who does not wait.
    async fn refuse_turn(&self, request: &Request, rules: &LeaseRules, action: Action, no_turn: NoTurn) -> Refusal {
        let command = Command { action, principal: bound_to(request, rules), target: request.target() };
        match self.knowledge.snapshot(&request.key).await.map(|snapshot| step(&snapshot, command, rules)) {
            Ok(Err(held @ Denied::Held { .. })) if no_turn != NoTurn::AllFull => request.grammar().lease_denied(held),
            _ => refusals::of_lease_turn(no_turn),
        }
    }

    /// A place among the leases of the principal for one that is about to be granted.
    fn reserve_place(
        &self,
        request: &Request,
        rules: &LeaseRules,
        snapshot: &Snapshot,
        done: Done,
    ) -> Result<Option<Reservation<'_>>, Refusal> {
        if !matches!(done, Done::Acquired { .. }) {
            return Ok(None);
        }
        let most = Most { per_principal: rules.max_per_principal, per_address: rules.max_per_address };
        let place = self.quota.reserve(holder(request), &request.key, snapshot.now, most);
        let refuse = |no_place| match no_place {
            QuotaExceeded::Principal => {
                Refusal::new(Code::TooManyLeases, "release a lease before you acquire another one")
            }
            QuotaExceeded::Address => Refusal::new(
                Code::TooManyLeases,
                "all who come from your address have as many leases as they may: release one before you acquire another",
            ),
        };
        place.map(Some).map_err(refuse)
    }

    /// Counts the lease of a resource as what it is now.
    fn note_lease(&self, request: &Request, snapshot: &Snapshot, done: Done) {
        let Some(lease) = snapshot.lease().filter(|_| snapshot.lease_state().is_held()) else {
            self.quota.free(&request.key);
            return;
        };
        let end = lease.remaining(snapshot.now).map(|remaining| snapshot.now.plus(remaining));
        if matches!(done, Done::Acquired { .. }) {
            self.quota.hold(holder(request), &request.key, snapshot.now, end);
        } else {
            self.quota.change_end(&request.key, end);
        }
    }
}

/// Who a lease is granted to.
fn holder(request: &Request) -> Holder {
    Holder { principal: request.sender.principal, address: request.sender.address }
}

/// Waits unless nobody is to wait any more on this route.
async fn unless_cancelled<T>(gate: &Gate, wait: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        output = wait => Some(output),
        () = gate.waiters_cancelled() => None,
    }
}

/// Waits while the client does.
async fn while_client_waits<T>(client: &mut dyn Client, wait: impl Future<Output = T>) -> Result<T, Answer> {
    tokio::select! {
        biased;
        output = wait => Ok(output),
        gone = client.gone() => Err(Answer::Broken(gone)),
    }
}
