//! Random settings: a configuration, a backend, and the steps of the clients.

use std::time::Duration;

use fastrand::Rng;

use crate::{
    backend::{Style, Tags},
    grants::Opening,
    operation::{ALL, Manner, Operation, WITH_METADATA},
    options::{Guards, Options, SOURCES, Source},
    process::{self, Keeping, Remembers},
    run::{Setting, Step},
    schedule::Faults,
};

/// Builds a setting from a seed.
pub fn setting(random: &mut Rng) -> Setting {
    let keeping = match random.u32(..20) {
        0 => Keeping::Disk,
        1..8 => Keeping::Memory,
        _ => Keeping::Shared,
    };
    setting_of(random, keeping, |options| options).1
}

/// Builds a setting with such a store and adapted options, and returns the options too.
pub fn setting_of(random: &mut Rng, keeping: Keeping, adapt: fn(Options) -> Options) -> (Options, Setting) {
    let options = adapt(options(random, keeping));
    let proxies = if keeping == Keeping::Shared { random.usize(1..3) } else { 1 };
    let clients = random.usize(2..4);
    let mut steps = vec![Vec::new(); clients];
    let focus = Focus::new(random, options.idempotent, options.lets_deletes_wait());
    let requests = if random.u32(..8) == 0 { random.usize(7..12) } else { random.usize(3..7) };
    for number in 0..requests {
        let client = if number < clients { number } else { random.usize(..clients) };
        let step = step(random, &options, &focus);
        if focus.rereads && step.operation.needs_tag() {
            steps[client].push(Step { operation: Operation::Read, ..step.clone() });
        }
        let resent = Manner { resends: true, goes_elsewhere: random.bool(), ..step.manner };
        let retry = Step { manner: resent, ..step.clone() };
        steps[client].extend([step].into_iter().chain((focus.retries && retry.operation.writes()).then_some(retry)));
    }
    let prologue = steps.iter().enumerate().map(|(client, steps)| prologue(random, client, steps)).collect();
    let other = (random.u32(..4) == 0).then(|| options.reloaded(random, proxies == 1));
    let has = |source| options.source == source || other.is_some_and(|other| other.source == source);
    let setting = Setting {
        style: Style { tag_in_body: has(Source::Json), ..options.style() },
        keeping,
        remembers: remembers(random),
        proxies,
        other: other.map(|other| other.text()),
        reload_changes_tags: other.is_some_and(|other| other.source != options.source),
        prologue,
        steps,
        faults: Faults { left: random.u32(..4), kills: true, fails: true },
        guards_reads: matches!(options.guards, Guards::Read | Guards::ReadAndWrite),
        guards_writes: matches!(options.guards, Guards::Write | Guards::ReadAndWrite),
        guards_deletes: options.guards != Guards::Read,
        equal_content_is_one_state: has(Source::Content),
        tags_are_versions: has(Source::Version),
        settled_reads: options.has_settled_reads() && other.is_none_or(|other| other.has_settled_reads()),
        keeps_keys: options.idempotent && other.is_none_or(|other| other.idempotent),
        ..Setting::of(&options, &options.text())
    };
    (options, setting)
}

/// Builds a setting of resources with metadata from a seed.
pub fn setting_with_metadata(random: &mut Rng) -> Setting {
    let keeping = if random.u32(..3) == 0 { Keeping::Memory } else { Keeping::Shared };
    let options = Options { has_metadata: true, source: Source::Version, ..options(random, keeping) };
    let options = Options { exclusive: true, contents: u32::MAX, judges: false, idempotent: false, ..options };
    let proxies = if keeping == Keeping::Shared { random.usize(1..3) } else { 1 };
    let clients = random.usize(2..4);
    let mut steps = vec![Vec::new(); clients];
    let step = Step::of_document;
    for number in 0..random.usize(3..7) {
        let client = if number < clients { number } else { random.usize(..clients) };
        let operation = WITH_METADATA[random.usize(..WITH_METADATA.len())];
        if operation.needs_tag() && random.bool() {
            steps[client].push(step(Operation::Read));
        }
        steps[client].push(step(operation));
    }
    let mut prologue = vec![vec![step(Operation::Read)]; clients];
    prologue[0].insert(0, step(Operation::Create));
    Setting {
        keeping,
        remembers: remembers(random),
        proxies,
        prologue,
        steps,
        faults: Faults { left: random.u32(..4), kills: true, fails: true },
        equal_content_is_one_state: false,
        tags_are_versions: true,
        has_metadata: true,
        ..Setting::of(&options, &options.text())
    }
}

/// Returns mostly more room and time than needed; sometimes records are forgotten, or find no room.
pub fn remembers(random: &mut Rng) -> Remembers {
    let mut room = process::ALL.room;
    match random.u32(..12) {
        0..2 => room.records = random.usize(1..3),
        2 => room.bytes = random.u64(500..3_000),
        _ => {}
    }
    let idle_ttl = Duration::from_secs(if random.u32(..6) == 0 { 10 } else { 86_400 });
    Remembers { room, idle_ttl }
}

pub fn options(random: &mut Rng, keeping: Keeping) -> Options {
    let source = SOURCES[random.usize(..SOURCES.len())];
    let tags = match random.u32(..4) {
        0 => Tags::Seconds,
        1 => Tags::Alternating,
        _ => Tags::Precise,
    };
    let plain = Options::plain(source);
    let (late_write_window, timeout) = ((random.u64(1..20), random.u64(1..20)), (random.u64(1..20), random.u64(1..20)));
    // A start on an empty store waits for the writes that it does not know of.
    let start_grace = if keeping == Keeping::Memory { late_write_window.0.max(late_write_window.1) + 20 } else { 0 };
    Options {
        exclusive: plain.exclusive || source != Source::Delegate && random.bool(),
        tags,
        tells_tag: random.bool(),
        judges: plain.judges || random.bool(),
        contents: if random.bool() { 2 } else { u32::MAX },
        require: ["always", "existing", "never"][random.usize(..3)],
        omits: random.u32(..4) == 0,
        leased: (random.bool(), random.bool()),
        guards: [Guards::Write, Guards::Write, Guards::Read, Guards::ReadAndWrite, Guards::Delete][random.usize(..5)],
        required: random.u32(..4) == 0,
        shared: random.bool(),
        delete_pending: random.bool(),
        idempotent: random.bool(),
        reads: ["settled", "last", "any"][random.u32(..3) as usize],
        item_touches_document: random.bool(),
        document_touches_item: random.u32(..4) == 0,
        late_write_window,
        timeout,
        start_grace,
        ..plain
    }
}

/// The operations and targets that the requests of a run share, so that they meet.
struct Focus {
    operations: Vec<Operation>,
    targets: Vec<&'static str>,
    /// True if clients read again before they write.
    rereads: bool,
    /// True if clients send each write again.
    retries: bool,
}

impl Focus {
    fn new(random: &mut Rng, idempotent: bool, deletes_wait: bool) -> Self {
        let targets = ["/docs/1", "/docs/1", "/alias/1", "/docs/1/parts/2", "/items/1"];
        let (rereads, retries) = (random.bool(), idempotent && random.u32(..3) == 0);
        if deletes_wait && random.bool() {
            use Operation::{Acquire, Create, Delete, Put, Read, Release};
            let operations = vec![Acquire, Acquire, Delete, Delete, Release, Put, Create, Read];
            return Self { operations, targets: vec!["/docs/1"], rereads, retries: false };
        }
        if random.bool() {
            return Self { operations: ALL.to_vec(), targets: targets.to_vec(), rereads, retries };
        }
        Self {
            rereads,
            retries,
            operations: (0..2).map(|_| ALL[random.usize(..ALL.len())]).chain([Operation::Put]).collect(),
            targets: (0..random.usize(1..3)).map(|_| targets[random.usize(..targets.len())]).collect(),
        }
    }
}

fn step(random: &mut Rng, options: &Options, focus: &Focus) -> Step {
    let can_lease = options.leased.0 || options.leased.1;
    let operation = loop {
        let operation = focus.operations[random.usize(..focus.operations.len())];
        if can_lease || !operation.is_of_lease() {
            break operation;
        }
    };
    let target = if operation.is_of_lease() {
        let paths = [("/docs/1", options.leased.0), ("/alias/1", options.leased.1)];
        let leased: Vec<_> = paths.iter().filter(|(_, leased)| *leased).collect();
        leased[random.usize(..leased.len())].0
    } else {
        focus.targets[random.usize(..focus.targets.len())]
    };
    let manner = Manner {
        is_conditional: random.bool(),
        proposes: random.bool(),
        lasts: random.bool().then(|| random.u64(15..60)),
        shares: options.shared && random.u32(..3) > 0,
        opening: if random.bool() { Opening::default() } else { Opening::ALL[random.usize(..4)] },
        waits: if random.bool() { 0 } else { random.u64(1..40) },
        has_key: focus.retries || options.idempotent && random.bool(),
        resends: options.idempotent && random.u32(..8) == 0,
        goes_elsewhere: random.u32(..4) == 0,
        is_named_by_body: random.u32(..6) == 0,
        is_anonymous: options.delete_pending && random.u32(..4) > 0,
        as_other: random.u32(..4) == 0,
        by_date: false,
        ..Manner::default()
    };
    Step { operation, target: target.to_owned(), manner }
}

/// Returns a client's first steps: client 0 creates the resources, and each client reads most of what it will need.
pub fn prologue(random: &mut Rng, client: usize, steps: &[Step]) -> Vec<Step> {
    let step = |operation, target: &str| Step { operation, target: target.to_owned(), manner: Manner::default() };
    let mut before = Vec::new();
    if client == 0 {
        before.extend(["/docs/1", "/items/1"].map(|target| step(Operation::Create, target)));
    }
    for needed in steps {
        if !needed.operation.is_of_lease() && random.u32(..5) > 0 {
            before.push(step(Operation::Read, &needed.target));
        }
        let may_wait =
            needed.manner.is_anonymous && needed.operation == Operation::Delete && needed.target == "/docs/1";
        if (needed.operation.needs_lease() || may_wait) && random.bool() {
            let lease = Step { operation: Operation::Acquire, manner: needed.manner, ..needed.clone() };
            before.push(lease);
        }
    }
    before
}
