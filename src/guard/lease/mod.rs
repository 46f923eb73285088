//! The life of a lease operation: one read, one step and one swap, after all waiting (DESIGN, section 4).

use std::sync::Arc;

use http::header;
use pingora::ErrorType;
use tokio::time::Instant;

use super::{
    Answer, Halt,
    claim::{Claims, queue::Queues},
    knowledge::Knowledge,
    probe::{Probed, Probes},
    request::Request,
};
use crate::{
    body::Client,
    core::{
        lease::{Action, Done, LeaseId, PrincipalName},
        policy::{AbsentLease, LeaseAuth, LeaseRules},
        records::record::{Revision, Snapshot},
        refusal::{Code, Refusal},
        rights::is_missing_to_lease,
        tags::{
            head_answer::Aim,
            validators::{Representation, Validators},
        },
    },
    dialect::{Incoming, LeaseOperation},
    entropy::random_bytes,
};
use member_lines::MemberLines;
use quota::LeaseQuota;
use step::Stepped;
use untold::{UntoldGrant, has_nobody_to_tell};

mod end;
pub(crate) mod keeper;
mod listed;
mod lists;
pub(crate) mod member_lines;
mod places;
pub(crate) mod quota;
pub(crate) mod step;
pub(crate) mod streamed;
mod tree_leases;
pub(crate) mod untold;
pub(crate) mod usage;

/// Returns the rules for leases of the route of a request. Fails if the route has no leases.
pub(crate) fn rules_of_leases(request: &Request) -> Result<&LeaseRules, Refusal> {
    let detail = "its route has no leases: policy = \"pessimistic\" gives it some";
    request.rules().lease.as_ref().ok_or_else(|| Refusal::new(Code::NotSupported, detail))
}

/// The facts about its resource that a lease operation needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    /// True if the resource must exist.
    pub(crate) presence: bool,
    /// True if the answer needs the tag of the resource.
    pub(crate) tag: bool,
}

/// The state of a resource that the upstream reported before the lease was judged.
pub(crate) struct ProbedState {
    validators: Validators,
    /// The revision at which a write last began or ended.
    touched: Revision,
}

impl ProbedState {
    /// Returns the validators, unless a write has begun or ended since.
    pub(crate) fn still_current(self, snapshot: &Snapshot) -> Option<Validators> {
        (self.touched == snapshot.touched()).then_some(self.validators)
    }
}

/// The result of an operation on a lease.
pub(crate) struct Operated {
    /// The change of the lease, if there was one.
    pub(crate) done: Option<Done>,
    /// The record after the operation.
    pub(crate) snapshot: Snapshot,
    /// True if the client had to wait for the lease.
    pub(crate) waited: bool,
    /// When the store was asked for the change, or for the record.
    pub(crate) asked: Instant,
    /// The new lease, if its client does not know its id yet. The head that tells it takes it along.
    pub(crate) untold: Option<UntoldGrant>,
    /// The validators of the resource, if they were asked for and are still current.
    pub(crate) validators: Option<Validators>,
}

/// The room of leases: handles lease operations, and judges reads and writes by leases. All generations of the
/// configuration share it.
pub(crate) struct Leases {
    knowledge: Arc<Knowledge>,
    /// The probes of the upstream.
    pub(crate) probes: Arc<Probes>,
    claims: Arc<Claims>,
    /// The lines of clients that wait for a lease.
    pub(crate) queues: Arc<Queues>,
    /// The lines of clients that wait for the next member of a collection.
    pub(crate) member_lines: MemberLines,
    quota: LeaseQuota,
}

impl Leases {
    /// Builds the leases on top of these rooms. At most `waiters_max` clients wait in all lines together.
    pub(crate) fn new(knowledge: Arc<Knowledge>, probes: Arc<Probes>, claims: Arc<Claims>, waiters_max: usize) -> Self {
        let queues = Arc::new(Queues::for_leases(waiters_max));
        Self { knowledge, probes, claims, queues, member_lines: MemberLines::new(), quota: LeaseQuota::default() }
    }

    /// Returns the rooms under the leases, which writes and reads share.
    pub(crate) fn rooms(&self) -> (Arc<Knowledge>, Arc<Probes>, Arc<Claims>) {
        (Arc::clone(&self.knowledge), Arc::clone(&self.probes), Arc::clone(&self.claims))
    }

    /// Handles an operation on the lease of a resource.
    pub(crate) async fn lease(
        &self,
        client: &mut dyn Client,
        request: &Request,
        rules: &LeaseRules,
    ) -> Result<Answer, Halt> {
        let (received, grammar) = (client.head(), request.grammar());
        let incoming = Incoming {
            method: &request.method,
            other_methods: &[],
            target: received.raw_path(),
            headers: &received.headers,
        };
        let operation = grammar.lease(incoming, rules, fresh_id)?;
        let always_labelled = request.rules().quirks.lease_answers_have_validators;
        let Operated { done, snapshot, waited, untold, validators, .. } =
            self.operate(client, request, rules, operation).await?;
        let Some(done) = done else {
            // Boxed, so that the futures of other operations stay small.
            let snapshot = Box::pin(self.after_end(client, request, rules, snapshot)).await?;
            return Ok(Answer::local(grammar.lease_shown(&snapshot)));
        };
        let mut response = grammar.lease_done(done, request.sender.lease_id, &snapshot, waited)?;
        if let (true, Some(Validators { tag, modified })) =
            (always_labelled || matches!(done, Done::Acquired { .. }), validators)
        {
            if let Some(tag) = tag {
                response.fields.insert(header::ETAG, tag.to_header_value());
            }
            if let Some(date) = modified.filter(|_| always_labelled).map(|modified| modified.told().to_string())
                && let Ok(date) = date.try_into()
            {
                response.fields.insert(header::LAST_MODIFIED, date);
            }
        }
        let mut answer = Answer::local(response);
        if let (Answer::Local(head, _), Some(untold)) = (&mut answer, untold) {
            untold.travel_with(head);
        }
        Ok(answer)
    }

    /// Carries an operation on the lease of a resource out.
    pub(crate) async fn operate(
        &self,
        client: &mut dyn Client,
        request: &Request,
        rules: &LeaseRules,
        operation: LeaseOperation,
    ) -> Result<Operated, Halt> {
        let always_labelled = request.rules().quirks.lease_answers_have_validators;
        let acquires = matches!(operation, LeaseOperation::Step { action: Action::Acquire(_), .. });
        let is_presence_needed = (acquires || always_labelled) && rules.absent == AbsentLease::Refuse;
        let needs = Needs { presence: is_presence_needed, tag: acquires || always_labelled };
        let seen = self.authorize(request, rules, needs).await?;
        let LeaseOperation::Step { action, wait } = operation else {
            let asked = Instant::now();
            let snapshot = self.knowledge.record(request).await?;
            return Ok(Operated { done: None, snapshot, waited: false, asked, untold: None, validators: None });
        };
        let Stepped { done, snapshot, waited, asked, untold } =
            self.take_step(client, request, rules, action, wait).await?;
        if let Done::Acquired { duration, is_new: true, .. } = done
            && has_nobody_to_tell(client, duration)
        {
            return Err(Halt::Broken(pingora::Error::new_down(ErrorType::ConnectionClosed)));
        }
        let validators = seen.and_then(|seen| seen.still_current(&snapshot));
        Ok(Operated { done: Some(done), snapshot, waited, asked, untold, validators })
    }

    /// Asks the upstream whether the client may use the resource, and whether the resource exists (`lease.auth`,
    /// `lease.absent`).
    pub(crate) async fn authorize(
        &self,
        request: &Request,
        rules: &LeaseRules,
        needs: Needs,
    ) -> Result<Option<ProbedState>, Halt> {
        if rules.auth == LeaseAuth::None && !needs.presence {
            return Ok(None);
        }
        let snapshot = self.knowledge.record(request).await?;
        let aim = if needs.tag { Aim::Tag } else { Aim::Right };
        let is_shown = self.knowledge.is_shown(request, &snapshot);
        match self.probes.probe(request, &snapshot, aim).await {
            Probed::Current { representation: Representation::Absent, missing: Some(missing), .. } => {
                let is_proved = request.proves_lease(&snapshot);
                if !is_missing_to_lease(rules.absent, needs.presence, is_proved, is_shown) {
                    missing.discard().await;
                    return Ok(None);
                }
                if request.rules().quirks.leases_have_paths {
                    missing.discard().await;
                    return Err(nothing_to_lease().into());
                }
                Err(self.probes.upstreams_own(request, *missing).await)
            }
            Probed::Current { representation: Representation::Present(validators), .. } => {
                Ok(Some(ProbedState { validators, touched: snapshot.touched() }))
            }
            Probed::Answer(exchange) if rules.auth == LeaseAuth::Probe => {
                Err(self.probes.upstreams_own(request, *exchange).await)
            }
            Probed::Current { .. } | Probed::Answer(_) => Ok(None),
            Probed::Unreadable(refusal) | Probed::Refused(refusal) => Err(refusal.into()),
        }
    }
}

/// The refusal of a lease of a resource that does not exist.
fn nothing_to_lease() -> Refusal {
    let detail = "the resource does not exist: create it first, or set lease.absent = \"allow\" on its route, which \
                  lets clients lease what does not exist";
    Refusal::new(Code::LeaseTargetMissing, detail)
}

/// Draws a random id for a lease.
pub(crate) fn fresh_id() -> Result<LeaseId, Refusal> {
    let bytes =
        random_bytes().map_err(|_error| Refusal::new(Code::Overloaded, "no random numbers available; try again"))?;
    Ok(LeaseId::from_random(bytes))
}

/// Returns the principal that leases of this route are bound to, if they are bound.
pub(crate) fn bound_to(request: &Request, rules: &LeaseRules) -> Option<PrincipalName> {
    rules.bind.then(|| request.sender.principal.holder())
}
