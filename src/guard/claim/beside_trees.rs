//! Marks and grants beside the writes of trees ([`under_trees`](crate::core::records::under_trees)) and beside leases
//! of trees ([`tree_leases`](crate::core::records::tree_leases)). The proxy checks each mark and grant once more after
//! it has made it.
//!
//! # Design
//!
//! *Why does a write that waits for the write of a tree stand in the line of such writes?* Otherwise a stream of them
//! could keep it away without end (rule 16). In front of that line it makes no mark there: it is enough that no later
//! write of a tree begins before its turn. Its sign keeps the writes of other processes back. The sign stays for the
//! members that wait beside it. No others come, because no tree is written while all of them have their turns.
//!
//! *Why can writes not wait for each other without end here?* The record of trees has the smallest key of its upstream,
//! so this is the last line that a write joins ([`places`](super::places)).

use tokio::time::Instant;

use super::{
    Claim, Claims, Held, Holding,
    places::{Places, Role},
    queue::Member,
    turn::PlaceInFront,
};
use crate::{
    core::{
        records::{
            record::{Availability, Snapshot},
            steps::{Outcome, UNCLAIMED_MARKS_MAX},
            under_trees::{Cover, cover},
        },
        refusal::Refusal,
        resource::ResourceKey,
    },
    guard::{refusals, request::Request},
    store::StoreError,
};

impl Places {
    /// The place in the line of the writes of trees, if the write is one of these.
    fn at_trees(&mut self) -> Option<&mut PlaceInFront> {
        self.after.iter_mut().find(|other| other.role == Role::Trees).map(|other| &mut other.place)
    }
}

impl Claims {
    /// Waits until the write of a tree around one of the resources of a write has ended, or something else has changed.
    pub(super) async fn wait_for_tree(
        &self,
        request: &Request,
        key: &ResourceKey,
        places: &mut Places,
        end: Instant,
    ) -> Result<(), Refusal> {
        match places.at_trees() {
            Some(place) => self.wait_at_trees(request, key, place, end).await,
            None => self.wait_beside_trees(request, key, &mut places.beside_trees, end).await,
        }
    }

    /// Waits, until `end`, for what keeps a grant away: the write of a tree around the resource, or others in its line.
    pub(crate) async fn wait_to_grant(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        (standing, beside_trees): (&mut PlaceInFront, &mut Option<PlaceInFront>),
        end: Instant,
    ) -> Result<(), Refusal> {
        if snapshot.is_below_busy_tree() {
            // Boxed, so that the futures of grants without trees around them stay small.
            return Box::pin(self.wait_beside_trees(request, &request.key, beside_trees, end)).await;
        }
        self.wait_until_free(request, snapshot, standing, end).await
    }

    /// Waits as a write does, for a request that has this place in the line of the writes of trees, or joins that line.
    async fn wait_beside_trees(
        &self,
        request: &Request,
        key: &ResourceKey,
        place: &mut Option<PlaceInFront>,
        end: Instant,
    ) -> Result<(), Refusal> {
        let Some(around) = self.records.trees_around(key) else { return Ok(()) };
        if let Some(place) = place {
            return self.wait_at_trees(request, key, place, end).await;
        }
        let member = (Member::Touch, request.line_client());
        let joined = self.stand(&around, member, UNCLAIMED_MARKS_MAX, end).await.map_err(refusals::of_turn)?;
        self.wait_at_trees(request, key, place.insert(joined), end).await
    }

    async fn wait_at_trees(
        &self,
        request: &Request,
        key: &ResourceKey,
        place: &mut PlaceInFront,
        end: Instant,
    ) -> Result<(), Refusal> {
        let trees = self.take_over_dead(place.key(), None).await.map_err(|error| refusals::of_store(&error))?;
        match cover(&trees, key.as_str()).availability {
            Availability::Busy { .. } => self.wait_in_front(&trees, request.rules(), place, end).await,
            Availability::Free | Availability::InDoubt { .. } | Availability::Orphaned => Ok(()),
        }
    }

    /// Gives all marks back if a tree around one of the resources has changed since the judgement of the write, is
    /// about to, or was leased. The write or the lease of a tree respects all marks that are made before it looks for
    /// them.
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

    /// True if no other write than one with this mark changes a tree around a resource, and none has ended since its
    /// record became this one. The record must also show all leases of such trees.
    pub(crate) async fn is_clear_of_trees(
        &self,
        key: &ResourceKey,
        record: &Snapshot,
        own: Option<&Claim>,
    ) -> Result<bool, StoreError> {
        let Some(around) = self.records.trees_around(key) else { return Ok(true) };
        let trees = self.records.read(&around).await?;
        let leases_around = self.records.leases_around(key, &trees).await?;
        // No other request changes a tree while this write does.
        let Cover { last, availability, .. } = match own {
            Some(own) => Cover { availability: Availability::Free, ..cover(own.marked(), key.as_str()) },
            None => cover(&trees, key.as_str()),
        };
        Ok(last <= record.record.tree_change
            && availability == Availability::Free
            && record.shows_all_around(&Snapshot { leases_around, ..trees }))
    }
}
