//! The events that can happen next, and how they happen.

use std::{collections::BTreeSet, time::Duration};

use ifmatch::{
    core::{
        records::record::{Record, Revision, Snapshot},
        resource::ResourceKey,
    },
    store::{StoreError, Swapped},
    upstream::Failure,
};
use tokio::time::{Instant, advance};

use crate::{
    clocks,
    lives::Ending,
    run::Run,
    slow_owners,
    store::complete,
    world::{Inner, Late, Pending, Response, Sent, What},
};

/// Something that can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A client sends its next request.
    Begin(usize),
    /// The requested action happens, and its caller gets the answer.
    Do(u64),
    /// The action happens, and its answer is lost.
    Lose(u64),
    /// The action does not happen now, and its caller gets a failure: it may still happen later.
    Miss(u64),
    /// The action happens, but its caller is stopped: it gets the answer after every deadline in the records.
    Stop(u64),
    /// The backend fails with this status, and does nothing.
    Fail(u64, u16),
    /// The backend acts on a write, and answers with this status of a failure.
    FailAfter(u64, u16),
    /// The backend applies an abandoned write.
    Apply(usize),
    /// An abandoned swap arrives.
    Arrive(usize),
    /// No client waits for the answer of this request any more.
    GiveUp(usize),
    /// A process dies, and another one takes its place.
    Kill(usize),
    /// A process ends in good order, and another one takes its place.
    End(usize),
    /// A process loads the other configuration.
    Reload(usize),
    /// The clock of the store is set back by these seconds.
    SetBack(u64),
    /// A moment passes, so that dates differ.
    Tick,
    /// A writer changes the first document without ifmatch.
    WriteDirectly,
    /// Time passes until something else can happen.
    Flow,
}

impl Event {
    /// True if the event is a fault.
    pub fn is_fault(self) -> bool {
        !matches!(
            self,
            Self::Begin(_)
                | Self::Do(_)
                | Self::Apply(_)
                | Self::Arrive(_)
                | Self::Reload(_)
                | Self::SetBack(_)
                | Self::Tick
                | Self::WriteDirectly
                | Self::Flow
        )
    }
}

/// The faults that may happen in a run.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// The number of faults, in all.
    pub left: u32,
    /// True if processes die.
    pub kills: bool,
    /// True if the backend answers with errors.
    pub fails: bool,
}

/// The longest time for which a process is stopped.
const STOP_MAX: Duration = Duration::from_secs(600);

impl Run {
    /// Returns all events that can happen now, in a fixed order: the usual ones first.
    pub fn events(&self) -> Vec<Event> {
        let inner = self.world.lock();
        let mut events: Vec<Event> = inner.pending.iter().map(|pending| Event::Do(pending.number)).collect();
        events.extend((0..self.clients.len()).filter(|client| self.may_begin(&inner, *client)).map(Event::Begin));
        events.extend((0..inner.late.len()).map(Event::Apply));
        events.extend((0..inner.stray.len()).map(Event::Arrive));
        if self.reloads_left > 0 {
            events.extend(self.places().map(Event::Reload));
        }
        if self.clock_steps_left > 0 {
            events.extend(clocks::STEPS_SECONDS.map(Event::SetBack));
        }
        events.extend(self.events_beside());
        if self.faults.left > 0 && self.setting.has_slow_owners {
            events.extend(slow_owners::stops(&inner.pending));
        } else if self.faults.left > 0 {
            for pending in &inner.pending {
                let number = pending.number;
                events.extend([Event::Lose(number), Event::Stop(number)]);
                // To its caller, a read that never arrives looks like one whose answer is lost. Neither leaves a trace.
                events.extend(pending.what.changes_something().then_some(Event::Miss(number)));
                if let (What::Exchange { sent, .. }, true) = (&pending.what, self.faults.fails) {
                    events.extend([409, 500, 502].map(|status| Event::Fail(number, status)));
                    if sent.writes() {
                        events.extend([500, 502, 504].map(|status| Event::FailAfter(number, status)));
                    } else {
                        events.push(Event::Fail(number, 403));
                    }
                }
            }
            events.extend(Self::running(&inner).map(Event::GiveUp));
            if self.setting.successors.is_empty() {
                events.extend(Self::living(&inner).filter(|_| self.faults.kills).map(Event::Kill));
            } else {
                events.extend(self.restarts());
            }
        }
        if !self.is_over(&inner) || !inner.late.is_empty() {
            events.push(Event::Flow);
        }
        events
    }

    /// Lets an event happen. Returns false if time has passed to no effect.
    pub async fn happen(&mut self, event: Event) -> bool {
        self.world.note(|| format!("{event:?}{}", self.about(event)));
        if event.is_fault() {
            self.faults.left -= 1;
            self.world.lock().ledger.is_faulty = true;
        }
        match event {
            Event::Begin(client) => self.begin_next(client),
            Event::Do(number) => self.answer(number, Fate::Answered).await,
            Event::Lose(number) => self.answer(number, Fate::Lost).await,
            Event::Miss(number) => self.answer(number, Fate::Missed).await,
            Event::Stop(number) => self.answer(number, Fate::Stopped).await,
            Event::Fail(number, status) => self.answer(number, Fate::Failed(status)).await,
            Event::FailAfter(number, status) => self.answer(number, Fate::FailedAfter(status)).await,
            Event::Apply(place) => {
                let late = self.world.lock().late.remove(place);
                self.act(&late.sent);
            }
            Event::Arrive(place) => {
                let (key, expected, next) = self.world.lock().stray.remove(place);
                let _ = self.swap(&key, expected, next);
            }
            Event::GiveUp(request) => {
                self.world.lock().ledger.requests[request].is_given_up = true;
                self.tasks[request].abort();
            }
            Event::Kill(process) => self.end_process(process, Ending::Death),
            Event::End(process) => self.end_process(process, Ending::Stop),
            Event::Reload(place) => self.reload(place),
            Event::SetBack(seconds) => self.set_back(seconds),
            Event::Tick => self.tick().await,
            Event::WriteDirectly => self.write_directly(),
            Event::Flow => return self.flow().await,
        }
        true
    }

    fn about(&self, event: Event) -> String {
        let (Event::Do(number)
        | Event::Lose(number)
        | Event::Miss(number)
        | Event::Stop(number)
        | Event::Fail(number, _)
        | Event::FailAfter(number, _)) = event
        else {
            return String::new();
        };
        let inner = self.world.lock();
        let Some(pending) = inner.pending.iter().find(|pending| pending.number == number) else { return String::new() };
        let what = match &pending.what {
            What::Read { key, .. } => format!("read {key:?}"),
            What::Swap { key, expected, next, .. } => format!("swap {key:?} at {expected:?} for {next:?}"),
            What::Exchange { sent, .. } => format!("{sent:?}"),
        };
        format!(" of request {:?}, process {}: {what}", pending.request, pending.process)
    }

    async fn answer(&mut self, number: u64, fate: Fate) {
        let place = self.world.lock().pending.iter().position(|pending| pending.number == number).unwrap();
        let pending = self.world.lock().pending.remove(place);
        if fate == Fate::Stopped {
            self.reply(pending, Fate::Answered);
            // The question is answered, but its caller does not run yet. The mark that it has just made lasts less long.
            advance(self.longest_wait()).await;
        } else {
            self.reply(pending, fate);
        }
    }

    fn reply(&mut self, pending: Pending, fate: Fate) {
        let Pending { request, what, .. } = pending;
        match what {
            What::Read { key, reply } => {
                if let Some(request) = request {
                    self.world.lock().ledger.turns.looks(request, &key);
                }
                let result = complete(self.cellar.store.read(&key));
                let result = if fate == Fate::Answered { result } else { Err(StoreError::Unavailable) };
                self.tell_of(request, result.as_ref());
                let _ = reply.send(result);
            }
            What::Swap { key, expected, next, reply } => {
                if fate == Fate::Missed {
                    self.world.lock().stray.push((key, expected, *next));
                    self.tell(request, &"missed");
                    let _ = reply.send(Err(StoreError::Unavailable));
                    return;
                }
                let before = complete(self.cellar.store.read(&key));
                let result = self.swap(&key, expected, (*next).clone());
                if let (Some(request), Ok(before), Ok(Swapped::Done(_))) = (request, &before, &result) {
                    let mut inner = self.world.lock();
                    if let Some(other) = inner.served(request, &key, before, &next) {
                        inner
                            .ledger
                            .breaks(format!("request {request} goes past request {other}, which stood in line before"));
                    }
                }
                let result = if fate == Fate::Answered { result } else { Err(StoreError::Unavailable) };
                let is_done = matches!(result, Ok(Swapped::Done(_)));
                self.tell(request, &is_done);
                self.tell_of(request, result.as_ref().map(|(Swapped::Done(now) | Swapped::Conflict(now))| now));
                let _ = reply.send(result);
            }
            What::Exchange { sent, reply } => {
                let result = match fate {
                    Fate::Answered => Ok(self.act(&sent)),
                    Fate::Lost | Fate::Stopped => {
                        self.act(&sent);
                        Err(Failure::Abandoned { timed_out: false })
                    }
                    Fate::Missed => {
                        self.give_up(*sent, Duration::ZERO);
                        Err(Failure::Abandoned { timed_out: false })
                    }
                    Fate::FailedAfter(status) => {
                        self.act(&sent);
                        Ok(failure(status))
                    }
                    Fate::Failed(status) => {
                        if status == 502 {
                            self.give_up(*sent, Duration::ZERO);
                        } else {
                            self.arrived(&sent);
                        }
                        Ok(failure(status))
                    }
                };
                self.tell(request, &result.as_ref().map_err(ToString::to_string));
                let _ = reply.send(result);
            }
        }
    }

    fn act(&self, sent: &Sent) -> Response {
        let second = self.world.now() / 1_000;
        self.world.lock().backend.now = self.world.now();
        self.world.lock().act(sent, Instant::now(), second)
    }

    fn arrived(&self, sent: &Sent) {
        let is_own = sent.writes() && !sent.is_late_delete;
        if let (true, Some(request)) = (is_own, sent.request) {
            self.world.lock().ledger.requests[request].arrived = true;
        }
    }

    /// Closes the connection of a request after `closed_after`: the backend may still act on it for a while.
    fn give_up(&self, sent: Sent, closed_after: Duration) {
        if sent.writes() {
            self.arrived(&sent);
            let until = Instant::now() + closed_after + sent.late_write_window + self.setting.style.later_by;
            let mut inner = self.world.lock();
            inner.ledger.is_faulty = true;
            inner.late.push(Late { sent, until });
        }
    }

    fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        let result = complete(self.cellar.store.swap(key, expected, next));
        if let Ok(Swapped::Done(now)) = &result {
            self.world.lock().names.of_swap(key, now.revision);
        }
        result
    }

    fn tell(&self, request: Option<usize>, what: &impl std::hash::Hash) {
        self.world.lock().tell(request, what);
    }

    /// Records that a request was told this record, or why not.
    fn tell_of(&self, request: Option<usize>, snapshot: Result<&Snapshot, &StoreError>) {
        let mut inner = self.world.lock();
        let told = snapshot.map(|snapshot| inner.names.snapshot(snapshot)).map_err(ToString::to_string);
        inner.tell(request, &told);
    }

    /// Returns the time until the owner of every mark must be dead.
    pub fn last_deadline(&self) -> Duration {
        let records = self.cellar.records();
        let ends = records.iter().flat_map(|(_, snapshot)| {
            let marks = snapshot.record.claim.iter().chain(&snapshot.record.unclaimed);
            marks.map(|mark| snapshot.now.until(mark.deadline))
        });
        ends.max().unwrap_or_default()
    }

    /// Returns the time until the last deadline in the records has passed.
    pub fn longest_wait(&self) -> Duration {
        let records = self.cellar.records();
        let ends = records.iter().flat_map(|(_, snapshot)| {
            let record = &snapshot.record;
            let marks = record.claim.iter().chain(&record.unclaimed).map(|mark| mark.deadline);
            let doubt = record.doubt.iter().map(|doubt| doubt.until);
            let ends: Vec<_> = marks.chain(doubt).map(|end| snapshot.now.until(end)).collect();
            ends.into_iter().chain(snapshot.lease().and_then(|lease| lease.remaining(snapshot.now)))
        });
        let longest = ends.max().unwrap_or(Duration::from_secs(1));
        longest.min(STOP_MAX) + Duration::from_millis(1)
    }

    /// Removes questions whose caller no longer waits.
    pub fn sweep(&self) {
        let mut inner = self.world.lock();
        let (mut kept, mut left) = (Vec::new(), Vec::new());
        for pending in std::mem::take(&mut inner.pending) {
            let is_awaited = match &pending.what {
                What::Read { reply, .. } => !reply.is_closed(),
                What::Swap { reply, .. } => !reply.is_closed(),
                What::Exchange { reply, .. } => !reply.is_closed(),
            };
            if is_awaited { kept.push(pending) } else { left.push(pending) }
        }
        inner.pending = kept;
        let now = Instant::now();
        inner.late.retain(|late| now < late.until);
        drop(inner);
        for pending in left {
            self.abandon(pending, Duration::ZERO);
        }
    }

    /// Abandons a question whose caller no longer waits; its connection is closed after `closed_after`.
    pub fn abandon(&self, pending: Pending, closed_after: Duration) {
        match pending.what {
            What::Read { .. } => {}
            What::Swap { key, expected, next, .. } => {
                let mut inner = self.world.lock();
                inner.ledger.is_faulty = true;
                inner.stray.push((key, expected, *next));
            }
            What::Exchange { sent, .. } => self.give_up(*sent, closed_after),
        }
    }

    fn running(inner: &Inner) -> impl Iterator<Item = usize> + '_ {
        let requests = inner.ledger.requests.iter().enumerate();
        requests.filter(|(_, entry)| entry.answered.is_none() && !entry.is_given_up).map(|(number, _)| number)
    }

    fn living(inner: &Inner) -> impl Iterator<Item = usize> + '_ {
        let busy: BTreeSet<usize> =
            Self::running(inner).map(|request| inner.ledger.requests[request].process).collect();
        busy.into_iter().filter(|process| inner.alive[*process])
    }
}

fn failure(status: u16) -> Response {
    Response { status, fields: Vec::new(), body: String::new() }
}

/// The fate of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answered,
    Lost,
    Missed,
    Stopped,
    Failed(u16),
    FailedAfter(u16),
}
