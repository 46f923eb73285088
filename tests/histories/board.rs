//! The board that all clients of a run look at: the addresses of the proxies, and the resources in use.

use std::{
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
};

/// After this number of answered operations another resource takes the place of this one: a short history is searched
/// quickly.
const OPERATIONS_OF_A_RESOURCE: usize = 40;

/// The state that all clients of a run share.
pub struct Board {
    /// The current addresses of the proxies.
    pub addrs: Mutex<Vec<SocketAddr>>,
    /// The number of answered operations.
    pub answered: AtomicUsize,
    /// The number of successful writes.
    pub done: AtomicUsize,
    pub conflicts: AtomicUsize,
    pub doubts: AtomicUsize,
    pub grants: AtomicUsize,
    /// The number of writes and grants that were refused because of the store.
    pub unavailable: AtomicUsize,
    pub is_over: AtomicBool,
    /// While this is set, resources keep their places: clients wait for those that a dead mark keeps busy.
    pub stays: AtomicBool,
    pub manner: Manner,
    places: Vec<Place>,
    next_value: AtomicU32,
}

/// The numbers of events that show something: a run without them finds no fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    pub writes: usize,
    pub conflicts: usize,
    /// Writes in doubt, or without an answer.
    pub doubts: usize,
    pub grants: usize,
}

impl Events {
    /// Returns the least numbers for a run of this many operations.
    pub fn least(operations: usize) -> Self {
        Self { writes: operations / 4, conflicts: operations / 30, doubts: operations / 100, grants: operations / 100 }
    }

    fn include(self, least: Self) -> bool {
        self.writes >= least.writes
            && self.conflicts >= least.conflicts
            && self.doubts >= least.doubts
            && self.grants >= least.grants
    }
}

/// The properties of the configuration that clients must know.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Manner {
    /// True if all tags are made from content: then a false precondition means other content.
    pub has_content_tags: bool,
    /// True if a lease of a document keeps other clients from reading it.
    pub guards_reads: bool,
    /// True if writing a document on its leasable path needs a lease.
    pub needs_lease: bool,
    /// True if clients write with dates too. Where creating needs no precondition, a date is ignored if nothing is there.
    pub has_dates: bool,
    /// True if they write documents with dates alone, and no items.
    pub only_dates: bool,
    /// True if clients send appends with a key, and send them again.
    pub retries: bool,
}

/// A place for the resource in use: one resource after another of the same folder.
struct Place {
    folder: &'static str,
    number: usize,
    answered: AtomicUsize,
}

impl Place {
    fn target(&self) -> String {
        self.target_before(0)
    }

    /// Returns the resource that was in this place this number of resources ago.
    fn target_before(&self, ago: usize) -> String {
        let generation = self.answered.load(Ordering::Relaxed) / OPERATIONS_OF_A_RESOURCE;
        format!("/{}/{}-{}", self.folder, self.number, generation.saturating_sub(ago))
    }
}

impl Board {
    /// Puts this number of resources in use in each of these folders.
    pub fn new(addrs: Vec<SocketAddr>, folders: &[&'static str], places: usize, manner: Manner) -> Self {
        let place = |(folder, number)| Place { folder, number, answered: AtomicUsize::new(0) };
        let places = folders.iter().flat_map(|folder| (0..places).map(move |number| (*folder, number)));
        Self {
            addrs: Mutex::new(addrs),
            answered: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            conflicts: AtomicUsize::new(0),
            doubts: AtomicUsize::new(0),
            grants: AtomicUsize::new(0),
            unavailable: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            stays: AtomicBool::new(false),
            manner,
            places: places.map(place).collect(),
            next_value: AtomicU32::new(1),
        }
    }

    /// Returns the resource that is in a place now, or was this number of resources ago. Any number names a place.
    pub fn target(&self, place: usize, ago: usize) -> String {
        self.places[place % self.places.len()].target_before(ago)
    }

    /// Returns a value that no earlier write had.
    pub fn next_value(&self) -> u32 {
        self.next_value.fetch_add(1, Ordering::Relaxed)
    }

    /// True if this many operations were answered, and these events have happened.
    pub fn has_seen(&self, operations: usize, least: Events) -> bool {
        self.answered.load(Ordering::Relaxed) >= operations && self.events().include(least)
    }

    /// Returns the numbers of events so far.
    pub fn events(&self) -> Events {
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        Events {
            writes: count(&self.done),
            conflicts: count(&self.conflicts),
            doubts: count(&self.doubts),
            grants: count(&self.grants),
        }
    }

    /// Counts an answered operation.
    pub fn count(&self, target: &str) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.use_up(target, 1);
    }

    /// Counts a refused write or grant if the store was the reason.
    pub fn note_refusal(&self, code: &str) {
        self.unavailable.fetch_add(usize::from(code == "store-unavailable"), Ordering::Relaxed);
    }

    /// Puts another resource in the place of this one.
    pub fn turn_from(&self, target: &str) {
        self.use_up(target, OPERATIONS_OF_A_RESOURCE);
    }

    fn use_up(&self, target: &str, operations: usize) {
        if self.stays.load(Ordering::Relaxed) {
            return;
        }
        if let Some(place) = self.places.iter().find(|place| place.target() == target) {
            place.answered.fetch_add(operations, Ordering::Relaxed);
        }
    }
}
