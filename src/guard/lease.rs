//! The life of a lease operation: one read, step and swap, after whatever has to be waited for (DESIGN, section 4).

use std::time::Duration;

use pingora::{http::ResponseHeader, proxy::Session};
use tokio::time::{Instant, timeout};

use super::{Guards, answer::Answer, claim::swap, probe::Probed, queue::NoTurn, refusals, request::Request};
use crate::{
    core::{
        lease::{Action, Command, Denied, Done, LeaseDuration, LeaseId, PrincipalName, step},
        policy::{AbsentLease, Guard, LeaseAuth, LeaseRules},
        record::Snapshot,
        refusal::{Code, Refusal},
        validators::Representation,
    },
    dialect::{
        Operation,
        native::{self, Response},
    },
    entropy::random_bytes,
    store::Swapped,
};

/// A step that was done.
pub(super) struct Stepped {
    /// What it did.
    pub(super) done: Done,
    /// The record with it.
    pub(super) snapshot: Snapshot,
    /// Whether the client had to wait for it.
    pub(super) waited: bool,
}

impl Guards {
    /// Handles an operation on the lease of a resource, in the native dialect.
    pub(super) async fn lease(
        &self,
        session: &mut Session,
        request: &Request,
        guard: &Guard,
        rules: &LeaseRules,
    ) -> Result<Answer, Answer> {
        let operation = native::read(&request.method, &request.head.headers, rules, fresh_id()?)?;
        self.authorize(request, guard, rules, &operation).await?;
        let Operation::Step { action, wait } = operation else {
            let snapshot = self.snapshot(&request.key).await.map_err(|error| refusals::of_store(&error))?;
            return answer(native::show(&snapshot));
        };
        let stepped = self.take_step(session, request, guard, rules, action, wait).await?;
        answer(native::done(stepped.done, &stepped.snapshot, stepped.waited))
    }

    /// Does one lease operation. Where another holds the lease, waits for it as long as the client would: first come,
    /// first served, and only the first of the line looks at the store.
    pub(super) async fn take_step(
        &self,
        session: &mut Session,
        request: &Request,
        guard: &Guard,
        rules: &LeaseRules,
        action: Action,
        wait: Option<Duration>,
    ) -> Result<Stepped, Answer> {
        let now = Instant::now();
        let patience = wait.map(|wait| now + wait.min(rules.max_wait));
        let _turn = match patience {
            Some(end) => {
                let turn = self.lease_queues.turn(&request.key, rules.max_waiters, end);
                Some(while_client_waits(session, turn).await?.map_err(refusals::of_lease_turn)?)
            }
            None => None,
        };
        let mut waited = false;
        loop {
            let snapshot = self.snapshot(&request.key).await.map_err(|error| refusals::of_store(&error))?;
            self.judge_conditions(request, guard, &snapshot).await?;
            let command = Command { action: action.clone(), principal: bound_to(request, rules) };
            match step(&snapshot, command, rules) {
                Ok((_, Done::Acquired { is_new: true, .. })) if patience.is_none() && self.has_line(request) => {
                    return Err(refusals::of_lease_turn(NoTurn::LineFull).into());
                }
                Ok((record, done)) => {
                    self.take_place(request, rules, &snapshot, done)?;
                    let swapped = swap(&*self.store, self.store_timeout, &request.key, snapshot.revision, record).await;
                    match swapped {
                        Ok(Swapped::Done(snapshot)) => {
                            self.end_place(request, &snapshot, done);
                            return Ok(Stepped { done, snapshot, waited });
                        }
                        Ok(Swapped::Conflict(_)) => self.undo_place(request, done),
                        Err(error) => {
                            self.undo_place(request, done);
                            return Err(refusals::of_store(&error).into());
                        }
                    }
                }
                Err(Denied::Busy(_)) => {
                    let end = patience.unwrap_or(now + guard.claim_max_wait);
                    self.may_write(&snapshot)?;
                    self.wait_until_free(request, &snapshot, end).await?;
                }
                Err(Denied::Held { remaining, .. }) if patience.is_some_and(|end| Instant::now() < end) => {
                    waited = true;
                    let left = patience.map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now()));
                    let change = self.store.changed(&request.key, snapshot.revision);
                    // Expiry changes no record: the wait ends by itself when the lease does.
                    let change = timeout(remaining.map_or(left, |remaining| remaining.min(left)), change);
                    let _ = while_client_waits(session, change).await?;
                }
                Err(denied) => return Err(native::refuse(denied).into()),
            }
        }
    }

    /// Asks the upstream whether the client may use the resource, and whether there is one (`lease.auth`,
    /// `lease.absent`).
    async fn authorize(
        &self,
        request: &Request,
        guard: &Guard,
        rules: &LeaseRules,
        operation: &Operation,
    ) -> Result<(), Answer> {
        let acquires = matches!(operation, Operation::Step { action: Action::Acquire(_), .. });
        let needs_presence = acquires && rules.absent == AbsentLease::Refuse;
        if rules.auth == LeaseAuth::None && !needs_presence {
            return Ok(());
        }
        let snapshot = self.snapshot(&request.key).await.map_err(|error| refusals::of_store(&error))?;
        match self.probe(request, guard, &snapshot).await {
            Probed::Current { representation: Representation::Absent, missing: Some(missing) } if needs_presence => {
                Err(self.upstreams_own(guard, *missing).await?)
            }
            Probed::Answer(exchange) if rules.auth == LeaseAuth::Probe => {
                Err(self.upstreams_own(guard, *exchange).await?)
            }
            Probed::Current { .. } | Probed::Answer(_) => Ok(()),
            Probed::Refused(refusal) => Err(refusal.into()),
        }
    }

    /// The preconditions of a lease operation: "only if it was not changed".
    async fn judge_conditions(&self, request: &Request, guard: &Guard, snapshot: &Snapshot) -> Result<(), Answer> {
        if request.conditions.is_empty() {
            return Ok(());
        }
        self.judge(request, guard, snapshot).await.map(drop)
    }

    fn take_place(
        &self,
        request: &Request,
        rules: &LeaseRules,
        snapshot: &Snapshot,
        done: Done,
    ) -> Result<(), Refusal> {
        let Done::Acquired { duration, .. } = done else { return Ok(()) };
        let end = match duration {
            LeaseDuration::Fixed(duration) => Some(snapshot.now.plus(duration)),
            LeaseDuration::Infinite => None,
        };
        if self.holdings.take(request.principal, &request.key, snapshot.now, end, rules.max_per_principal) {
            return Ok(());
        }
        Err(Refusal::new(Code::TooManyLeases, "release a lease before you acquire another one"))
    }

    /// A grant that did not happen takes no place.
    fn undo_place(&self, request: &Request, done: Done) {
        if matches!(done, Done::Acquired { is_new: true, .. }) {
            self.holdings.give_back(&request.key);
        }
    }

    fn end_place(&self, request: &Request, snapshot: &Snapshot, done: Done) {
        match done {
            Done::Released | Done::AlreadyReleased => self.holdings.give_back(&request.key),
            Done::Broken { remaining } => self.holdings.end_at(&request.key, snapshot.now.plus(remaining)),
            Done::Renewed { duration: LeaseDuration::Fixed(duration) } => {
                self.holdings.end_at(&request.key, snapshot.now.plus(duration));
            }
            Done::Acquired { .. } | Done::Renewed { .. } | Done::Changed { .. } => {}
        }
    }

    /// Whether others wait for the lease: who does not wait does not get in before them.
    fn has_line(&self, request: &Request) -> bool {
        self.lease_queues.has_line(&request.key)
    }
}

/// A random id for a lease.
pub(super) fn fresh_id() -> Result<LeaseId, Refusal> {
    let bytes =
        random_bytes().map_err(|_error| Refusal::new(Code::Overloaded, "there are no random numbers; try again"))?;
    Ok(LeaseId::from_random(bytes))
}

/// Whom a lease of this route is of use to.
pub(super) fn bound_to(request: &Request, rules: &LeaseRules) -> Option<PrincipalName> {
    rules.bind.then(|| request.principal.name())
}

/// Waits while the client does. Only a request without a body can tell that its client is gone.
async fn while_client_waits<T>(session: &mut Session, wait: impl Future<Output = T>) -> Result<T, Answer> {
    if !session.is_body_done() {
        return Ok(wait.await);
    }
    tokio::select! {
        output = wait => Ok(output),
        gone = gone(session) => Err(Answer::Broken(gone)),
    }
}

/// Comes to an end when the client has gone.
async fn gone(session: &mut Session) -> Box<pingora::Error> {
    if let Some(stream) = session.watch_h2_stream_close() {
        let _ = stream.await;
        return pingora::Error::new_down(pingora::ErrorType::ConnectionClosed);
    }
    match session.read_body_or_idle(true).await {
        Ok(_) => pingora::Error::new_down(pingora::ErrorType::ConnectionClosed),
        Err(error) => error.into_down(),
    }
}

fn answer(response: Response) -> Result<Answer, Answer> {
    let mut head = ResponseHeader::build(response.status, Some(response.fields.len()))?;
    for (name, value) in &response.fields {
        head.append_header(name.clone(), value.clone())?;
    }
    Ok(Answer::Local(Box::new(head), response.body.map(Into::into)))
}
