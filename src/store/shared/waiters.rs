//! The callers in this process that wait for changes of resources, and the task that listens for them.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{Stream, StreamExt as _};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{interval, sleep, timeout},
};

use super::engine::Engine;
use crate::core::{records::record::Revision, resource::ResourceKey};

/// The longest wait before the record is read again, in case the notification is lost.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The time without waiting callers after which the process stops listening. Without listeners, a change costs the
/// engine and all processes less. The process listens on for this long because a caller often waits again.
const LISTEN_ON: Duration = Duration::from_secs(10);

/// The pause before the process listens again after it lost the connection.
const LISTEN_PAUSE: Duration = Duration::from_millis(200);

/// The resources that other processes change, as the engine announces them. `None` stands for any resource.
pub(super) type Changes = Pin<Box<dyn Stream<Item = Option<ResourceKey>> + Send>>;

/// An engine that announces changes.
pub(super) trait Announces: Sync {
    /// Listens on a connection of its own. The stream ends with the connection.
    fn listen(&self) -> impl Future<Output = Option<Changes>> + Send;
}

/// The waiting callers. Their number is bounded by the limits on waiting requests.
#[derive(Default)]
pub(super) struct Waiters {
    waiting: Mutex<HashMap<ResourceKey, Arc<Notify>>>,
    arrived: Notify,
    /// True if a caller has come since the last check.
    has_come: AtomicBool,
}

/// A caller that waits for a resource. It misses no change from its creation on.
struct KeyWaiter<'a> {
    waiters: &'a Waiters,
    key: &'a ResourceKey,
    change: Arc<Notify>,
}

impl Waiters {
    /// Waits for a change of a resource, unless the engine has another revision than `seen` already. It is asked after
    /// this caller has begun to wait, so that no change is missed. If it does not answer, the wait is the pause before the
    /// next look.
    pub(super) async fn wait(&self, engine: &impl Engine, key: &ResourceKey, seen: Revision) {
        let waiter = self.join(key);
        let change = waiter.change();
        if !engine.read(key).await.is_ok_and(|answer| answer.found.revision != seen) {
            let _ = timeout(WAIT_MAX, change).await;
        }
    }

    /// Wakes the callers that wait for a change, forever. Listens only while there are any.
    pub(super) async fn listen_to(&self, engine: &impl Announces) {
        loop {
            self.arrival().await;
            if let Some(changes) = engine.listen().await {
                // Changes may have been missed until now, and will be missed from the end on.
                self.wake_all();
                self.wake_by(changes).await;
                self.wake_all();
            }
            sleep(LISTEN_PAUSE).await;
        }
    }

    /// Wakes waiting callers, until the connection is lost, or no caller has waited for a while.
    async fn wake_by(&self, mut changes: Changes) {
        let mut looks = interval(LISTEN_ON);
        loop {
            tokio::select! {
                change = changes.next() => match change {
                    Some(Some(resource)) => self.wake(&resource),
                    Some(None) => self.wake_all(),
                    None => return,
                },
                _ = looks.tick() => if !self.were_there() {
                    return;
                },
            }
        }
    }

    fn join<'a>(&'a self, key: &'a ResourceKey) -> KeyWaiter<'a> {
        let change = Arc::clone(self.waiting.lock().entry(key.clone()).or_default());
        self.has_come.store(true, Ordering::Relaxed);
        self.arrived.notify_waiters();
        KeyWaiter { waiters: self, key, change }
    }

    /// Waits until there is a waiting caller.
    async fn arrival(&self) {
        loop {
            let arrived = self.arrived.notified();
            if !self.waiting.lock().is_empty() {
                return;
            }
            arrived.await;
        }
    }

    /// True if a caller waits now, or has come since the last call of this function.
    fn were_there(&self) -> bool {
        self.has_come.swap(false, Ordering::Relaxed) || !self.waiting.lock().is_empty()
    }

    /// Wakes the callers that wait for a resource.
    fn wake(&self, key: &ResourceKey) {
        if let Some(change) = self.waiting.lock().get(key) {
            change.notify_waiters();
        }
    }

    /// Wakes all callers, because changes may have been missed.
    fn wake_all(&self) {
        self.waiting.lock().values().for_each(|change| change.notify_waiters());
    }
}

impl KeyWaiter<'_> {
    /// Returns a future that completes after any change from now on, even one before its first poll.
    fn change(&self) -> impl Future<Output = ()> + '_ {
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
