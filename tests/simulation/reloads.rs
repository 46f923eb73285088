//! Random settings in which a reload changes what a resource is called: its key, or the server behind its upstream.
//!
//! Documents are touched by items, and reached by two paths. Either the key of documents changes, or the two upstreams
//! change their servers, of which one has all resources and the other none.

use fastrand::Rng;

use crate::{
    generate::prologue,
    operation::{Manner, Operation},
    options::{Options, Source},
    process::Keeping,
    run::{Setting, Step},
    schedule::Faults,
};

/// The sources of tags under which such a reload is not refused for what the proxy would remember.
const SOURCES: [Source; 4] = [Source::Content, Source::Upstream, Source::Header, Source::Json];

/// Builds a setting from a seed.
pub fn setting(random: &mut Rng) -> Setting {
    let keeping = if random.bool() { Keeping::Memory } else { Keeping::Shared };
    let swaps_servers = random.bool();
    let before = Options {
        tells_tag: random.bool(),
        judges: random.u32(..4) == 0,
        require: ["always", "existing", "never"][random.usize(..3)],
        omits: random.u32(..4) == 0,
        idempotent: !swaps_servers && random.u32(..3) == 0,
        item_touches_document: !swaps_servers,
        has_servers_apart: swaps_servers,
        late_write_window: (random.u64(1..20), random.u64(1..20)),
        timeout: (random.u64(1..20), random.u64(1..20)),
        start_grace: 40,
        ..Options::plain(SOURCES[random.usize(..SOURCES.len())])
    };
    let after = if swaps_servers {
        Options { are_servers_swapped: true, ..before }
    } else {
        Options { document_key: "/documents/{id}", ..before }
    };
    let clients = random.usize(2..4);
    let mut steps = vec![Vec::new(); clients];
    for number in 0..random.usize(3..8) {
        let client = if number < clients { number } else { random.usize(..clients) };
        let step = step(random, &before);
        if step.operation.needs_tag() && random.bool() {
            steps[client].push(Step { operation: Operation::Read, ..step.clone() });
        }
        let retry = Step { manner: Manner { resends: true, ..step.manner }, ..step.clone() };
        let is_retried = step.manner.has_key && random.bool();
        steps[client].extend([step].into_iter().chain(is_retried.then_some(retry)));
    }
    Setting {
        keeping,
        other: Some(after.text()),
        prologue: steps.iter().enumerate().map(|(client, steps)| prologue(random, client, steps)).collect(),
        steps,
        faults: Faults { left: random.u32(..3), kills: false, fails: true },
        tags_are_versions: false,
        settled_reads: false,
        keeps_keys: before.idempotent,
        ..Setting::of(&before, &before.text())
    }
}

fn step(random: &mut Rng, options: &Options) -> Step {
    use Operation::{Create, Delete, Patch, Post, Put, Read};
    let operations = [Put, Put, Put, Patch, Post, Read, Create, Delete];
    let targets = if options.has_servers_apart { ["/docs/1", "/alias/1"] } else { ["/docs/1", "/items/1"] };
    Step {
        operation: operations[random.usize(..operations.len())],
        target: targets[random.usize(..targets.len())].to_owned(),
        manner: Manner { has_key: options.idempotent && random.bool(), ..Manner::default() },
    }
}
