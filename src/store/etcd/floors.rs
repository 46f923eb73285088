//! Raising the floors of all buckets, as many at a time as etcd takes in one transaction.

use super::{EtcdShared, txn};
use crate::store::StoreError;

/// Operations in one transaction: what etcd allows where nobody has said otherwise.
const OPERATIONS: usize = 128;

impl EtcdShared {
    /// Gives every absent record a later revision.
    pub(super) async fn raise_floors(&self) -> Result<(), StoreError> {
        let buckets = (0..=u16::MAX).collect::<Vec<_>>();
        for range in buckets.chunks(OPERATIONS) {
            // Once more is once later: it may be sent again.
            self.engine.ask(txn::raise(&self.keys, range)).await?;
        }
        Ok(())
    }
}
