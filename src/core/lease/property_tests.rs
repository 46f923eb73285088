//! Tests that compare random sequences of lease operations and writes with the answers that the clients got.

use std::time::Duration;

use proptest::{collection::vec, prelude::*};

use super::super::{
    LeaseState, Standing, Usage, judge_use,
    testing::{Resource, acquire, fixed, id},
};
use super::*;
use crate::core::{
    record::{Mark, Record, Revision},
    steps::Outcome,
};

/// The next event. Clients are numbers.
#[derive(Clone, Copy, Debug)]
enum Event {
    Acquire {
        by: u8,
        seconds: Option<u64>,
    },
    Renew {
        by: u8,
    },
    Change {
        by: u8,
    },
    Release {
        by: u8,
    },
    Break {
        seconds: Option<u64>,
    },
    Begin {
        by: Option<u8>,
    },
    End {
        outcome: Outcome,
        removes: bool,
    },
    /// The clock stands still, creeps or jumps.
    Pass {
        milliseconds: u64,
    },
    /// The store forgets the record if it may.
    Forget,
}

fn event() -> impl Strategy<Value = Event> {
    let by = || 0..3_u8;
    let outcome = prop_oneof![
        Just(Outcome::Applied),
        Just(Outcome::NotApplied),
        Just(Outcome::NotAppliedAsKnown),
        Just(Outcome::Unclear),
        Just(Outcome::Doubt)
    ];
    prop_oneof![
        4 => (by(), prop_oneof![9 => (15..=60_u64).prop_map(Some), 1 => Just(None)])
            .prop_map(|(by, seconds)| Event::Acquire { by, seconds }),
        3 => by().prop_map(|by| Event::Renew { by }),
        1 => by().prop_map(|by| Event::Change { by }),
        1 => by().prop_map(|by| Event::Release { by }),
        1 => proptest::option::of(0..=60_u64).prop_map(|seconds| Event::Break { seconds }),
        3 => proptest::option::of(by()).prop_map(|by| Event::Begin { by }),
        3 => (outcome, proptest::bool::weighted(0.2)).prop_map(|(outcome, removes)| Event::End { outcome, removes }),
        4 => prop_oneof![Just(0), Just(1), 1..20_000_u64, Just(59_999), Just(60_000), 60_000..2_000_000_u64]
            .prop_map(|milliseconds| Event::Pass { milliseconds }),
        1 => Just(Event::Forget),
    ]
}

/// The resource, and the clients' knowledge from the answers that they got.
struct World {
    resource: Resource,
    /// The id that each client uses.
    ids: [LeaseId; 3],
    /// The client that was last granted the lease, and the end of its term unless the lease is broken. `None`: no end.
    promise: Option<(u8, Option<StoreTime>)>,
    /// Whether a client other than the last holder has written, or may have, since that holder's lease ended.
    is_overwritten: bool,
    /// The write in flight, the client that it names as the holder, and its standing.
    in_flight: Option<((Mark, Revision), Option<u8>, Standing)>,
    fence: Revision,
}

impl World {
    fn new() -> Self {
        let resource = Resource::new();
        let fence = resource.snapshot.fence();
        let ids = [id(0), id(1), id(2)];
        Self { resource, ids, promise: None, is_overwritten: false, in_flight: None, fence }
    }

    fn id(&self, client: u8) -> LeaseId {
        self.ids[usize::from(client)]
    }

    /// Returns the client that holds the lease at present, by the answers.
    fn holder(&self) -> Option<u8> {
        let now = self.resource.snapshot.now;
        self.promise.filter(|(_, until)| until.is_none_or(|until| now < until)).map(|(client, _)| client)
    }

    /// Does an operation, and checks that its repetition gets the same answer.
    fn lease(&mut self, action: Action) -> Result<Done, Denied> {
        let result = self.resource.lease(action.clone());
        if let Ok(done) = &result
            && !matches!(done, Done::Released)
        {
            let (lease, fence) = (self.resource.snapshot.record.lease.clone(), self.resource.snapshot.fence());
            let expected = match *done {
                Done::Acquired { id, duration, .. } => Done::Acquired { id, duration, is_new: false },
                done => done,
            };
            assert_eq!(self.resource.lease(action), Ok(expected), "a repetition is the same success");
            assert_eq!((&self.resource.snapshot.record.lease, self.resource.snapshot.fence()), (&lease, fence));
        }
        result
    }

    fn happen(&mut self, event: Event) {
        let now = self.resource.snapshot.now;
        match event {
            Event::Acquire { by, seconds } => self.acquire(by, seconds.map_or(LeaseDuration::Infinite, fixed)),
            Event::Renew { by } => {
                if let Ok(Done::Renewed { duration }) = self.lease(Action::Renew { id: self.id(by) }) {
                    assert_eq!(self.promise.map(|(client, _)| client), Some(by), "only the last holder renews");
                    assert!(!self.is_overwritten, "a renewal proves that no other client has written");
                    self.promise = Some((by, duration.end(now)));
                }
            }
            Event::Change { by } => {
                let proposed = LeaseId::from_random([self.id(by).reveal().as_bytes()[0].wrapping_add(by + 50); 16]);
                if self.lease(Action::Change { id: self.id(by), proposed }).is_ok() {
                    assert_eq!(self.holder(), Some(by));
                    self.ids[usize::from(by)] = proposed;
                }
            }
            Event::Release { by } => {
                if self.lease(Action::Release { id: self.id(by) }) == Ok(Done::Released) {
                    assert_eq!(self.promise.map(|(client, _)| client), Some(by));
                    self.promise = Some((by, Some(now)));
                }
            }
            Event::Break { seconds } => self.break_lease(seconds),
            Event::Begin { by } => self.begin(by),
            Event::End { outcome, removes } => self.end(outcome, removes),
            Event::Pass { milliseconds } => self.resource.pass(Duration::from_millis(milliseconds)),
            Event::Forget => self.forget(),
        }
        self.check();
    }

    fn acquire(&mut self, by: u8, duration: LeaseDuration) {
        let (holder, now) = (self.holder(), self.resource.snapshot.now);
        let was_quiet = self.resource.snapshot.has_no_pending_writes();
        let Ok(Done::Acquired { is_new, .. }) = self.lease(acquire(Some(self.id(by)), duration)) else { return };
        assert!(holder.is_none_or(|holder| holder == by), "{holder:?} still holds what {by} was granted");
        assert_eq!(is_new, holder.is_none());
        if is_new {
            assert!(was_quiet, "a write was under way");
            assert!(self.resource.snapshot.fence() > self.fence, "a grant has a greater fence");
            self.is_overwritten = false;
        } else {
            assert_eq!(self.resource.snapshot.fence(), self.fence);
        }
        self.promise = Some((by, duration.end(now)));
    }

    fn break_lease(&mut self, seconds: Option<u64>) {
        let now = self.resource.snapshot.now;
        let Ok(Done::Broken { remaining }) = self.lease(Action::Break { period: seconds.map(Duration::from_secs) })
        else {
            return;
        };
        let (client, until) = self.promise.expect("a client held the broken lease");
        let end = now.plus(remaining);
        assert!(until.is_none_or(|until| end <= until.max(now)), "a break never puts the end off");
        assert!(seconds.is_none_or(|seconds| remaining <= Duration::from_secs(seconds)));
        self.promise = Some((client, Some(end)));
    }

    fn begin(&mut self, by: Option<u8>) {
        if self.resource.snapshot.availability() != Availability::Free {
            return;
        }
        let presented = by.map(|client| self.id(client));
        let verdict = judge_use(&self.resource.snapshot, Some(&self.resource.rules), Usage::Write, presented, None);
        if let Some(holder) = self.holder() {
            assert_eq!(verdict == Ok(Standing::Holder), by == Some(holder), "only the holder writes");
            assert_eq!(verdict.is_ok(), by == Some(holder), "only the holder writes");
        }
        if let Ok(standing) = verdict {
            assert_eq!(standing == Standing::Holder, by.is_some());
            self.in_flight = Some((self.resource.begin(standing), by, standing));
        }
    }

    fn end(&mut self, outcome: Outcome, removes: bool) {
        let Some((begun, _, standing)) = self.in_flight.take() else { return };
        self.resource.end(begun, outcome, removes);
        let may_have_written = !matches!(outcome, Outcome::NotApplied | Outcome::NotAppliedAsKnown);
        self.is_overwritten |= may_have_written && standing == Standing::Free;
        if outcome == Outcome::Applied && removes {
            self.promise = self.promise.map(|(client, _)| (client, Some(self.resource.snapshot.now)));
            self.is_overwritten = true;
        }
    }

    fn forget(&mut self) {
        let Resource { snapshot, .. } = &mut self.resource;
        if snapshot.record.is_idle(snapshot.now) {
            snapshot.record = Record::absent(snapshot.revision);
        }
    }

    fn check(&mut self) {
        let snapshot = &self.resource.snapshot;
        assert_eq!(snapshot.lease_state().is_held(), self.holder().is_some(), "the answers were true");
        if let (Some(holder), Some((_, writer, _))) = (self.holder(), self.in_flight) {
            assert_eq!(writer, Some(holder), "no other client writes while the lease is held");
        }
        assert!(snapshot.fence() >= self.fence, "fences only grow");
        self.fence = snapshot.fence();
        let is_remembered = snapshot.lease_state() != LeaseState::Available;
        assert!(!is_remembered || !snapshot.record.is_idle(snapshot.now), "a remembered lease pins its record");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn clients_are_told_the_truth(events in vec(event(), 1..60)) {
        let mut world = World::new();
        for event in events {
            world.happen(event);
        }
    }
}
