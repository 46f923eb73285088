//! Stands in for the shared stores in a build without them, such as that of the demo.

use std::{
    future::{Ready, ready},
    sync::Arc,
};

use super::{OpenError, Store};
use crate::{
    clock::Clock,
    config::{self, StoreSettings},
};

/// The kinds of shared stores in this build.
pub const SHARED_KINDS: &[&str] = &[];

type NotOpened = Ready<Result<Arc<dyn Store>, OpenError>>;

pub(super) fn etcd(_: &config::Etcd, _: &StoreSettings, _: Arc<dyn Clock>) -> NotOpened {
    ready(Err(OpenError::NotInBuild("etcd")))
}

pub(super) fn redis(_: &config::Redis, _: &StoreSettings) -> NotOpened {
    ready(Err(OpenError::NotInBuild("redis")))
}

pub(super) fn postgres(_: &config::Postgres, _: &StoreSettings) -> NotOpened {
    ready(Err(OpenError::NotInBuild("postgres")))
}
