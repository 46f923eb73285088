//! Raises the floors of all buckets, as many at a time as etcd accepts in one transaction.

use super::{EtcdShared, txn};
use crate::store::StoreError;

/// The number of operations in one transaction. It is etcd's default limit.
const OPERATIONS: usize = 128;

impl EtcdShared {
    /// Gives every absent record a later revision.
    pub(super) async fn raise_floors(&self) -> Result<(), StoreError> {
        let buckets = (0..=u16::MAX).collect::<Vec<_>>();
        for range in buckets.chunks(OPERATIONS) {
            // This may be sent again: another put only raises the floors further.
            self.engine.ask(txn::raise(&self.keys, range)).await?;
        }
        Ok(())
    }
}
