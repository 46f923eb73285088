//! The file of the `disk` store: damage before a sound commit is refused, and no lease before the damage is lost.
//!
//! Each four bytes of the input change one byte of a file with three leases: three for its place, one for its value.
#![no_main]

use std::{
    fs,
    ops::Range,
    path::PathBuf,
    sync::{Arc, LazyLock},
    time::Duration,
};

use ifmatch::{
    clock::BootClock,
    core::{
        lease::{Lease, LeaseDuration, LeaseId, LeaseMode, LeaseSet, TargetName, Term},
        policy::LeaseGuards,
        records::record::{Record, Revision, Stamp},
        resource::ResourceKey,
    },
    store::{Store, disk::DiskStore, memory::Room},
};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};

const DAY: Duration = Duration::from_secs(86_400);
const ROOM: Room = Room { records: 100, bytes: 1 << 20 };
/// Where something stands: the rest of the file is reserved.
const WRITTEN_BYTES: usize = 16 << 10;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Builder::new_current_thread().enable_all().build().unwrap());

/// The leases, in the order of their commits.
const LEASES: [(&str, u8); 3] = [("a", 1), ("b", 2), ("c", 3)];

/// A file with the leases, and where the words of each commit stand in it.
struct Sound {
    bytes: Vec<u8>,
    commits: Vec<Range<usize>>,
}

static SOUND: LazyLock<Sound> = LazyLock::new(|| {
    let path = path("sound");
    let _ = fs::remove_file(&path);
    RUNTIME.block_on(async {
        let (store, _hold) = DiskStore::open(&path, Arc::new(BootClock), ROOM, DAY, Owed::NONE).await.unwrap();
        let (mut bytes, mut commits) = (fs::read(&path).unwrap(), Vec::new());
        for (name, fence) in LEASES {
            let key = ResourceKey::from_text(name);
            let before = store.read(&key).await.unwrap();
            store.swap(&key, before.revision, leased(fence)).await.unwrap();
            let now = fs::read(&path).unwrap();
            let changed: Vec<_> = (0..now.len()).filter(|&place| now[place] != bytes[place]).collect();
            commits.push(changed[0]..changed[changed.len() - 1] + 1);
            bytes = now;
        }
        Sound { bytes, commits }
    })
});

fn leased(fence: u8) -> Record {
    let lease = Lease {
        id: LeaseId::from_random([fence; 16]),
        mode: LeaseMode::Exclusive,
        fence: Stamp::Itself,
        term: Term::Held(None),
        duration: LeaseDuration::Infinite,
        granted: Default::default(),
        holder: None,
        note: None,
        keeper: None,
        principal: None,
        remember_time: DAY,
        guards: LeaseGuards::Write,
        target: TargetName::default(),
    };
    Record { leases: LeaseSet::from_iter([lease]), fence: Stamp::Itself, ..Record::absent(Revision(0)) }
}

fn path(name: &str) -> PathBuf {
    let shared = PathBuf::from("/dev/shm");
    let directory = if shared.is_dir() { shared } else { std::env::temp_dir() };
    directory.join(format!("ifmatch-fuzz-{}-{name}", std::process::id()))
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = SOUND.bytes.clone();
    for change in input.chunks_exact(4) {
        let place = usize::from(change[0]) << 16 | usize::from(change[1]) << 8 | usize::from(change[2]);
        bytes[place % WRITTEN_BYTES] = change[3];
    }
    let is_sound: Vec<bool> =
        SOUND.commits.iter().map(|commit| bytes[commit.clone()] == SOUND.bytes[commit.clone()]).collect();
    let path = path("damaged");
    fs::write(&path, &bytes).unwrap();
    RUNTIME.block_on(async {
        let Ok((store, _hold)) = DiskStore::open(&path, Arc::new(BootClock), ROOM, DAY, Owed::NONE).await else {
            return;
        };
        // Damage at the end is that of a crash for all that the file tells. Before a sound commit it cannot be one, and is
        // refused.
        let first_damaged = is_sound.iter().position(|is_sound| !is_sound).unwrap_or(LEASES.len());
        assert!(!is_sound[first_damaged..].contains(&true), "damage before a sound commit was not noticed");
        for (name, fence) in LEASES.into_iter().take(first_damaged) {
            let record = store.read(&ResourceKey::from_text(name)).await.unwrap().record;
            let ids = |record: &Record| record.leases.iter().map(|lease| lease.id.reveal()).collect::<Vec<_>>();
            assert_eq!(ids(&record), ids(&leased(fence)));
        }
    });
    fs::remove_file(&path).unwrap();
});
