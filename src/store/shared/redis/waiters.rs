//! The callers in this process that wait for changes of resources.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::core::resource::ResourceKey;

/// The waiting callers. Their number is bounded by the limits on waiting requests.
#[derive(Default)]
pub(super) struct Waiters {
    waiting: Mutex<HashMap<ResourceKey, Arc<Notify>>>,
    arrived: Notify,
    /// Whether a caller has come since the last check.
    has_come: AtomicBool,
}

/// A caller that waits for a resource. It misses no change from its creation on.
pub(super) struct KeyWaiter<'a> {
    waiters: &'a Waiters,
    key: &'a ResourceKey,
    change: Arc<Notify>,
}

impl Waiters {
    pub(super) fn join<'a>(&'a self, key: &'a ResourceKey) -> KeyWaiter<'a> {
        let change = Arc::clone(self.waiting.lock().entry(key.clone()).or_default());
        self.has_come.store(true, Ordering::Relaxed);
        self.arrived.notify_waiters();
        KeyWaiter { waiters: self, key, change }
    }

    /// Waits until there is a waiting caller.
    pub(super) async fn arrival(&self) {
        loop {
            let arrived = self.arrived.notified();
            if !self.waiting.lock().is_empty() {
                return;
            }
            arrived.await;
        }
    }

    /// Whether a caller waits now, or has come since the last call of this function.
    pub(super) fn were_there(&self) -> bool {
        self.has_come.swap(false, Ordering::Relaxed) || !self.waiting.lock().is_empty()
    }

    /// Wakes the callers that wait for a resource.
    pub(super) fn wake(&self, key: &ResourceKey) {
        if let Some(change) = self.waiting.lock().get(key) {
            change.notify_waiters();
        }
    }

    /// Wakes all callers, because changes may have been missed.
    pub(super) fn wake_all(&self) {
        self.waiting.lock().values().for_each(|change| change.notify_waiters());
    }
}

impl KeyWaiter<'_> {
    /// Returns a future that completes after any change from now on, even one before its first poll.
    pub(super) fn change(&self) -> impl Future<Output = ()> + '_ {
        self.change.notified()
    }
}

impl Drop for KeyWaiter<'_> {
    fn drop(&mut self) {
        let mut waiting = self.waiters.waiting.lock();
        // Only the map and this waiter hold it: no other caller waits.
        if Arc::strong_count(&self.change) <= 2 {
            waiting.remove(self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_wakes_those_who_wait_for_it_and_nobody_stays_behind() {
        let (waiters, key) = (Waiters::default(), ResourceKey::from_text("a"));
        {
            let (one, other) = (waiters.join(&key), waiters.join(&key));
            {
                let changes = (one.change(), other.change());
                waiters.wake(&key);
                changes.0.await;
                changes.1.await;
            }
            drop(one);
            assert_eq!(waiters.waiting.lock().len(), 1);
        }
        assert_eq!(waiters.waiting.lock().len(), 0);
    }
}
