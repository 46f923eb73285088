//! A look at all that is in progress below a collection, for a write of the whole tree or a lease of it.
//!
//! # Design
//!
//! *Why may its caller wait while it holds marks?* The writes that it waits for have all their marks, and wait for no
//! other. Later ones give way.

use tokio::time::{Instant, timeout};

use super::Claims;
use crate::{
    core::{
        cause::Reason,
        records::{
            record::{Availability, Snapshot},
            trees::TreeRoot,
        },
        refusal::{Code, Refusal},
        resource::ResourceKey,
    },
    guard::refusals,
    store::StoreError,
};

/// The most resources below a tree that writes or leases are in progress at. Each of them is looked at while all writes
/// below the tree wait.
pub(crate) const PINNED_MAX: usize = 1_000;

impl Claims {
    /// Waits until no write below these trees is in progress. Each resource there that `is_meant` is judged once it is free
    /// of writes.
    pub(crate) async fn wait_below(
        &self,
        trees: &[TreeRoot],
        is_meant: impl Fn(&ResourceKey) -> bool + Sync,
        judge: impl Fn(&ResourceKey, &Snapshot) -> Result<(), Refusal> + Sync,
        end: Instant,
    ) -> Result<(), Refusal> {
        loop {
            let Some((key, snapshot)) = self.look_below(trees, &is_meant, &judge).await? else { return Ok(()) };
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(refusals::write_in_flight(refusals::RETRY_SOON, Reason::WriteInFlight));
            }
            let deadline = snapshot.record.marks().map(|mark| snapshot.now.until(mark.deadline)).min();
            let change = self.records.changed(&key, &snapshot, snapshot.revision);
            let _ = timeout(left.min(deadline.unwrap_or_default()), change).await;
        }
    }

    /// Returns a resource whose write is in progress, if there is one.
    async fn look_below(
        &self,
        trees: &[TreeRoot],
        is_meant: &(impl Fn(&ResourceKey) -> bool + Sync),
        judge: &(impl Fn(&ResourceKey, &Snapshot) -> Result<(), Refusal> + Sync),
    ) -> Result<Option<(ResourceKey, Snapshot)>, Refusal> {
        let of_store = |error: StoreError| refusals::of_store(&error);
        let pinned = self.records.pinned_below(trees, PINNED_MAX + 1).await.map_err(of_store)?;
        if pinned.len() > PINNED_MAX {
            return Err(too_many_members());
        }
        let mut in_the_way = None;
        for (key, snapshot) in pinned.into_iter().filter(|(key, _)| is_meant(key)) {
            let snapshot = match snapshot.availability_by_own() {
                Availability::Orphaned => self.take_over_dead(&key, Some(snapshot)).await.map_err(of_store)?,
                _ => snapshot,
            };
            match snapshot.availability_by_own() {
                Availability::Free => {}
                Availability::InDoubt { until } => {
                    return Err(refusals::write_in_flight(snapshot.now.until(until), Reason::WriteInDoubt));
                }
                Availability::Busy { .. } | Availability::Orphaned => {
                    in_the_way = Some((key, snapshot));
                    continue;
                }
            }
            judge(&key, &snapshot)?;
        }
        Ok(in_the_way)
    }
}

fn too_many_members() -> Refusal {
    let detail =
        "more than 1,000 resources below the collection are leased or written: nothing was done; try again later";
    Refusal::new(Code::Overloaded, detail).retry_after(refusals::RETRY_SOON)
}
