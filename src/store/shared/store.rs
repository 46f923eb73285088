//! The store that several proxies share, over an engine of any kind.
//!
//! # Design
//!
//! *What if no answer to a swap came?* It is sent again. The swap compares the expected revision, so at most one of its
//! copies is carried out. If a copy comes too late, the label in the record shows that an earlier one was carried out. If
//! others have changed the record since, neither can be determined, and the swap fails without a verdict.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::task::JoinSet;

use super::{
    collect,
    engine::{Engine, KeyRange, Swap, SwapOutcome},
    labels::Labels,
    records::EngineRecords,
};
use crate::{
    config::StoreSettings,
    core::{
        records::{
            record::{Record, Revision, Snapshot},
            trees::TreeRoot,
        },
        resource::ResourceKey,
        time::StoreTime,
    },
    store::{Incarnation, OpenError, SEARCHED_AT_ONCE, Scanned, Store, StoreError, Swapped, encoding},
};

/// Records in an engine that other processes use too.
pub struct SharedStore<E: Engine> {
    records: Arc<EngineRecords<E>>,
    incarnation: Incarnation,
    labels: Labels,
    /// The tasks that use the records. They end with the store.
    _background: JoinSet<()>,
}

impl<E: Engine> SharedStore<E> {
    /// Begins to use an engine, which keeps this incarnation at this place.
    pub(super) async fn start(
        engine: E,
        (place, incarnation): (&str, Option<String>),
        settings: &StoreSettings,
    ) -> Result<Self, OpenError> {
        let number = incarnation.and_then(|text| u64::from_str_radix(&text, 16).ok());
        let incarnation = number.map(Incarnation).ok_or_else(|| OpenError::Damaged(place.to_owned()))?;
        let records = Arc::new(EngineRecords::new(engine, settings));
        records.count().await.map_err(|_unavailable| OpenError::Silent)?;
        let (mut background, listener) = (JoinSet::new(), Arc::clone(&records));
        background.spawn(collect::run(Arc::clone(&records)));
        background.spawn(async move { listener.engine.listen().await });
        Ok(Self { records, incarnation, labels: Labels::new()?, _background: background })
    }

    /// Forgets the records that have been idle for `idle_ttl`, and returns their number.
    pub async fn collect(&self, idle_ttl: Duration) -> Result<usize, StoreError> {
        self.records.collect(idle_ttl, usize::MAX).await
    }
}

#[async_trait]
impl<E: Engine> Store for SharedStore<E> {
    fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        self.records.now().await
    }

    fn has_own_time(&self) -> bool {
        E::HAS_OWN_TIME
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        self.records.read(key).await.map(|(snapshot, _)| snapshot)
    }

    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        // The base is taken before the swap is sent, so that no reader counts from an earlier time.
        let (records, label, base) = (&self.records, self.labels.next(), self.records.base().await?);
        let swap = Swap {
            key: key.clone(),
            expected,
            text: encoding::encode_labelled(&next, base, Some(label.clone())),
            idle_from: next.idle_from(),
            may_create: records.has_room(),
        };
        let (reached, record) = (records.reached()?, records.record_reached(key));
        let (outcome, now) = records.accept(reached, records.engine.swap(swap).await?)?;
        match outcome {
            SwapOutcome::Made { revision, is_new } => {
                records.accept_record(key, record, revision)?;
                if is_new {
                    records.created();
                }
                Ok(Swapped::Done(records.snapshot(key, revision, next, (base, now))))
            }
            SwapOutcome::NoRoom => {
                records.is_full.notify_one();
                Err(StoreError::Full)
            }
            SwapOutcome::Other { kept, is_repeated } => {
                let found = match kept {
                    Some(kept) => {
                        records.accept_record(key, record, kept.revision)?;
                        records.decoded(key, kept, now)?
                    }
                    None => records.read(key).await?,
                };
                match found {
                    // An earlier attempt was carried out, and its answer was lost.
                    (Snapshot { revision, now, .. }, Some(written)) if written == label => {
                        Ok(Swapped::Done(records.snapshot(key, revision, next, (base, now))))
                    }
                    // One may have been carried out before others changed the record: that cannot be determined.
                    _ if is_repeated => Err(StoreError::Unavailable),
                    (snapshot, _) => Ok(Swapped::Conflict(snapshot)),
                }
            }
        }
    }

    async fn scan(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Scanned, StoreError> {
        let (mut found, mut after) = (Scanned::new(), after.cloned());
        loop {
            let selection = KeyRange { after: after.as_ref(), ..KeyRange::default() };
            let (records, last) = self.records.page(selection, limit - found.len()).await?;
            found.extend(records.into_iter().map(|(key, (snapshot, _))| (key, snapshot)));
            if found.len() == limit || last.is_none() {
                return Ok(found);
            }
            after = last;
        }
    }

    async fn pinned_below(&self, roots: &[TreeRoot], limit: usize) -> Result<Scanned, StoreError> {
        let mut found = Scanned::new();
        for root in roots {
            let (prefix, mut after) = (root.prefix(), None);
            while found.len() < limit {
                let selection = KeyRange { prefix: &prefix, after: after.as_ref() };
                let (records, last) = self.records.page(selection, SEARCHED_AT_ONCE).await?;
                let pinned = records.into_iter().map(|(key, (snapshot, _))| (key, snapshot));
                let pinned = pinned.filter(|(key, found)| root.is_above(key) && !found.record.is_idle(found.now));
                found.extend(pinned.take(limit - found.len()));
                after = last;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(found)
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        self.records.engine.changed(key, seen).await;
    }

    async fn raise_floors(&self) -> Result<(), StoreError> {
        for first in (0..=u16::MAX).step_by(usize::from(E::RAISED_AT_ONCE)) {
            self.records.reached()?;
            // This may be carried out twice: the second time only raises the floors further.
            self.records.engine.raise(first..=first + (E::RAISED_AT_ONCE - 1)).await?;
        }
        Ok(())
    }
}
