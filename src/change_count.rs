//! A count of changes that others wait for.
//!
//! # Design
//!
//! *Why not tokio's `watch`?* It wakes those who wait in an order of chance, so that a run of the simulation could not be
//! repeated. [`Notify`] wakes them in the order in which they began to wait.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// A number that grows with each change.
#[derive(Debug)]
pub(crate) struct ChangeCount {
    count: AtomicU64,
    grown: Notify,
}

impl ChangeCount {
    /// A count that begins with this number.
    pub(crate) const fn from(first: u64) -> Self {
        Self { count: AtomicU64::new(first), grown: Notify::const_new() }
    }

    /// The number of changes so far.
    pub(crate) fn number(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Counts one more change, and wakes all who wait for it.
    pub(crate) fn grow(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.grown.notify_waiters();
    }

    /// Waits until the number is another one than `seen`. May be dropped and called again.
    pub(crate) async fn other_than(&self, seen: u64) {
        loop {
            // It hears of all that comes from here on.
            let grown = self.grown.notified();
            if self.number() != seen {
                return;
            }
            grown.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[tokio::test]
    async fn those_who_wait_go_on_in_the_order_of_their_arrival() {
        let (count, went_on) = (Arc::new(ChangeCount::from(7)), Arc::new(Mutex::new(Vec::new())));
        let mut waiting = Vec::new();
        for number in 0..50 {
            let (count, went_on) = (Arc::clone(&count), Arc::clone(&went_on));
            waiting.push(tokio::spawn(async move {
                count.other_than(7).await;
                went_on.lock().push(number);
            }));
        }
        tokio::task::yield_now().await;
        assert_eq!((count.number(), went_on.lock().len()), (7, 0));
        count.grow();
        for one in waiting {
            one.await.expect("it waits, and goes on");
        }
        assert_eq!(*went_on.lock(), (0..50).collect::<Vec<_>>());
        count.other_than(7).await;
        assert_eq!(count.number(), 8);
    }
}
