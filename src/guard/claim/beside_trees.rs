//! Marks and grants beside the writes of trees ([`under_trees`](crate::core::records::under_trees)): each is looked at once more after it
//! was made.

use super::{Claims, Held, Holding};
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
    /// Gives all marks back if a tree around one of the resources has changed since the write was judged, or is about to.
    /// Marks that are made before the write of a tree looks for them are respected by it.
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
            let is_clear = match held.trees() {
                // Nobody else changes a tree while this write does.
                Some(own) => cover(own.marked(), key.as_str()).change <= marked.record.tree_change,
                None => self.is_clear_of_trees(key, marked).await?,
            };
            if !is_clear {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether no write changes a tree around a resource, and none has since its record became this one.
    pub(crate) async fn is_clear_of_trees(&self, key: &ResourceKey, record: &Snapshot) -> Result<bool, StoreError> {
        let Some(around) = self.records.trees_around(key) else { return Ok(true) };
        let Cover { change, availability } = cover(&self.records.read(&around).await?, key.as_str());
        Ok(change <= record.record.tree_change && availability == Availability::Free)
    }
}
