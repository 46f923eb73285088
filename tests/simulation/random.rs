//! A schedule by chance, that follows from a seed.

use fastrand::Rng;

use crate::{
    run::{Choose, Run},
    schedule::Event,
};

/// Chooses by chance: what is usual more often than what goes wrong.
pub struct Chance(pub Rng);

impl Choose for Chance {
    fn choose(&mut self, _run: &Run, events: &[Event]) -> Option<Event> {
        let (faults, usual): (Vec<Event>, Vec<Event>) = events.iter().partition(|event| event.is_fault());
        if !faults.is_empty() && self.0.u32(..8) == 0 || usual.is_empty() {
            return Some(faults[self.0.usize(..faults.len())]);
        }
        let weight = |event: &Event| match event {
            Event::Do(_) => 8,
            Event::Begin(_) => 6,
            Event::Apply(_) | Event::Arrive(_) => 3,
            _ => 1,
        };
        let all: u32 = usual.iter().map(weight).sum();
        let mut place = self.0.u32(..all);
        for event in &usual {
            if place < weight(event) {
                return Some(*event);
            }
            place -= weight(event);
        }
        None
    }
}
