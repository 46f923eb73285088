//! The decision whether a lease permits a read or a write (DESIGN, section 5).

use super::{LeaseId, LeaseState, PrincipalName};
use crate::core::{
    policy::{LeaseGuards, LeaseRules},
    records::{record::Snapshot, tree_leases::LeaseReach},
};

/// The kind of use that a request makes of a resource, as leases count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// The request reads the resource.
    Read,
    /// The request changes the resource.
    Write,
    /// The request removes the resource.
    Delete,
}

/// The uses that a request makes of a resource in one reading of it or another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Usages {
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) deletes: bool,
}

impl Usages {
    /// True if this use is among them.
    pub const fn contains(self, usage: Usage) -> bool {
        match usage {
            Usage::Read => self.reads,
            Usage::Write => self.writes,
            Usage::Delete => self.deletes,
        }
    }

    /// Returns the uses of both.
    #[must_use]
    pub const fn joined(self, other: Self) -> Self {
        Self {
            reads: self.reads || other.reads,
            writes: self.writes || other.writes,
            deletes: self.deletes || other.deletes,
        }
    }

    /// True if the request changes the resource in some reading.
    pub const fn changes(self) -> bool {
        self.writes || self.deletes
    }
}

impl FromIterator<Usage> for Usages {
    fn from_iter<I: IntoIterator<Item = Usage>>(all: I) -> Self {
        all.into_iter().fold(Self::default(), |usages, usage| match usage {
            Usage::Read => Self { reads: true, ..usages },
            Usage::Write => Self { writes: true, ..usages },
            Usage::Delete => Self { deletes: true, ..usages },
        })
    }
}

impl From<Usage> for Usages {
    fn from(usage: Usage) -> Self {
        Self::from_iter([usage])
    }
}

impl LeaseGuards {
    /// True if this use needs the lease.
    pub const fn covers(self, usage: Usage) -> bool {
        match self {
            Self::Write => matches!(usage, Usage::Write | Usage::Delete),
            Self::Read => matches!(usage, Usage::Read),
            Self::ReadAndWrite => true,
            Self::Delete => matches!(usage, Usage::Delete),
        }
    }

    /// True if one of these uses needs the lease.
    pub fn covers_any(self, usages: Usages) -> bool {
        Usage::ALL.into_iter().any(|usage| usages.contains(usage) && self.covers(usage))
    }
}

/// The right by which a request uses a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The client holds the lease, and the write carries the fence.
    Holder,
    /// The client holds the lease of a tree around the resource, and the write carries the fence.
    HolderAround,
    /// The lease does not guard this use.
    Unguarded,
    /// The lease would guard this use, but no client holds it.
    Free,
}

impl Standing {
    /// True if a write with this standing leaves an ended lease unchanged ([`Mark::leaves_lease`]).
    ///
    /// [`Mark::leaves_lease`]: crate::core::records::record::Mark::leaves_lease
    pub const fn leaves_lease(self) -> bool {
        matches!(self, Self::Holder | Self::Unguarded)
    }

    /// True if the client holds a lease that keeps others away from the resource.
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Holder | Self::HolderAround)
    }
}

/// The reason why a lease forbids a use.
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
    /// The client holds a shared lease, and did not say that it would use the resource in this way.
    BeyondAccess,
    /// The resource is deleted as soon as no client holds the lease, and this client does not hold it.
    DeletePending,
}

/// Judges the uses that a request may make by the lease as it was read, on a route with these lease rules, or with none. A lease counts on all
/// routes, even if another route granted it. If a request names an id, the id is judged even if the use needs none.
///
/// # Errors
///
/// The lease forbids the use. Waiting helps only against [`UseDenied::IdMissing`].
pub fn judge_use(
    snapshot: &Snapshot,
    rules: Option<&LeaseRules>,
    usages: impl Into<Usages>,
    presented: Option<LeaseId>,
    principal: Option<PrincipalName>,
) -> Result<Standing, UseDenied> {
    let own = presented.and_then(|id| snapshot.record.leases.proved_by(id, principal));
    let state_of_own = own.map(|lease| lease.state(snapshot.now));
    if snapshot.record.pending_delete.is_some() && !state_of_own.is_some_and(LeaseState::is_held) {
        return Err(UseDenied::DeletePending);
    }
    let usages = usages.into();
    let (state, is_guarded) = (snapshot.lease_state(), is_guarded(snapshot, rules, usages));
    let around = snapshot.held_around(LeaseReach::Tree).map(|around| &around.lease);
    let is_kept = around.clone().any(|lease| lease.guards.covers_any(usages));
    let Some(id) = presented else {
        return match (is_guarded, state.is_held()) {
            _ if is_kept => Err(UseDenied::IdMissing),
            (false, _) => Ok(Standing::Unguarded),
            (true, true) => Err(UseDenied::IdMissing),
            (true, false) if rules.is_some_and(|rules| rules.required) => Err(UseDenied::LeaseRequired),
            (true, false) => Ok(Standing::Free),
        };
    };
    // One of all shared leases suffices, and an exclusive one has none beside it.
    let mut around = around.filter(|_| snapshot.held_leases().all(|lease| lease.mode.is_shared()));
    match state_of_own {
        Some(LeaseState::Leased | LeaseState::Breaking) => {
            let is_permitted = own.is_some_and(|own| own.mode.permits(usages));
            is_permitted.then_some(Standing::Holder).ok_or(UseDenied::BeyondAccess)
        }
        Some(LeaseState::Expired | LeaseState::Broken) => Err(UseDenied::Lost),
        _ if around.any(|lease| lease.is_proved_by(id, principal)) => Ok(Standing::HolderAround),
        _ if is_kept || state.is_held() => Err(UseDenied::IdMismatch),
        _ => Err(UseDenied::NotPresent),
    }
}

/// True if one of these uses needs the present leases, or would need one if there were any.
fn is_guarded(snapshot: &Snapshot, rules: Option<&LeaseRules>, usages: Usages) -> bool {
    if rules.is_none() && snapshot.lease().is_none() {
        return usages.changes();
    }
    let is_of_lease = snapshot.leases().any(|lease| lease.guards.covers_any(usages));
    is_of_lease || rules.is_some_and(|rules| rules.guards.covers_any(usages))
}
