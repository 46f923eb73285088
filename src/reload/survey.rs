//! The store's view of some routes: unsettled writes and held leases.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    config::Route,
    core::{
        records::{
            record::{Availability, Snapshot},
            steps::take_over,
        },
        resource::ResourceKey,
    },
    store::{Store, StoreError},
};

/// The number of records requested at once.
const PAGE: usize = 1_000;

/// The findings, by the names of routes.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The number of resources with writes in flight or in doubt, of any proxy.
    pub(super) unsettled: BTreeMap<String, usize>,
    /// The number of resources with a held lease.
    pub(super) leases: BTreeMap<String, usize>,
}

impl Survey {
    /// Looks at all records that may belong to these routes. A dead owner's mark becomes a doubt here, because no write
    /// can come that would do so.
    pub(super) async fn of(store: &dyn Store, routes: &[Arc<Route>]) -> Result<Self, StoreError> {
        let mut survey = Self::default();
        let mut after = None;
        while !routes.is_empty() {
            let page = store.scan(after.as_ref(), PAGE).await?;
            for (key, snapshot) in &page {
                for route in routes.iter().filter(|route| may_belong_to(key, route)) {
                    survey.see(store, route, key, snapshot).await?;
                }
            }
            after = match page.into_iter().next_back() {
                Some((last, _)) => Some(last),
                None => break,
            };
        }
        Ok(survey)
    }

    async fn see(
        &mut self,
        store: &dyn Store,
        route: &Route,
        key: &ResourceKey,
        snapshot: &Snapshot,
    ) -> Result<(), StoreError> {
        if let Some(next) = take_over(snapshot) {
            store.swap(key, snapshot.revision, next).await?;
        }
        if snapshot.availability() != Availability::Free {
            *self.unsettled.entry(route.name.clone()).or_default() += 1;
        }
        let held = snapshot.held_leases().count();
        if held > 0 {
            *self.leases.entry(route.name.clone()).or_default() += held;
        }
        Ok(())
    }
}

fn may_belong_to(key: &ResourceKey, route: &Route) -> bool {
    route.key.may_have_made(key, &route.upstream.identity, &route.upstream_path)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        clock::BootClock,
        core::{
            lease::testing::{Resource, acquire, id},
            records::record::{Mark, Record, Revision, Stamp},
        },
        store::{
            Incarnation, Swapped,
            memory::{MemoryStore, Room},
        },
        testing::{guard, route},
    };

    /// Returns a store with more than one page of empty records, and this one after all of them.
    async fn store_ending_with(last: impl Fn(&Snapshot) -> Record) -> MemoryStore {
        let store = MemoryStore::new(
            Arc::new(BootClock),
            Incarnation(1),
            Room { records: 2 * PAGE, bytes: 1 << 30 },
            Duration::from_secs(3_600),
        );
        for number in 0..=PAGE {
            let key = ResourceKey::from_text(&format!("backend:/doc/{number}"));
            let absent = store.read(&key).await.unwrap();
            let written = Record { version: Stamp::Itself, ..Record::absent(Revision(0)) };
            store.swap(&key, absent.revision, written).await.unwrap();
        }
        let (key, snapshot) =
            store.scan(None, 2 * PAGE).await.unwrap().into_iter().next_back().expect("there are many");
        let swapped = store.swap(&key, snapshot.revision, last(&snapshot)).await.unwrap();
        assert!(matches!(swapped, Swapped::Done(_)));
        assert_eq!(store.scan(None, 2 * PAGE).await.unwrap().len(), PAGE + 1);
        store
    }

    async fn survey(store: &MemoryStore) -> (usize, usize) {
        let route = route("/doc/{id}", Some(guard()), &[]);
        let survey = Survey::of(store, &[Arc::new(route)]).await.unwrap();
        (survey.unsettled.values().sum(), survey.leases.values().sum())
    }

    #[tokio::test]
    async fn a_lease_beyond_the_first_page_is_seen() {
        let mut leased = Resource::new();
        leased.must(acquire(Some(id(1)), crate::core::lease::LeaseDuration::Infinite));
        let store = store_ending_with(|_| leased.snapshot.draft()).await;
        assert_eq!(survey(&store).await, (0, 1));
    }

    #[tokio::test]
    async fn a_mark_beyond_the_first_page_is_seen() {
        let hour = Duration::from_secs(3_600);
        let marked = |snapshot: &Snapshot| {
            let mark = Mark {
                owner: 1,
                nonce: 1,
                deadline: snapshot.now.plus(hour),
                late_write_window: hour,
                leaves_lease: true,
            };
            Record { claim: Some(mark), ..snapshot.draft() }
        };
        assert_eq!(survey(&store_ending_with(marked).await).await, (1, 0));
    }

    /// No write can come that would turn the mark into a doubt.
    #[tokio::test]
    async fn what_a_dead_owner_has_left_becomes_a_doubt_of_its_own_length() {
        let late_write_window = Duration::from_secs(77);
        let marked = |snapshot: &Snapshot| {
            let mark = Mark { owner: 1, nonce: 1, deadline: snapshot.now, late_write_window, leaves_lease: true };
            Record { claim: Some(mark), ..snapshot.draft() }
        };
        let store = store_ending_with(marked).await;
        let before = store.now().await.unwrap();
        assert_eq!(survey(&store).await, (1, 0));
        let (_, snapshot) = store.scan(None, 2 * PAGE).await.unwrap().pop().expect("there are many");
        let doubt = snapshot.record.doubt.expect("it is in doubt");
        assert!(doubt.until >= before.plus(late_write_window) && snapshot.record.claim.is_none());
    }
}
