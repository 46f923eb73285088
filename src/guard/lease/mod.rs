//! The life of a lease operation: one read, step and swap, after whatever has to be waited for (DESIGN, section 4).

use std::sync::Arc;

use http::header;
use pingora::http::ResponseHeader;

use super::{
    answer::Answer,
    claim::{Claims, queue::Queues},
    knowledge::Knowledge,
    probe::{Aim, Probed, Probes},
    request::Request,
};
use crate::{
    body::Client,
    core::{
        lease::{Action, Done, LeaseId, PrincipalName},
        policy::{AbsentLease, LeaseAuth, LeaseRules},
        record::{Revision, Snapshot},
        refusal::{Code, Refusal},
        resource::ResourceKey,
        time::StoreTime,
        validators::{Representation, Validators},
    },
    dialect::{Incoming, LeaseOperation, Response},
    entropy::random_bytes,
};
use quota::LeaseQuota;
use step::Stepped;

pub(crate) mod quota;
pub(crate) mod step;
pub(crate) mod usage;

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

/// Lease operations, and the word of leases on reads and writes. All generations of the configuration share them.
pub(crate) struct Leases {
    knowledge: Arc<Knowledge>,
    probes: Arc<Probes>,
    claims: Arc<Claims>,
    queues: Arc<Queues>,
    quota: LeaseQuota,
}

impl Leases {
    /// Leases over these rooms. At most `waiters_max` clients wait in all lines.
    pub(crate) fn new(knowledge: Arc<Knowledge>, probes: Arc<Probes>, claims: Arc<Claims>, waiters_max: usize) -> Self {
        let queues = Arc::new(Queues::for_leases(waiters_max));
        Self { knowledge, probes, claims, queues, quota: LeaseQuota::default() }
    }

    /// The rooms that leases rest on, which writes and reads share.
    pub(crate) fn rooms(&self) -> (Arc<Knowledge>, Arc<Probes>, Arc<Claims>) {
        (Arc::clone(&self.knowledge), Arc::clone(&self.probes), Arc::clone(&self.claims))
    }

    /// The questions to the upstream.
    pub(crate) const fn probes(&self) -> &Arc<Probes> {
        &self.probes
    }

    /// The lines of clients that wait for a lease.
    pub(crate) const fn queues(&self) -> &Arc<Queues> {
        &self.queues
    }

    /// Gives back the place among its holder's leases that the lease of a resource took: the lease has ended.
    pub(crate) fn free_place(&self, key: &ResourceKey) {
        self.quota.free(key);
    }

    /// Counts the lease of a resource until `end` from now on.
    pub(crate) fn change_end(&self, key: &ResourceKey, end: Option<StoreTime>) {
        self.quota.change_end(key, end);
    }

    /// Handles an operation on the lease of a resource.
    pub(crate) async fn lease(
        &self,
        client: &mut dyn Client,
        request: &Request,
        rules: &LeaseRules,
    ) -> Result<Answer, Answer> {
        let (received, grammar) = (client.head(), request.grammar());
        let incoming = Incoming { method: &request.method, target: received.raw_path(), headers: &received.headers };
        let operation = grammar.lease(incoming, rules, fresh_id)?;
        let always_labelled = request.rules().quirks.lease_answers_have_validators;
        let acquires = matches!(operation, LeaseOperation::Step { action: Action::Acquire(_), .. });
        let is_presence_needed = (acquires || always_labelled) && rules.absent == AbsentLease::Refuse;
        let needs = Needs { presence: is_presence_needed, tag: acquires || always_labelled };
        let seen = self.authorize(request, rules, needs).await?;
        let LeaseOperation::Step { action, wait } = operation else {
            let snapshot = self.knowledge.record(request).await?;
            return answer(grammar.lease_shown(&snapshot));
        };
        let Stepped { done, snapshot, waited } = self.take_step(client, request, rules, action, wait).await?;
        let mut response = grammar.lease_done(done, request.sender.lease_id, &snapshot, waited)?;
        if let (true, Some(seen)) = (always_labelled || matches!(done, Done::Acquired { .. }), seen)
            && let Some(Validators { tag, modified }) = seen.still_current(&snapshot)
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
        answer(response)
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
        let snapshot = self.knowledge.record(request).await?;
        let aim = if needs.tag { Aim::Tag } else { Aim::Verdict };
        match self.probes.probe(request, &snapshot, aim).await {
            Probed::Current { representation: Representation::Absent, missing: Some(missing), .. }
                if needs.presence =>
            {
                Err(self.probes.upstreams_own(request.rules(), *missing).await?)
            }
            Probed::Current { representation: Representation::Present(validators), .. } => {
                Ok(Some(ProbedState { validators, touched: snapshot.touched() }))
            }
            Probed::Answer(exchange) if rules.auth == LeaseAuth::Probe => {
                Err(self.probes.upstreams_own(request.rules(), *exchange).await?)
            }
            Probed::Current { .. } | Probed::Answer(_) => Ok(None),
            Probed::Unreadable(refusal) | Probed::Refused(refusal) => Err(refusal.into()),
        }
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
    rules.bind.then(|| request.sender.principal.name())
}

fn answer(response: Response) -> Result<Answer, Answer> {
    let mut head = ResponseHeader::build(response.status, Some(response.fields.len()))?;
    for (name, value) in &response.fields {
        head.append_header(name.clone(), value.clone())?;
    }
    Ok(Answer::Local(Box::new(head), response.body.map(Into::into)))
}
