//! The decision whether a lease permits a read or a write (DESIGN, section 5).

use super::{LeaseId, LeaseState, PrincipalName};
use crate::core::{
    policy::{LeaseGuards, LeaseRules},
    record::Snapshot,
};

/// The kind of use that a request makes of a resource, as far as leases are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// The request reads the resource.
    Read,
    /// The request changes the resource.
    Write,
    /// The request removes the resource.
    Delete,
}

impl LeaseGuards {
    /// Whether this use needs the lease.
    pub const fn covers(self, usage: Usage) -> bool {
        match self {
            Self::Write => matches!(usage, Usage::Write | Usage::Delete),
            Self::Read => matches!(usage, Usage::Read),
            Self::ReadAndWrite => true,
            Self::Delete => matches!(usage, Usage::Delete),
        }
    }
}

/// The right by which a request uses a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The client holds the lease, and the write carries the fence.
    Holder,
    /// The lease does not guard this use.
    Unguarded,
    /// The lease would guard this use, but no client holds it.
    Free,
}

impl Standing {
    /// Whether a write with this standing leaves an ended lease unchanged ([`Mark::leaves_lease`]).
    ///
    /// [`Mark::leaves_lease`]: crate::core::record::Mark::leaves_lease
    pub const fn leaves_lease(self) -> bool {
        !matches!(self, Self::Free)
    }
}

/// Why a lease forbids a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseDenied {
    /// A client holds the lease, and the request names no id.
    IdMissing,
    /// No client holds the lease, the route requires it (`lease.required`), and the request names no id.
    LeaseRequired,
    /// Another client holds the lease.
    IdMismatch,
    /// The request names an id, but there is no lease, or only one of another id that has ended.
    NotPresent,
    /// The lease with this id has ended: it ran out or was broken.
    Lost,
    /// The resource is deleted as soon as no client holds the lease, and this client does not hold it.
    DeletePending,
}

/// Judges a use by the lease as it was read, on a route with these lease rules, or with none. A lease counts on all
/// routes, even if another route granted it. If a request names an id, the id is judged even if the use needs none.
///
/// # Errors
///
/// The lease forbids the use. Waiting helps only against [`UseDenied::IdMissing`].
pub fn judge_use(
    snapshot: &Snapshot,
    rules: Option<&LeaseRules>,
    usage: Usage,
    presented: Option<LeaseId>,
    principal: Option<PrincipalName>,
) -> Result<Standing, UseDenied> {
    let own = presented.and_then(|id| snapshot.record.leases.proved_by(id, principal));
    let own = own.map(|lease| lease.state(snapshot.now));
    if snapshot.record.pending_delete.is_some() && !own.is_some_and(LeaseState::is_held) {
        return Err(UseDenied::DeletePending);
    }
    let (state, is_guarded) = (snapshot.lease_state(), is_guarded(snapshot, rules, usage));
    if presented.is_none() {
        return match (is_guarded, state.is_held()) {
            (false, _) => Ok(Standing::Unguarded),
            (true, true) => Err(UseDenied::IdMissing),
            (true, false) if rules.is_some_and(|rules| rules.required) => Err(UseDenied::LeaseRequired),
            (true, false) => Ok(Standing::Free),
        };
    }
    match own {
        Some(LeaseState::Leased | LeaseState::Breaking) => Ok(Standing::Holder),
        Some(LeaseState::Expired | LeaseState::Broken) => Err(UseDenied::Lost),
        _ if state.is_held() => Err(UseDenied::IdMismatch),
        _ => Err(UseDenied::NotPresent),
    }
}

/// Whether a use needs the present leases, or would need one if there were any.
fn is_guarded(snapshot: &Snapshot, rules: Option<&LeaseRules>, usage: Usage) -> bool {
    if rules.is_none() && snapshot.lease().is_none() {
        return usage != Usage::Read;
    }
    let is_of_lease = snapshot.leases().any(|lease| lease.guards.covers(usage));
    is_of_lease || rules.is_some_and(|rules| rules.guards.covers(usage))
}
