//! The world: clients, proxies, a store, an upstream and a clock; and what may happen next.

use std::fmt;

use ifmatch::core::{
    lease::{Action, Command, TargetName},
    record::{Revision, Snapshot},
    time::StoreTime,
};

use super::{
    client::{Client, Role, Step},
    holder,
    route::Content,
    rules::{Mode, Rules},
    shell,
    store::{LATE_MAX, Store, TICK},
    writer,
};

/// Who and what is in a world.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    /// The first and the third talk to one proxy, the second to another.
    pub roles: &'static [Role],
    /// Answers that are no success, answers of upstream and store that are lost, deaths of proxies, leases that are
    /// broken, in all.
    pub faults: u8,
    /// How often the record is forgotten, if it may be.
    pub forgets: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub mode: Mode,
    /// Whether the route has leases.
    pub has_leases: bool,
    pub store: Store,
    /// What is at the upstream.
    pub content: Content,
    pub clients: Vec<Client>,
    /// What the last read has taught each proxy, with the last event on the data path before it.
    pub remembered: [Option<(Revision, Content)>; 2],
    /// Writes that were given up and may still be applied before a moment.
    pub late: Vec<(usize, StoreTime)>,
    /// How much was appended.
    pub appended: u8,
    /// The last version that was ever current.
    pub newest: Revision,
    /// The last version that was current when a write was last applied: it names an earlier state.
    pub outdated: Revision,
    /// Who was granted the lease last.
    pub grantee: Option<usize>,
    /// The fence of that.
    pub fence: Revision,
    /// Whether somebody else has written since.
    pub is_intruded: bool,
    pub faults: u8,
    pub forgets: u8,
    /// How the promise is broken.
    pub broken: Option<String>,
}

/// Whom something happens to.
#[derive(Clone, Copy, Debug)]
pub enum Who {
    Client(usize),
    Proxy(usize),
    All,
}

/// Whom something happens to, and what.
pub type Event = (Who, &'static str);

/// What may happen next, and the worlds after it.
pub struct Moves<'a> {
    pub from: &'a World,
    pub rules: &'a Rules,
    pub list: Vec<(Event, World)>,
}

impl fmt::Display for Who {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(index) => write!(formatter, "client {}", ["A", "B", "C"][*index]),
            Self::Proxy(index) => write!(formatter, "proxy {}", index + 1),
            Self::All => Ok(()),
        }
    }
}

impl Moves<'_> {
    /// Adds something that may happen, unless it makes no difference.
    pub fn add(&mut self, who: Who, what: &'static str, change: impl FnOnce(&mut World)) {
        let mut next = self.from.clone();
        change(&mut next);
        next.check();
        next.normalise(self.rules);
        self.list.push(((who, what), next));
    }

    /// Adds something that goes wrong, if anything may.
    pub fn add_fault(&mut self, who: Who, what: &'static str, change: impl FnOnce(&mut World)) {
        if self.from.faults > 0 {
            self.add(who, what, |next| {
                next.faults -= 1;
                change(next);
            });
        }
    }

    /// Adds something that brings a client to its next step.
    pub fn step(&mut self, index: usize, what: &'static str, step: Step) {
        self.add(Who::Client(index), what, |next| next.clients[index].step = step);
    }
}

impl World {
    pub fn new(mode: Mode, cast: Cast) -> Self {
        let store = Store::new();
        let mut world = Self {
            mode,
            has_leases: cast.roles.contains(&Role::Holder),
            newest: store.read().version(),
            outdated: Revision(0),
            fence: store.read().fence(),
            store,
            content: 0,
            clients: cast.roles.iter().enumerate().map(|(index, role)| Client::new(index, *role)).collect(),
            remembered: [None; 2],
            late: Vec::new(),
            appended: 0,
            grantee: None,
            is_intruded: false,
            faults: cast.faults,
            forgets: cast.forgets,
            broken: None,
        };
        world.normalise(&Rules::KEPT);
        world
    }

    /// Everything that can happen next.
    pub fn moves(&self, rules: &Rules) -> Vec<(Event, Self)> {
        let mut moves = Moves { from: self, rules, list: Vec::new() };
        for index in 0..self.clients.len() {
            writer::moves(&mut moves, index);
            holder::moves(&mut moves, index);
        }
        for (place, (index, _)) in self.late.iter().enumerate() {
            moves.add(Who::Client(*index), "is applied late", |next| {
                next.late.remove(place);
                next.apply(*index);
            });
        }
        let is_waited_for = self.clients.iter().any(|client| !client.is_over());
        if is_waited_for {
            self.surroundings(&mut moves);
        }
        moves.list
    }

    /// What happens to nobody in particular.
    fn surroundings(&self, moves: &mut Moves<'_>) {
        for proxy in 0..self.remembered.len() {
            if self.clients.iter().any(|client| client.proxy == proxy && client.is_marked()) {
                moves.add_fault(Who::Proxy(proxy), "dies and is started again", |next| next.crash(proxy, moves.rules));
            }
        }
        let gives_up = |client: &Client| matches!(client.step, Step::IsSent { at } if at < self.store.now);
        if (self.store.awaits_time() || !self.late.is_empty()) && !self.clients.iter().any(gives_up) {
            moves.add(Who::All, "time passes", |next| {
                next.store.now = self.store.now.plus(TICK);
                next.late.retain(|(_, end)| next.store.now < *end);
            });
        }
        if self.forgets > 0 && self.store.may_forget() {
            moves.add(Who::All, "the record is forgotten", |next| {
                next.store.forget(moves.rules);
                next.forgets -= 1;
            });
        }
        if self.store.read().lease_state().is_held() {
            let ends =
                Command { action: Action::Break { period: None }, principal: None, target: TargetName::default() };
            if let Ok((record, _)) = shell::step(&self.store.read(), ends, moves.rules) {
                moves.add_fault(Who::All, "the lease is broken", |next| {
                    next.store.swap(next.store.revision(), record);
                });
            }
        }
    }

    /// A proxy dies, and another one in its place knows nothing. A client whose write was marked sees a broken
    /// connection; any other one asks again.
    fn crash(&mut self, proxy: usize, rules: &Rules) {
        self.remembered[proxy] = None;
        for index in 0..self.clients.len() {
            if self.clients[index].proxy != proxy {
                continue;
            }
            self.give_up(index, rules);
            let client = &mut self.clients[index];
            client.step = match &client.step {
                _ if client.is_marked() => Step::Dead,
                Step::Reads(..) => Step::Begins,
                Step::Probes(..) | Step::Marks(..) => Step::Asks,
                Step::Operates(operation, _) => Step::Wants(*operation),
                step => step.clone(),
            };
        }
    }

    /// An exchange is given up: the upstream may apply its write for a while.
    pub fn give_up(&mut self, index: usize, rules: &Rules) {
        let late = if rules.upstream_keeps_late_max { LATE_MAX } else { LATE_MAX * 2 };
        if matches!(self.clients[index].step, Step::IsSent { .. }) {
            self.late.push((index, self.store.now.plus(late)));
        }
    }

    /// What the memory of a proxy says of the content.
    pub fn recalled(&self, proxy: usize, snapshot: &Snapshot, rules: &Rules) -> Option<Content> {
        let (touched, content) = self.remembered[proxy]?;
        let is_current = snapshot.has_no_pending_writes() && (touched == snapshot.touched() || !rules.reads_are_bound);
        is_current.then_some(content)
    }
}
