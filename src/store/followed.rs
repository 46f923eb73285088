//! Records that callers follow: each caller learns of every change that an observer sees.
//!
//! # Design
//!
//! *Why one task for each record?* A thousand callers may follow one record. A store that others use too is then asked
//! by one of them.
//!
//! *What does a caller miss?* Changes while it is busy: it finds the newest state when it looks. A store that fails
//! shows no change until it answers again.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::Records;
use crate::{
    change_count::ChangeCount,
    core::{
        records::record::Snapshot,
        resource::ResourceKey,
        watch::{looks_same, next_change},
    },
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
    latest: Arc<LatestRecord>,
    followers: usize,
    task: JoinHandle<()>,
}

/// A record as the store showed it last.
struct LatestRecord {
    snapshot: Mutex<Snapshot>,
    /// The number of times that it looked different than before.
    changes: ChangeCount,
}

/// One caller that follows a record, until this is dropped.
pub struct Follower {
    followed: Arc<FollowedRecords>,
    key: ResourceKey,
    latest: Arc<LatestRecord>,
    /// The number of changes that this caller has seen.
    seen: u64,
}

impl Records {
    /// Follows a record, which was just read as `current`.
    pub fn follow(&self, key: &ResourceKey, current: &Snapshot) -> Follower {
        let mut records = self.followed().0.lock();
        let record = records.entry(key.clone()).or_insert_with(|| {
            let (snapshot, changes) = (Mutex::new(current.clone()), ChangeCount::from(1));
            let latest = Arc::new(LatestRecord { snapshot, changes });
            let task = tokio::spawn(tell_changes(self.clone(), key.clone(), Arc::clone(&latest)));
            FollowedRecord { latest, followers: 0, task }
        });
        record.followers += 1;
        // Another caller may have begun earlier: what the record has become since counts as a change.
        let (latest, seen) = (Arc::clone(&record.latest), 0);
        Follower { followed: Arc::clone(self.followed()), key: key.clone(), latest, seen }
    }
}

impl Follower {
    /// Waits until the record may look different than at the last call of [`latest`](Self::latest). May be dropped and
    /// called again.
    pub async fn changed(&self) {
        self.latest.changes.other_than(self.seen).await;
    }

    /// Returns the record as the store showed it last.
    pub fn latest(&mut self) -> Snapshot {
        self.seen = self.latest.changes.number();
        self.latest.snapshot.lock().clone()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut records = self.followed.0.lock();
        let Some(record) = records.get_mut(&self.key) else { return };
        record.followers -= 1;
        if record.followers == 0 {
            record.task.abort();
            records.remove(&self.key);
        }
    }
}

/// Tells the callers of all changes of a record.
async fn tell_changes(records: Records, key: ResourceKey, latest: Arc<LatestRecord>) {
    let mut seen = latest.snapshot.lock().clone();
    loop {
        let wait = next_change(&seen).map_or(LOOK_AFTER, |change| change.min(LOOK_AFTER));
        let _ = timeout(wait, records.changed(&key, &seen, seen.revision)).await;
        let Ok(now) = records.read(&key).await else {
            sleep(PAUSE).await;
            continue;
        };
        let told = std::mem::replace(&mut *latest.snapshot.lock(), now.clone());
        if !looks_same(&told, &now) {
            latest.changes.grow();
        }
        seen = now;
    }
}
