//! A process: a configuration, its own guard, and the store as the process reaches it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::Duration,
};

use ifmatch::{
    config::Config,
    core::{
        records::{owed::Owed, record::Snapshot},
        resource::ResourceKey,
    },
    generation::{Live, Serving},
    guard::{Guard, StartHold},
    reload::Reloader,
    store::{
        Incarnation, Store,
        disk::DiskStore,
        memory::{MemoryStore, Room},
        owed,
    },
};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::{
    azure_queues,
    store::{SeamStore, VirtualClock, complete},
    upstream::Way,
    world::World,
};

/// The lifetime of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// No record does.
    Memory,
    /// Leases do, in a file.
    Disk,
    /// All do: the store is a separate server, and several proxies use it.
    Shared,
}

pub struct Process {
    pub live: Arc<Live>,
    pub reloader: Reloader,
}

/// The time for which a store remembers records, and its room for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembers {
    pub room: Room,
    pub idle_ttl: Duration,
}

/// More room and time than a schedule needs.
pub const ALL: Remembers =
    Remembers { room: Room { records: 1_000, bytes: 1 << 30 }, idle_ttl: Duration::from_secs(86_400) };

/// The store in which processes find their records.
pub struct Cellar {
    keeping: Keeping,
    remembers: Remembers,
    pub store: Arc<dyn Store>,
    disk: Option<(TempDir, PathBuf)>,
    starts: u64,
}

impl Cellar {
    pub fn new(keeping: Keeping, remembers: Remembers, world: &World, config: &Config) -> Self {
        let disk = (keeping == Keeping::Disk).then(|| {
            let directory = tempfile::tempdir_in(memory_directory()).unwrap();
            let path = directory.path().join("leases");
            fs::write(&path, &*SMALL_FILE).unwrap();
            (directory, path)
        });
        let mut cellar = Self { keeping, remembers, store: memory(remembers, world, 1), disk, starts: 1 };
        if cellar.disk.is_some() {
            let _ = cellar.open(world, config);
        }
        cellar
    }

    /// Returns all records: a run has few resources.
    pub fn records(&self) -> Vec<(ResourceKey, Snapshot)> {
        complete(self.store.scan(None, 100)).unwrap()
    }

    /// Ends the use of the store in good order.
    pub fn close(&self) {
        complete(self.store.close());
    }

    /// Opens the store for a process that starts after another has ended. Returns how long it must hold back.
    pub fn restart(&mut self, world: &World, config: &Config) -> Duration {
        self.starts += 1;
        match self.keeping {
            Keeping::Memory => self.store = memory(self.remembers, world, self.starts),
            Keeping::Disk => {
                // The dead process held the file; the new process finds only what that had written.
                let (directory, path) = self.disk.as_mut().unwrap();
                let next = directory.path().join(format!("leases{}", self.starts));
                fs::copy(&*path, &next).unwrap();
                *path = next;
                return self.open(world, config);
            }
            Keeping::Shared => {}
        }
        Duration::ZERO
    }

    fn open(&mut self, world: &World, config: &Config) -> Duration {
        let (_, path) = self.disk.as_ref().unwrap();
        let clock = Arc::new(world.clock());
        let Remembers { room, idle_ttl } = self.remembers;
        let (store, hold) = complete(DiskStore::open(path, clock, room, idle_ttl, owed(config))).unwrap();
        self.store = Arc::new(store);
        hold
    }
}

/// The size of a region in [`SMALL_FILE`]: no run fills it.
const REGION_BYTES: usize = 64 << 10;

/// A new file of a store on disk, with small regions: most of the time of a run would pass with the usual ones, of
/// megabytes.
static SMALL_FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let directory = tempfile::tempdir_in(memory_directory()).unwrap();
    let path = directory.path().join("leases");
    let clock = Arc::new(VirtualClock { begun: Instant::now(), set_back: Arc::default() });
    drop(complete(DiskStore::open(&path, clock, ALL.room, ALL.idle_ttl, Owed::NONE)).unwrap());
    let mut bytes = fs::read(&path).unwrap();
    // The header: what the file is and its incarnation, the size of a region, a checksum.
    bytes[20..28].copy_from_slice(&(REGION_BYTES as u64).to_le_bytes());
    let sum = crc32fast::hash(&bytes[..28]);
    bytes[28..32].copy_from_slice(&sum.to_le_bytes());
    bytes.truncate(4_096 + 2 * REGION_BYTES);
    bytes
});

/// Returns a directory whose syncs cost nothing, if there is one: the schedule decides what survives.
pub fn memory_directory() -> PathBuf {
    let shared = PathBuf::from("/dev/shm");
    if shared.is_dir() { shared } else { std::env::temp_dir() }
}

fn memory(Remembers { room, idle_ttl }: Remembers, world: &World, incarnation: u64) -> Arc<dyn Store> {
    let clock = Arc::new(world.clock());
    Arc::new(MemoryStore::new(clock, Incarnation(incarnation), room, idle_ttl))
}

impl Process {
    /// Starts a process. After a death it holds writes back for as long as a write of the dead process may come late.
    /// On a reload it loads `file`.
    pub fn start(
        world: &World,
        config: &Arc<Config>,
        cellar: &Cellar,
        hold: Duration,
        file: Option<&Path>,
    ) -> (usize, Arc<Self>) {
        let number = {
            let mut inner = world.lock();
            inner.alive.push(true);
            inner.held_until.push(Instant::now() + hold);
            inner.alive.len() - 1
        };
        let store: Arc<dyn Store> = Arc::new(SeamStore {
            world: Arc::clone(world),
            process: number,
            store: Arc::clone(&cellar.store),
            is_shared: cellar.keeping == Keeping::Shared,
            has_wall_clock: world.has_wall_clock,
        });
        let way = Arc::new(Way { world: Arc::clone(world), process: number });
        let hold = StartHold::from(complete(cellar.store.now()).unwrap(), hold);
        let kept = Arc::clone(&store);
        let serving = Serving::new(Arc::clone(config), |table| {
            let guard = Guard::over((Arc::default(), way), config, table, store, number as u64 + 1, hold);
            guard.dated_by(azure_queues::time)
        });
        let live = Arc::new(Live::new(serving));
        let reloader = Reloader::new(Arc::clone(&live), kept, None, file.map(Path::to_owned));
        (number, Arc::new(Self { live, reloader }))
    }
}
