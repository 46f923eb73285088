//! Random settings of a DELETE that waits for another holder of the lease, who goes on writing.

use fastrand::Rng;

use crate::{
    generate::setting_of,
    operation::{Manner, Operation},
    options::{Guards, Options},
    process::Keeping,
    run::{Setting, Step},
};

const KEEPINGS: [Keeping; 3] = [Keeping::Shared, Keeping::Memory, Keeping::Disk];

/// The requests that the other holder may make before it gives the lease up.
const MEANWHILE: [Operation; 4] = [Operation::Put, Operation::Put, Operation::Patch, Operation::Read];

/// Builds a setting from a seed.
pub fn setting(random: &mut Rng) -> Setting {
    let keeping = KEEPINGS[random.usize(..KEEPINGS.len())];
    setting_with(random, keeping)
}

/// Builds a setting with such a store.
pub fn setting_with(random: &mut Rng, keeping: Keeping) -> Setting {
    let (options, setting) = setting_of(random, keeping, waiting);
    if !options.lets_deletes_wait() {
        return setting;
    }
    let leaver = vec![step(random, Operation::Delete)];
    let mut other: Vec<Step> = (0..random.usize(1..4))
        .map(|_| {
            let operation = MEANWHILE[random.usize(..MEANWHILE.len())];
            step(random, operation)
        })
        .collect();
    other.push(step(random, Operation::Release));
    let (mut steps, mut prologue) = (setting.steps.clone(), setting.prologue.clone());
    steps.iter_mut().skip(2).for_each(|steps| steps.truncate(2));
    (steps[0], steps[1]) = (leaver, other);
    for steps in prologue.iter_mut().take(2) {
        *steps = [Operation::Read, Operation::Acquire].map(|operation| step(random, operation)).to_vec();
    }
    prologue[0].insert(0, step(random, Operation::Create));
    Setting { prologue, steps, ..setting }
}

fn waiting(options: Options) -> Options {
    let guards = if options.guards == Guards::Read { Guards::Write } else { options.guards };
    Options { shared: true, delete_pending: true, leased: (true, true), guards, ..options }
}

fn step(random: &mut Rng, operation: Operation) -> Step {
    let manner = Manner {
        shares: true,
        is_anonymous: true,
        lasts: (random.u32(..4) == 0).then(|| random.u64(15..60)),
        ..Manner::default()
    };
    Step { operation, target: "/docs/1".to_owned(), manner }
}
