//! The lease operations: the requests of clients, and their results.

use std::time::Duration;

use super::{HolderLabel, KeeperName, LeaseDuration, LeaseId, LeaseMode, LeaseNote, PrincipalName, TargetName};
use crate::core::records::record::Availability;

/// A client's request for an operation on the lease of a resource.
#[derive(Clone, Debug)]
pub struct Command {
    /// The operation.
    pub action: Action,
    /// The principal of the client, if leases are bound to principals (`lease.bind`).
    pub principal: Option<PrincipalName>,
    /// The target of the lease.
    pub target: TargetName,
    /// True if this client has set the sign in the record by which a client waits for the holders of shared leases.
    pub has_signed: bool,
}

/// A lease operation.
#[derive(Clone, Debug)]
pub enum Action {
    /// Acquires the lease.
    Acquire(Acquire),
    /// Extends the lease to its full duration from now on.
    Renew {
        /// The id of the holder.
        id: LeaseId,
        /// The duration from now on, if it is to be another one.
        duration: Option<LeaseDuration>,
    },
    /// Gives the lease another id.
    Change {
        /// The id of the holder.
        id: LeaseId,
        /// The new id.
        proposed: LeaseId,
    },
    /// Withdraws the DELETE that waits for the holders of the lease.
    WithdrawDelete {
        /// The id of the holder.
        id: LeaseId,
    },
    /// Gives the lease up.
    Release {
        /// The id of the holder.
        id: LeaseId,
    },
    /// Ends the leases of all holders, without their ids.
    Break {
        /// The time that a holder has to finish, unless its lease ends before. By default a fixed lease runs to its
        /// end, and an infinite one ends at once.
        period: Option<Duration>,
    },
    /// Ends the lease with this id at once, no matter which client holds it.
    BreakNamed {
        /// The id.
        id: LeaseId,
    },
}

/// The properties of the lease that a client wants to acquire.
#[derive(Clone, Debug)]
pub struct Acquire {
    /// The id that the client has chosen, which makes the acquisition idempotent.
    pub proposed: Option<LeaseId>,
    /// The random id to use if the client has chosen none.
    pub fresh: LeaseId,
    /// The mode of the lease: if it is shared, other clients may hold shared leases beside it.
    pub mode: LeaseMode,
    /// The duration. The caller checks that the route allows it ([`LeaseDuration::is_allowed`]).
    pub duration: LeaseDuration,
    /// The label that the holder gives itself.
    pub holder: Option<HolderLabel>,
    /// The service's note about the lease.
    pub note: Option<LeaseNote>,
    /// The stream by which the client holds the lease.
    pub keeper: Option<KeeperName>,
    /// True if the leases of all others end at once. The caller checks that the route allows it (`lease.client_break`).
    pub takes_over: bool,
}

/// The effect of a step, once its record is in the store. The new record then holds the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The client holds the lease.
    Acquired {
        /// The id of the lease.
        id: LeaseId,
        /// The time for which it is granted.
        duration: LeaseDuration,
        /// True if this is a new holding, with a new fence. If not, the holder has repeated its request, or lets other
        /// clients hold shared leases from now on.
        is_new: bool,
    },
    /// The lease is held for its full duration from now on. Only its holder has written since it was last held, and
    /// holders of shared leases beside it.
    Renewed {
        /// The duration of the lease.
        duration: LeaseDuration,
    },
    /// The lease has another id.
    Changed {
        /// The new id.
        id: LeaseId,
    },
    /// No DELETE waits for the holders of the lease.
    DeleteWithdrawn,
    /// The holder gave the lease up.
    Released,
    /// The lease had been released with this id before.
    AlreadyReleased,
    /// The leases are broken, or will be.
    Broken {
        /// The time that their holders still have.
        remaining: Duration,
    },
}

impl Done {
    /// Returns the name of the effect in metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Acquired { is_new: true, .. } => "granted",
            Self::Acquired { is_new: false, .. } => "repeated",
            Self::Renewed { .. } => "renewed",
            Self::Changed { .. } => "changed",
            Self::DeleteWithdrawn => "delete withdrawn",
            Self::Released | Self::AlreadyReleased => "released",
            Self::Broken { .. } => "broken",
        }
    }
}

/// The reason why a step was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// Another client holds the lease.
    Held {
        /// The time that is left unless the lease is renewed; `None` if it has no end.
        remaining: Option<Duration>,
        /// The label that the holder gave itself.
        holder: Option<HolderLabel>,
        /// True if the lease is breaking, so that it cannot be renewed.
        is_breaking: bool,
    },
    /// No client can join the holders of shared leases at present.
    NoPlace {
        /// The time after which it is worth another attempt; `None` if no holder's lease has an end.
        remaining: Option<Duration>,
    },
    /// The lease, held or ended, has another id or is bound to another principal.
    IdMismatch,
    /// There is no lease.
    NotPresent,
    /// The lease of this id is breaking: it cannot be acquired, renewed or changed.
    Breaking,
    /// The lease of this id was broken: it cannot be renewed.
    Broken,
    /// The holding would last longer than `lease.max_hold_time`. A lease that is held runs to its end.
    BeyondHoldMax,
    /// The resource is deleted as soon as no client holds the lease: no further client gets it.
    DeletePending,
    /// Writes are in flight or in doubt. The lease can be granted once they have ended.
    Busy(Availability),
}
