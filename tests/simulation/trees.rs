//! Writes of trees: what a DELETE, COPY or MOVE of a collection does at the backend, what is wrong with one that was
//! applied, and settings about them.
//!
//! None names a state, so none can lose an update alone. But no write of a member may act while a tree around it is in
//! flight. Nor may it replace the content that the tree has brought by the tag of an earlier state (DESIGN, section 3,
//! rules 1 and 2).

use fastrand::Rng;
use http::Method;
use tokio::time::Instant;

use crate::{
    backend::{Backend, Change, Kind, Tags, resource_of, response},
    client::Request,
    generate::{options, remembers},
    grants::Grant,
    judge::field,
    operation::{Manner, Operation},
    options::{Guards, Options, Source},
    process::Keeping,
    run::{Setting, Step},
    schedule::Faults,
    world::{Inner, Response, Sent},
};

/// The two collections.
const ROOTS: [&str; 2] = ["/tree", "/other"];

/// The names of their members.
const MEMBERS: [&str; 2] = ["1", "2"];

/// True if a target is one of the collections.
pub fn is_root(target: &str) -> bool {
    ROOTS.contains(&target)
}

/// The collection that a COPY or MOVE of this one leads to.
pub fn other_root(target: &str) -> &'static str {
    ROOTS[usize::from(target == ROOTS[0])]
}

/// True if a resource is a member of the collection that this resource stands for.
pub fn is_member(resource: &str, collection: &str) -> bool {
    collection.ends_with(' ') && resource.starts_with(collection) && resource.len() > collection.len()
}

/// The answer to a question for the type of a target.
pub fn type_of(target: &str) -> Response {
    let collection = if is_root(target) { "<collection/>" } else { "" };
    Response { body: format!("<resourcetype>{collection}</resourcetype>"), ..response(207) }
}

impl Sent {
    /// True if the request changes a whole collection.
    pub fn changes_tree(&self) -> bool {
        is_root(&self.target) && (self.method == Method::DELETE || self.destination.is_some())
    }
}

impl Backend {
    /// Acts on the write of a tree. Returns the members that it has changed.
    fn change_tree(&mut self, sent: &Sent, second: u64) -> Vec<String> {
        let member = |root: &str, name: &str| resource_of(&format!("{root}/{name}"));
        let (by, kind, mut changed) = (sent.request, Kind::Replaced, Vec::new());
        let mut put = |backend: &mut Self, name: String, (content, second): (Option<u32>, u64)| {
            if content.is_some() || backend.resource(&name).content().is_some() {
                backend.change(&name, Change { by, kind, content, metadata: None, second });
                changed.push(name);
            }
        };
        for name in MEMBERS {
            let source = member(&sent.target, name);
            let from = self.resource(&source);
            if let Some(destination) = &sent.destination {
                // A moved resource keeps its modification time.
                let moved = from.changes.last().map(|change| change.second).filter(|_| sent.method.as_str() == "MOVE");
                put(self, member(destination, name), (from.content(), moved.unwrap_or(second)));
            }
            if sent.method.as_str() != "COPY" {
                put(self, source, (None, second));
            }
        }
        changed
    }
}

impl Inner {
    /// Lets the backend act on the write of a tree.
    pub fn act_on_tree(&mut self, sent: &Sent, now: Instant, second: u64) -> Response {
        let changed = self.backend.change_tree(sent, second);
        let Some(number) = sent.request else { return response(204) };
        self.ledger.requests[number].arrived = true;
        self.ledger.requests[number].applied += 1;
        let entry = self.ledger.requests[number].clone();
        let there = field(&entry.request, "destination-lease-id");
        let is_named = |grant: &&Grant| [&entry.lease, &there].into_iter().flatten().any(|id| grant.ids.contains(id));
        let is_leased = |name: &&String| {
            let guards = self.ledger.guards_writes || self.ledger.guards_deletes;
            let mut held = self.ledger.grants.iter().filter(|grant| grant.reaches(name) && grant.is_held(now));
            guards && held.any(|grant| grant.answered < entry.invoked && !is_named(&grant))
        };
        let how = match changed.iter().find(is_leased) {
            _ if entry.applied > 1 => Some(format!("request {number} was applied twice")),
            Some(name) => Some(format!("request {number} changes {name}, which is leased")),
            None => changed.iter().find_map(|name| self.acts_beside(name, number)),
        };
        if let Some(how) = how {
            self.ledger.breaks(how);
        }
        let source = resource_of(&sent.target);
        // A lock ends with its collection.
        let ended =
            self.ledger.grants.iter_mut().filter(|grant| grant.resource == source && sent.method.as_str() != "COPY");
        ended.for_each(|grant| grant.is_over = true);
        response(204)
    }
}

/// The request of an operation on the lock of a collection, which has this token.
pub fn of_lock(operation: Operation, target: &str, id: Option<&String>, manner: Manner) -> Request {
    let id = id.map_or("00000000-0000-4000-8000-000000000999", String::as_str);
    let token = format!("<opaquelocktoken:{id}>");
    let lasts = ("timeout", format!("Second-{}", manner.lasts.unwrap_or(30)));
    let scope = if manner.shares { "shared" } else { "exclusive" };
    let info = format!(
        "<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:{scope}/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>"
    );
    let (method, field, body) = match operation {
        Operation::Acquire => ("LOCK", lasts, Some(info)),
        Operation::Renew => ("LOCK", ("if", format!("({token})")), None),
        _ => ("UNLOCK", ("lock-token", token), None),
    };
    let fields = vec![("x-sent-by", "client".to_owned()), ("authorization", "usual".to_owned()), field];
    let (method, target) = (method.parse().unwrap(), target.to_owned());
    Request { method, target, fields, body, is_named_by_body: false, describes: false }
}

/// True if a request is about the lock of a collection.
pub fn is_of_lock(method: &Method) -> bool {
    matches!(method.as_str(), "LOCK" | "UNLOCK")
}

/// True if a request asks for a lock beside others.
pub fn is_shared_lock(request: &Request) -> bool {
    is_of_lock(&request.method) && request.body.as_ref().is_some_and(|body| body.contains("shared"))
}

/// The seconds for which a request asks for a lease.
pub fn lasts_of(request: &Request) -> Option<String> {
    let of_lock = field(request, "timeout").and_then(|time| Some(time.strip_prefix("Second-")?.to_owned()));
    of_lock.or_else(|| field(request, "lease-duration"))
}

/// The collection that a resource is in, if it is one of a member.
pub fn collection_of(resource: &str) -> Option<String> {
    ROOTS.into_iter().map(resource_of).find(|collection| is_member(resource, collection) && resource != collection)
}

/// The requests of clients beside writes of trees and those for leases.
const OPERATIONS: [Operation; 6] =
    [Operation::Read, Operation::Put, Operation::Put, Operation::Create, Operation::Delete, Operation::Unless];

const OF_TREES: [Operation; 4] = [Operation::Move, Operation::Move, Operation::Copy, Operation::Delete];

/// Builds a setting from a seed: writes of two collections, beside writes, reads and leases of their members.
pub fn setting(random: &mut Rng) -> Setting {
    let keeping = match random.u32(..8) {
        0 => Keeping::Disk,
        1 | 2 => Keeping::Memory,
        _ => Keeping::Shared,
    };
    setting_with(random, keeping, |options| options).1
}

/// Builds a setting with such a store and adapted options, and returns the options too.
pub fn setting_with(random: &mut Rng, keeping: Keeping, adapt: fn(Options) -> Options) -> (Options, Setting) {
    let drawn = options(random, keeping);
    let has_leases = random.bool();
    let source = [Source::Version, Source::Version, Source::Upstream, Source::Content][random.usize(..4)];
    let exclusive = source == Source::Version || random.bool();
    let options = Options {
        source,
        exclusive,
        guards: Guards::Write,
        leased: (has_leases, has_leases),
        require: if random.bool() { "never" } else { "existing" },
        judges: false,
        idempotent: false,
        required: false,
        tags: [Tags::Precise, Tags::Seconds, Tags::Alternating][random.usize(..3)],
        ..drawn.without_touches().without_sharing()
    };
    let options = adapt(options);
    let proxies = if keeping == Keeping::Shared { random.usize(1..3) } else { 1 };
    // Two requests alone meet most often between the verdict and the mark of one of them.
    let is_duel = random.bool();
    let clients = if is_duel { 2 } else { random.usize(2..4) };
    let mut steps = vec![Vec::new(); clients];
    if is_duel {
        steps = duel(random, has_leases);
    }
    for number in 0..if is_duel { 0 } else { random.usize(3..7) } {
        let client = if number < clients { number } else { random.usize(..clients) };
        let step = step(random, has_leases);
        if step.operation.needs_tag() && !is_root(&step.target) && random.u32(..4) > 0 {
            steps[client].push(Step { operation: Operation::Read, ..step.clone() });
        }
        steps[client].push(step);
    }
    let targets = ["/tree/1", "/other/1", "/tree/2"];
    let read = |target: &str| Step { operation: Operation::Read, target: target.to_owned(), manner: Manner::default() };
    let mut prologue: Vec<Vec<Step>> = vec![targets.map(read).to_vec(); clients];
    for (place, target) in targets.into_iter().enumerate() {
        if random.u32(..8) > 0 {
            prologue[0].insert(place, Step { operation: Operation::Create, ..read(target) });
        }
    }
    if has_leases && random.bool() {
        let leased = [&targets[..], &ROOTS].concat();
        let target = leased[random.usize(..leased.len())];
        prologue[random.usize(..clients)].push(Step { operation: Operation::Acquire, ..read(target) });
    }
    let setting = Setting {
        keeping,
        remembers: remembers(random),
        proxies,
        prologue,
        steps,
        faults: Faults { left: if is_duel { 0 } else { random.u32(..4) }, kills: true, fails: true },
        ..Setting::of(&options, &options.text_of_trees())
    };
    (options, setting)
}

/// Returns the steps of a client that moves a collection onto the other, or locks one, and of one that writes a member of
/// either.
fn duel(random: &mut Rng, has_leases: bool) -> Vec<Vec<Step>> {
    let step = |operation, target: &str| Step {
        operation,
        target: target.to_owned(),
        manner: Manner { is_conditional: true, ..Manner::default() },
    };
    let member = ["/tree/1", "/other/1"][random.usize(..2)];
    let is_lock = has_leases && random.bool();
    let operation = if is_lock { Operation::Acquire } else { OF_TREES[random.usize(..OF_TREES.len())] };
    let writes = [Operation::Put, Operation::Delete, Operation::Acquire][random.usize(..if is_lock { 3 } else { 2 })];
    vec![vec![step(operation, ROOTS[random.usize(..2)])], vec![step(Operation::Read, member), step(writes, member)]]
}

fn step(random: &mut Rng, has_leases: bool) -> Step {
    let of_lease = [Operation::Acquire, Operation::Acquire, Operation::Renew, Operation::Release];
    let (operation, is_of_tree) = match random.u32(..6) {
        0 if has_leases => (of_lease[random.usize(..4)], random.bool()),
        0..3 => (OF_TREES[random.usize(..OF_TREES.len())], true),
        _ => (OPERATIONS[random.usize(..OPERATIONS.len())], false),
    };
    let root = ROOTS[random.usize(..2)];
    let target = if is_of_tree { root.to_owned() } else { format!("{root}/{}", MEMBERS[random.usize(..2)]) };
    let manner = Manner {
        is_conditional: random.bool(),
        lasts: random.bool().then(|| random.u64(15..60)),
        shares: is_of_tree && random.u32(..4) == 0,
        goes_elsewhere: random.u32(..4) == 0,
        ..Manner::default()
    };
    Step { operation, target, manner }
}
