//! The claim room: the order of the writes on a resource, and the marks that they put into its record (DESIGN, section
//! 3, rules 1, 3, 7 and 16).

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::time::Instant;

use super::{refusals, request::Request};
use crate::{
    config::Upstream,
    core::{
        cause::Reason,
        lease::Standing,
        policy::GuardRules,
        records::{
            first_attempt::SentWrite,
            presence::Presence,
            record::{Availability, Snapshot},
            steps::take_over,
        },
        refusal::Refusal,
        resource::ResourceKey,
        time::StoreTime,
    },
    store::{Records, Sighting, StoreError, Updated},
    telemetry::{activity::Activity, metrics},
};
use mark::Marker;
use queue::Queues;
use turn::PlaceInFront;

pub(crate) mod below;
mod beside_trees;
pub(crate) mod held;
pub(crate) mod mark;
pub(crate) mod pending_mark;
pub(crate) mod places;
pub(crate) mod queue;
pub(crate) mod settled;
mod start_hold;
pub(crate) mod turn;

pub(crate) use held::{Held, Holding};
pub(crate) use mark::{Claim, MarkIntent, MarkKind, Marked, Settled};
pub use start_hold::StartHold;

/// The margin of a mark's deadline over all waits of its owner, for pauses of the process and of the store.
const DEADLINE_GRACE: Duration = Duration::from_secs(5);

/// The marks and the lines of this process. All generations of the configuration share them.
pub(crate) struct Claims {
    records: Records,
    marker: Marker,
    /// The lines of waiting writes.
    pub(crate) queues: Arc<Queues>,
    /// The settled reads that wait for the end of writes.
    pub(crate) reads: Arc<Queues>,
    /// The time after the start in which guarded writes and grants are held back.
    hold: StartHold,
    /// The place where waits are noted for an operator.
    activity: OnceLock<Arc<Activity>>,
}

impl Claims {
    /// Creates the claims of the process `owner`, a random number. At most `waiters_max` writes wait in all lines
    /// together, and at most as many reads.
    pub(crate) fn new(records: Records, owner: u64, waiters_max: usize, hold: StartHold) -> Self {
        let (marker, queues) = (Marker::new(records.clone(), owner), Arc::new(Queues::new(waiters_max)));
        let reads = Arc::new(Queues::for_reads(waiters_max));
        Self { records, marker, queues, reads, hold, activity: OnceLock::new() }
    }

    /// Notes waits for an operator from now on.
    pub(crate) fn note_in(&self, activity: Arc<Activity>) {
        // The first call, at the start, is the only one.
        let _ = self.activity.set(activity);
    }

    /// The process in whose name marks are made.
    pub(crate) const fn owner(&self) -> u64 {
        self.marker.owner
    }

    /// Returns how much longer guarded writes and grants are held back after the start.
    pub(crate) fn held_back(&self, now: StoreTime) -> Duration {
        self.hold.remaining(now)
    }

    /// Refuses a write that comes too soon after the start.
    pub(crate) fn may_begin(&self, snapshot: &Snapshot) -> Result<(), Refusal> {
        let remaining = self.held_back(snapshot.now);
        if remaining.is_zero() { Ok(()) } else { Err(refusals::held_back(remaining)) }
    }

    /// Refuses a write that cannot be judged yet: the proxy has just started, or another write is in doubt.
    pub(crate) fn may_write(&self, snapshot: &Snapshot) -> Result<(), Refusal> {
        self.may_begin(snapshot)?;
        match snapshot.availability() {
            Availability::InDoubt { until } => {
                Err(refusals::write_in_flight(snapshot.now.until(until), Reason::WriteInDoubt))
            }
            Availability::Free | Availability::Busy { .. } | Availability::Orphaned => Ok(()),
        }
    }

    /// Marks the resource of a write, with a deadline after all waits of the write.
    pub(crate) async fn mark(
        &self,
        request: &Request,
        seen: &Sighting,
        kind: MarkKind<'_>,
        standing: Standing,
    ) -> Result<Marked, StoreError> {
        let intent = MarkIntent {
            leaves_lease: standing.leaves_lease(),
            leaves: request.left_presence(),
            ..intent(request, kind, seen)
        };
        self.marker.mark(&request.key, &seen.snapshot, intent).await
    }

    /// Claims the destination of a COPY or MOVE by this record, with this right. Returns `None` if the record has changed,
    /// so that the destination must be judged again.
    pub(crate) async fn mark_destination(
        &self,
        request: &Request,
        seen: &Sighting,
        standing: Option<Standing>,
    ) -> Result<Option<Claim>, StoreError> {
        let (Some(destination), Some(standing)) = (request.destination(), standing) else { return Ok(None) };
        // The write goes the way of its source.
        let intent = MarkIntent {
            leaves_lease: standing.leaves_lease(),
            leaves: Some(Presence::present(destination.target())),
            ..intent(request, MarkKind::Claim, seen)
        };
        match self.marker.mark(&destination.key, &seen.snapshot, intent).await? {
            Marked::Done(claim) => Ok(Some(claim)),
            Marked::Conflict(_) | Marked::Full => Ok(None),
        }
    }

    /// Marks a resource that a write touches besides its own, or the record of the trees that it changes.
    pub(crate) async fn mark_other(
        &self,
        request: &Request,
        key: &ResourceKey,
        seen: &Sighting,
        kind: MarkKind<'_>,
    ) -> Result<Marked, StoreError> {
        self.marker.mark(key, &seen.snapshot, intent(request, kind, seen)).await
    }

    /// Marks the record of a write that came with an idempotency key. Its deadline is after that of the mark that the
    /// write makes in the record of its resource, for which it may wait.
    pub(crate) async fn mark_attempt(
        &self,
        request: &Request,
        key: &ResourceKey,
        seen: &Sighting,
        sent: SentWrite,
    ) -> Result<Marked, StoreError> {
        let kind = MarkKind::Attempt(sent, request.rules().idempotency_ttl);
        let mut intent = intent(request, kind, seen);
        intent.deadline = intent.deadline.plus(request.rules().claim.max_wait);
        self.marker.mark(key, &seen.snapshot, intent).await
    }

    /// Waits in front, until `end`, for a change of a record that other writes keep busy. If the owner of a mark is
    /// dead, makes its write a doubt instead. The caller reads the record again, so an early end of the wait does no
    /// harm.
    pub(crate) async fn wait_until_free(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        standing: &mut PlaceInFront,
        end: Instant,
    ) -> Result<(), Refusal> {
        if snapshot.availability() == Availability::Orphaned {
            let taken = self.take_over_dead(&request.key, Some(snapshot.clone())).await;
            return taken.map(drop).map_err(|error| refusals::of_store(&error));
        }
        self.wait_in_front(snapshot, request.rules(), standing, end).await
    }

    /// Makes doubts of the marks that dead owners have left in a record. Returns the record without them. `snapshot` is
    /// the record if the caller has already read it.
    pub(crate) async fn take_over_dead(
        &self,
        key: &ResourceKey,
        snapshot: Option<Snapshot>,
    ) -> Result<Snapshot, StoreError> {
        let snapshot = self.take_over_alone(key, snapshot).await?;
        let of_tree = snapshot.above.filter(|above| above.availability == Availability::Orphaned);
        match self.records.trees_around(key).filter(|_| of_tree.is_some()) {
            Some(around) => {
                self.take_over_alone(&around, None).await?;
                self.records.read(key).await
            }
            None => Ok(snapshot),
        }
    }

    async fn take_over_alone(&self, key: &ResourceKey, snapshot: Option<Snapshot>) -> Result<Snapshot, StoreError> {
        let Updated { snapshot, is_changed } = self.records.update(key, snapshot, take_over).await?;
        if is_changed {
            tracing::warn!(key = %key, "the owner of a write in flight is gone, so the write is in doubt");
            if let Some(metrics) = metrics::get() {
                metrics.doubt_made();
            }
        }
        Ok(snapshot)
    }
}

/// Returns the intent of a mark on a resource that is not the writer's own: an ended lease on it belongs to others.
fn intent<'a>(request: &Request, kind: MarkKind<'a>, seen: &Sighting) -> MarkIntent<'a> {
    let upstream = request.upstream();
    let (now, late_write_window) = (seen.snapshot.now, upstream.late_write_window);
    let deadline = deadline(now, upstream, request.rules());
    // The probes of the destination, for its verdict and its new state.
    let probes = request.destination().map_or(Duration::ZERO, |other| other.rules().probe.timeout);
    let deadline = deadline.plus(probes.saturating_mul(2));
    // The writes below its trees.
    let may_wait_below = request.route().has_trees && request.may_change_members();
    let members = if may_wait_below { request.rules().claim.max_wait } else { Duration::ZERO };
    let deadline = deadline.plus(members);
    MarkIntent { kind, since: seen.since, deadline, leaves_lease: false, leaves: None, late_write_window }
}

/// Returns the time by which the owner of a mark made now must be dead: after all that it may wait for.
fn deadline(now: StoreTime, upstream: &Upstream, rules: &GuardRules) -> StoreTime {
    let servers = u32::try_from(upstream.servers.len()).unwrap_or(u32::MAX);
    // The slots of the servers and the connections to them. The probes before and after the write wait for a slot too.
    let connecting = upstream.connect_timeout.saturating_mul(servers);
    let connecting = connecting.saturating_add(upstream.queue.max_wait.saturating_mul(3));
    let exchange = upstream.timeout.saturating_mul(2);
    // The exchanges that change the document before and after the content, and the read of the document.
    let change = upstream.connect_timeout.saturating_mul(servers).saturating_add(upstream.timeout);
    let change = change.saturating_add(upstream.queue.max_wait);
    let description = change.saturating_mul(2).saturating_add(rules.probe.timeout);
    let description = if rules.keeps_descriptions() { description } else { Duration::ZERO };
    let exchange = exchange.saturating_add(description);
    // The probe before the write, for its verdict, and the one after it.
    let probes = rules.probe.timeout.saturating_mul(2);
    now.plus(connecting.saturating_add(exchange).saturating_add(probes).saturating_add(DEADLINE_GRACE))
}
