//! The life of a lease operation: one read, step and swap, after whatever has to be waited for (DESIGN, section 4).

use std::time::Duration;

use http::header;
use pingora::http::ResponseHeader;
use tokio::time::{Instant, timeout};

use super::{
    Guard,
    answer::Answer,
    claim::{
        pending_mark::{PendingMark, Tried},
        queue::{Member, NoTurn},
        turn::PlaceInFront,
    },
    probe::{Aim, Probed},
    refusals,
    request::Request,
};
use crate::{
    body::Client,
    core::{
        lease::{Action, Command, Denied, Done, LeaseId, LostGrant, PrincipalName, step},
        policy::{AbsentLease, Dialect, LeaseAuth, LeaseRules, TagSource},
        record::{Record, Revision, Snapshot},
        refusal::{Code, Refusal},
        validators::{Representation, Validators},
        waiting::served,
    },
    dialect::{
        LeaseOperation, azure,
        native::{self, Response},
    },
    drain::Gate,
    entropy::random_bytes,
    store::{StoreError, Swapped},
    telemetry::{Step, metrics},
};
use quota::{Holder, Most, QuotaExceeded, Reservation};

pub(crate) mod quota;
pub(crate) mod usage;

/// A step that was done.
pub(crate) struct Stepped {
    /// What it did.
    pub(crate) done: Done,
    /// The record with it.
    pub(crate) snapshot: Snapshot,
    /// Whether the client had to wait for it.
    pub(crate) waited: bool,
}

/// What a lease operation needs to know of its resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    /// That there is one.
    pub(crate) presence: bool,
    /// Its tag, for the answer.
    pub(crate) tag: bool,
}

/// What the upstream told of a resource before its lease was looked at.
pub(crate) struct ProbedState {
    validators: Validators,
    /// When a write last began or ended.
    touched: Revision,
}

impl ProbedState {
    /// The validators, unless a write has begun or ended since.
    pub(crate) fn still_current(self, snapshot: &Snapshot) -> Option<Validators> {
        (self.touched == snapshot.touched()).then_some(self.validators)
    }
}

impl Guard {
    /// Handles an operation on the lease of a resource, in the native dialect.
    pub(crate) async fn lease(
        &self,
        client: &mut dyn Client,
        request: &Request,
        rules: &LeaseRules,
    ) -> Result<Answer, Answer> {
        let operation = native::read(&request.method, &request.head.headers, rules, fresh_id)?;
        let acquires = matches!(operation, LeaseOperation::Step { action: Action::Acquire(_), .. });
        let needs = Needs { presence: acquires && rules.absent == AbsentLease::Refuse, tag: acquires };
        let seen = self.authorize(request, rules, needs).await?;
        let LeaseOperation::Step { action, wait } = operation else {
            let snapshot = self.record(request).await?;
            return answer(native::show(&snapshot));
        };
        let stepped = self.take_step(client, request, rules, action, wait).await?;
        let mut response = native::done(stepped.done, &stepped.snapshot, stepped.waited);
        if let (Done::Acquired { .. }, Some(seen)) = (stepped.done, seen)
            && let Some(tag) = seen.still_current(&stepped.snapshot).and_then(|validators| validators.tag)
        {
            response.fields.insert(header::ETAG, tag.to_header_value());
        }
        answer(response)
    }

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
                let turn = self.lease_queues.turn(&request.key, Member::Passing, rules.max_waiters - 1, end);
                let turn = unless_hurried(&request.gate, turn);
                match while_client_waits(client, turn).await?.unwrap_or(Err(NoTurn::TimedOut)) {
                    Ok(turn) => Some(turn),
                    Err(no_turn) => return Err(self.refuse_turn(request, rules, action, no_turn).await.into()),
                }
            }
            None => None,
        };
        let target = request.target();
        let (mut waited, end) = (false, patience.unwrap_or(now + request.rules.claim_max_wait));
        // The place among those who write: whoever waits for the lease itself gives it up.
        let mut standing: Option<PlaceInFront> = None;
        loop {
            let pass = request.pass().await?;
            let snapshot = self.record(request).await?;
            if matches!(action, Action::Acquire(_)) {
                self.may_begin(&snapshot)?;
            }
            self.judge_conditions(request, &snapshot).await?;
            let command = Command { action: action.clone(), principal: bound_to(request, rules), target };
            let stepped = step(&snapshot, command, rules);
            let is_new = matches!(stepped, Ok((_, Done::Acquired { is_new: true, .. })));
            // Who does not wait does not get in before those who do.
            if is_new && patience.is_none() && self.lease_queues.has_line(&request.key) {
                return Err(refusals::of_lease_turn(NoTurn::LineFull).into());
            }
            let is_busy = matches!(stepped, Err(Denied::Busy(_)));
            if is_busy {
                self.may_write(&snapshot)?;
            }
            if is_new || is_busy {
                if standing.is_none() {
                    standing = self.stand_at_once(&request.key);
                }
                let Some(standing) = &mut standing else {
                    drop(pass);
                    let turn = while_client_waits(client, self.stand_in_passing(&request.key, end)).await?;
                    standing = Some(turn.map_err(refusals::of_turn)?);
                    continue;
                };
                if standing.is_behind(&snapshot) || is_busy {
                    drop(pass);
                    let free = self.wait_until_free(request, &snapshot, standing, end);
                    while_client_waits(client, free).await??;
                    continue;
                }
            }
            match stepped {
                Ok((record, done)) => {
                    let record = served(record, self.marker.owner());
                    let _place = self.reserve_place(request, rules, &snapshot, done)?;
                    let swapped = self.put_step(request, &snapshot, &action, record, done).await;
                    if let Swapped::Done(snapshot) = swapped.map_err(|error| refusals::of_lease_store(&error))? {
                        if let Some(standing) = &mut standing {
                            standing.step_aside();
                        }
                        self.note_lease(request, &snapshot, done);
                        span.set("ifmatch.lease.event", done.word());
                        if let Some(metrics) = metrics::get() {
                            metrics.lease(&request.route.name, done.word());
                        }
                        return Ok(Stepped { done, snapshot, waited });
                    }
                    if Instant::now() >= end {
                        return Err(refusals::write_in_flight(refusals::RETRY_SOON).into());
                    }
                }
                Err(Denied::Held { remaining, .. })
                    if patience.is_some_and(|end| Instant::now() < end) && !request.gate.is_hurried() =>
                {
                    drop((pass, standing.take()));
                    waited = true;
                    let left = patience.map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now()));
                    let change = self.records.changed(&request.key, snapshot.revision);
                    // Expiry changes no record: the wait ends by itself when the lease does.
                    let change = timeout(remaining.map_or(left, |remaining| remaining.min(left)), change);
                    let _ = while_client_waits(client, unless_hurried(&request.gate, change)).await?;
                }
                Err(denied) => return Err(refuse(rules, denied).into()),
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
            return self.records.swap(&request.key, snapshot.revision, record).await;
        };
        let grant = LostGrant { id, is_known: wanted.proposed.is_some() };
        let tried = Tried::Grant(grant, duration);
        PendingMark::new(&self.records, &request.key, tried, snapshot).make(record).await
    }

    /// Asks the upstream whether the client may use the resource, and whether there is one (`lease.auth`,
    /// `lease.absent`).
    pub(crate) async fn authorize(
        &self,
        request: &Request,
        rules: &LeaseRules,
        needs: Needs,
    ) -> Result<Option<ProbedState>, Answer> {
        if rules.auth == LeaseAuth::None && !needs.presence {
            return Ok(None);
        }
        let snapshot = self.record(request).await?;
        let aim = if needs.tag { Aim::Tag } else { Aim::Verdict };
        match self.probe(request, &snapshot, aim).await {
            Probed::Current { representation: Representation::Absent, missing: Some(missing), .. }
                if needs.presence =>
            {
                Err(self.upstreams_own(&request.rules, *missing).await?)
            }
            Probed::Current { representation: Representation::Present(validators), .. } => {
                Ok(Some(ProbedState { validators, touched: snapshot.touched() }))
            }
            Probed::Answer(exchange) if rules.auth == LeaseAuth::Probe => {
                Err(self.upstreams_own(&request.rules, *exchange).await?)
            }
            Probed::Current { .. } | Probed::Answer(_) => Ok(None),
            Probed::Unreadable(refusal) | Probed::Refused(refusal) => Err(refusal.into()),
        }
    }

    /// The preconditions of a lease operation: "only if it was not changed".
    async fn judge_conditions(&self, request: &Request, snapshot: &Snapshot) -> Result<(), Answer> {
        if request.conditions.is_empty() {
            return Ok(());
        }
        if request.rules.etag == TagSource::Delegate {
            // No upstream sees a lease operation.
            return self.judge_by_probe(request, snapshot).await.map(drop);
        }
        self.judge(request, snapshot).await.map(drop)
    }

    /// What a client without a turn is told: the word of the lease, as one is told who does not wait.
    async fn refuse_turn(&self, request: &Request, rules: &LeaseRules, action: Action, no_turn: NoTurn) -> Refusal {
        let command = Command { action, principal: bound_to(request, rules), target: request.target() };
        match self.snapshot(&request.key).await.map(|snapshot| step(&snapshot, command, rules)) {
            Ok(Err(held @ Denied::Held { .. })) if no_turn != NoTurn::AllFull => refuse(rules, held),
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
        let place = self.lease_quota.reserve(holder(request), &request.key, snapshot.now, most);
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
            self.lease_quota.free(&request.key);
            return;
        };
        let end = lease.remaining(snapshot.now).map(|remaining| snapshot.now.plus(remaining));
        if matches!(done, Done::Acquired { .. }) {
            self.lease_quota.hold(holder(request), &request.key, snapshot.now, end);
        } else {
            self.lease_quota.change_end(&request.key, end);
        }
    }
}

/// The refusal of an operation, in the words of the route's dialect.
fn refuse(rules: &LeaseRules, denied: Denied) -> Refusal {
    match rules.dialect {
        Dialect::Native => native::refuse(denied),
        Dialect::Azure => azure::refuse(&denied),
    }
}

/// A random id for a lease.
pub(crate) fn fresh_id() -> Result<LeaseId, Refusal> {
    let bytes =
        random_bytes().map_err(|_error| Refusal::new(Code::Overloaded, "there are no random numbers; try again"))?;
    Ok(LeaseId::from_random(bytes))
}

/// Whom a lease of this route is of use to.
pub(crate) fn bound_to(request: &Request, rules: &LeaseRules) -> Option<PrincipalName> {
    rules.bind.then(|| request.principal.name())
}

/// Who a lease is granted to.
fn holder(request: &Request) -> Holder {
    Holder { principal: request.principal, address: request.address }
}

/// Waits unless nobody is to wait any more on this route.
async fn unless_hurried<T>(gate: &Gate, wait: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        output = wait => Some(output),
        () = gate.hurried() => None,
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

fn answer(response: Response) -> Result<Answer, Answer> {
    let mut head = ResponseHeader::build(response.status, Some(response.fields.len()))?;
    for (name, value) in &response.fields {
        head.append_header(name.clone(), value.clone())?;
    }
    Ok(Answer::Local(Box::new(head), response.body.map(Into::into)))
}
