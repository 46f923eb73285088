//! The world on the other side of the guard's four seams: the questions still without an answer, and what has happened.

use std::{
    collections::BTreeMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, atomic::AtomicU64},
    time::Duration,
};

use http::Method;
use ifmatch::{
    core::{
        records::record::{Record, Revision, Snapshot},
        resource::ResourceKey,
    },
    store::{StoreError, Swapped},
    upstream::Failure,
};
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use crate::{
    backend::{Backend, resource_of},
    judge::Ledger,
    names::{Names, hash},
    store::VirtualClock,
    trees::is_member,
};

/// The world, shared by everything that stands at a seam.
pub type World = Arc<Shared>;

pub struct Shared {
    inner: Mutex<Inner>,
    /// Signals that a new question can be answered, or that something ended.
    pub stirred: Notify,
    pub begun: Instant,
    /// How far the clock of the store was set back, in milliseconds.
    pub set_back: Arc<AtomicU64>,
    /// True if the store has a wall clock.
    pub has_wall_clock: bool,
}

pub struct Inner {
    pub backend: Backend,
    pub ledger: Ledger,
    /// The questions that wait for an answer, in the order of asking.
    pub pending: Vec<Pending>,
    /// Writes whose callers have given up, and which the backend may still apply.
    pub late: Vec<Late>,
    /// Swaps whose callers have given up, and which may still arrive at the store.
    pub stray: Vec<(ResourceKey, Revision, Record)>,
    /// The processes by number: true if one lives.
    pub alive: Vec<bool>,
    /// The time until which each process holds writes back, because another may have left some behind.
    pub held_until: Vec<Instant>,
    /// A hash of the answers that each request got at the seams: equal hashes behave alike from here on.
    pub told: BTreeMap<usize, u64>,
    pub names: Names,
    /// True if notices of changed records can be lost, and how many could be so far.
    pub loses_notices: bool,
    pub notices: u64,
    next: u64,
    /// The number of questions and ends so far.
    pub stirs: u64,
    /// The story of the run; kept only if it will be read.
    pub story: Option<Vec<String>>,
}

/// A question at a seam.
pub struct Pending {
    pub number: u64,
    pub process: usize,
    /// The request that asks; `None` for background work of a process.
    pub request: Option<usize>,
    pub what: What,
}

pub enum What {
    Read {
        key: ResourceKey,
        reply: oneshot::Sender<Result<Snapshot, StoreError>>,
    },
    Swap {
        key: ResourceKey,
        expected: Revision,
        next: Box<Record>,
        reply: oneshot::Sender<Result<Swapped, StoreError>>,
    },
    Exchange {
        sent: Box<Sent>,
        reply: oneshot::Sender<Result<Response, Failure>>,
    },
}

/// A request as the backend gets it.
#[derive(Clone, Debug, Hash)]
pub struct Sent {
    pub method: Method,
    pub target: String,
    /// The number of the write, from its body.
    pub value: Option<u32>,
    pub if_match: Option<String>,
    pub if_none_match: Option<String>,
    pub if_unmodified_since: Option<String>,
    pub fence: Option<u64>,
    /// True if this is a DELETE that waited for the holders of a lease.
    pub is_late_delete: bool,
    /// How long after it was abandoned the backend may still apply it.
    pub late_write_window: Duration,
    /// True if it goes to the server that has no resources.
    pub is_elsewhere: bool,
    /// The target that a COPY or MOVE leads to, and whether it keeps what is there.
    pub destination: Option<String>,
    pub keeps: bool,
    /// The client's request that this one belongs to.
    pub request: Option<usize>,
    pub credentials: Option<String>,
    pub body: String,
}

impl What {
    /// True if the action can change a record or the backend.
    pub fn changes_something(&self) -> bool {
        match self {
            Self::Read { .. } => false,
            Self::Swap { .. } => true,
            Self::Exchange { sent, .. } => sent.writes(),
        }
    }
}

impl Sent {
    pub fn writes(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS) && self.method.as_str() != "PROPFIND"
    }
}

/// The answer of the backend.
#[derive(Clone, Debug, Hash)]
pub struct Response {
    pub status: u16,
    pub fields: Vec<(&'static str, String)>,
    pub body: String,
}

/// An abandoned write that may still be applied.
pub struct Late {
    pub sent: Sent,
    pub until: Instant,
}

impl Shared {
    pub fn new(backend: Backend, story: bool, has_wall_clock: bool) -> World {
        let inner = Inner {
            backend,
            ledger: Ledger::default(),
            pending: Vec::new(),
            late: Vec::new(),
            stray: Vec::new(),
            alive: Vec::new(),
            held_until: Vec::new(),
            told: BTreeMap::new(),
            names: Names::default(),
            loses_notices: false,
            notices: 0,
            next: 0,
            stirs: 0,
            story: story.then(Vec::new),
        };
        let (begun, set_back) = (Instant::now(), Arc::default());
        Arc::new(Self { inner: Mutex::new(inner), stirred: Notify::new(), begun, set_back, has_wall_clock })
    }

    /// The clock of the store.
    pub fn clock(&self) -> VirtualClock {
        VirtualClock { begun: self.begun, set_back: Arc::clone(&self.set_back) }
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Milliseconds since the beginning.
    pub fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap()
    }

    /// Asks the world a question on behalf of the running request. A dead process never gets an answer.
    pub async fn ask<T>(&self, process: usize, what: impl FnOnce(oneshot::Sender<T>) -> What) -> T {
        let (reply, answer) = oneshot::channel();
        let request = current_request();
        {
            let mut inner = self.lock();
            if inner.alive[process] {
                inner.next += 1;
                let (number, what) = (inner.next, what(reply));
                if let What::Swap { next, .. } = &what {
                    inner.names.of_request(request, next);
                }
                inner.pending.push(Pending { number, process, request, what });
            }
        }
        self.stir();
        match answer.await {
            Ok(answer) => answer,
            Err(_dropped) => std::future::pending().await,
        }
    }

    pub fn stir(&self) {
        self.lock().stirs += 1;
        self.stirred.notify_one();
    }

    pub fn note(&self, line: impl FnOnce() -> String) {
        if self.lock().story.is_none() {
            return;
        }
        let line = format!("{:>7} ms  {}", self.now(), line());
        self.lock().story.get_or_insert_default().push(line);
    }
}

impl Inner {
    /// Returns the number of a write that the backend may still act on and that changes this resource.
    pub fn write_under_way(&self, resource: &str) -> Option<usize> {
        let waiting = self.pending.iter().filter_map(|pending| match &pending.what {
            What::Exchange { sent, .. } => Some(&**sent),
            What::Read { .. } | What::Swap { .. } => None,
        });
        let sent = waiting.chain(self.late.iter().map(|late| &late.sent));
        let mut writes = sent.filter(|sent| sent.writes() && !sent.is_elsewhere);
        writes.find(|sent| self.is_reached_by(sent, resource)).and_then(|sent| sent.request)
    }

    /// True if a request with this target concerns a resource, or a write with it changes that one too.
    pub fn reaches(&self, target: &str, resource: &str) -> bool {
        let own = resource_of(target);
        own == resource
            || is_member(resource, &own)
            || self.backend.touched(&own).is_some_and(|other| other == resource)
    }

    /// True if this request concerns a resource, or changes it as the destination of a COPY or MOVE.
    pub fn is_reached_by(&self, sent: &Sent, resource: &str) -> bool {
        let targets = [Some(&sent.target), sent.destination.as_ref()];
        targets.into_iter().flatten().any(|target| self.reaches(target, resource))
    }

    /// Records an answer that a request got at a seam.
    pub fn tell(&mut self, request: Option<usize>, what: &impl Hash) {
        let Some(request) = request else { return };
        let told = self.told.entry(request).or_default();
        *told = hash(&(*told, what));
    }
}

tokio::task_local! {
    /// The number of the client's request that a task handles.
    pub static REQUEST: usize;
}

/// Returns the request that runs now; `None` in the background.
pub fn current_request() -> Option<usize> {
    REQUEST.try_with(|request| *request).ok()
}
