//! A mark or a grant that may or may not have reached the store, and the way to take it back.
//!
//! # Design
//!
//! *Why is a lost answer not treated as a failure?* The mark may be in the record, or may still arrive there later. No
//! byte of its write was sent, but other writes would wait for the mark until its deadline, and then make it a doubt. A
//! lease whose id no client has received would keep all clients away until it ends.
//!
//! *How does it end?* If the mark is in the record, it is settled as not applied. A lease in the record is removed. If
//! neither is there and the record still has the revision that the attempt was made for, the same record is stored
//! again. It then has a new revision, and the attempt can no longer arrive.

use std::{fmt, time::Duration};

use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

use crate::{
    core::{
        lease::{LeaseDuration, LostGrant, take_back},
        records::{
            record::{Mark, Record, Snapshot},
            steps::{Outcome, Settlement, settle},
        },
        resource::ResourceKey,
    },
    store::{Records, StoreError, Swapped},
};

/// The first pause before the next look for a mark. Each pause is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause: many attempts may be waiting for a store that is down for long.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long an infinite lease is looked for. By then the operator has the store back, or restores it.
const INFINITE_MAX: Duration = Duration::from_secs(3_600);

/// The addition to a record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tried {
    /// The mark of a write.
    Mark(Mark),
    /// A new lease of this duration.
    Grant(LostGrant, LeaseDuration),
}

impl Tried {
    /// Returns how long taking back makes sense: after that the mark or the lease ends on its own.
    fn lifetime(&self, before: &Snapshot) -> Duration {
        match self {
            Self::Mark(mark) => before.now.until(mark.deadline),
            Self::Grant(_, LeaseDuration::Fixed(duration)) => *duration,
            Self::Grant(_, LeaseDuration::Infinite) => INFINITE_MAX,
        }
    }

    /// True if the proxy has made the id of the lease, so that no client knows it yet.
    fn is_secret(&self) -> bool {
        matches!(self, Self::Grant(LostGrant { is_known: false, .. }, _))
    }

    /// Returns the record without the mark or the lease, if the record has it.
    fn taken_back(&self, before: &Snapshot, current: &Snapshot) -> Option<Record> {
        match *self {
            Self::Mark(mark) => {
                let (marked_at, outcome) = (current.revision, Outcome::NotApplied);
                settle(
                    current,
                    Settlement { mark, marked_at, outcome, leaves: None, learned: None, shown: None, end: None },
                )
            }
            Self::Grant(grant, _) => take_back(grant, before, current),
        }
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Mark(_) => "mark",
            Self::Grant(..) => "lease",
        })
    }
}

/// The attempt to put a mark or a grant into a record. Dropping it before its outcome is known takes the addition back.
pub(crate) struct PendingMark {
    records: Records,
    key: ResourceKey,
    tried: Tried,
    before: Option<Snapshot>,
}

impl PendingMark {
    /// Creates an attempt to change the record that was read as `before`.
    pub(crate) fn new(records: &Records, key: &ResourceKey, tried: Tried, before: &Snapshot) -> Self {
        Self { records: records.clone(), key: key.clone(), tried, before: Some(before.clone()) }
    }

    /// Swaps in the record with the addition, and returns what became of it. A lease whose id no client knows is still
    /// taken back on drop, until [`confirm`](Self::confirm).
    pub(crate) async fn make(mut self, next: Record) -> Result<(Swapped, Self), StoreError> {
        let Some(expected) = self.before.as_ref().map(|before| before.revision) else {
            return Err(StoreError::Unavailable);
        };
        let result = self.records.swap(&self.key, expected, next).await;
        let is_unknown = matches!(result, Err(StoreError::Unavailable | StoreError::LostWrites));
        let is_untold = matches!(result, Ok(Swapped::Done(_))) && self.tried.is_secret();
        if !is_unknown && !is_untold {
            self.confirm();
        }
        result.map(|swapped| (swapped, self))
    }

    /// Lets the addition stand.
    pub(crate) fn confirm(&mut self) {
        self.before = None;
    }

    /// Takes the addition back, and tries until it would end on its own.
    async fn take_back(self, before: Snapshot) {
        let end = Instant::now() + self.tried.lifetime(&before);
        let mut pause = FIRST_PAUSE;
        while Instant::now() < end {
            match self.try_to_take_back(&before).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(_unavailable) => {
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
        tracing::warn!(key = %self.key, tried = %self.tried, "cannot take back an unconfirmed mark or lease");
    }

    /// Returns whether the addition is gone for good. If not, another process has changed the record meanwhile.
    async fn try_to_take_back(&self, before: &Snapshot) -> Result<bool, StoreError> {
        let current = self.records.read(&self.key).await?;
        let next = match self.tried.taken_back(before, &current) {
            Some(without) => without,
            None if current.revision == before.revision => current.draft(),
            None => return Ok(true),
        };
        let swapped = self.records.swap(&self.key, current.revision, next).await?;
        Ok(matches!(swapped, Swapped::Done(_)))
    }
}

impl Drop for PendingMark {
    fn drop(&mut self) {
        let Some(before) = self.before.take() else { return };
        let orphan = Self { records: self.records.clone(), key: self.key.clone(), before: None, ..*self };
        // Without a runtime the process is ending: a mark becomes a doubt at its deadline.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(orphan.take_back(before));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::{
        core::records::{record::Availability, steps::claim},
        guard::testing::{Fault, FaultyStore, When},
        store::Store as _,
    };

    const STORE_TIMEOUT: Duration = Duration::from_millis(50);

    fn key() -> ResourceKey {
        ResourceKey::from_text("a")
    }

    /// Begins to claim the resource. Returns the record before, the attempt, and the record with the mark.
    async fn begin(store: &Arc<FaultyStore>) -> (Snapshot, PendingMark, Record) {
        let before = store.look(&key()).await;
        let (deadline, late_write_window) = (before.now.plus(Duration::from_secs(10)), Duration::ZERO);
        let mark = Mark { owner: 1, nonce: 1, deadline, late_write_window, leaves_lease: false };
        let marked = claim(&before, mark).expect("nothing is in the way");
        let records = Records::new(Arc::<FaultyStore>::clone(store), STORE_TIMEOUT);
        (before.clone(), PendingMark::new(&records, &key(), Tried::Mark(mark), &before), marked)
    }

    /// Waits until the resource is free and the mark made for `before` can no longer arrive.
    async fn taken_back(store: &FaultyStore, before: &Snapshot) {
        let over = async {
            loop {
                let current = store.look(&key()).await;
                if current.revision != before.revision && current.availability() == Availability::Free {
                    return;
                }
                sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), over).await.expect("the mark is taken back");
    }

    #[tokio::test]
    async fn a_mark_whose_answer_was_lost_is_taken_back() {
        for fault in [Fault::AnswerLost, Fault::Hangs, Fault::Unavailable] {
            let store = Arc::new(FaultyStore::new());
            let (before, attempt, marked) = begin(&store).await;
            store.fail(fault, When::Once(0));
            assert_eq!(attempt.make(marked.clone()).await.err(), Some(StoreError::Unavailable), "{fault:?}");
            taken_back(&store, &before).await;
            let late = store.swap(&key(), before.revision, marked).await;
            assert!(matches!(late, Ok(Swapped::Conflict(_))), "{fault:?}: it arrives too late");
        }
    }

    /// The store fails for longer than one attempt, and at each operation that takes the mark back.
    #[tokio::test]
    async fn taking_back_goes_on_until_the_store_is_there() {
        let store = Arc::new(FaultyStore::new());
        let (before, attempt, marked) = begin(&store).await;
        store.fail(Fault::AnswerLost, When::From(0));
        assert!(attempt.make(marked).await.is_err());
        let asked = async {
            while store.operations() < 4 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), asked).await.expect("the mark is looked for");
        store.fail(Fault::AnswerLost, When::Never);
        taken_back(&store, &before).await;
    }

    /// The client goes away while the mark is on its way.
    #[tokio::test]
    async fn a_mark_that_nobody_waits_for_is_taken_back() {
        let store = Arc::new(FaultyStore::new());
        let (before, attempt, marked) = begin(&store).await;
        store.fail(Fault::Hangs, When::Once(0));
        // The attempt is polled once and then dropped: after a pause of the machine, a timeout here could expire
        // together with the store's.
        assert!(attempt.make(marked).now_or_never().is_none());
        taken_back(&store, &before).await;
    }

    #[tokio::test]
    async fn what_is_known_needs_no_taking_back() {
        let store = Arc::new(FaultyStore::new());
        let (_, attempt, marked) = begin(&store).await;
        assert!(matches!(attempt.make(marked).await, Ok((Swapped::Done(_), _))));
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(matches!(store.look(&key()).await.availability(), Availability::Busy { .. }));
    }
}
