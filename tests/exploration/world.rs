//! The world: clients, a store, an upstream that fails, and a clock; and what may happen next.

use ifmatch::core::{
    record::{Availability, Mark, Revision},
    steps::{self, Outcome, Settlement},
    time::StoreTime,
    verdict::Verdict,
};

use super::{
    client::{Client, Given, Seen, Step},
    rules::{Mode, Rules},
    store::{Content, LATE_MAX, Store, TICK, known, settle},
};

/// Ticks that a mark lasts: one before the first byte, and one until the exchange is given up.
const MARK_TICKS: u32 = 3;
/// Who and what is in a world.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    pub writers: u8,
    pub posters: u8,
    /// Answers that do not tell, answers that are lost, deaths and pauses of a proxy, in all.
    pub faults: u8,
    pub forgets: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub mode: Mode,
    pub store: Store,
    pub content: Content,
    pub clients: Vec<Client>,
    /// Writes that were given up and may still be applied before a moment.
    pub late: Vec<(usize, StoreTime)>,
    /// Unclaimed writes that were applied.
    appended: u8,
    /// The last version that was ever current.
    pub newest: Revision,
    /// The last version that was current when a write was last applied: it names an earlier state.
    pub outdated: Revision,
    faults: u8,
    forgets: u8,
    /// Whether somebody sleeps over a deadline.
    pub is_slow: bool,
}

/// Whom something happens to, if to a client, and what.
pub type Event = (Option<usize>, &'static str);

type Followers = Vec<(Event, World)>;

impl World {
    pub fn new(mode: Mode, cast: Cast) -> Self {
        // The second writer brings the first content back.
        let writers = [1, 0, 2].into_iter().take(usize::from(cast.writers)).map(Client::writer);
        let posters = (0..cast.posters).map(|_| Client::poster());
        let store = Store::new();
        Self {
            mode,
            newest: store.read().version(),
            outdated: Revision(0),
            store,
            content: 0,
            clients: writers.chain(posters).collect(),
            late: Vec::new(),
            appended: 0,
            faults: cast.faults,
            forgets: cast.forgets,
            is_slow: false,
        }
    }

    /// Everything that can happen next. An error is a promise that an event breaks.
    pub fn events(&self, rules: &Rules) -> Result<Followers, String> {
        let mut followers = Vec::new();
        for index in 0..self.clients.len() {
            self.client_events(index, rules, &mut followers)?;
        }
        for place in 0..self.late.len() {
            let mut next = self.clone();
            let (index, _) = next.late.remove(place);
            next.apply(index)?;
            followers.push(((Some(index), "is applied late"), next));
        }
        let is_waited_for = self.clients.iter().any(|client| !client.is_over());
        if is_waited_for && self.time_matters() {
            let mut next = self.clone();
            next.store.now = self.store.now.plus(TICK);
            let now = next.store.now;
            next.late.retain(|(_, end)| now < *end);
            followers.push(((None, "time passes"), next));
        }
        if self.faults > 0 && !self.is_slow {
            let mut next = self.clone();
            next.is_slow = true;
            next.faults -= 1;
            followers.push(((None, "somebody is slow"), next));
        }
        if self.forgets > 0 && is_waited_for {
            let mut next = self.clone();
            if next.store.forget(rules) {
                next.forgets -= 1;
                followers.push(((None, "the record is forgotten"), next));
            }
        }
        Ok(followers)
    }

    /// Time passes where it changes anything, and no exchange outlives its time limit.
    fn time_matters(&self) -> bool {
        let gives_up = |client: &Client| matches!(client.step, Step::IsSent { at, .. } if at < self.store.now);
        let record = self.store.read().record;
        let mut marks = record.claim.iter().chain(&record.unclaimed);
        let is_awaited = |mark: &Mark| {
            let is_dead = usize::try_from(mark.nonce).is_ok_and(|index| self.clients[index].step == Step::Dead);
            self.store.now < mark.deadline && (is_dead || self.is_slow)
        };
        let runs_out = marks.any(is_awaited)
            || record.doubt.is_some_and(|doubt| self.store.now < doubt.until)
            || !self.late.is_empty();
        runs_out && !self.clients.iter().any(gives_up)
    }

    fn client_events(&self, index: usize, rules: &Rules, followers: &mut Followers) -> Result<(), String> {
        let client = &self.clients[index];
        let mut follow = |what: &'static str, step: Step, change: &mut dyn FnMut(&mut Self) -> Result<(), String>| {
            let mut next = self.clone();
            next.clients[index].step = step;
            change(&mut next)?;
            followers.push(((Some(index), what), next));
            Ok::<(), String>(())
        };
        let mut nothing = |_: &mut Self| Ok(());
        match client.step.clone() {
            Step::Begins => {
                let content = (!rules.version_goes_first).then_some(self.content);
                follow("reads the record", Step::Reads(Seen::of(&self.store), content), &mut nothing)?;
            }
            Step::Reads(seen, earlier) => {
                let seen = if rules.version_goes_first { seen } else { Seen::of(&self.store) };
                let content = earlier.unwrap_or(self.content);
                follow("reads the content", Step::Asks, &mut |next| {
                    let snapshot = seen.snapshot();
                    next.store.remember(&snapshot, content);
                    next.clients[index].given = Some(Given { content, version: snapshot.version() });
                    Ok(())
                })?;
            }
            Step::Asks if client.writes.is_some() => {
                if let Some((what, step, world)) = self.ask(index, rules) {
                    follow(what, step, &mut |next| {
                        next.store = world.clone();
                        Ok(())
                    })?;
                }
            }
            Step::Asks => {
                let snapshot = self.store.read();
                if snapshot.availability() == Availability::Orphaned {
                    follow("takes a mark over", Step::Asks, &mut |next| next.take_over())?;
                } else {
                    follow("is judged by nothing", Step::Marks(Seen::of(&self.store)), &mut nothing)?;
                }
            }
            Step::Probes(seen) => match client.judge_by(self.mode, self.content, &seen.snapshot()) {
                Verdict::Pass => follow("passes by a probe", Step::Marks(seen), &mut nothing)?,
                Verdict::Refused(_) => follow("is refused by a probe", Step::Done, &mut nothing)?,
                other => return Err(format!("a probe ends in {other:?}")),
            },
            Step::Marks(seen) => {
                let mut next = self.clone();
                let what = if next.mark(index, &seen, rules)? { "marks" } else { "has to be judged again" };
                followers.push(((Some(index), what), next));
            }
            Step::Sends => {
                if self.may_begin(client) || !rules.clock_is_read_again {
                    let step = Step::IsSent { at: self.store.now, applied: false };
                    follow("is sent", step, &mut nothing)?;
                } else {
                    follow("is too late", Step::Settles(Outcome::NotApplied, None), &mut nothing)?;
                }
                self.die(index, false, &mut follow)?;
            }
            Step::IsSent { at, applied } => {
                if applied {
                    follow("is answered 200", Step::IsAnswered(Outcome::Applied), &mut nothing)?;
                } else {
                    follow("is applied", Step::IsSent { at, applied: true }, &mut |next| next.apply(index))?;
                    follow("is answered 400", Step::Settles(Outcome::NotApplied, None), &mut nothing)?;
                    follow("is answered 409", Step::Settles(Outcome::NotAppliedAsKnown, None), &mut nothing)?;
                }
                if self.faults > 0 {
                    let unclear = Step::Settles(Outcome::Unclear, None);
                    follow("is answered 500", unclear, &mut |next| {
                        next.fail();
                        Ok(())
                    })?;
                    follow("gets no answer", Step::Settles(Outcome::Doubt, None), &mut |next| {
                        next.give_up(index, applied);
                        next.fail();
                        Ok(())
                    })?;
                }
                self.die(index, !applied, &mut follow)?;
            }
            Step::IsAnswered(outcome) => {
                follow("learns nothing", Step::Settles(outcome, None), &mut nothing)?;
                if client.writes.is_some() {
                    follow("reads again", Step::Settles(outcome, Some(self.content)), &mut nothing)?;
                }
            }
            Step::Settles(outcome, learned) => {
                let step = Step::Swaps(outcome, learned, Seen::of(&self.store));
                follow("reads to settle", step, &mut nothing)?;
                self.die(index, false, &mut follow)?;
            }
            Step::Swaps(outcome, learned, seen) => {
                let mut next = self.clone();
                next.settle(index, outcome, learned, &seen, rules);
                followers.push(((Some(index), "settles"), next));
            }
            Step::Done | Step::Dead => {}
        }
        Ok(())
    }

    /// What a judged write does when its turn comes, with the store after it; nothing while others are in its way.
    fn ask(&self, index: usize, rules: &Rules) -> Option<(&'static str, Step, Store)> {
        let (client, snapshot) = (&self.clients[index], self.store.read());
        let unchanged = |what, step| Some((what, step, self.store.clone()));
        match snapshot.availability() {
            Availability::Busy { .. } => None,
            Availability::InDoubt { .. } => unchanged("is held back", Step::Done),
            Availability::Orphaned => {
                let mut next = self.clone();
                next.take_over().ok()?;
                Some(("takes a mark over", Step::Asks, next.store))
            }
            Availability::Free => match client.judge(self.mode, &self.store, &snapshot, rules) {
                Verdict::Pass => unchanged("passes", Step::Marks(Seen::of(&self.store))),
                Verdict::Refused(_) => unchanged("is refused", Step::Done),
                Verdict::Missing | Verdict::AskUpstream => {
                    unchanged("is to be probed for", Step::Probes(Seen::of(&self.store)))
                }
            },
        }
    }

    fn take_over(&mut self) -> Result<(), String> {
        let snapshot = self.store.read();
        let next = steps::take_over(&snapshot, LATE_MAX).ok_or("an orphan cannot be taken over")?;
        self.store.swap(snapshot.revision, next).map(drop).ok_or_else(|| "a swap fails alone".to_owned())
    }

    /// Swaps the mark in; false where the record has changed.
    fn mark(&mut self, index: usize, seen: &Seen, rules: &Rules) -> Result<bool, String> {
        let deadline = seen.now.plus(TICK * MARK_TICKS);
        let mark = Mark { owner: 1, nonce: index as u64, deadline, leaves_lease: false };
        let is_writer = self.clients[index].writes.is_some();
        let mut snapshot = seen.snapshot();
        if !rules.verdict_is_bound {
            snapshot = self.store.read();
        }
        let next = if is_writer { steps::claim(&snapshot, mark) } else { steps::add_unclaimed(&snapshot, mark) };
        let marked = next.and_then(|next| self.store.swap(snapshot.revision, next));
        let appended = self.appended;
        let client = &mut self.clients[index];
        let Some(revision) = marked else {
            client.step = Step::Asks;
            return Ok(false);
        };
        client.step = Step::Sends;
        client.mark = Some((mark, revision));
        client.beside = appended;
        match client.given {
            Some(given) if given.content != self.content => {
                Err(format!("{index} passes with the tag of {}, and {} is there", given.content, self.content))
            }
            _ if is_writer && !self.late.is_empty() => {
                Err(format!("{index} passes while a write may still be applied"))
            }
            _ => Ok(true),
        }
    }

    /// The last look at the clock: an exchange takes a tick at the most.
    fn may_begin(&self, client: &Client) -> bool {
        client.mark.is_some_and(|(mark, _)| self.store.now.plus(TICK) < mark.deadline)
    }

    /// The upstream applies a write.
    fn apply(&mut self, index: usize) -> Result<(), String> {
        self.outdated = self.newest;
        let client = &self.clients[index];
        let Some(writes) = client.writes else {
            self.appended += 1;
            self.content = 10 + self.appended;
            return Ok(());
        };
        let base = client.given.map(|given| given.content);
        // What was appended beside it is overwritten by whoever replaces the whole: that is what unclaimed means.
        if base != Some(self.content) && client.beside == self.appended {
            return Err(format!(
                "{index} was based on {base:?} and has overwritten {}: an update is lost",
                self.content
            ));
        }
        self.content = writes;
        Ok(())
    }

    fn fail(&mut self) {
        self.faults -= 1;
    }

    /// An exchange is given up: the upstream may apply it for a while.
    fn give_up(&mut self, index: usize, applied: bool) {
        if !applied {
            self.late.push((index, self.store.now.plus(LATE_MAX)));
        }
    }

    /// The proxy of this client dies.
    fn die(
        &self,
        index: usize,
        may_be_applied: bool,
        follow: &mut impl FnMut(&'static str, Step, &mut dyn FnMut(&mut Self) -> Result<(), String>) -> Result<(), String>,
    ) -> Result<(), String> {
        if self.faults == 0 {
            return Ok(());
        }
        follow("dies", Step::Dead, &mut |next| {
            next.give_up(index, !may_be_applied);
            next.fail();
            Ok(())
        })
    }

    fn settle(&mut self, index: usize, outcome: Outcome, learned: Option<Content>, seen: &Seen, rules: &Rules) {
        let (mark, marked_at) = self.clients[index].mark.expect("it is marked");
        let kept = learned.filter(|_| self.mode == Mode::ContentExclusive).map(known);
        let settlement = Settlement { mark, marked_at, outcome, removes: false, learned: kept, late_max: LATE_MAX };
        let done = match settle(&seen.snapshot(), &settlement, rules) {
            Some(next) => self.store.swap(seen.revision, next).is_some(),
            // Others have made a doubt of it.
            None => true,
        };
        self.clients[index].step = if done { Step::Done } else { Step::Settles(outcome, learned) };
    }
}
