//! Reads and writes of a resource, judged by its lease (DESIGN, section 4, step 5).

use http::Method;
use pingora::http::{RequestHeader, ResponseHeader};

use super::{
    Leases, fresh_id,
    untold::{UntoldGrant, has_nobody_to_tell},
};
use crate::{
    body::Client,
    core::{
        cause::Reason,
        lease::{
            Action, Done, LeaseDuration, LeaseId, LeaseSet, Standing, Usage, UseDenied, field_names::FENCING_TOKEN,
            judge_use,
        },
        policy::{AbsentLease, LeaseAuth, LeaseRules, Require},
        records::{
            delete_steps::judge_late_delete,
            record::{Record, Revision, Snapshot},
        },
        refusal::{Code, Refusal},
        rights::{Obstacle, WordOfBackend, may_be_told},
        tags::{
            head_answer::Aim,
            precondition::{Judgement, TagCondition, judge},
            validators::Representation,
        },
        verdict::failed_read,
    },
    dialect::LeaseOnRead,
    guard::{Halt, knowledge::evidence::match_rule, probe::Probed, refusals, request::Request},
    store::StoreError,
};

/// A lease that a read has acquired.
pub(crate) struct Receipt {
    id: LeaseId,
    duration: LeaseDuration,
    snapshot: Snapshot,
    /// The lease, until the client gets its id.
    untold: Option<UntoldGrant>,
}

impl Leases {
    /// Returns the right of a write under the lease. A write without one fails with its answer.
    pub(crate) async fn permit(&self, request: &Request, snapshot: &Snapshot) -> Result<Standing, Halt> {
        match judge_write_by_lease(request, snapshot) {
            Ok(standing) => Ok(standing),
            Err(denied) => Err(self.refuse_by_lease(request, snapshot, denied).await),
        }
    }

    /// Returns the answer to a write that its lease forbids. A client without rights gets the answer that it would get
    /// without the lease.
    pub(crate) async fn refuse_by_lease(&self, request: &Request, snapshot: &Snapshot, denied: Refusal) -> Halt {
        if is_open_to_all(request) {
            return self.refuse_knowing(request, snapshot, denied).await;
        }
        let without_lease = judge_by_lease(request, &without_leases(snapshot)).err();
        let obstacle = if without_lease.is_some() { Obstacle::OwnLease } else { lease_obstacle(request) };
        let is_shown = self.knowledge.is_shown(request, snapshot);
        if let Err(own) = self.probes.must_know(request, snapshot, obstacle).await {
            return own;
        }
        // The upstream shows no resource to a client that still is a stranger.
        let is_hidden = self.knowledge.is_stranger(request, snapshot)
            && !may_be_told(WordOfBackend::Misses, lease_obstacle(request), is_shown);
        let denied = without_lease.filter(|_| is_hidden).unwrap_or(denied);
        self.refuse_knowing(request, snapshot, denied).await
    }

    /// Returns the answer to a request that its lease forbids, for a client that may know of the lease. Some requests
    /// are judged by a probe of the upstream first.
    pub(crate) async fn refuse_knowing(&self, request: &Request, snapshot: &Snapshot, denied: Refusal) -> Halt {
        let denied = self.knowledge.explain_lease(request, snapshot, denied);
        if !is_upstream_asked_first(request) {
            return denied.into();
        }
        // Boxed, so that the futures of other requests stay small.
        let (representation, own, status) = match Box::pin(self.probes.probe(request, snapshot, Aim::Verdict)).await {
            Probed::Current { representation, missing, status, .. } => (representation, missing, Some(status)),
            Probed::Answer(exchange) => (Representation::Unknown, Some(exchange), None),
            Probed::Unreadable(_) | Probed::Refused(_) => return denied.into(),
        };
        let judged = judge(&request.method, &request.conditions, &representation, match_rule(request.rules()));
        match (judged, own) {
            (Judgement::Failed { field, .. }, _) => {
                let refusal = failed_read(&request.conditions, field, &representation);
                self.knowledge.explain_probed(request, snapshot, refusal, status).into()
            }
            (_, Some(exchange)) => self.probes.upstreams_own(request, *exchange).await,
            _ => denied.into(),
        }
    }

    /// Acquires the lease of a resource that a GET is about to read, as the GET requests it ([`wanted_on_read`]).
    pub(crate) async fn acquire_on_read(
        &self,
        client: &mut dyn Client,
        request: &Request,
        (wanted, wait): LeaseOnRead,
    ) -> Result<Option<Receipt>, Halt> {
        let Some(rules) = &request.rules().lease else { return Ok(None) };
        let stepped = self.take_step(client, request, rules, Action::Acquire(wanted), wait).await?;
        match stepped.done {
            Done::Acquired { id, duration, .. } => {
                Ok(Some(Receipt { id, duration, snapshot: stepped.snapshot, untold: stepped.untold }))
            }
            _ => Ok(None),
        }
    }

    /// Releases the lease of a read that failed. If the release fails too, the lease is taken back later.
    pub(crate) async fn return_receipt(&self, client: &mut dyn Client, request: &Request, receipt: Receipt) {
        let Some(rules) = &request.rules().lease else { return };
        let released = self.take_step(client, request, rules, Action::Release { id: receipt.id }, None).await;
        if let (Ok(_), Some(untold)) = (released, receipt.untold) {
            untold.told();
        }
    }
}

/// Judges a write by the lease in the snapshot, no matter which route granted it.
pub(crate) fn judge_write_by_lease(request: &Request, snapshot: &Snapshot) -> Result<Standing, Refusal> {
    judge_by_lease(request, snapshot)
}

/// Judges a read by the lease in the snapshot, and returns the fence if the client holds the lease. Without the record,
/// three kinds of reads are refused (rule 12): a lease may guard them, their resource may wait to be deleted, or they
/// name a lease. All other reads pass.
pub(crate) fn judge_read_by_lease(
    request: &Request,
    snapshot: Result<&Snapshot, &StoreError>,
) -> Result<Option<Revision>, Refusal> {
    let guards_reads = |rules: &LeaseRules| rules.guards.covers(Usage::Read);
    let may_be_leased = request.route().deletes_may_be_pending
        || request.route().reads_may_be_leased
        || request.rules().lease.as_ref().is_some_and(guards_reads);
    let snapshot = match snapshot {
        Ok(snapshot) => snapshot,
        Err(error) if may_be_leased || request.sender.lease_id.is_some() => return Err(refusals::of_store(error)),
        Err(_) => return Ok(None),
    };
    let standing = judge_by_lease(request, snapshot)?;
    Ok(standing.is_held().then(|| snapshot.fence_of_writes()))
}

impl Receipt {
    /// True if its client has gone, and no client would learn of a lease that never ends.
    pub(crate) fn is_in_vain(&self, client: &mut dyn Client) -> bool {
        has_nobody_to_tell(client, self.duration)
    }

    /// Returns the fence of the lease.
    pub(crate) fn fence(&self) -> Revision {
        self.snapshot.fence()
    }

    /// Writes the fields that tell the client of its lease.
    pub(crate) fn write_to(self, request: &Request, head: &mut ResponseHeader) -> pingora::Result<()> {
        for (name, value) in request.grammar().grant_fields(self.id, self.duration, &self.snapshot) {
            head.insert_header(name, value)?;
        }
        if let Some(untold) = self.untold {
            untold.travel_with(head);
        }
        head.insert_header(http::header::CACHE_CONTROL, "no-store")
    }
}

/// Judges all that a request may do by the lease in the snapshot. The lease itself records whether it is bound to a principal.
fn judge_by_lease(request: &Request, snapshot: &Snapshot) -> Result<Standing, Refusal> {
    let principal = Some(request.sender.principal.holder());
    let standing = if request.sender.is_late_delete {
        judge_late_delete(snapshot, request.target())
    } else {
        let rules = request.rules().lease.as_ref().filter(|_| request.sender.needs_lease);
        judge_use(snapshot, rules, request.place.usages, request.sender.lease_id, principal)
    };
    standing.map_err(|denied| {
        let reason = match &denied {
            UseDenied::IdMissing | UseDenied::IdMismatch => Some(Reason::LeaseHeld),
            UseDenied::LeaseRequired => Some(Reason::LeaseRequired),
            UseDenied::NotPresent | UseDenied::Lost | UseDenied::BeyondAccess | UseDenied::DeletePending => None,
        };
        let tells_conflict = request.rules().lease.as_ref().is_some_and(|rules| rules.sharing_violation);
        let refusal = match denied {
            UseDenied::IdMissing if tells_conflict => sharing_violation(),
            denied => request.grammar().use_denied(denied),
        };
        match reason {
            Some(reason) => refusal.because(reason),
            None => refusal,
        }
    })
}

/// The refusal of a client that has not opened what another one holds.
fn sharing_violation() -> Refusal {
    let detail = "another client holds the lease of the resource: retry later, or acquire the lease when it is free";
    Refusal::new(Code::SharingViolation, detail).retry_after(refusals::RETRY_SOON)
}

/// Returns the lease that a GET requests (`lease.acquire_on_read`); `None` if it requests none.
pub(crate) fn wanted_on_read(request: &Request) -> Result<Option<LeaseOnRead>, Refusal> {
    let rules = request.rules().lease.as_ref().filter(|_| request.method == Method::GET);
    let wanted = rules.map(|rules| request.grammar().lease_on_read(&request.head.headers, rules, fresh_id));
    Ok(wanted.transpose()?.flatten())
}

/// Returns the record as it would be without leases of the resource.
fn without_leases(snapshot: &Snapshot) -> Snapshot {
    let record = Record { leases: LeaseSet::NONE, pending_delete: None, ..snapshot.draft() };
    Snapshot::new(snapshot.revision, record, snapshot.now)
}

/// True if each client that can reach the proxy may know of the lease (`lease.auth`).
pub(crate) fn is_open_to_all(request: &Request) -> bool {
    request.rules().lease.as_ref().is_some_and(|rules| rules.auth == LeaseAuth::None)
}

/// The lease of the resource of a request, as an obstacle.
pub(crate) fn lease_obstacle(request: &Request) -> Obstacle {
    Obstacle::Lease(request.rules().lease.as_ref().map_or(AbsentLease::Refuse, |rules| rules.absent))
}

/// True if the conditions of a request are judged before the lease: all but `If-None-Match: *`, in some dialects.
pub(crate) fn conditions_go_first(request: &Request) -> bool {
    let conditions = &request.conditions;
    request.rules().quirks.conditions_before_lease
        && !conditions.is_empty()
        && conditions.if_none_match != Some(TagCondition::Any)
}

/// True if the upstream is probed before a request is refused by its lease. Some dialects judge the conditions of a
/// read first. A read or removal of a missing resource gets 404, no matter which lease it names, since a missing
/// resource has no lease.
pub(crate) fn is_upstream_asked_first(request: &Request) -> bool {
    let is_removed = request.method == Method::DELETE;
    let names_lease = request.rules().quirks.conditions_before_lease && request.sender.lease_id.is_some();
    names_lease && (request.is_get_or_head() || is_removed) || request.is_get_or_head() && conditions_go_first(request)
}

/// Sends the fence of the holder to the upstream, which can then refuse a holder that was overtaken.
pub(crate) fn send_fence(head: &mut RequestHeader, standing: Standing, fence: Revision) -> pingora::Result<()> {
    match standing {
        Standing::Holder | Standing::HolderAround => head.insert_header(FENCING_TOKEN.title, fence.0),
        Standing::Unguarded | Standing::Free => Ok(()),
    }
}

/// True if an appending write has nothing to judge, and so runs beside other writes.
pub(crate) fn is_free_to_append(request: &Request) -> bool {
    request.conditions.is_empty()
        && request.rules().demand(&request.method) == Require::Never
        && request.sender.lease_id.is_none()
        && !request.rules().lease.as_ref().is_some_and(|rules: &LeaseRules| rules.required)
}
