//! Exploration of every schedule of a setting, by running it again and again.
//!
//! A run cannot be copied: its futures are the production's own. So each way is run from the beginning, by the choices
//! that lead to it. A run ends when it reaches a state that was seen before: its continuations are known.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use crate::{
    run::{Choose, Run, Setting, run},
    schedule::Event,
};

/// The size of an exploration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Size {
    pub runs: usize,
    pub states: usize,
    pub events: usize,
}

/// The schedules that an exploration leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Nothing but states that were seen before.
    Seen,
    /// Orders of events that meet nothing, too.
    SeenAndOwn,
}

/// Takes the given way, then always the first event that can happen, and records the alternatives.
struct Way<'a> {
    given: &'a [Event],
    gone: Vec<Event>,
    others: Vec<Vec<Event>>,
    seen: &'a mut HashSet<u64>,
    reduction: Reduction,
}

impl Choose for Way<'_> {
    fn choose(&mut self, run: &Run, events: &[Event]) -> Option<Event> {
        let event = if let Some(given) = self.given.get(self.gone.len()) {
            *given
        } else {
            if !self.seen.insert(run.state()) {
                return None;
            }
            let own = (self.reduction == Reduction::SeenAndOwn).then(|| run.own_event()).flatten().map(|own| vec![own]);
            let (first, others) = own.as_deref().unwrap_or(events).split_first()?;
            // Time need not pass while a question can be answered: late events have choices of their own.
            let goes_on = events.iter().any(|event| matches!(event, Event::Do(_) | Event::Begin(_)));
            let is_needed = |event: &&Event| !goes_on || **event != Event::Flow;
            let others = others.iter().filter(is_needed);
            self.others.extend(others.map(|other| self.gone.iter().copied().chain([*other]).collect()));
            *first
        };
        self.gone.push(event);
        Some(event)
    }
}

/// Explores a setting, and returns the ends of its runs too. The error describes how the promise is broken, and the way
/// there.
pub fn explore(
    setting: &Arc<Setting>,
    runs_max: usize,
    reduction: Reduction,
) -> Result<(Size, BTreeSet<u64>), (String, Vec<Event>)> {
    let (mut seen, mut ways, mut size) = (HashSet::new(), vec![Vec::new()], Size::default());
    let mut ends = BTreeSet::new();
    while let Some(given) = ways.pop() {
        let mut way = Way { given: &given, gone: Vec::new(), others: Vec::new(), seen: &mut seen, reduction };
        let outcome = run(setting, &mut way, false);
        let Way { gone, others, .. } = way;
        size.runs += 1;
        size.events += outcome.events;
        if let Some(broken) = outcome.broken {
            return Err((broken, gone));
        }
        ends.extend(outcome.end);
        ways.extend(others);
        if size.runs == runs_max {
            break;
        }
    }
    size.states = seen.len();
    Ok((size, ends))
}

/// Takes one way again, to tell its story.
pub struct Again<'a>(pub &'a [Event], pub usize);

impl Choose for Again<'_> {
    fn choose(&mut self, _run: &Run, events: &[Event]) -> Option<Event> {
        let event = self.0.get(self.1).copied().or(events.first().copied());
        self.1 += 1;
        event
    }
}
