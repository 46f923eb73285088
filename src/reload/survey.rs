//! What the store knows of some routes: writes that are not settled, and leases that are held.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    config::Route,
    core::{record::Availability, record::Snapshot, resource::ResourceKey, steps::take_over},
    store::{Store, StoreError},
};

/// So many records are asked for at once.
const PAGE: usize = 1_000;

/// What was found, by the names of routes.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Resources with writes in flight or in doubt, whoever makes them.
    pub(super) unsettled: BTreeMap<String, usize>,
    /// Resources with a lease that somebody holds.
    pub(super) leases: BTreeMap<String, usize>,
}

impl Survey {
    /// Looks at all records that may belong to these routes. A dead owner's mark becomes a doubt, because no write that
    /// would make it one can come.
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
        if snapshot.lease_state().is_held() {
            *self.leases.entry(route.name.clone()).or_default() += 1;
        }
        Ok(())
    }
}

fn may_belong_to(key: &ResourceKey, route: &Route) -> bool {
    route.key.may_have_made(key, &route.upstream.identity, &route.upstream_path)
}
