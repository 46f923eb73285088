//! Lists of leases: each is a record that names leases of other records, by their resource and their fence
//! ([`tree_leases`](crate::core::records::tree_leases)).

use futures_util::future::join_all;

use super::Leases;
use crate::{
    core::{
        records::{
            record::Snapshot,
            tree_leases::{ListLimits, TreeLease, is_over, list, unlist},
        },
        resource::ResourceKey,
    },
    store::{StoreError, Updated},
};

/// How many resources are looked at together for leases that have ended.
const AT_ONCE: usize = 16;

impl Leases {
    /// Puts a lease into a list. Returns whether it is there: if not, there was no room for it.
    pub(super) async fn list(
        &self,
        named: &ResourceKey,
        lease: &TreeLease,
        most: ListLimits,
    ) -> Result<bool, StoreError> {
        let records = &self.knowledge.records;
        let put = async || records.update(named, None, |leases| list(leases, lease, most)).await;
        let is_there = |updated: Updated| updated.snapshot.listed_leases().any(|listed| listed == lease);
        if is_there(put().await?) {
            return Ok(true);
        }
        self.unlist_all_ended(named).await?;
        Ok(is_there(put().await?))
    }

    /// Removes the ended leases of a resource from a list. If that fails, they are removed later.
    pub(super) async fn unlist(&self, named: &ResourceKey, key: &ResourceKey, found: &Snapshot) {
        let removal = |leases: &Snapshot| unlist(leases, |listed| is_over(listed, key, found));
        if let Err(error) = self.knowledge.records.update(named, None, removal).await {
            tracing::debug!(%error, "cannot remove an ended lease from its list");
        }
    }

    /// Removes all leases from a list that have ended.
    async fn unlist_all_ended(&self, named: &ResourceKey) -> Result<(), StoreError> {
        let records = &self.knowledge.records;
        let listed: Vec<TreeLease> = records.read(named).await?.listed_leases().cloned().collect();
        let mut ended = Vec::new();
        for portion in listed.chunks(AT_ONCE) {
            let roots: Vec<ResourceKey> = portion.iter().map(|listed| ResourceKey::from_text(&listed.root)).collect();
            let found = join_all(roots.iter().map(|root| records.read(root))).await;
            for (listed, found) in portion.iter().zip(found) {
                // Each was read later than the list.
                if found?.held_lease(listed.fence).is_none() {
                    ended.push(listed);
                }
            }
        }
        records.update(named, None, |leases| unlist(leases, |listed| ended.contains(&listed))).await.map(drop)
    }
}
