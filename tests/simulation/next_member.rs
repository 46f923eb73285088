//! The next member of a collection: what is wrong with one that a client was given, and settings about them.

use fastrand::Rng;
use ifmatch::core::records::availability::Availability;
use serde_json::json;
use tokio::time::advance;

use crate::{
    backend::{Backend, resource_of, response},
    client::Told,
    generate::{options, remembers},
    judge::{Entry, Ledger},
    operation::{Manner, Operation},
    options::{Guards, Options, Source},
    process::Keeping,
    run::{Run, Setting, Step},
    schedule::Faults,
    world::Response,
};

/// The collection.
pub const COLLECTION: &str = "/jobs";

/// The names of its members.
const MEMBERS: [&str; 3] = ["1", "2", "3"];

fn member(name: &str) -> String {
    format!("{COLLECTION}/{name}")
}

impl Backend {
    /// The answer to a question for the members of the collection.
    pub fn index_of_members(&self) -> Response {
        let is_there = |name: &&&str| self.resource(&resource_of(&member(name))).content().is_some();
        let names: Vec<_> = MEMBERS.iter().filter(is_there).map(|name| json!({ "id": name })).collect();
        Response { body: json!({ "jobs": names }).to_string(), ..response(200) }
    }
}

impl Ledger {
    /// Records which member the request for the next one was given. Such a request has acquired the lease of the member.
    pub fn names_member(&mut self, number: usize, told: &Told) {
        let entry = &mut self.requests[number];
        if let Some(taken) = told.taken.as_ref().filter(|_| entry.operation == Operation::Next && told.status == 200) {
            entry.operation = Operation::Acquire;
            entry.resource = resource_of(taken);
            entry.request.target.clone_from(taken);
        }
    }
}

impl Entry {
    /// True if this answer shows the client a state of the resource.
    pub fn shows_state(&self, told: &Told) -> bool {
        self.operation == Operation::Read || self.operation == Operation::Acquire && told.taken.is_some()
    }
}

impl Run {
    /// Takes members until there is none, and checks that each one without a holder was given, and no other.
    pub async fn drain(&mut self) {
        if self.setting.steps.iter().flatten().all(|step| step.target != COLLECTION) {
            return;
        }
        let there: Vec<_> = MEMBERS.into_iter().map(member).filter(|name| self.is_there(name)).collect();
        let records = self.cellar.records();
        let is_held = |name: &&String| {
            let mut of_it = records.iter().filter(|(key, _)| key.as_str().ends_with(name.as_str()));
            of_it.any(|(_, snapshot)| snapshot.lease_state().is_held())
        };
        let (held, there) = (there.iter().filter(is_held).count(), there.len());
        let client = self.clients.len() - 1;
        let step = Step { operation: Operation::Next, target: COLLECTION.to_owned(), manner: Manner::default() };
        let mut taken = 0;
        // The mark of a dead process becomes a doubt at first.
        let mut is_again = !self.has_dead_marks();
        for _ in 0..=MEMBERS.len() + 1 {
            match self.alone(client, step.clone()).await {
                Some(told) if told.taken.is_some() && told.status == 200 => taken += 1,
                Some(told) if told.status == 204 && is_again => break,
                Some(told) if told.status == 204 => {
                    is_again = true;
                    advance(self.longest_wait()).await;
                }
                // Leases fill the room, or a process has just begun.
                Some(told) if told.code.is_some_and(|code| code == "store-full" || code == "write-in-flight") => return,
                told => return self.breaks(format!("a client that asks for the next member is told {told:?}")),
            }
        }
        if taken + held != there {
            self.breaks(format!("{taken} of {there} members were taken, and {held} are held"));
        }
    }

    /// True if a dead process has left a mark that no process has taken over.
    pub fn has_dead_marks(&self) -> bool {
        self.cellar.records().iter().any(|(_, snapshot)| snapshot.availability() == Availability::Orphaned)
    }

    fn is_there(&self, target: &str) -> bool {
        self.world.lock().backend.resource(&resource_of(target)).content().is_some()
    }
}

/// Builds a setting from a seed: clients take members, write and release them, and others create and write members.
pub fn setting(random: &mut Rng) -> Setting {
    let keeping = match random.u32(..8) {
        0 => Keeping::Disk,
        1..4 => Keeping::Memory,
        _ => Keeping::Shared,
    };
    setting_with(random, keeping).1
}

/// Builds a setting with such a store, and returns the options too.
pub fn setting_with(random: &mut Rng, keeping: Keeping) -> (Options, Setting) {
    let source = [Source::Version, Source::Upstream, Source::Content][random.usize(..3)];
    let options = Options {
        source,
        exclusive: source == Source::Version || random.bool(),
        guards: [Guards::Write, Guards::ReadAndWrite][random.usize(..2)],
        leased: (true, true),
        require: if random.bool() { "never" } else { "existing" },
        judges: false,
        idempotent: false,
        required: false,
        ..options(random, keeping).without_touches().without_sharing()
    };
    let clients = random.usize(2..4);
    let mut steps = vec![Vec::new(); clients];
    for number in 0..random.usize(4..9) {
        let client = if number < clients { number } else { random.usize(..clients) };
        steps[client].push(step(random, number < clients));
    }
    let create = |name: &&str| Step { operation: Operation::Create, ..of_member(name, Manner::default()) };
    let mut prologue = vec![Vec::new(); clients];
    prologue[0] = MEMBERS[..random.usize(1..=MEMBERS.len())].iter().map(create).collect();
    let setting = Setting {
        keeping,
        remembers: remembers(random),
        proxies: if keeping == Keeping::Shared { random.usize(1..3) } else { 1 },
        prologue,
        steps,
        faults: Faults { left: random.u32(..4), kills: true, fails: true },
        guards_reads: options.guards == Guards::ReadAndWrite,
        ..Setting::of(&options, &options.text_of_members())
    };
    (options, setting)
}

fn of_member(name: &str, manner: Manner) -> Step {
    Step { operation: Operation::Read, target: member(name), manner }
}

fn step(random: &mut Rng, takes: bool) -> Step {
    use Operation::{Acquire, Create, Delete, Next, Put, Read, Release};
    let operations = [Next, Next, Next, Put, Delete, Delete, Release, Create, Read, Acquire];
    let operation = if takes { Next } else { operations[random.usize(..operations.len())] };
    let manner = Manner {
        lasts: random.bool().then(|| random.u64(15..60)),
        waits: if random.bool() { random.u64(1..40) } else { 0 },
        goes_elsewhere: random.u32(..4) == 0,
        ..Manner::default()
    };
    let of_member = of_member(MEMBERS[random.usize(..MEMBERS.len())], manner);
    let target = if operation == Next { COLLECTION.to_owned() } else { of_member.target.clone() };
    Step { operation, target, ..of_member }
}
