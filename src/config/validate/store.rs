//! The `[store]` table.

use std::path::PathBuf;

use super::{check::Check, keys::Placed, postgres, secrets::warn_if_open, shared};
use crate::{
    config::{StoreKind, StoreSettings, limits, raw, words::StoreWord},
    core::policy::Guarantee,
};

pub(super) fn store(check: &mut Check<'_>, raw: &raw::Store) -> StoreSettings {
    StoreSettings {
        kind: kind(check, raw),
        capacity: check.count(raw.capacity.as_ref(), limits::CAPACITY),
        max_bytes: check.bytes(raw.max_size.as_ref(), limits::STORE_MAX_SIZE),
        idle_ttl: check.duration(raw.idle_ttl.as_ref(), limits::IDLE_TTL),
        timeout: check.duration(raw.timeout.as_ref(), limits::STORE_TIMEOUT),
        start_grace: check.duration(raw.start_grace.as_ref(), limits::START_GRACE),
    }
}

fn kind(check: &mut Check<'_>, raw: &raw::Store) -> StoreKind {
    let word = check.word("kind", raw.kind.as_ref()).unwrap_or(StoreWord::Memory);
    check.refuse(
        raw.path.as_ref(),
        word != StoreWord::Disk,
        "path is the file of the disk store, but this is another kind",
        "write kind = \"disk\", or leave path out",
    );
    let max_bytes = check.bytes(raw.max_size.as_ref(), limits::STORE_MAX_SIZE);
    check.refuse(
        raw.max_size.as_ref(),
        !matches!(word, StoreWord::Memory | StoreWord::Disk) && max_bytes != limits::STORE_MAX_SIZE.default,
        "max_size limits the memory of records in this process, but this kind keeps them elsewhere",
        "leave it out, and limit the space of that engine",
    );
    shared::refuse_unused(check, raw, word);
    match word {
        StoreWord::Memory => StoreKind::Memory,
        StoreWord::Etcd => StoreKind::Etcd(shared::etcd(check, raw)),
        StoreWord::Postgres => StoreKind::Postgres(postgres::postgres(check, raw)),
        StoreWord::Redis => StoreKind::Redis(shared::redis(check, raw)),
        StoreWord::Disk => StoreKind::Disk { path: file(check, raw) },
    }
}

/// Reports a `guarantee` that the store cannot give, so that this is known before the first request.
pub(super) fn refuse_weak(check: &mut Check<'_>, store: &StoreSettings, routes: &[Placed]) {
    for placed in routes {
        let Some((guard, span)) =
            placed.route.as_ref().and_then(|route| route.guard.as_ref()).zip(placed.guarantee.clone())
        else {
            continue;
        };
        let is_infinite = guard.lease.as_ref().is_some_and(|rules| rules.infinite);
        let why = match &store.kind {
            StoreKind::Redis(_) => "a failover of Redis may lose what it has acknowledged",
            StoreKind::Memory if is_infinite => "in memory even an infinite lease ends with the process",
            StoreKind::Memory | StoreKind::Disk { .. } | StoreKind::Etcd(_) | StoreKind::Postgres(_) => continue,
        };
        if guard.guarantee == Guarantee::Safety {
            let message = format!("route {:?} demands safety: {why}", placed.name);
            check.hinted(
                span,
                message,
                "use kind = \"etcd\", \"postgres\" or \"disk\" in [store], or leave guarantee out",
            );
        }
    }
}

/// Returns the file of the disk store. It has no default, because its operator must know where the leases are.
fn file(check: &mut Check<'_>, raw: &raw::Store) -> PathBuf {
    const EXAMPLE: &str = "write path = \"/var/lib/ifmatch/leases\", or another file on a disk of this machine";
    check.refuse(raw.kind.as_ref(), raw.path.is_none(), "kind = \"disk\" needs a path", EXAMPLE);
    if let Some(path) = &raw.path {
        warn_if_open(check, "path", path);
    }
    raw.path.as_ref().map(|path| check.absolute_path("path", path, EXAMPLE)).unwrap_or_default()
}
