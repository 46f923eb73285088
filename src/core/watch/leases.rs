//! The leases of a resource, as an observer sees them.

use std::time::Duration;

use crate::core::{
    lease::LeaseState,
    records::record::{Revision, Snapshot},
    time::StoreTime,
};

/// How much later a lease must end for an event about its renewal. A store may state the end of an unchanged lease a
/// little later at each look.
const RENEWAL_MIN: Duration = Duration::from_secs(1);

/// A step of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseChange {
    /// A client holds it from now on.
    Acquired,
    /// Its holder has extended it.
    Renewed,
    /// It is being broken, and its holder has some time to finish.
    Breaking,
    /// Its holder has given it up.
    Released,
    /// It ran out.
    Expired,
    /// It was broken.
    Broken,
}

impl LeaseChange {
    /// The word for the step in events.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Acquired => "acquired",
            Self::Renewed => "renewed",
            Self::Breaking => "breaking",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Broken => "broken",
        }
    }
}

/// A lease as an observer saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenLease {
    pub(super) fence: Revision,
    pub(super) state: LeaseState,
    end: Option<StoreTime>,
}

/// Returns the leases that are held, or that have ended recently, in the order of their fences.
pub(super) fn seen(snapshot: &Snapshot) -> Vec<SeenLease> {
    let of_lease = |lease: &crate::core::lease::Lease| SeenLease {
        fence: lease.fence.resolve(snapshot.revision),
        state: lease.state(snapshot.now),
        end: lease.end(),
    };
    let mut leases: Vec<_> =
        snapshot.leases().map(of_lease).filter(|lease| lease.state != LeaseState::Available).collect();
    leases.sort_unstable_by_key(|lease| lease.fence);
    leases
}

/// Returns the steps between two looks, the second of which is this one.
pub(super) fn changes(before: &[SeenLease], after: &[SeenLease], snapshot: &Snapshot) -> Vec<LeaseChange> {
    let ended = before.iter().filter(|lease| lease.state.is_held() && !after.iter().any(|other| other.is_same(lease)));
    // Its record does not show it any more. It ran out by then, or its holder gave it up.
    let ended = ended.map(|lease| match lease.end {
        Some(end) if end <= snapshot.now => LeaseChange::Expired,
        _ => LeaseChange::Released,
    });
    let stayed =
        after.iter().filter_map(|lease| lease.change_since(before.iter().find(|other| other.is_same(lease)).copied()));
    ended.chain(stayed).collect()
}

impl SeenLease {
    fn is_same(&self, other: &Self) -> bool {
        self.fence == other.fence
    }

    fn change_since(self, before: Option<Self>) -> Option<LeaseChange> {
        let was = before.map_or(LeaseState::Available, |before| before.state);
        match self.state {
            LeaseState::Leased if was != LeaseState::Leased => Some(LeaseChange::Acquired),
            LeaseState::Leased => self.lasts_longer_than(before?).then_some(LeaseChange::Renewed),
            state if state == was => None,
            LeaseState::Breaking => Some(LeaseChange::Breaking),
            LeaseState::Expired => Some(LeaseChange::Expired),
            LeaseState::Broken => Some(LeaseChange::Broken),
            LeaseState::Available => None,
        }
    }

    fn lasts_longer_than(self, before: Self) -> bool {
        match (before.end, self.end) {
            (Some(before), Some(now)) => before.until(now) >= RENEWAL_MIN,
            (before, now) => before.is_some() && now.is_none(),
        }
    }
}
