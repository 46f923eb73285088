//! The idle connections of HTTP/1.1.
//!
//! # Design
//!
//! *Why not pingora's pool?* It starts a task for each connection that becomes idle, and a request that takes the
//! connection waits for the end of that task. Here a request takes the connection from a list, and one task for each
//! pool looks at all of them now and then.
//!
//! *Why a list for each worker?* The worker that opened a connection is the one whose driver wakes its reader. Another
//! worker uses the connection only if it has none of its own, and returns it to its home.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use foldhash::HashMap;
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use pingora::protocols::Stream;
use thread_local::ThreadLocal;
use tokio::{
    io::AsyncReadExt as _,
    task::coop::unconstrained,
    time::{Instant, sleep},
};

use crate::{config::Upstream, core::address::Address};

/// How often a pool closes connections that have been idle for too long, or that their servers have closed.
const SWEEP: Duration = Duration::from_millis(500);

/// The server of a connection, and how it is authenticated. Exchanges with equal destinations can share a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Destination {
    /// The address of the server.
    pub(super) address: Address,
    /// The settings of TLS, and the name in the server's certificate.
    secured: Option<(u64, String)>,
    /// True if the server may choose HTTP/2.
    pub(super) http2: bool,
}

/// A pool of idle connections.
#[derive(Debug)]
pub(super) struct IdleConnections {
    workers: ThreadLocal<Arc<Mutex<OwnConnections>>>,
    count: AtomicUsize,
    count_max: usize,
    /// True if a task closes what has been idle for too long.
    is_swept: AtomicBool,
}

/// The idle connections that one worker has opened, those that became idle last at the end.
#[derive(Debug, Default)]
struct OwnConnections(HashMap<Destination, Vec<IdleConnection>>);

#[derive(Debug)]
struct IdleConnection {
    stream: Stream,
    since: Instant,
    idle_max: Duration,
}

/// The place to which a connection returns when it becomes idle.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pool: Arc<IdleConnections>,
    worker: Arc<Mutex<OwnConnections>>,
}

impl Destination {
    /// Returns the destination of exchanges with the server of this name at this address.
    pub(super) fn of(upstream: &Upstream, server: &str, address: Address, http2: bool) -> Self {
        let secured = upstream.tls.as_deref().map(|tls| (tls.pool(), tls.name_of(server)));
        Self { address, secured, http2 }
    }
}

impl IdleConnections {
    /// Creates a pool that keeps at most `count_max` connections.
    pub(super) fn new(count_max: usize) -> Arc<Self> {
        let (count, is_swept) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { workers: ThreadLocal::new(), count, count_max, is_swept })
    }

    /// Returns the home of a connection that this worker opens.
    pub(super) fn home(self: &Arc<Self>) -> Home {
        self.home_of(self.workers.get_or_default())
    }

    /// Takes the connection that became idle last, if possible one of this worker.
    pub(super) fn take(self: &Arc<Self>, destination: &Destination) -> Option<(Stream, Home)> {
        let own = self.workers.get_or_default();
        let others = self.workers.iter().filter(|worker| !Arc::ptr_eq(own, worker));
        std::iter::once(own)
            .chain(others)
            .find_map(|worker| Some((self.take_from(worker, destination)?, self.home_of(worker))))
    }

    fn home_of(self: &Arc<Self>, worker: &Arc<Mutex<OwnConnections>>) -> Home {
        Home { pool: Arc::clone(self), worker: Arc::clone(worker) }
    }

    fn take_from(&self, worker: &Mutex<OwnConnections>, destination: &Destination) -> Option<Stream> {
        loop {
            let mut idle = worker.lock().0.get_mut(destination)?.pop()?;
            self.count.fetch_sub(1, Ordering::Relaxed);
            if idle.is_usable(Instant::now()) {
                return Some(idle.stream);
            }
        }
    }

    /// Closes the connections that no request can use. Returns whether others are left.
    fn sweep(&self) -> bool {
        let now = Instant::now();
        for worker in &self.workers {
            let closed = worker.lock().remove_unusable(now);
            self.count.fetch_sub(closed.len(), Ordering::Relaxed);
        }
        self.count.load(Ordering::Relaxed) > 0
    }
}

impl Home {
    /// Keeps a connection for another exchange, for no longer than `idle_max`. If the pool is full, the connection of
    /// this worker that has been idle longest is closed.
    pub(super) fn keep(&self, destination: Destination, stream: Stream, idle_max: Duration) {
        let mut idle = IdleConnection { stream, since: Instant::now(), idle_max };
        if idle_max.is_zero() || !idle.is_open() {
            return;
        }
        let surplus = {
            let mut own = self.worker.lock();
            own.0.entry(destination).or_default().push(idle);
            let is_full = self.pool.count.fetch_add(1, Ordering::SeqCst) >= self.pool.count_max;
            is_full.then(|| own.remove_longest_idle()).flatten()
        };
        if surplus.is_some() {
            self.pool.count.fetch_sub(1, Ordering::Relaxed);
        }
        if !self.pool.is_swept.load(Ordering::SeqCst) && !self.pool.is_swept.swap(true, Ordering::SeqCst) {
            tokio::spawn(sweep(Arc::downgrade(&self.pool)));
        }
    }
}

impl OwnConnections {
    fn remove_unusable(&mut self, now: Instant) -> Vec<IdleConnection> {
        let mut removed = Vec::new();
        self.0.retain(|_, connections| {
            removed.extend(connections.extract_if(.., |idle| !idle.is_usable(now)));
            !connections.is_empty()
        });
        removed
    }

    fn remove_longest_idle(&mut self) -> Option<IdleConnection> {
        let filled = self.0.values_mut().filter(|connections| !connections.is_empty());
        let oldest = filled.min_by_key(|connections| connections.first().map(|idle| idle.since))?;
        Some(oldest.remove(0))
    }
}

impl IdleConnection {
    fn is_usable(&mut self, now: Instant) -> bool {
        now.duration_since(self.since) < self.idle_max && self.is_open()
    }

    /// True if the server has neither closed the connection nor sent anything, which would belong to no request (RFC
    /// 9112 section 9.2).
    fn is_open(&mut self) -> bool {
        unconstrained(self.stream.read(&mut [0])).now_or_never().is_none()
    }
}

/// Closes connections until none are left, or the pool has gone.
async fn sweep(pool: Weak<IdleConnections>) {
    loop {
        sleep(SWEEP).await;
        let Some(pool) = pool.upgrade() else { return };
        if pool.sweep() {
            continue;
        }
        pool.is_swept.store(false, Ordering::SeqCst);
        // A connection that became idle in between had no reason to start another task.
        if pool.count.load(Ordering::SeqCst) == 0 || pool.is_swept.swap(true, Ordering::SeqCst) {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
