//! The `[store]` table.

use std::path::PathBuf;

use super::{check::Check, keys::Placed, postgres, secrets::warn_if_open, shared};
use crate::{
    config::{
        StoreKind, StoreSettings,
        section::Layers,
        store::{MAX_SIZE, StoreKeys},
        table::Section as _,
        words::StoreWord,
    },
    core::policy::Guarantee,
};

pub(super) fn store(check: &mut Check<'_>, keys: &StoreKeys) -> StoreSettings {
    let kind = kind(check, keys);
    let store = StoreSettings::read(check, "", Layers::only(keys), (kind,));
    check.refuse(
        keys.max_bytes.as_ref(),
        !matches!(store.kind, StoreKind::Memory | StoreKind::Disk { .. }) && store.max_bytes != MAX_SIZE,
        "max_size limits the memory of records in this process, but this kind keeps them elsewhere",
        "leave it out, and limit the space of that engine",
    );
    store
}

fn kind(check: &mut Check<'_>, raw: &StoreKeys) -> StoreKind {
    let word = check.word("kind", raw.kind.as_ref()).unwrap_or(StoreWord::Memory);
    check.refuse(
        raw.path.as_ref(),
        word != StoreWord::Disk,
        "path is the file of the disk store, but this is another kind",
        "write kind = \"disk\", or leave path out",
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

/// Warns of locks without an end that a restart ends: their clients count on them.
pub(super) fn warn_of_lost_locks(check: &mut Check<'_>, store: &StoreSettings, routes: &[Placed]) {
    if !matches!(store.kind, StoreKind::Memory) {
        return;
    }
    let has_locks = |placed: &&Placed| {
        let guard = placed.route.as_ref().and_then(|route| route.guard.as_ref());
        guard.is_some_and(|guard| guard.dialect.grammar().facts().demands.has_endless_locks)
    };
    for placed in routes.iter().filter(has_locks) {
        let message = format!("the locks of route {:?} end with the process: its store is the memory", placed.name);
        let hint = "write kind = \"disk\" and a path in [store], or use one that proxies share";
        check.warn(placed.span.clone(), message, hint);
    }
}

/// Returns the file of the disk store. It has no default, because its operator must know where the leases are.
fn file(check: &mut Check<'_>, raw: &StoreKeys) -> PathBuf {
    const EXAMPLE: &str = "write path = \"/var/lib/ifmatch/leases\", or another file on a disk of this machine";
    check.refuse(raw.kind.as_ref(), raw.path.is_none(), "kind = \"disk\" needs a path", EXAMPLE);
    if let Some(path) = &raw.path {
        warn_if_open(check, "path", path);
    }
    raw.path.as_ref().map(|path| check.absolute_path("path", path, EXAMPLE)).unwrap_or_default()
}
