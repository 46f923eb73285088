//! A lease as text, within its record.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{DamagedRecord, damaged, hex, milliseconds, moment, name, since};
use crate::core::{
    lease::{HolderLabel, Lease, LeaseDuration, LeaseId, LeaseMode, TargetName, Term},
    policy::LeaseGuards,
    record::{Revision, Stamp},
    time::StoreTime,
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenLease {
    id: String,
    /// The fence of the lease, if it is not that of the last grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fence: Option<u64>,
    term: WrittenTerm,
    /// `null` for a lease without an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    granted_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    holder: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    remember_time_ms: u64,
    #[serde(with = "WrittenGuards")]
    guards: LeaseGuards,
    target: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LeaseGuards", rename_all = "snake_case", deny_unknown_fields)]
enum WrittenGuards {
    Write,
    Read,
    ReadAndWrite,
    Delete,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum WrittenTerm {
    Held,
    HeldUntilMs(i64),
    BreakingUntilMs(i64),
    ReleasedAtMs(i64),
}

impl WrittenLease {
    /// `last` is the fence of the record.
    pub(super) fn of(lease: &Lease, last: Stamp, base: StoreTime) -> Self {
        Self {
            id: lease.id.reveal(),
            fence: match lease.fence {
                Stamp::At(Revision(fence)) if lease.fence != last => Some(fence),
                Stamp::At(_) | Stamp::Itself => None,
            },
            term: match lease.term {
                Term::Held(None) => WrittenTerm::Held,
                Term::Held(Some(end)) => WrittenTerm::HeldUntilMs(since(base, end)),
                Term::Breaking(end) => WrittenTerm::BreakingUntilMs(since(base, end)),
                Term::Released(at) => WrittenTerm::ReleasedAtMs(since(base, at)),
            },
            duration_ms: match lease.duration {
                LeaseDuration::Fixed(duration) => Some(milliseconds(duration)),
                LeaseDuration::Infinite => None,
            },
            granted_ms: since(base, lease.granted),
            holder: lease.holder.as_ref().map(|holder| holder.as_str().to_owned()),
            principal: lease.principal.map(hex),
            remember_time_ms: milliseconds(lease.remember_time),
            guards: lease.guards,
            target: hex(lease.target.0),
        }
    }

    /// Whether the lease was granted last.
    pub(super) const fn has_last_fence(&self) -> bool {
        self.fence.is_none()
    }

    pub(super) fn read(self, mode: LeaseMode, last: Stamp, base: StoreTime) -> Result<Lease, DamagedRecord> {
        let holder =
            self.holder.map(|holder| HolderLabel::parse(holder.as_bytes()).map_err(|_malformed| damaged("the holder")));
        Ok(Lease {
            id: LeaseId::parse(self.id.as_bytes()).map_err(|_malformed| damaged("the id of its lease"))?,
            mode,
            fence: self.fence.map_or(last, |fence| Stamp::At(Revision(fence))),
            term: match self.term {
                WrittenTerm::Held => Term::Held(None),
                WrittenTerm::HeldUntilMs(end) => Term::Held(Some(moment(base, end))),
                WrittenTerm::BreakingUntilMs(end) => Term::Breaking(moment(base, end)),
                WrittenTerm::ReleasedAtMs(at) => Term::Released(moment(base, at)),
            },
            duration: self
                .duration_ms
                .map_or(LeaseDuration::Infinite, |duration| LeaseDuration::Fixed(Duration::from_millis(duration))),
            granted: moment(base, self.granted_ms),
            holder: holder.transpose()?,
            principal: self.principal.as_deref().map(name).transpose()?,
            remember_time: Duration::from_millis(self.remember_time_ms),
            guards: self.guards,
            target: TargetName(name(&self.target)?),
        })
    }
}
