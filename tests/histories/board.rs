//! What all clients of a run look at: where the proxies are, and which resources are in use.

use std::{
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
};

/// After so many answered operations another resource takes the place of this one: a short history is searched quickly.
const OPERATIONS_OF_A_RESOURCE: usize = 40;

/// What all clients of a run look at.
pub struct Board {
    /// Where the proxies are now.
    pub addrs: Mutex<Vec<SocketAddr>>,
    /// How many operations were answered.
    pub answered: AtomicUsize,
    /// How many writes were done.
    pub done: AtomicUsize,
    /// How many writes and grants were refused because of the store.
    pub unavailable: AtomicUsize,
    pub is_over: AtomicBool,
    /// While it is set no other resource takes the place of one: clients wait for those that a dead mark keeps busy.
    pub stays: AtomicBool,
    pub manner: Manner,
    places: Vec<Place>,
    next_value: AtomicU32,
}

/// What clients must know of the configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// Whether all tags are those of content: then what differs by its tag differs.
    pub has_content_tags: bool,
    /// Whether a lease of a document keeps others from reading it.
    pub guards_reads: bool,
    /// Whether a document needs a lease where it is leased.
    pub needs_lease: bool,
}

/// A resource in use: one after another of the same folder.
struct Place {
    folder: &'static str,
    number: usize,
    answered: AtomicUsize,
}

impl Place {
    fn target(&self) -> String {
        self.target_before(0)
    }

    /// The resource that was in this place so many resources ago.
    fn target_before(&self, ago: usize) -> String {
        let generation = self.answered.load(Ordering::Relaxed) / OPERATIONS_OF_A_RESOURCE;
        format!("/{}/{}-{}", self.folder, self.number, generation.saturating_sub(ago))
    }
}

impl Board {
    /// So many resources in use in each of these folders.
    pub fn new(addrs: Vec<SocketAddr>, folders: &[&'static str], places: usize, manner: Manner) -> Self {
        let place = |(folder, number)| Place { folder, number, answered: AtomicUsize::new(0) };
        let places = folders.iter().flat_map(|folder| (0..places).map(move |number| (*folder, number)));
        Self {
            addrs: Mutex::new(addrs),
            answered: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            unavailable: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            stays: AtomicBool::new(false),
            manner,
            places: places.map(place).collect(),
            next_value: AtomicU32::new(1),
        }
    }

    /// The resource that is in a place, or was so many resources ago. Any number names a place.
    pub fn target(&self, place: usize, ago: usize) -> String {
        self.places[place % self.places.len()].target_before(ago)
    }

    /// A value that was in no write before.
    pub fn next_value(&self) -> u32 {
        self.next_value.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes note of an answered operation.
    pub fn count(&self, target: &str) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.use_up(target, 1);
    }

    /// Takes note of why a write or a grant was refused.
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
