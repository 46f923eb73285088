//! Leases that clients hold by streams: what each hears, what it may rely on, and settings about them.

use bytes::Bytes;
use fastrand::Rng;
use futures_util::FutureExt as _;
use ifmatch::guard::Pieces;
use serde_json::Value;
use tokio::{task::yield_now, time::Instant};

use crate::{
    client::Told,
    generate::setting_of,
    grants::Grant,
    judge::{Entry, Ledger, field},
    operation::{Manner, Operation},
    options::{Guards, Options},
    process::Keeping,
    run::{Run, Setting, Step},
    schedule::Faults,
    world::World,
};

/// The stream of a client that holds a lease.
pub type LeaseEvents = Box<dyn Pieces>;

/// In so many rounds, each task that can has told what it knows.
const ROUNDS_AT_ONCE: u32 = 10;

/// The term of the leases, in seconds.
pub const LASTS_SECONDS: u64 = 15;

/// Reads a stream up to the grant or the refusal, which is the answer of the request.
pub async fn outcome(mut stream: LeaseEvents) -> (Told, Option<LeaseEvents>) {
    while let Some(piece) = stream.next().await {
        for (name, data) in events(&piece) {
            if name == "granted" {
                let lease_id = data["id"].as_str().map(str::to_owned);
                let told = Told { status: 201, lease_id, fence: data["fence"].as_u64(), ..Told::default() };
                return (told, Some(stream));
            }
            if name == "refused" || name == "lost" {
                let status = data["status"].as_u64().and_then(|status| u16::try_from(status).ok());
                return (Told { status: status.unwrap_or(409), code: Some("refused"), ..Told::default() }, None);
            }
        }
    }
    // Its process loads another configuration, and the client may come back.
    (Told { status: 409, code: Some("refused"), ..Told::default() }, None)
}

/// Hears what a stream says after the grant. What it says at once comes with the grant: the grant may be late.
pub async fn listen(world: &World, number: usize, mut stream: LeaseEvents) {
    for _ in 0..ROUNDS_AT_ONCE {
        yield_now().await;
        world.stir();
        match stream.next().now_or_never() {
            Some(None) => return,
            Some(Some(piece)) => tell(world, number, &piece),
            None => {}
        }
    }
    world.lock().ledger.stream_stands(number);
    while let Some(piece) = stream.next().await {
        tell(world, number, &piece);
    }
    world.lock().ledger.stream_ends(number);
    world.stir();
}

fn tell(world: &World, number: usize, piece: &Bytes) {
    for (name, data) in events(piece) {
        world.note(|| format!("the stream of request {number} says {name} {data}"));
    }
}

fn events(piece: &Bytes) -> Vec<(String, Value)> {
    let text = String::from_utf8(piece.to_vec()).unwrap();
    let event = |block: &str| {
        let (name, data) = block.strip_prefix("event: ")?.split_once("\ndata: ")?;
        Some((name.to_owned(), serde_json::from_str(data).unwrap()))
    };
    text.split("\n\n").filter_map(event).collect()
}

impl Entry {
    /// True if the client holds the lease that it asks for by a stream.
    pub fn holds_by_stream(&self) -> bool {
        field(&self.request, "accept").is_some()
    }
}

impl Ledger {
    /// Records that the client of a stream relies on its lease.
    fn stream_stands(&mut self, number: usize) {
        let (entry, now, moment) = (self.requests[number].clone(), Instant::now(), self.moment());
        let is_broken = self.may_be_broken(&entry);
        let Some(place) = self.grants.iter().position(|grant| grant.stream == Some(number)) else { return };
        let (fence, is_shared) = (self.grants[place].fence, self.grants[place].is_shared);
        let is_beside = |grant: &&Grant| {
            let is_in_the_way = grant.resource == entry.resource && !(is_shared && grant.is_shared);
            is_in_the_way && grant.fence != fence && grant.is_held(now)
        };
        if let Some(other) = self.grants.iter().find(is_beside).map(|other| other.fence) {
            self.breaks(format!("the leases {other} and {fence} are held at once, the latter by a stream"));
        }
        let grant = &mut self.grants[place];
        (grant.is_over, grant.answered) = (is_broken, moment);
    }

    /// Records that the client of a stream relies on its lease no more.
    fn stream_ends(&mut self, number: usize) {
        let own = |grant: &&mut Grant| grant.stream == Some(number);
        self.grants.iter_mut().filter(own).for_each(|grant| grant.is_over = true);
    }

    /// Records that the streams of a process break off.
    pub fn streams_break_off(&mut self, process: usize) {
        let requests = &self.requests;
        let is_of = |grant: &&mut Grant| grant.stream.is_some_and(|stream| requests[stream].process == process);
        self.grants.iter_mut().filter(is_of).for_each(|grant| grant.is_over = true);
    }
}

impl Run {
    /// Breaks the streams of a client off.
    pub fn hang_up(&self, client: usize) {
        let mut inner = self.world.lock();
        let of_client = |(_, entry): &(usize, &Entry)| entry.client == client && entry.holds_by_stream();
        let streams: Vec<usize> =
            inner.ledger.requests.iter().enumerate().filter(of_client).map(|(number, _)| number).collect();
        for number in streams {
            self.tasks[number].abort();
            inner.ledger.stream_ends(number);
            inner.ledger.watches.ends(number);
        }
        drop(inner);
        self.world.note(|| format!("client {client} hangs up"));
        self.world.stir();
    }

    /// Checks that no lease is in force by a stream, some time after all have broken off.
    pub fn check_streams(&self) {
        let records = self.cellar.records();
        let kept = |lease: &&ifmatch::core::lease::Lease| lease.keeper.is_some();
        if let Some((key, _)) = records.iter().find(|(_, snapshot)| snapshot.held_leases().any(|lease| kept(&lease))) {
            self.breaks(format!("a stream of {key:?} has broken off, and its lease is in force"));
        }
    }
}

/// Builds a setting from a seed: clients hold one lease by streams, break off and come back, and others want it too.
pub fn setting(random: &mut Rng) -> Setting {
    let keeping = [Keeping::Shared, Keeping::Shared, Keeping::Memory, Keeping::Disk][random.usize(..4)];
    setting_with(random, keeping).1
}

/// Builds a setting with such a store, and returns the options too.
pub fn setting_with(random: &mut Rng, keeping: Keeping) -> (Options, Setting) {
    let adapt = |options: Options| Options {
        contents: u32::MAX,
        leased: (true, true),
        guards: Guards::Write,
        ..options.without_touches().without_sharing()
    };
    let (options, setting) = setting_of(random, keeping, adapt);
    let clients = random.usize(2..4);
    let plain = Step::of_document;
    let mut prologue = vec![vec![plain(Operation::Read)]; clients];
    prologue[0].insert(0, plain(Operation::Create));
    prologue[0].push(hold(random, false));
    let mut steps = vec![Vec::new(); clients];
    if random.bool() {
        // The first client breaks off and comes back, while others wait for the lease.
        steps[0].extend([plain(Operation::HangUp), hold(random, true)]);
    }
    for steps in &mut steps {
        steps.extend((0..random.usize(1..4)).map(|_| step(random)));
    }
    let faults = Faults { left: random.u32(..3), ..setting.faults };
    (options, Setting { other: None, reload_changes_tags: false, prologue, steps, faults, ..setting })
}

/// Makes the step of a client that holds the lease of the document by a stream.
pub fn hold(random: &mut Rng, resumes: bool) -> Step {
    let manner = Manner {
        holds: true,
        resumes,
        proposes: random.bool(),
        lasts: Some(LASTS_SECONDS),
        waits: if random.bool() { 0 } else { random.u64(1..30) },
        goes_elsewhere: random.u32(..3) == 0,
        ..Manner::default()
    };
    Step { operation: Operation::Acquire, target: "/docs/1".to_owned(), manner }
}

fn step(random: &mut Rng) -> Step {
    use Operation::{Acquire, Break, HangUp, Put, Read, Release, Renew};
    let operations = [HangUp, HangUp, Put, Put, Read, Renew, Release, Break, Acquire];
    match random.u32(..10) {
        0..2 => hold(random, false),
        2..4 => hold(random, true),
        _ => {
            let manner = Manner {
                lasts: Some(LASTS_SECONDS),
                goes_elsewhere: random.u32(..3) == 0,
                waits: if random.bool() { 0 } else { random.u64(1..30) },
                ..Manner::default()
            };
            let operation = operations[random.usize(..operations.len())];
            Step { operation, target: "/docs/1".to_owned(), manner }
        }
    }
}
