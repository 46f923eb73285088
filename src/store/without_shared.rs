//! Stands in for the shared stores in a build without them, such as that of the demo.

use std::sync::Arc;

use super::{OpenError, Store};
use crate::{
    clock::Clock,
    config::{self, StoreSettings},
};

/// The kinds of shared stores in this build.
pub const SHARED_KINDS: &[&str] = &[];

pub(super) async fn etcd(_: &config::Etcd, _: &StoreSettings, _: Arc<dyn Clock>) -> Result<Arc<dyn Store>, OpenError> {
    Err(OpenError::NotInBuild("etcd"))
}

pub(super) async fn redis(_: &config::Redis, _: &StoreSettings) -> Result<Arc<dyn Store>, OpenError> {
    Err(OpenError::NotInBuild("redis"))
}
