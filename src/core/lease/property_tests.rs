//! Tests that compare random sequences of lease operations and writes with the answers that the clients got.

use std::time::Duration;

use proptest::{collection::vec, prelude::*};

use super::super::{
    LeaseMode, LeaseState, ShareMode, Standing, Usage, UseDenied, judge_use,
    mode::tests::sets,
    testing::{Resource, acquisition, fixed, id},
};
use super::*;
use crate::core::records::{
    record::{Mark, Record, Revision},
    steps::Outcome,
};

/// The next event. Clients are numbers.
#[derive(Clone, Copy, Debug)]
enum Event {
    Acquire {
        by: u8,
        mode: LeaseMode,
        seconds: Option<u64>,
        takes_over: bool,
    },
    /// A client waits for the exclusive lease.
    Await,
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
    let set = || prop::sample::select(sets().collect::<Vec<_>>());
    let any_shared = (set(), set()).prop_map(|(access, share)| LeaseMode::Shared(ShareMode { access, share }));
    let mode = prop_oneof![1 => Just(LeaseMode::Exclusive), 2 => Just(LeaseMode::SHARED), 3 => any_shared];
    let outcome = prop_oneof![
        Just(Outcome::Applied),
        Just(Outcome::NotApplied),
        Just(Outcome::NotAppliedAsKnown),
        Just(Outcome::Unclear),
        Just(Outcome::Doubt)
    ];
    prop_oneof![
        5 => (by(), mode, prop_oneof![9 => (15..=60_u64).prop_map(Some), 1 => Just(None)], proptest::bool::weighted(0.1))
            .prop_map(|(by, mode, seconds, takes_over)| Event::Acquire { by, mode, seconds, takes_over }),
        1 => Just(Event::Await),
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

/// A client's knowledge of its lease, from the answers that it got.
#[derive(Clone, Copy, Debug)]
struct Promise {
    mode: LeaseMode,
    /// The end of its term. `None`: no end.
    until: Option<StoreTime>,
    /// True if a client that did not hold a lease beside this one has written, or may have, or was granted one.
    is_overwritten: bool,
}

/// The resource, and the clients' knowledge.
struct World {
    resource: Resource,
    /// The id that each client uses.
    ids: [LeaseId; 3],
    promises: [Option<Promise>; 3],
    /// The write in flight, the client that it names as the holder, and its standing.
    in_flight: Option<((Mark, Revision), Option<u8>, Standing)>,
    fence: Revision,
}

impl World {
    fn new() -> Self {
        let resource = Resource::new();
        let fence = resource.snapshot.fence();
        Self { resource, ids: [id(0), id(1), id(2)], promises: [None; 3], in_flight: None, fence }
    }

    fn id(&self, client: u8) -> LeaseId {
        self.ids[usize::from(client)]
    }

    fn promise(&mut self, client: u8) -> &mut Option<Promise> {
        &mut self.promises[usize::from(client)]
    }

    /// Returns the clients that hold a lease at present, by the answers, and the modes of their leases.
    fn holders(&self) -> Vec<(u8, LeaseMode)> {
        let now = self.resource.snapshot.now;
        let held = |promise: &&Promise| promise.until.is_none_or(|until| now < until);
        let promises = (0..3).zip(&self.promises);
        promises.filter_map(|(client, promise)| Some((client, promise.as_ref().filter(held)?.mode))).collect()
    }

    fn is_holder(&self, client: u8) -> bool {
        self.holders().iter().any(|(holder, _)| *holder == client)
    }

    /// Does an operation, and checks that its repetition gets the same answer.
    fn lease(&mut self, action: Action) -> Result<Done, Denied> {
        let result = self.resource.lease(action.clone());
        if let Ok(done) = &result
            && !matches!(done, Done::Released)
        {
            let (leases, fence) = (self.resource.snapshot.record.leases.clone(), self.resource.snapshot.fence());
            let expected = match *done {
                Done::Acquired { id, duration, .. } => Done::Acquired { id, duration, is_new: false },
                done => done,
            };
            assert_eq!(self.resource.lease(action), Ok(expected), "a repetition is the same success");
            assert_eq!((&self.resource.snapshot.record.leases, self.resource.snapshot.fence()), (&leases, fence));
        }
        result
    }

    fn happen(&mut self, event: Event) {
        let now = self.resource.snapshot.now;
        match event {
            Event::Acquire { by, mode, seconds, takes_over } => {
                self.acquire((by, takes_over), mode, seconds.map_or(LeaseDuration::Infinite, fixed));
            }
            Event::Await => {
                let record = await_exclusive(&self.resource.snapshot, now.plus(Duration::from_secs(10)));
                self.resource.swap(record);
            }
            Event::Renew { by } => {
                if let Ok(Done::Renewed { duration }) = self.lease(Action::Renew { id: self.id(by), duration: None }) {
                    let promise = self.promise(by).as_mut().expect("only a holder renews");
                    assert!(!promise.is_overwritten, "a renewal proves that no other client has written");
                    promise.until = duration.end(now);
                }
            }
            Event::Change { by } => {
                let proposed = LeaseId::from_random([self.id(by).reveal().as_bytes()[0].wrapping_add(by + 50); 16]);
                if self.lease(Action::Change { id: self.id(by), proposed }).is_ok() {
                    assert!(self.is_holder(by));
                    self.ids[usize::from(by)] = proposed;
                }
            }
            Event::Release { by } => {
                if self.lease(Action::Release { id: self.id(by) }) == Ok(Done::Released) {
                    self.promise(by).as_mut().expect("only a holder releases").until = Some(now);
                }
            }
            Event::Break { seconds } => self.break_leases(seconds),
            Event::Begin { by } => self.begin(by),
            Event::End { outcome, removes } => self.end(outcome, removes),
            Event::Pass { milliseconds } => self.resource.pass(Duration::from_millis(milliseconds)),
            Event::Forget => self.forget(),
        }
        self.check();
    }

    fn acquire(&mut self, (by, takes_over): (u8, bool), mode: LeaseMode, duration: LeaseDuration) {
        let (before, mut holders) = (self.resource.snapshot.clone(), self.holders());
        let Action::Acquire(wanted) = acquisition(Some(self.id(by)), mode, duration) else {
            panic!("it is an acquisition")
        };
        let action = Action::Acquire(Acquire { takes_over, ..wanted });
        let Ok(Done::Acquired { is_new, .. }) = self.lease(action) else { return };
        if takes_over {
            for (client, _) in holders.extract_if(.., |(client, _)| *client != by) {
                self.promise(client).as_mut().expect("it holds a lease").until = Some(before.now);
            }
        }
        let (own, others): (Vec<_>, Vec<_>) = holders.into_iter().partition(|(client, _)| *client == by);
        assert!(others.iter().all(|(_, other)| other.stands_beside(mode)), "{others:?} still hold it beside {mode:?}");
        let is_raised = own.first().is_some_and(|(_, own)| !own.covers(mode));
        assert_eq!(is_new, own.is_empty() || is_raised);
        if is_new {
            assert!(before.has_no_pending_writes(), "a write was under way");
            assert!(!mode.is_shared() || !before.is_exclusive_awaited(Duration::ZERO), "another waits");
            assert!(self.resource.snapshot.fence() > self.fence, "a grant has a greater fence");
        } else {
            assert_eq!(self.resource.snapshot.fence(), self.fence);
        }
        let is_left = |promise: &Promise| !(is_new && others.is_empty()) && promise.mode.stands_beside(mode);
        self.promises.iter_mut().flatten().for_each(|promise| promise.is_overwritten |= !is_left(promise));
        *self.promise(by) = Some(Promise { mode, until: duration.end(before.now), is_overwritten: false });
    }

    fn break_leases(&mut self, seconds: Option<u64>) {
        let now = self.resource.snapshot.now;
        let Ok(Done::Broken { remaining }) = self.lease(Action::Break { period: seconds.map(Duration::from_secs) })
        else {
            return;
        };
        assert!(seconds.is_none_or(|seconds| remaining <= Duration::from_secs(seconds)));
        for promise in self.promises.iter_mut().flatten() {
            let asked = seconds.map(|seconds| now.plus(Duration::from_secs(seconds)));
            promise.until = Some(promise.until.into_iter().chain(asked).min().unwrap_or(now));
        }
        let last = self.promises.iter().flatten().filter_map(|promise| promise.until).max();
        assert_eq!(last.map(|last| now.until(last)), Some(remaining), "a break never puts an end off");
    }

    fn begin(&mut self, by: Option<u8>) {
        if self.resource.snapshot.availability() != Availability::Free {
            return;
        }
        let presented = by.map(|client| self.id(client));
        let verdict = judge_use(&self.resource.snapshot, Some(&self.resource.rules), Usage::Write, presented, None);
        let is_holder = by.is_some_and(|by| self.is_holder(by));
        if is_holder && !by.and_then(|by| self.promises[usize::from(by)]).is_some_and(|own| may_write(own.mode)) {
            assert_eq!(verdict, Err(UseDenied::BeyondAccess));
            return;
        }
        assert_eq!(verdict == Ok(Standing::Holder), is_holder, "each holder writes that said so");
        assert!(self.holders().is_empty() || verdict.is_ok() == is_holder, "only a holder writes");
        if let Ok(standing) = verdict {
            assert_eq!(standing == Standing::Holder, by.is_some());
            self.in_flight = Some((self.resource.begin(standing), by, standing));
        }
    }

    fn end(&mut self, outcome: Outcome, removes: bool) {
        let Some((begun, writer, standing)) = self.in_flight.take() else { return };
        self.resource.end(begun, outcome, removes);
        let (now, is_removed) = (self.resource.snapshot.now, outcome == Outcome::Applied && removes);
        let may_have_written = !matches!(outcome, Outcome::NotApplied | Outcome::NotAppliedAsKnown);
        for (client, promise) in (0..3).zip(&mut self.promises) {
            let Some(promise) = promise else { continue };
            let is_of_stranger = standing == Standing::Free || Some(client) != writer && !lets_write(promise.mode);
            promise.is_overwritten |= is_removed || may_have_written && is_of_stranger;
            promise.until = if is_removed { Some(now) } else { promise.until };
        }
    }

    fn forget(&mut self) {
        let Resource { snapshot, .. } = &mut self.resource;
        if snapshot.record.is_idle(snapshot.now) {
            snapshot.record = Record::absent(snapshot.revision).into();
        }
    }

    fn check(&mut self) {
        let (snapshot, holders) = (&self.resource.snapshot, self.holders());
        assert_eq!(snapshot.held_leases().count(), holders.len(), "the answers were true");
        for ((one, mode), (other, beside)) in
            holders.iter().flat_map(|one| holders.iter().map(move |other| (one, other)))
        {
            assert!(one == other || mode.stands_beside(*beside), "{holders:?} hold it together");
        }
        if let (Some(_), Some((_, writer, _))) = (holders.first(), self.in_flight) {
            let writer = writer.expect("only a client that holds the lease writes, or one that held it just now");
            let lets_all_write = holders.iter().all(|(holder, mode)| *holder == writer || lets_write(*mode));
            assert!(lets_all_write, "no client writes while the lease of another one forbids it: {holders:?}");
        }
        assert!(snapshot.fence() >= self.fence, "fences only grow");
        self.fence = snapshot.fence();
        let is_remembered = snapshot.lease_state() != LeaseState::Available;
        assert!(!is_remembered || !snapshot.record.is_idle(snapshot.now), "a remembered lease pins its record");
    }
}

fn may_write(mode: LeaseMode) -> bool {
    matches!(mode, LeaseMode::Exclusive) || matches!(mode, LeaseMode::Shared(own) if own.access.contains(Usage::Write))
}

fn lets_write(mode: LeaseMode) -> bool {
    matches!(mode, LeaseMode::Shared(own) if own.share.contains(Usage::Write))
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
