//! Settings in which clients send keyed writes again, and each retry changes what may differ between two attempts.

use fastrand::Rng;

use crate::{
    client::Request,
    generate::{options, remembers},
    operation::{Manner, Operation},
    options::Options,
    process::Keeping,
    run::{Setting, Step},
    schedule::Faults,
};

/// The part of its last request that a client changes before it sends the request again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Change {
    #[default]
    Nothing,
    /// A field that belongs to the attempt.
    Incidental,
    /// A cookie beside the one that names the client.
    Cookie,
    /// The credentials: the cookie that names the client stays.
    Credentials,
    /// The cookie that names the client: the retry comes from another client that has learned the key.
    Identity,
}

const CHANGES: [Change; 6] =
    [Change::Nothing, Change::Nothing, Change::Incidental, Change::Cookie, Change::Credentials, Change::Identity];

const OPERATIONS: [Operation; 6] =
    [Operation::Post, Operation::Post, Operation::Create, Operation::Put, Operation::Patch, Operation::Delete];

/// The cookies of a client whose identity is a cookie.
pub const COOKIES: &str = "session=one; analytics=1";

impl Change {
    pub fn apply(self, request: &mut Request) {
        let (name, value) = match self {
            Self::Nothing => return,
            Self::Incidental => ("x-correlation-id", "2"),
            Self::Cookie => ("cookie", "session=one; analytics=2"),
            Self::Credentials => ("authorization", "refreshed"),
            Self::Identity => ("cookie", "session=two; analytics=1"),
        };
        request.fields.retain(|(other, _)| *other != name);
        request.fields.push((name, value.to_owned()));
    }
}

/// Builds a setting from a seed.
pub fn setting(random: &mut Rng) -> Setting {
    let keeping = if random.u32(..4) == 0 { Keeping::Memory } else { Keeping::Shared };
    let drawn = options(random, keeping);
    let options = Options { idempotent: true, leased: (false, false), ..drawn.without_sharing() };
    let proxies = if keeping == Keeping::Shared { random.usize(1..3) } else { 1 };
    let clients = random.usize(1..4);
    let mut steps = vec![Vec::new(); clients];
    let step = |operation, target: &str, manner| Step { operation, target: target.to_owned(), manner };
    for client in &mut steps {
        for _ in 0..random.usize(1..3) {
            let operation = OPERATIONS[random.usize(..OPERATIONS.len())];
            let target = ["/docs/1", "/docs/1", "/alias/1", "/items/1"][random.usize(..4)];
            if operation.needs_tag() {
                client.push(step(Operation::Read, target, Manner { has_session: true, ..Manner::default() }));
            }
            let named = Manner { has_key: true, has_session: true, ..Manner::default() };
            client.push(step(operation, target, named));
            for _ in 0..random.usize(1..4) {
                let changes = CHANGES[random.usize(..CHANGES.len())];
                let again = Manner { resends: true, changes, goes_elsewhere: random.bool(), ..named };
                client.push(step(operation, target, again));
            }
        }
    }
    let mut prologue = vec![Vec::new(); clients];
    prologue[0] = ["/docs/1", "/items/1"].map(|target| step(Operation::Create, target, Manner::default())).to_vec();
    let identity = "[defaults]\nidentity_headers = [\"Cookie\"]\nidentity_cookies = [\"session\"]\n";
    Setting {
        keeping,
        remembers: remembers(random),
        proxies,
        prologue,
        steps,
        faults: Faults { left: random.u32(..4), kills: true, fails: true },
        keeps_keys: true,
        ..Setting::of(&options, &options.text().replace("[defaults]\n", identity))
    }
}
