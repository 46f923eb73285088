//! Random settings of leases that have run out, whose holders and other writers meet (DESIGN, section 8).

use fastrand::Rng;

use crate::{
    generate::setting_of,
    operation::{Manner, Operation},
    options::{Guards, Options},
    process::Keeping,
    run::{Setting, Step},
};

/// The duration of the leases, in seconds.
const LASTS_SECONDS: u64 = 15;

/// Builds a setting from a seed: one client renews its lease or writes under it, and others write without one.
pub fn setting(random: &mut Rng) -> Setting {
    use Operation::{Acquire, Create, Put, Read, Renew};
    let adapt = |options: Options| Options {
        contents: u32::MAX,
        leased: (true, true),
        guards: Guards::Write,
        required: false,
        ..options.without_touches().without_sharing()
    };
    let keeping = if random.bool() { Keeping::Memory } else { Keeping::Shared };
    let (_, setting) = setting_of(random, keeping, adapt);
    let manner = Manner { lasts: Some(LASTS_SECONDS), ..Manner::default() };
    let steps = |operations: &[Operation]| -> Vec<Step> {
        operations
            .iter()
            .map(|operation| Step { operation: *operation, target: "/docs/1".to_owned(), manner })
            .collect()
    };
    let prologue = vec![steps(&[Create, Read, Acquire]), steps(&[Read])];
    let holder = if random.bool() { steps(&[Renew]) } else { steps(&[Renew, Put, Renew]) };
    let writer = if random.bool() { steps(&[Put]) } else { steps(&[Put, Read, Put]) };
    Setting {
        other: None,
        reload_changes_tags: false,
        prologue,
        steps: vec![holder, writer],
        have_leases_ended: true,
        ..setting
    }
}
