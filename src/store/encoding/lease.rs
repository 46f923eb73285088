//! A lease as text, within its record.

use std::time::Duration;

use serde::Deserialize;

use super::{DamagedRecord, damaged, milliseconds, moment, name, object::ObjectWriter, read_stamp, since, stamp};
use crate::core::{
    lease::{
        HolderLabel, KeeperName, Lease, LeaseDuration, LeaseId, LeaseMode, LeaseNote, ShareMode, TargetName, Term,
        Usage, Usages,
    },
    policy::LeaseGuards,
    time::StoreTime,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenLease {
    id: String,
    /// True if other clients may hold a lease beside it.
    shared: bool,
    /// The uses that the holder of a shared lease makes, and those that it permits to others; without them, all uses.
    #[serde(default)]
    access: Option<Vec<WrittenUsage>>,
    #[serde(default)]
    share: Option<Vec<WrittenUsage>>,
    /// The fence, or `null` for the revision that the engine gives to this record.
    fence: Option<u64>,
    term: WrittenTerm,
    /// `null` for a lease without an end.
    #[serde(default)]
    duration_ms: Option<u64>,
    granted_ms: i64,
    #[serde(default)]
    holder: Option<String>,
    #[serde(default)]
    note: Option<String>,
    #[serde(default)]
    keeper: Option<u64>,
    #[serde(default)]
    principal: Option<String>,
    remember_time_ms: u64,
    #[serde(with = "WrittenGuards")]
    guards: LeaseGuards,
    target: String,
}

#[derive(Deserialize)]
#[serde(remote = "LeaseGuards", rename_all = "snake_case", deny_unknown_fields)]
enum WrittenGuards {
    Write,
    Read,
    ReadAndWrite,
    Delete,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenUsage {
    Read,
    Write,
    Delete,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum WrittenTerm {
    Held,
    HeldUntilMs(i64),
    BreakingUntilMs(i64),
    ReleasedAtMs(i64),
}

fn write_term(term: Term, base: StoreTime, object: &mut ObjectWriter<'_>) {
    let (name, at) = match term {
        Term::Held(None) => return object.word("term", "held"),
        Term::Held(Some(end)) => ("held_until_ms", end),
        Term::Breaking(end) => ("breaking_until_ms", end),
        Term::Released(at) => ("released_at_ms", at),
    };
    object.object("term", |object| object.signed(name, since(base, at)));
}

/// Most shared leases are for every use, and do not name them.
fn write_usages(name: &str, usages: Usages, object: &mut ObjectWriter<'_>) {
    object.value(name, (usages != Usages::ALL).then(|| usages.words().collect::<Vec<_>>()));
}

fn read_usages(written: Option<Vec<WrittenUsage>>) -> Usages {
    written.map_or(Usages::ALL, |usages| {
        usages
            .into_iter()
            .map(|usage| match usage {
                WrittenUsage::Read => Usage::Read,
                WrittenUsage::Write => Usage::Write,
                WrittenUsage::Delete => Usage::Delete,
            })
            .collect()
    })
}

impl WrittenLease {
    pub(super) fn write(lease: &Lease, base: StoreTime, object: &mut ObjectWriter<'_>) {
        object.word("id", &lease.id.reveal());
        object.flag("shared", lease.mode.is_shared());
        if let LeaseMode::Shared(mode) = lease.mode {
            write_usages("access", mode.access, object);
            write_usages("share", mode.share, object);
        }
        object.number_or_null("fence", stamp(lease.fence));
        write_term(lease.term, base, object);
        if let LeaseDuration::Fixed(duration) = lease.duration {
            object.number("duration_ms", milliseconds(duration));
        }
        object.signed("granted_ms", since(base, lease.granted));
        object.value("holder", lease.holder.as_ref().map(HolderLabel::as_str));
        object.value("note", lease.note.as_ref().map(LeaseNote::as_str));
        object.value("keeper", lease.keeper.map(KeeperName::number));
        if let Some(principal) = lease.principal {
            object.hexadecimal("principal", &principal);
        }
        object.number("remember_time_ms", milliseconds(lease.remember_time));
        object.word(
            "guards",
            match lease.guards {
                LeaseGuards::Write => "write",
                LeaseGuards::Read => "read",
                LeaseGuards::ReadAndWrite => "read_and_write",
                LeaseGuards::Delete => "delete",
            },
        );
        object.hexadecimal("target", &lease.target.0);
    }

    pub(super) fn read(self, base: StoreTime) -> Result<Lease, DamagedRecord> {
        let holder =
            self.holder.map(|holder| HolderLabel::parse(holder.as_bytes()).map_err(|_malformed| damaged("the holder")));
        let note = self.note.map(|note| LeaseNote::new(&note).map_err(|_too_long| damaged("the note of its lease")));
        Ok(Lease {
            id: LeaseId::parse(self.id.as_bytes()).map_err(|_malformed| damaged("the id of its lease"))?,
            mode: if self.shared {
                LeaseMode::Shared(ShareMode { access: read_usages(self.access), share: read_usages(self.share) })
            } else {
                LeaseMode::Exclusive
            },
            fence: read_stamp(self.fence),
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
            note: note.transpose()?,
            keeper: self.keeper.map(KeeperName::of),
            principal: self.principal.as_deref().map(name).transpose()?,
            remember_time: Duration::from_millis(self.remember_time_ms),
            guards: self.guards,
            target: TargetName(name(&self.target)?),
        })
    }
}
