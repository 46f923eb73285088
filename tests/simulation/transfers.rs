//! COPY and MOVE: what they do at the backend, what is wrong with one that was applied, and settings about them.
//!
//! A MOVE is judged as a DELETE of its source and a write of its destination. A COPY must read a state that no write is
//! changing. Of all writes to one resource, none acts while another one may still act (DESIGN, section 3, rule 1).

use fastrand::Rng;
use http::Method;
use tokio::time::Instant;

use crate::{
    backend::{Backend, Change, Kind, Resource, passes, resource_of, response},
    client::Request,
    dates,
    generate::{options, remembers},
    judge::{Entry, Ledger, field},
    operation::{Manner, Operation},
    options::{Guards, Options},
    process::Keeping,
    run::{Setting, Step},
    schedule::Faults,
    trees,
    world::{Inner, Response, Sent, What},
};

/// The host of all requests.
const ORIGIN: &str = "http://x";

/// Returns the destination of a COPY or MOVE of this target.
pub fn destination_of(target: &str) -> &'static str {
    match target {
        root if trees::is_root(root) => trees::other_root(root),
        item if item.starts_with("/items/") => "/docs/1",
        _ => "/items/1",
    }
}

/// The field that names it, in one spelling or the other.
pub fn destination_field(target: &str, is_absolute: bool) -> String {
    format!("{}{}", if is_absolute { ORIGIN } else { "" }, destination_of(target))
}

/// The destination that a request to the backend names, as the backend's own.
pub fn named(field: &str) -> String {
    field.strip_prefix(ORIGIN).unwrap_or_else(|| panic!("the backend is no {field}")).to_owned()
}

impl Sent {
    fn is_move(&self) -> bool {
        self.method.as_str() == "MOVE"
    }
}

impl Backend {
    /// Acts on a COPY or MOVE of this second. Returns whether it was applied. What is moved keeps its modification time.
    fn transfer(&mut self, sent: &Sent, destination: &str, second: u64) -> (Response, bool) {
        let (source, destination) = (resource_of(&sent.target), resource_of(destination));
        let (from, to) = (self.resource(&source), self.resource(&destination));
        let current = from.content().map(|_| self.tag(&from));
        let is_false = !passes(sent, current.as_deref()) || dates::is_dated_after(&self.style, &from, sent);
        let (Some(content), false) = (from.content(), self.style.judges && is_false) else {
            return (response(if from.content().is_none() { 404 } else { 412 }), false);
        };
        // Few servers judge anything, and then all of it.
        if self.style.judges && sent.keeps && to.content().is_some() {
            return (response(412), false);
        }
        let (by, kind, metadata) = (sent.request, Kind::Replaced, None);
        let arrived = if sent.is_move() { from.changes.last().map_or(second, |change| change.second) } else { second };
        self.change(&destination, Change { by, kind, content: Some(content), metadata, second: arrived });
        if sent.is_move() {
            self.change(&source, Change { by, kind, content: None, metadata, second });
        }
        let changed = [Some(&destination), Some(&source).filter(|_| sent.is_move())];
        let touched: Vec<_> = changed.into_iter().flatten().filter_map(|name| self.touched(name)).collect();
        for other in touched {
            let content = self.resource(&other).content();
            if other != source && other != destination && content.is_some() {
                self.change(&other, Change { by, kind: Kind::Touched, content, metadata, second });
            }
        }
        let mut answer = response(if to.content().is_none() { 201 } else { 204 });
        if self.style.tells_tag {
            answer.fields.push(("etag", format!("\"{}\"", self.tag(&self.resource(&destination)))));
        }
        (answer, true)
    }
}

impl Inner {
    /// Lets the backend act on a COPY or MOVE to this destination.
    pub fn act_on_transfer(&mut self, sent: &Sent, destination: &str, now: Instant, second: u64) -> Response {
        let (source, target) = (resource_of(&sent.target), resource_of(destination));
        let before = (self.backend.resource(&source), self.backend.resource(&target));
        let (response, is_applied) = self.backend.transfer(sent, destination, second);
        let Some(number) = sent.request else { return response };
        self.ledger.requests[number].arrived = true;
        if is_applied {
            self.ledger.requests[number].applied += 1;
            let beside = [&source, &target].into_iter().find_map(|name| self.beside(name, number, |_| true));
            let how = beside.or_else(|| self.ledger.transferred(number, (sent, &target), &before, now));
            if let Some(how) = how {
                self.ledger.breaks(how);
            }
        }
        response
    }

    /// Returns what is wrong with a write that acts on a resource while a COPY or MOVE of it is in flight, or a write of the
    /// collection that it is in.
    pub fn acts_beside_transfer(&self, number: usize, resource: &str) -> Option<String> {
        self.beside(resource, number, |other| other.destination.is_some() || other.changes_tree())
    }

    /// Returns what is wrong with a write that acts on a resource while any other is in flight there.
    pub fn acts_beside(&self, resource: &str, number: usize) -> Option<String> {
        self.beside(resource, number, |_| true)
    }

    fn beside(&self, resource: &str, number: usize, counts: impl Fn(&Sent) -> bool) -> Option<String> {
        let waiting = self.pending.iter().filter_map(|pending| match &pending.what {
            What::Exchange { sent, .. } => Some(&**sent),
            What::Read { .. } | What::Swap { .. } => None,
        });
        let sent = waiting.chain(self.late.iter().map(|late| &late.sent));
        let claims = |other: &&Sent| other.writes() && other.method != Method::POST && other.request != Some(number);
        let other = sent.filter(claims).find(|other| counts(other) && self.is_reached_by(other, resource))?;
        Some(format!("request {number} acts on {resource} while request {:?} is under way there", other.request))
    }
}

impl Ledger {
    /// Returns what is wrong with a COPY or MOVE that was applied to these states of its source and its destination.
    fn transferred(
        &mut self,
        number: usize,
        (sent, destination): (&Sent, &str),
        (from, to): &(Resource, Resource),
        now: Instant,
    ) -> Option<String> {
        let entry = self.requests[number].clone();
        let at_destination = at_destination(&entry, sent, destination);
        let holds = |entry: &Entry| self.grants.iter().rfind(|grant| grant.is_of(entry) && grant.is_held(now));
        // The fence is that of the destination, if its lease is held too.
        let own = holds(&entry).map(|grant| grant.fence).filter(|_| holds(&at_destination).is_some());
        let fence = own.or(sent.fence);
        let wrong = if sent.is_move() {
            let request = Request { method: Method::DELETE, ..entry.request.clone() };
            let removed = Entry { operation: Operation::Delete, request, ..entry };
            self.application(number, (&removed, fence), from, now)
        } else {
            self.copied(number, &entry, from, now)
        };
        wrong.or_else(|| self.application(number, (&at_destination, sent.fence), to, now))
    }

    /// Returns what is wrong with a COPY of this state.
    fn copied(&self, number: usize, entry: &Entry, from: &Resource, now: Instant) -> Option<String> {
        let keeps_off = |grant: &&crate::grants::Grant| {
            grant.keeps_off(entry, &self.grants) && grant.answered < entry.invoked && grant.is_held(now)
        };
        if self.guards_reads && self.grants.iter().any(|grant| keeps_off(&grant) && !self.may_be_given_up(grant)) {
            return Some(format!("request {number} copies what a lease keeps from it"));
        }
        let base = entry.base.as_ref().filter(|_| field(&entry.request, "if-match").is_some())?;
        let is_it = |serial: u64| {
            let is_same = self.equal_content_is_one_state && from.content_at(serial) == base.content;
            (serial == base.serial || is_same) && self.is_beside(number, from, serial)
        };
        let is_stale = !(base.serial..=from.serial()).any(is_it);
        is_stale.then(|| format!("request {number} copies change {} for change {}", from.serial(), base.serial))
    }
}

/// The write of the destination: a creation if it must not replace anything.
fn at_destination(entry: &Entry, sent: &Sent, destination: &str) -> Entry {
    let operation = if sent.keeps { Operation::Create } else { Operation::Put };
    let fields = if sent.keeps { vec![("if-none-match", "*".to_owned())] } else { Vec::new() };
    let request = Request {
        method: Method::PUT,
        target: destination_of(&entry.request.target).to_owned(),
        fields,
        ..entry.request.clone()
    };
    let lease = field(&entry.request, "destination-lease-id");
    Entry { operation, lease, base: None, resource: destination.to_owned(), request, ..entry.clone() }
}

/// The requests of clients beside those for leases.
const OPERATIONS: [Operation; 9] = [
    Operation::Copy,
    Operation::Copy,
    Operation::Move,
    Operation::Move,
    Operation::Put,
    Operation::Put,
    Operation::Post,
    Operation::Delete,
    Operation::Create,
];

/// Builds a setting from a seed: COPY and MOVE between a document and an item, beside other writes and leases of both.
pub fn setting(random: &mut Rng) -> Setting {
    let keeping = match random.u32(..8) {
        0 => Keeping::Disk,
        1 | 2 => Keeping::Memory,
        _ => Keeping::Shared,
    };
    let drawn = options(random, keeping);
    // A lease that guards nothing but reads lets others write.
    let guards = if random.bool() { Guards::Write } else { drawn.guards };
    let has_leases = random.bool();
    let leased = (has_leases, has_leases);
    // A route that demands something lets few of them replace anything.
    let require = if random.u32(..3) > 0 { "never" } else { drawn.require };
    let options = Options { delete_pending: false, leased, items_leased: has_leases, guards, require, ..drawn };
    let proxies = if keeping == Keeping::Shared { random.usize(1..3) } else { 1 };
    let clients = random.usize(2..4);
    let mut steps = vec![Vec::new(); clients];
    for number in 0..random.usize(3..7) {
        let client = if number < clients { number } else { random.usize(..clients) };
        let step = step(random, &options);
        if step.operation.needs_tag() && random.u32(..4) > 0 {
            steps[client].push(Step { operation: Operation::Read, ..step.clone() });
        }
        steps[client].push(step);
    }
    let read = |target: &str| Step { operation: Operation::Read, target: target.to_owned(), manner: Manner::default() };
    let mut prologue: Vec<Vec<Step>> = vec![["/docs/1", "/items/1"].map(read).to_vec(); clients];
    for (place, target) in ["/docs/1", "/items/1"].into_iter().enumerate() {
        if random.u32(..8) > 0 {
            prologue[0].insert(place, Step { operation: Operation::Create, ..read(target) });
        }
    }
    if has_leases && random.u32(..4) > 0 {
        let target = ["/docs/1", "/items/1"][random.usize(..2)];
        prologue[random.usize(..clients)].push(Step { operation: Operation::Acquire, ..read(target) });
    }
    Setting {
        keeping,
        remembers: remembers(random),
        proxies,
        prologue,
        steps,
        faults: Faults { left: random.u32(..4), kills: true, fails: true },
        guards_reads: matches!(options.guards, Guards::Read | Guards::ReadAndWrite),
        guards_writes: matches!(options.guards, Guards::Write | Guards::ReadAndWrite),
        guards_deletes: options.guards != Guards::Read,
        keeps_keys: options.idempotent,
        ..Setting::of(&options, &options.text())
    }
}

fn step(random: &mut Rng, options: &Options) -> Step {
    let of_lease = [Operation::Acquire, Operation::Release];
    let operation = if options.items_leased && random.u32(..5) == 0 {
        of_lease[random.usize(..2)]
    } else {
        OPERATIONS[random.usize(..OPERATIONS.len())]
    };
    let targets = ["/docs/1", "/items/1", "/docs/1", "/items/1", "/docs/1", "/items/1", "/alias/1"];
    let manner = Manner {
        is_conditional: random.bool(),
        keeps: random.u32(..3) == 0,
        lasts: random.bool().then(|| random.u64(15..60)),
        shares: options.shared && random.bool(),
        has_key: options.idempotent && random.bool(),
        resends: options.idempotent && random.u32(..8) == 0,
        goes_elsewhere: random.u32(..4) == 0,
        ..Manner::default()
    };
    Step { operation, target: targets[random.usize(..targets.len())].to_owned(), manner }
}
