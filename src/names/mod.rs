//! Names of servers, and their addresses. All look-ups of the process are made here.
//!
//! # Design
//!
//! *Why the look-up of the system, and none in Rust?* Operators expect that a name means here what it means to every
//! other program: `/etc/hosts`, `nsswitch.conf`, search domains, names of containers. A library would know some of
//! that, and bring a dozen more. Its one gain is a look-up that can be broken off, and nothing here waits for one.
//!
//! *Why threads of its own?* A look-up of the system cannot be broken off. In the pool that files need too, look-ups
//! that hang would keep bodies from being spooled.
//!
//! *Why one look-up at a time for a name?* The answer to one is the answer to all who wait. So names that hang take as
//! many threads as there are such names, and not as many as there are requests.
//!
//! *Why are old addresses used?* A resolver that does not answer says nothing about the server. Only the answer that the
//! name is unknown ends the use of its addresses: they may belong to another server by then.

mod state;

use std::{
    collections::HashMap,
    fmt, io,
    net::{SocketAddr, ToSocketAddrs as _},
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
    time::timeout,
};

use crate::{core::address::Address, threads};
use state::{Advice, NameState};

/// The number of names remembered, far more than a configuration has.
const NAMES_MAX: usize = 1024;

/// How a name is looked up, on a thread that may wait.
type LookUp = fn(&str) -> io::Result<Vec<SocketAddr>>;

/// The threads of all look-ups.
static THREADS: LazyLock<io::Result<Runtime>> =
    LazyLock::new(|| threads::build(Builder::new_current_thread().thread_name("ifmatch-names")));

/// The names as the system knows them.
static SYSTEM: LazyLock<Names> = LazyLock::new(|| Names::found_by(of_system));

/// The known names. A clone has the same knowledge.
#[derive(Clone)]
pub(crate) struct Names(Arc<Shared>);

struct Shared {
    look_up: LookUp,
    known: Mutex<HashMap<String, KnownName>>,
    /// Wakes threads that wait for any look-up.
    ended: Condvar,
}

struct KnownName {
    name: NameState,
    used_at: Instant,
    /// Changes when a look-up has ended.
    ended: watch::Sender<()>,
}

impl fmt::Debug for Names {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Names").finish_non_exhaustive()
    }
}

/// Starts the first thread for look-ups, which stays.
///
/// # Errors
///
/// The thread cannot be started.
pub(crate) fn start() -> io::Result<()> {
    threads().map(|_| ())
}

/// The names as the system knows them.
pub(crate) fn of_this_system() -> &'static Names {
    &SYSTEM
}

fn threads() -> io::Result<&'static Runtime> {
    THREADS.as_ref().map_err(|error| io::Error::from(error.kind()))
}

fn of_system(server: &str) -> io::Result<Vec<SocketAddr>> {
    server.to_socket_addrs().map(Iterator::collect)
}

impl Names {
    fn found_by(look_up: LookUp) -> Self {
        Self(Arc::new(Shared { look_up, known: Mutex::default(), ended: Condvar::new() }))
    }

    /// Returns the addresses of `host:port`.
    ///
    /// # Errors
    ///
    /// The name is unknown, or no look-up has ended within `wait`.
    pub(crate) async fn addresses(&self, server: &str, wait: Duration) -> io::Result<Arc<[Address]>> {
        let end = Instant::now() + wait;
        loop {
            let (until, mut ended) = match self.step(server, end)? {
                LookedAt::Found(addresses) => return Ok(addresses),
                LookedAt::UnderWay(until, ended) => (until, ended),
            };
            // A sender that is gone belongs to a name that was forgotten: the next step begins anew.
            let _ = timeout(until.saturating_duration_since(Instant::now()), ended.changed()).await;
        }
    }

    /// The same for a thread that may wait, until `end`.
    pub(crate) fn addresses_by(&self, server: &str, end: Instant) -> io::Result<Arc<[Address]>> {
        loop {
            let (until, ended) = match self.step(server, end)? {
                LookedAt::Found(addresses) => return Ok(addresses),
                LookedAt::UnderWay(until, ended) => (until, ended),
            };
            let mut known = self.0.known.lock();
            if !ended.has_changed().unwrap_or(true) {
                self.0.ended.wait_until(&mut known, until);
            }
        }
    }

    /// Begins a look-up if one is due, without waiting for it.
    pub(crate) fn begin(&self, server: &str) {
        // A caller that waits for it learns why it failed.
        let _ = self.step(server, Instant::now() + Duration::from_secs(1));
    }

    fn step(&self, server: &str, end: Instant) -> io::Result<LookedAt> {
        let now = Instant::now();
        let mut names = self.0.known.lock();
        if !names.contains_key(server) {
            make_room(&mut names)?;
            let known = KnownName { name: NameState::default(), used_at: now, ended: watch::Sender::new(()) };
            names.insert(server.to_owned(), known);
        }
        let known = names.get_mut(server).ok_or(io::ErrorKind::NotFound)?;
        known.used_at = now;
        if known.name.is_due(now) {
            let (names, server) = (self.clone(), server.to_owned());
            drop(threads()?.spawn_blocking(move || names.look_up(&server)));
            known.name.begins(now);
        }
        match known.name.step(now, end) {
            Advice::Use(addresses) => Ok(LookedAt::Found(addresses)),
            Advice::Fail(error) => Err(error),
            Advice::Wait(until) => Ok(LookedAt::UnderWay(until, known.ended.subscribe())),
        }
    }

    /// Looks a name up, on a thread that may wait.
    fn look_up(&self, server: &str) {
        let found = (self.0.look_up)(server);
        let mut names = self.0.known.lock();
        if let Some(known) = names.get_mut(server) {
            if let Err(error) = &found {
                let kept = known.name.has_addresses();
                tracing::warn!(%server, %error, kept, "the name of a server cannot be resolved");
            }
            known.name.ends(Instant::now(), found);
            known.ended.send_replace(());
        }
        drop(names);
        self.0.ended.notify_all();
    }
}

enum LookedAt {
    Found(Arc<[Address]>),
    /// A look-up is in flight, and is waited for until then.
    UnderWay(Instant, watch::Receiver<()>),
}

/// Forgets the name that was not used for the longest time, if there are too many.
fn make_room(names: &mut HashMap<String, KnownName>) -> io::Result<()> {
    if names.len() < NAMES_MAX {
        return Ok(());
    }
    let idle = names.iter().filter(|(_, known)| !known.name.is_under_way());
    let oldest = idle.min_by_key(|(_, known)| known.used_at).map(|(server, _)| server.clone());
    names.remove(&oldest.ok_or(io::ErrorKind::QuotaExceeded)?);
    Ok(())
}

#[cfg(test)]
mod tests;
