//! The keeper of a lease that a client holds by a stream: it renews the lease while the stream is open, learns of its
//! end, and releases it some time after the client has gone (`lease.linger`).
//!
//! # Design
//!
//! *Why a task of its own?* A client that reads slowly stops its stream, and the renewals must not stop with it. At the
//! release of the lease, the stream is gone.
//!
//! *What is known without the store?* The lease lasts for the granted time, counted from before the request to the
//! store. If the store has not answered by then, the client learns that the lease is lost.
//!
//! *What if the clock of the store goes back?* Then the lease ends later already than a renewal would make it end. The keeper
//! tries again all the same, until the clock has caught up.
//!
//! *What if the process dies?* No process renews the lease, and it runs out.

use std::{mem::discriminant, sync::Arc, time::Duration};

use tokio::{
    sync::{oneshot, watch},
    time::{Instant, sleep, sleep_until, timeout_at},
};

use super::Leases;
use crate::{
    core::{
        lease::{KeptLease, KeptLeaseState, LeaseLoss},
        records::record::{Revision, Snapshot},
    },
    guard::request::Request,
    telemetry::metrics,
};

/// A lease is renewed when this part of its term has passed. Then two more attempts fit into it.
const RENEWED_AFTER: u32 = 3;

/// The pause after a failure of the store. Several attempts fit into the shortest term, a second.
const PAUSE: Duration = Duration::from_millis(200);

/// The longest time for which a keeper plans ahead.
const AHEAD_MAX: Duration = Duration::from_secs(24 * 3_600);

/// The client's end of a keeper. If it is dropped, the client has gone: it may come back within `lease.linger`.
pub(crate) struct LeaseKeeper {
    state: watch::Receiver<KeptLeaseState>,
    farewell: Option<oneshot::Sender<Farewell>>,
    /// True if the client knows of the keeper, or of no other way in which it holds the lease. Otherwise it may have
    /// given this request up, and renewed the lease by another one: then the end of the stream releases nothing.
    is_known: bool,
}

/// The end of a keeper that is not dropped.
enum Farewell {
    /// This process ends the stream. Its client comes back.
    Stays,
    /// The lease is released at once.
    Released,
}

impl LeaseKeeper {
    /// Waits until the lease has another state than at the last call, and returns it. May be dropped and called again.
    pub(crate) async fn changed(&mut self) -> KeptLeaseState {
        if self.state.changed().await.is_err() {
            // The keeper has ended, and the process is about to.
            return std::future::pending().await;
        }
        *self.state.borrow_and_update()
    }

    /// Leaves the lease to its client, which gets a request to come back. Returns the time for which the lease lasts.
    pub(crate) fn leave(mut self) -> Duration {
        self.bid(Farewell::Stays);
        match *self.state.borrow() {
            KeptLeaseState::Held(lasts) | KeptLeaseState::Breaking(lasts) => lasts,
            KeptLeaseState::Lost(_) => Duration::ZERO,
        }
    }

    /// Releases the lease at once.
    pub(crate) fn release(mut self) {
        self.bid(Farewell::Released);
    }

    /// Notes that the client has got the id of the lease.
    pub(crate) const fn is_told(&mut self) {
        self.is_known = true;
    }

    fn bid(&mut self, farewell: Farewell) {
        if let Some(keeper) = self.farewell.take() {
            let _ = keeper.send(farewell);
        }
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        if !self.is_known {
            self.bid(Farewell::Stays);
        }
    }
}

/// The lease that a keeper keeps, with the keeper's knowledge about it.
pub(super) struct Keeping {
    pub(super) leases: Arc<Leases>,
    pub(super) request: Arc<Request>,
    /// The path of the lease, as the client knows it.
    pub(super) path: Box<[u8]>,
    pub(super) lease: KeptLease,
    pub(super) linger: Duration,
    /// True if the lease was granted anew.
    pub(super) is_new: bool,
}

impl Keeping {
    /// Begins to keep the lease, which the store had in this record when it was asked.
    pub(super) fn begin(self, snapshot: &Snapshot, asked: Instant) -> LeaseKeeper {
        let (told, mut state) = watch::channel(self.lease.look(snapshot));
        // A process that was stopped may learn of the grant when the lease has ended.
        state.mark_changed();
        let (farewell, said) = oneshot::channel();
        let is_known = self.is_new;
        let mut keeper = Keeper {
            follower: self.leases.knowledge.records.follow(&self.request.key, snapshot),
            keeping: self,
            told,
            seen: snapshot.revision,
            renew_at: asked,
            lasts_until: asked,
            is_last_term: false,
        };
        keeper.note(asked, snapshot);
        tokio::spawn(keeper.keep(said));
        LeaseKeeper { state, farewell: Some(farewell), is_known }
    }
}

struct Keeper {
    keeping: Keeping,
    follower: crate::store::Follower,
    told: watch::Sender<KeptLeaseState>,
    /// The newest record that was looked at.
    seen: Revision,
    renew_at: Instant,
    /// The time at which the lease ends, by the knowledge of this process without the store.
    lasts_until: Instant,
    /// True if the lease cannot be renewed.
    is_last_term: bool,
}

impl Keeper {
    /// Keeps the lease until it is lost, or its client has left it.
    async fn keep(mut self, mut said: oneshot::Receiver<Farewell>) {
        let mut release_at = None;
        while !matches!(*self.told.borrow(), KeptLeaseState::Lost(_)) {
            let due = release_at.unwrap_or(self.lasts_until);
            tokio::select! {
                biased;
                farewell = &mut said, if release_at.is_none() => match farewell {
                    Ok(Farewell::Stays) => return,
                    Ok(Farewell::Released) => release_at = Some(Instant::now()),
                    Err(_client_has_gone) => release_at = Some(Instant::now() + self.keeping.linger),
                },
                () = sleep_until(due), if release_at.is_some() => return self.release().await,
                () = self.follower.changed() => self.look_at_latest(),
                () = sleep_until(self.lasts_until) => self.end(),
                () = sleep_until(self.renew_at) => self.renew().await,
            }
        }
    }

    /// Looks at the record that the store has announced.
    fn look_at_latest(&mut self) {
        let snapshot = self.follower.latest();
        if snapshot.revision < self.seen {
            return;
        }
        self.seen = snapshot.revision;
        let state = self.keeping.lease.look(&snapshot);
        if let KeptLeaseState::Held(lasts) | KeptLeaseState::Breaking(lasts) = state {
            // Its client may have renewed it for less time.
            let now = Instant::now();
            self.lasts_until = self.lasts_until.min(now + lasts.min(AHEAD_MAX));
            self.renew_at = self.renew_at.min(now + lasts.min(AHEAD_MAX) / RENEWED_AFTER);
        }
        self.tell(state);
    }

    /// Renews the lease, if it can be.
    async fn renew(&mut self) {
        let (records, key) = (&self.keeping.leases.knowledge.records, &self.keeping.request.key);
        let (asked, lease) = (Instant::now(), self.keeping.lease);
        let renewal = records.update(key, None, |snapshot| lease.renewed(snapshot));
        match timeout_at(self.lasts_until, renewal).await {
            Ok(Ok(updated)) => {
                if updated.is_changed {
                    self.count(&updated.snapshot, "renewed");
                }
                self.note(asked, &updated.snapshot);
            }
            Ok(Err(_no_answer)) => self.renew_at = Instant::now() + PAUSE,
            Err(_elapsed) => self.end(),
        }
    }

    /// Notes what the store has answered to a question of this time.
    fn note(&mut self, asked: Instant, snapshot: &Snapshot) {
        let state = self.keeping.lease.look(snapshot);
        if let KeptLeaseState::Held(lasts) = state {
            let lasts = lasts.min(AHEAD_MAX);
            self.lasts_until = asked + lasts;
            self.is_last_term = self.keeping.lease.is_in_last_term(snapshot);
            self.renew_at = asked + if self.is_last_term { AHEAD_MAX } else { lasts / RENEWED_AFTER };
        }
        if let KeptLeaseState::Breaking(lasts) = state {
            self.lasts_until = asked + lasts.min(AHEAD_MAX);
            self.renew_at = asked + AHEAD_MAX;
        }
        self.seen = self.seen.max(snapshot.revision);
        self.tell(state);
    }

    /// The time is over that the lease lasts for certain.
    fn end(&self) {
        let loss = match *self.told.borrow() {
            KeptLeaseState::Breaking(_) => LeaseLoss::Broken,
            KeptLeaseState::Held(_) if self.is_last_term => LeaseLoss::Expired,
            KeptLeaseState::Held(_) | KeptLeaseState::Lost(_) => LeaseLoss::Unknown,
        };
        self.tell(KeptLeaseState::Lost(loss));
    }

    fn tell(&self, state: KeptLeaseState) {
        self.told.send_if_modified(|told| {
            let state = state.after(*told);
            discriminant(&std::mem::replace(told, state)) != discriminant(&state)
        });
    }

    /// Releases the lease for its client, unless the client has taken it up elsewhere.
    async fn release(&self) {
        let (records, key) = (&self.keeping.leases.knowledge.records, &self.keeping.request.key);
        while Instant::now() < self.lasts_until {
            match records.update(key, None, |snapshot| self.keeping.lease.released(snapshot)).await {
                Ok(updated) => {
                    if updated.is_changed {
                        self.count(&updated.snapshot, "released");
                        self.keeping.leases.member_lines.may_be_free(&self.keeping.path);
                    }
                    return;
                }
                Err(_no_answer) => sleep(PAUSE).await,
            }
        }
    }

    fn count(&self, snapshot: &Snapshot, event: &'static str) {
        self.keeping.leases.recount(&self.keeping.request.key, snapshot);
        if let Some(metrics) = metrics::get() {
            metrics.lease(&self.keeping.request.route().name, event);
        }
    }
}
