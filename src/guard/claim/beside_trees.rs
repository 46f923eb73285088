//! Marks and grants beside the writes of trees ([`under_trees`](crate::core::records::under_trees)) and beside leases of trees
//! ([`tree_leases`](crate::core::records::tree_leases)): each is looked at once more after it was made.

use super::{Claim, Claims, Held, Holding};
use crate::{
    core::{
        records::{
            record::{Availability, Snapshot},
            steps::Outcome,
            under_trees::{Cover, cover},
        },
        resource::ResourceKey,
    },
    store::StoreError,
};

impl Claims {
    /// Gives all marks back if a tree around one of the resources has changed since the write was judged, or is about to, or
    /// was leased. Marks that are made before the write or the lease of a tree looks for them are respected by it.
    pub(super) async fn give_way_to_trees(&self, held: Held) -> Result<Holding, StoreError> {
        match self.are_clear_of_trees(&held).await {
            Ok(true) => Ok(Holding::Done(held)),
            given_way => {
                held.settle(Outcome::NotApplied, None).await;
                given_way.map(|_changed| Holding::Taken)
            }
        }
    }

    async fn are_clear_of_trees(&self, held: &Held) -> Result<bool, StoreError> {
        for mark in held.marks() {
            let (key, marked) = (mark.key(), mark.marked());
            if !self.is_clear_of_trees(key, marked, held.trees()).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether no other write than one with this mark on them changes a tree around a resource, none has ended since its
    /// record became this one, and the record shows all leases of such trees.
    pub(crate) async fn is_clear_of_trees(
        &self,
        key: &ResourceKey,
        record: &Snapshot,
        own: Option<&Claim>,
    ) -> Result<bool, StoreError> {
        let Some(around) = self.records.trees_around(key) else { return Ok(true) };
        let trees = self.records.read(&around).await?;
        let leases_around = self.records.leases_around(key, &trees).await?;
        // Nobody else changes a tree while this write does.
        let Cover { last, availability, .. } = match own {
            Some(own) => Cover { availability: Availability::Free, ..cover(own.marked(), key.as_str()) },
            None => cover(&trees, key.as_str()),
        };
        Ok(last <= record.record.tree_change
            && availability == Availability::Free
            && record.shows_all_around(&Snapshot { leases_around, ..trees }))
    }
}
