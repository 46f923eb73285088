//! A random schedule that follows from a seed.

use fastrand::Rng;

use crate::{
    run::{Choose, Run},
    schedule::Event,
    world::{Pending, What},
};

/// Chooses at random: usual events more often than faults.
pub struct Chance {
    random: Rng,
    temper: Temper,
}

/// The rare events that one run prefers: chance alone would rarely let the same thing come late again and again.
struct Temper {
    /// How likely it is that an abandoned write or swap still happens.
    late: u32,
    /// The request whose questions are answered after those of all others.
    slow: Option<usize>,
    /// The kind of question that is answered late, for all requests.
    late_kind: Option<Kind>,
    /// True if faults hit a write on its way to the backend more often than other questions.
    aims: bool,
}

/// The kinds of questions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Swap,
    Read,
    Exchange,
}

const USUAL: u32 = 80;
const RARE: u32 = 4;

impl Chance {
    pub fn new(mut random: Rng) -> Self {
        let kinds = [Kind::Swap, Kind::Read, Kind::Exchange];
        let temper = Temper {
            late: if random.bool() { 30 } else { 2 },
            slow: random.bool().then(|| random.usize(..16)),
            aims: random.bool(),
            late_kind: (random.u32(..3) == 0).then(|| kinds[random.usize(..kinds.len())]),
        };
        Self { random, temper }
    }

    fn weight(&self, pending: &[Pending], event: Event) -> u32 {
        match event {
            Event::Do(number) => {
                let asked = pending.iter().find(|asked| asked.number == number);
                if asked.is_some_and(|asked| self.temper.holds_back(asked)) { RARE } else { USUAL }
            }
            Event::Begin(_) => 60,
            Event::Apply(_) | Event::Arrive(_) => self.temper.late,
            Event::Reload(_) => RARE,
            _ => 10,
        }
    }

    /// Returns one of these events, by their weights.
    fn weighted(&mut self, events: &[(Event, u32)]) -> Option<Event> {
        let all: u32 = events.iter().map(|(_, weight)| weight).sum();
        let mut place = self.random.u32(..all.max(1));
        for (event, weight) in events {
            if place < *weight {
                return Some(*event);
            }
            place -= weight;
        }
        None
    }

    /// Returns a fault: each sort is equally likely, for any number of questions that can go wrong in that way.
    fn fault(&mut self, faults: &[Event]) -> Event {
        let of = |sort| faults.iter().filter(move |fault| std::mem::discriminant(*fault) == sort);
        let mut sorts: Vec<_> = Vec::new();
        for sort in faults.iter().map(std::mem::discriminant) {
            if !sorts.contains(&sort) {
                sorts.push(sort);
            }
        }
        let one: Vec<_> = of(sorts[self.random.usize(..sorts.len())]).collect();
        *one[self.random.usize(..one.len())]
    }
}

/// Returns the faults that leave the outcome of a write in flight open.
fn of_writes(pending: &[Pending], faults: &[Event]) -> Vec<Event> {
    let is_write = |asked: &&Pending| matches!(&asked.what, What::Exchange { sent, .. } if sent.writes());
    let writes: Vec<&Pending> = pending.iter().filter(is_write).collect();
    let of = |number: u64| writes.iter().any(|asked| asked.number == number);
    let aims = |fault: &&Event| match **fault {
        Event::Lose(number)
        | Event::Miss(number)
        | Event::Stop(number)
        | Event::Fail(number, _)
        | Event::FailAfter(number, _) => of(number),
        Event::Kill(process) => writes.iter().any(|asked| asked.process == process),
        Event::GiveUp(request) => writes.iter().any(|asked| asked.request == Some(request)),
        _ => false,
    };
    faults.iter().filter(aims).copied().collect()
}

impl Temper {
    fn holds_back(&self, asked: &Pending) -> bool {
        let kind = match asked.what {
            What::Swap { .. } => Kind::Swap,
            What::Read { .. } => Kind::Read,
            What::Exchange { .. } => Kind::Exchange,
        };
        self.late_kind == Some(kind) || self.slow.is_some() && asked.request == self.slow
    }
}

impl Choose for Chance {
    fn choose(&mut self, run: &Run, events: &[Event]) -> Option<Event> {
        let chosen = self.chosen(run, events);
        if let Some(Event::Stop(number)) = chosen {
            // A step that begins late also takes long: others have time to come in between.
            let inner = run.world.lock();
            self.temper.slow =
                inner.pending.iter().find(|asked| asked.number == number).and_then(|asked| asked.request);
        }
        chosen
    }
}

impl Chance {
    fn chosen(&mut self, run: &Run, events: &[Event]) -> Option<Event> {
        let (faults, usual): (Vec<Event>, Vec<Event>) = events.iter().partition(|event| event.is_fault());
        let aimed = if self.temper.aims { of_writes(&run.world.lock().pending, &faults) } else { Vec::new() };
        if !aimed.is_empty() && self.random.bool() {
            return Some(self.fault(&aimed));
        }
        // A run that aims saves its faults for writes.
        let odds = if self.temper.aims && run.setting.successors.is_empty() { 64 } else { 8 };
        if !faults.is_empty() && self.random.u32(..odds) == 0 || usual.is_empty() {
            return Some(self.fault(&faults));
        }
        let weights: Vec<_> = {
            let inner = run.world.lock();
            usual.iter().map(|event| (*event, self.weight(&inner.pending, *event))).collect()
        };
        self.weighted(&weights)
    }
}
