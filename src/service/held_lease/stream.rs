//! The stream by which one client holds one lease.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;

use crate::{
    box_future::{BoxFuture, box_future},
    core::{
        lease::{Done, KeptLeaseState, LeaseLoss},
        policy::LeaseRules,
        watch::{breaking_event, granted_event, lost_event, refused_event, waiting_event},
    },
    drain::GenerationEnd,
    guard::{
        Acquisition, Halt, LeaseKeeper, LeasePlace, Operated, Pieces, StreamedLease, UntoldGrant, WatchPlaces, refusals,
    },
    service::events::{COMMENT, Silence, farewell, greeting},
};

/// The longest time after which a client that waits for a lease comes back.
const COMES_BACK_MAX: Duration = Duration::from_secs(5);

/// The lease of a stream, and the rules of its route.
pub(super) struct HeldLease {
    pub(super) lease: StreamedLease,
    pub(super) rules: LeaseRules,
}

/// The stream of one client.
pub(super) struct LeaseStream {
    lease: HeldLease,
    stage: Stage,
    /// The first event.
    first: Option<String>,
    silence: Silence,
    /// Given back when the stream ends.
    _places: WatchPlaces,
    end: GenerationEnd,
}

/// How far a client has come.
enum Stage {
    /// It waits for the lease, at this place in the line.
    Waits(Acquisition, LeasePlace),
    /// It holds the lease.
    Holds(StreamHolding),
    /// The stream ends.
    Over,
}

/// A lease that a client holds. If this is dropped, the client has gone.
struct StreamHolding {
    keeper: LeaseKeeper,
    /// The lease, until the client has received its id.
    untold: Option<UntoldGrant>,
    /// Completes when the upstream denies the client the resource.
    right_ends: BoxFuture<'static, StatusCode>,
}

/// The reason why a stream wakes up.
enum LeaseWake {
    End,
    Acquired(Box<Result<Operated, Halt>>),
    MovedUp(LeasePlace),
    Kept(KeptLeaseState),
    Denied(StatusCode),
    Silence,
}

impl LeaseStream {
    /// A stream that begins with a grant.
    pub(super) fn granted(
        lease: HeldLease,
        operated: Operated,
        ends: (WatchPlaces, GenerationEnd),
    ) -> Result<Self, Halt> {
        let (holding, event) = lease.hold(operated)?;
        Ok(Self::new(lease, Stage::Holds(holding), &event, ends))
    }

    /// A stream whose client has to wait.
    pub(super) async fn waiting(
        lease: HeldLease,
        acquisition: Acquisition,
        ends: (WatchPlaces, GenerationEnd),
    ) -> Self {
        let place = lease.lease.place();
        let event = lease.waiting(place).await;
        Self::new(lease, Stage::Waits(acquisition, place), &event, ends)
    }

    fn new(lease: HeldLease, stage: Stage, event: &str, (places, end): (WatchPlaces, GenerationEnd)) -> Self {
        let first = Some(greeting() + event);
        Self { lease, stage, first, silence: Silence::begin(), _places: places, end }
    }

    async fn next_piece(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first.into());
        }
        if let Stage::Holds(StreamHolding { keeper, untold, .. }) = &mut self.stage {
            // The piece with the grant was written before this one is asked for.
            keeper.is_told();
            untold.take().into_iter().for_each(UntoldGrant::told);
        }
        loop {
            let wake = self.wake().await?;
            let text = match wake {
                LeaseWake::End => self.bid_farewell(),
                LeaseWake::Acquired(acquired) => self.tell_outcome(*acquired).await,
                LeaseWake::MovedUp(place) => self.lease.waiting(place).await,
                LeaseWake::Kept(KeptLeaseState::Lost(loss)) => self.tell_loss(loss, None),
                LeaseWake::Kept(KeptLeaseState::Breaking(remaining)) => breaking_event(remaining),
                LeaseWake::Kept(KeptLeaseState::Held(_)) => String::new(),
                LeaseWake::Denied(status) => self.tell_loss(LeaseLoss::Denied, Some(status)),
                LeaseWake::Silence => COMMENT.to_owned(),
            };
            if let Some(piece) = self.silence.broken_by(text) {
                return Some(piece);
            }
        }
    }

    /// Waits for something to tell. `None` if the stream is over.
    async fn wake(&mut self) -> Option<LeaseWake> {
        let (end, silence, lease) = (&self.end, &self.silence, &self.lease.lease);
        Some(match &mut self.stage {
            Stage::Waits(acquisition, place) => tokio::select! {
                biased;
                () = end.wait() => LeaseWake::End,
                acquired = acquisition.acquired() => LeaseWake::Acquired(Box::new(acquired)),
                moved = lease.moves_up(*place) => {
                    *place = moved;
                    LeaseWake::MovedUp(moved)
                }
                () = silence.is_too_long() => LeaseWake::Silence,
            },
            Stage::Holds(holding) => tokio::select! {
                biased;
                kept = holding.keeper.changed() => LeaseWake::Kept(kept),
                () = end.wait() => LeaseWake::End,
                status = &mut holding.right_ends => LeaseWake::Denied(status),
                () = silence.is_too_long() => LeaseWake::Silence,
            },
            Stage::Over => return None,
        })
    }

    /// Returns the last words of a stream that this proxy ends. The client comes back before its lease ends.
    fn bid_farewell(&mut self) -> String {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Holds(holding) => farewell(holding.keeper.leave() / 2),
            Stage::Waits(..) | Stage::Over => farewell(COMES_BACK_MAX),
        }
    }

    /// Tells what has become of the wait.
    async fn tell_outcome(&mut self, acquired: Result<Operated, Halt>) -> String {
        self.stage = Stage::Over;
        match acquired.and_then(|operated| self.lease.hold(operated)) {
            Ok((holding, event)) => {
                self.stage = Stage::Holds(holding);
                event
            }
            // It is refused because this proxy ends its stream.
            Err(Halt::Refused(_)) if self.lease.lease.is_wait_cancelled() => farewell(COMES_BACK_MAX),
            Err(Halt::Refused(refusal)) => refused_event(&refusal),
            Err(Halt::Denied(relayed)) => {
                let status = relayed.head.status;
                relayed.discard().await;
                lost_event(LeaseLoss::Denied, Some(status))
            }
            Err(Halt::Broken(_)) => String::new(),
        }
    }

    /// Reports that the client has lost its lease.
    fn tell_loss(&mut self, loss: LeaseLoss, status: Option<StatusCode>) -> String {
        if let (Stage::Holds(holding), LeaseLoss::Denied) = (std::mem::replace(&mut self.stage, Stage::Over), loss) {
            holding.keeper.release();
        }
        lost_event(loss, status)
    }
}

impl HeldLease {
    /// Returns the event that tells a client for whom and where it waits.
    async fn waiting(&self, place: LeasePlace) -> String {
        let seen = self.lease.wait_seen().await;
        seen.map(|snapshot| waiting_event(&snapshot, place.number)).unwrap_or_default()
    }

    /// Holds the lease that was just acquired, and returns its event.
    fn hold(&self, operated: Operated) -> Result<(StreamHolding, String), Halt> {
        let Some(Done::Acquired { id, duration, is_new }) = operated.done else {
            return Err(refusals::of_field().into());
        };
        let (snapshot, tag) = (&operated.snapshot, operated.validators.and_then(|validators| validators.tag));
        let event = granted_event(id, duration, snapshot, tag.as_ref());
        let keeper = self.lease.keep(&self.rules, (id, is_new), (snapshot, operated.asked));
        Ok((StreamHolding { keeper, untold: operated.untold, right_ends: self.lease.right_ends() }, event))
    }
}

impl Pieces for LeaseStream {
    fn next(&mut self) -> BoxFuture<'_, Option<Bytes>> {
        box_future(|| self.next_piece())
    }
}
