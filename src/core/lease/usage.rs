//! The word of a lease on reads and writes (DESIGN, section 5).

use super::{LeaseId, LeaseState, PrincipalName};
use crate::core::{
    policy::{LeaseGuards, LeaseRules},
    record::Snapshot,
};

/// What a request does to a resource, as far as leases are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// It reads it.
    Read,
    /// It changes it.
    Write,
    /// It removes it.
    Delete,
}

impl LeaseGuards {
    /// Whether this use needs the lease.
    pub const fn covers(self, usage: Usage) -> bool {
        match self {
            Self::Write => matches!(usage, Usage::Write | Usage::Delete),
            Self::ReadAndWrite => true,
            Self::Delete => matches!(usage, Usage::Delete),
        }
    }
}

/// In what right a request uses a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As the holder of its lease: the write carries the fence.
    Holder,
    /// In a way that the lease does not guard.
    Unguarded,
    /// In a way that the lease would guard, if anybody held it.
    Free,
}

impl Standing {
    /// Whether a write of this standing leaves a lease that has ended as it is ([`Mark::leaves_lease`]).
    ///
    /// [`Mark::leaves_lease`]: crate::core::record::Mark::leaves_lease
    pub const fn leaves_lease(self) -> bool {
        !matches!(self, Self::Free)
    }
}

/// Why a lease forbids a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseDenied {
    /// Somebody holds the lease, and the request names no id.
    IdMissing,
    /// Nobody holds the lease; the route demands that the client does (`lease.required`), and the request names no id.
    LeaseRequired,
    /// Somebody else holds the lease.
    IdMismatch,
    /// The request names an id, and there is no lease, or one of another id that has ended.
    NotPresent,
    /// The lease of this id has ended: it ran out or was broken.
    Lost,
}

/// Judges a use by the lease as it was read, on a route with these rules for leases, or with none: whoever holds the
/// lease, whatever route it was granted by, holds it against all. An id that a request names is judged even where it would
/// need none.
///
/// # Errors
///
/// The lease forbids it; no time mends that but for [`UseDenied::IdMissing`].
pub fn judge_use(
    snapshot: &Snapshot,
    rules: Option<&LeaseRules>,
    usage: Usage,
    presented: Option<LeaseId>,
    principal: Option<PrincipalName>,
) -> Result<Standing, UseDenied> {
    let (state, is_guarded) = (snapshot.lease_state(), is_guarded(snapshot, rules, usage));
    let Some(id) = presented else {
        return match (is_guarded, state.is_held()) {
            (false, _) => Ok(Standing::Unguarded),
            (true, true) => Err(UseDenied::IdMissing),
            (true, false) if rules.is_some_and(|rules| rules.required) => Err(UseDenied::LeaseRequired),
            (true, false) => Ok(Standing::Free),
        };
    };
    let is_holder = snapshot.lease().is_some_and(|lease| lease.is_proved_by(id, principal));
    match state {
        LeaseState::Leased | LeaseState::Breaking if is_holder => Ok(Standing::Holder),
        LeaseState::Leased | LeaseState::Breaking => Err(UseDenied::IdMismatch),
        LeaseState::Expired | LeaseState::Broken if is_holder => Err(UseDenied::Lost),
        _ => Err(UseDenied::NotPresent),
    }
}

/// Whether a use needs the lease that there is, or would need one if there were any.
fn is_guarded(snapshot: &Snapshot, rules: Option<&LeaseRules>, usage: Usage) -> bool {
    let granted = snapshot.lease().map(|lease| lease.guards);
    let of_route = rules.map(|rules| rules.guards);
    match (granted, of_route) {
        (None, None) => usage != Usage::Read,
        _ => [granted, of_route].into_iter().flatten().any(|guards| guards.covers(usage)),
    }
}
