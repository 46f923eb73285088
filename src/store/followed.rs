//! Records that callers follow: each is told of every change that an observer sees.
//!
//! # Design
//!
//! *Why one task for each record?* A thousand callers may follow one record. A store that others use too is then asked
//! by one of them.
//!
//! *What does a caller miss?* What comes while it is busy: it finds the newest state when it looks. A store that fails
//! tells nothing until it answers again.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::Records;
use crate::core::{
    records::record::Snapshot,
    resource::ResourceKey,
    watch::{looks_same, next_change},
};

/// The longest time between two looks at a record. So long a lost notice stays unknown, and so does the write of a tree
/// around the resource, which changes another record.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// The pause after a failure of the store.
const PAUSE: Duration = Duration::from_millis(500);

/// The records that are followed now.
#[derive(Default)]
pub(super) struct FollowedRecords(Mutex<HashMap<ResourceKey, FollowedRecord>>);

struct FollowedRecord {
    latest: watch::Sender<Snapshot>,
    task: JoinHandle<()>,
}

/// One caller that follows a record, until this is dropped.
pub struct Follower {
    followed: Arc<FollowedRecords>,
    key: ResourceKey,
    latest: watch::Receiver<Snapshot>,
}

impl Records {
    /// Follows a record, which was just read as `current`.
    pub fn follow(&self, key: &ResourceKey, current: &Snapshot) -> Follower {
        let mut records = self.followed.0.lock();
        let record = records.entry(key.clone()).or_insert_with(|| {
            let latest = watch::Sender::new(current.clone());
            let task = tokio::spawn(tell_changes(self.clone(), key.clone(), latest.clone()));
            FollowedRecord { latest, task }
        });
        let mut latest = record.latest.subscribe();
        // Another caller may have begun earlier: what the record has become since counts as a change.
        latest.mark_changed();
        Follower { followed: Arc::clone(&self.followed), key: key.clone(), latest }
    }
}

impl Follower {
    /// Waits until the record may look different than at the last call of [`latest`](Self::latest). May be dropped and
    /// called again.
    pub async fn changed(&mut self) {
        if self.latest.changed().await.is_err() {
            // Its task lives as long as its callers.
            std::future::pending::<()>().await;
        }
    }

    /// Returns the record as the store showed it last.
    pub fn latest(&mut self) -> Snapshot {
        self.latest.borrow_and_update().clone()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut records = self.followed.0.lock();
        // This one still counts.
        if records.get(&self.key).is_some_and(|record| record.latest.receiver_count() <= 1)
            && let Some(record) = records.remove(&self.key)
        {
            record.task.abort();
        }
    }
}

/// Tells the callers of all changes of a record.
async fn tell_changes(records: Records, key: ResourceKey, latest: watch::Sender<Snapshot>) {
    let mut seen = latest.borrow().clone();
    loop {
        let wait = next_change(&seen).map_or(LOOK_AFTER, |change| change.min(LOOK_AFTER));
        let _ = timeout(wait, records.changed(&key, &seen, seen.revision)).await;
        let Ok(now) = records.read(&key).await else {
            sleep(PAUSE).await;
            continue;
        };
        latest.send_if_modified(|told| {
            let is_different = !looks_same(told, &now);
            *told = now.clone();
            is_different
        });
        seen = now;
    }
}
