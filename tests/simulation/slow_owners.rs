//! Random settings of owners that are stopped between their mark and the first byte (DESIGN, section 3, rule 7).

use fastrand::Rng;

use crate::{
    backend::Tags,
    generate::{prologue, setting_of},
    operation::Operation,
    options::Options,
    process::Keeping,
    run::{Setting, Step},
    schedule::{Event, Faults},
    world::{Pending, What},
};

/// Returns the stops of those that make a mark.
pub fn stops(pending: &[Pending]) -> impl Iterator<Item = Event> {
    let marks = |asked: &&Pending| matches!(&asked.what, What::Swap { next, .. } if next.claim.is_some());
    pending.iter().filter(marks).map(|asked| Event::Stop(asked.number))
}

/// Builds a setting from a seed: writers of one document, with an upstream that takes its time and applies nothing late.
/// So a write that begins too late is still in flight when the doubt of its mark is over.
pub fn setting(random: &mut Rng) -> Setting {
    let adapt = |options: Options| Options {
        tags: Tags::Precise,
        contents: u32::MAX,
        leased: (false, false),
        late_write_window: (1, 1),
        timeout: (20, 20),
        ..options.without_touches()
    };
    let (_, setting) = setting_of(random, Keeping::Shared, adapt);
    let step = Step::of_document;
    let steps: Vec<Vec<_>> = (0..random.usize(2..4))
        .map(|_| [Operation::Read, Operation::Put].repeat(3).into_iter().map(step).collect())
        .collect();
    let prologue = steps.iter().enumerate().map(|(client, steps)| prologue(random, client, steps)).collect();
    let faults = Faults { left: random.u32(1..3), kills: false, fails: false };
    Setting {
        proxies: 2,
        other: None,
        reload_changes_tags: false,
        prologue,
        steps,
        faults,
        has_slow_owners: true,
        ..setting
    }
}
