//! The world: clients, proxies, a store, an upstream and a clock; and what may happen next.

use std::fmt;

use ifmatch::core::{
    lease::{Action, Command, TargetName},
    records::record::{Revision, Snapshot},
    time::StoreTime,
};

use super::{
    client::{Client, Role, Step},
    holder,
    route::Content,
    rules::{Mode, Rules},
    shell,
    store::{LATE_WRITE_WINDOW, Store, TICK},
    writer,
};

/// The clients and the events of a world.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    /// The clients; the first and the third use one proxy, the second uses another.
    pub roles: &'static [Role],
    /// The total number of faults: answers that report no success, lost answers of upstream and store, deaths of
    /// proxies, broken leases.
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
    /// The content at the upstream.
    pub content: Content,
    pub clients: Vec<Client>,
    /// The content that each proxy last read, with the last event on the data path before that read.
    pub remembered: [Option<(Revision, Content)>; 2],
    /// Abandoned writes, each with the moment before which it may still be applied.
    pub late: Vec<(usize, StoreTime)>,
    /// The number of writes that appended.
    pub appended: u8,
    /// The newest version that was ever current.
    pub newest: Revision,
    /// The version that was current when a write was last applied: it names an earlier state.
    pub outdated: Revision,
    /// The client that was last granted the lease.
    pub grantee: Option<usize>,
    /// The fence of that grant.
    pub fence: Revision,
    /// Whether another client has written since.
    pub is_intruded: bool,
    pub faults: u8,
    pub forgets: u8,
    /// How the promise is broken.
    pub broken: Option<String>,
}

/// The part of the world to which an event happens.
#[derive(Clone, Copy, Debug)]
pub enum Who {
    Client(usize),
    Proxy(usize),
    All,
}

/// An event: to whom it happens, and what it is.
pub type Event = (Who, &'static str);

/// The possible next events, and the worlds after them.
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
    /// Adds a possible event and the world after it, in its normal form.
    pub fn add(&mut self, who: Who, what: &'static str, change: impl FnOnce(&mut World)) {
        let mut next = self.from.clone();
        change(&mut next);
        next.check();
        next.normalise(self.rules);
        self.list.push(((who, what), next));
    }

    /// Adds a fault, if any faults are left.
    pub fn add_fault(&mut self, who: Who, what: &'static str, change: impl FnOnce(&mut World)) {
        if self.from.faults > 0 {
            self.add(who, what, |next| {
                next.faults -= 1;
                change(next);
            });
        }
    }

    /// Adds an event that brings a client to its next step.
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

    /// Returns everything that can happen next.
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

    /// Adds the events of the surroundings, which belong to no client.
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

    /// Lets a proxy die. Another one takes its place and remembers nothing. A client whose write was marked sees a
    /// broken connection; any other client repeats its request.
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

    /// Abandons an exchange: the upstream may apply its write for a while.
    pub fn give_up(&mut self, index: usize, rules: &Rules) {
        let late = if rules.upstream_keeps_late_write_window { LATE_WRITE_WINDOW } else { LATE_WRITE_WINDOW * 2 };
        if matches!(self.clients[index].step, Step::IsSent { .. }) {
            self.late.push((index, self.store.now.plus(late)));
        }
    }

    /// Returns the content that a proxy remembers, if it still counts.
    pub fn recalled(&self, proxy: usize, snapshot: &Snapshot, rules: &Rules) -> Option<Content> {
        let (touched, content) = self.remembered[proxy]?;
        let is_current = snapshot.has_no_pending_writes() && (touched == snapshot.touched() || !rules.reads_are_bound);
        is_current.then_some(content)
    }
}
