//! The disk store: the contract, and what survives.

use std::{
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ifmatch::{
    clock::Clock,
    core::{
        lease::LeaseState,
        records::{
            owed::Owed,
            record::{Record, Snapshot, Stamp},
        },
        tags::bare_tags::BareTags,
    },
    store::{
        Store,
        disk::{DiskError, DiskStore},
        memory::Room,
    },
};
use tempfile::TempDir;

use crate::{
    clock::StillClock,
    contract::{Fixture, MOMENT, busy, fill, idle, leased, put, read, shared},
};

const OWED: Owed = Owed::by_writes(Duration::from_secs(30), Duration::from_secs(5));
const IDLE_TTL: Duration = Duration::from_secs(1);

struct Disk {
    clock: Arc<StillClock>,
    store: Arc<DiskStore>,
    directory: TempDir,
}

fn room(records: usize) -> Room {
    Room { records, bytes: 1 << 30 }
}

async fn open(path: PathBuf, clock: &Arc<StillClock>) -> Result<(DiskStore, Duration), DiskError> {
    let clock: Arc<dyn Clock> = Arc::<StillClock>::clone(clock);
    DiskStore::open(&path, clock, room(1_000), IDLE_TTL, OWED).await
}

/// Opens a file whose store was dropped. The thread that writes lets go of the file a little later.
async fn reopen(path: &Path, clock: &Arc<StillClock>) -> (DiskStore, Duration) {
    loop {
        match open(path.to_owned(), clock).await {
            Err(DiskError::InUse(_)) => tokio::task::yield_now().await,
            opened => return opened.expect("it can be opened again"),
        }
    }
}

impl Disk {
    fn path(&self) -> PathBuf {
        self.directory.path().join("leases")
    }

    /// Ends the process that uses the store, by the evidence of the file, and starts another. Returns whether it finds
    /// the file in disorder.
    async fn restart(self, in_good_order: bool) -> (Self, bool) {
        if in_good_order {
            self.store.close().await;
        }
        let (path, clock, directory) = (self.path(), Arc::new(StillClock::default()), self.directory);
        drop(self.store);
        let (store, hold) = reopen(&path, &clock).await;
        (Self { clock, store: Arc::new(store), directory }, !hold.is_zero())
    }
}

impl Fixture for Disk {
    async fn start(capacity: usize) -> Self {
        let (clock, directory) = (Arc::new(StillClock::default()), tempfile::tempdir().expect("a directory"));
        // So long that what a lease remembers lies after the clock's first moment.
        clock.pass(Duration::from_secs(1_000_000));
        let path = directory.path().join("leases");
        let ticking: Arc<dyn Clock> = Arc::<StillClock>::clone(&clock);
        let (store, hold) = DiskStore::open(&path, ticking, room(capacity), IDLE_TTL, OWED).await.expect("a new file");
        assert_eq!(hold, Duration::ZERO, "a new file is in good order");
        Self { clock, store: Arc::new(store), directory }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::<DiskStore>::clone(&self.store)
    }

    async fn other(&self) -> Arc<dyn Store> {
        self.store()
    }

    async fn pass(&self, time: Duration) {
        self.clock.pass(time);
    }

    async fn collect(&self) {
        self.pass(IDLE_TTL).await;
        fill(&*self.store).await;
    }
}

crate::contract!(Disk);

async fn grant(disk: &Disk, name: &str) -> Snapshot {
    let now = disk.store.now().await.unwrap();
    put(&*disk.store, name, leased(now, MOMENT * 10)).await
}

#[tokio::test]
async fn leases_come_back_with_their_fences_and_no_less_time() {
    let disk = Disk::start(10).await;
    let granted = grant(&disk, "a").await;
    put(&*disk.store, "b", idle()).await;
    disk.pass(MOMENT * 3).await;
    let incarnation = disk.store.incarnation();
    let (disk, unclean) = disk.restart(false).await;
    assert!(unclean);
    assert_eq!(disk.store.incarnation(), incarnation);
    let back = read(&*disk.store, "a").await;
    assert_eq!(back.fence(), granted.fence());
    let (lease, was) = (back.lease().unwrap(), granted.lease().unwrap());
    assert_eq!((lease.id, lease.principal, lease.duration), (was.id, was.principal, was.duration));
    assert_eq!(lease.remaining(back.now), was.remaining(granted.now), "it has all its time again");
    assert!(back.version() > granted.version(), "no version comes back");
    let absent = read(&*disk.store, "b").await;
    assert!(absent.version() > granted.version(), "absence is later than all that was");
    for record in [back.record, absent.record] {
        assert_eq!(record.bare_tags, BareTags::None, "nobody knows which tags were given out before");
    }
}

#[tokio::test]
async fn shared_leases_come_back_each_with_its_own_fence() {
    let disk = Disk::start(10).await;
    let now = disk.store.now().await.unwrap();
    let granted = put(&*disk.store, "a", shared(now)).await;
    let (disk, _) = disk.restart(false).await;
    let back = read(&*disk.store, "a").await;
    let told = |snapshot: &Snapshot| {
        let leases = snapshot.leases();
        leases.map(|lease| (lease.id, lease.mode, lease.fence.resolve(snapshot.revision))).collect::<Vec<_>>()
    };
    assert_eq!(told(&back), told(&granted));
    assert_eq!((told(&back).len(), back.fence()), (2, granted.fence()));
}

#[tokio::test]
async fn no_fence_is_given_twice() {
    let mut disk = Disk::start(10).await;
    let mut last = grant(&disk, "a").await.fence();
    for round in 0..5 {
        disk = disk.restart(round % 2 == 0).await.0;
        for name in ["b", "a"] {
            let fence = grant(&disk, name).await.fence();
            assert!(fence > last);
            last = fence;
        }
    }
}

#[tokio::test]
async fn a_released_lease_does_not_come_back() {
    let disk = Disk::start(10).await;
    grant(&disk, "a").await;
    put(&*disk.store, "a", Record { fence: Stamp::Itself, ..idle() }).await;
    let (disk, unclean) = disk.restart(true).await;
    assert!(!unclean);
    assert_eq!(read(&*disk.store, "a").await.lease_state(), LeaseState::Available);
}

#[tokio::test]
async fn a_forgotten_lease_leaves_the_file() {
    let disk = Disk::start(10).await;
    grant(&disk, "a").await;
    disk.pass(MOMENT * 12).await;
    disk.collect().await;
    let (disk, _) = disk.restart(true).await;
    assert_eq!(disk.store.scan(None, 10).await.unwrap().len(), 0);
}

/// Otherwise a renewal after the crash would prove that nothing was written.
#[tokio::test]
async fn an_ended_lease_that_a_write_takes_does_not_come_back() {
    let disk = Disk::start(10).await;
    let granted = grant(&disk, "a").await;
    disk.pass(MOMENT * 10).await;
    let mark = ifmatch::core::records::record::Mark {
        leaves_lease: false,
        ..busy(granted.now).claim.expect("a busy record has a claim")
    };
    let ended = read(&*disk.store, "a").await.draft();
    put(&*disk.store, "a", Record { claim: Some(mark), ..ended }).await;
    let (disk, unclean) = disk.restart(false).await;
    assert!(unclean);
    assert_eq!(read(&*disk.store, "a").await.lease(), None);
}

/// A write on another resource may touch this one, no matter who holds its lease (DESIGN, section 3, rule 10).
#[tokio::test]
async fn a_held_lease_stays_whatever_is_marked_beside_it() {
    let disk = Disk::start(10).await;
    let granted = grant(&disk, "a").await;
    let mark = ifmatch::core::records::record::Mark {
        leaves_lease: false,
        ..busy(granted.now).claim.expect("a busy record has a claim")
    };
    let held = read(&*disk.store, "a").await.draft();
    put(&*disk.store, "a", Record { unclaimed: vec![mark], ..held }).await;
    let (disk, unclean) = disk.restart(false).await;
    assert!(unclean);
    let back = read(&*disk.store, "a").await;
    assert_eq!((back.lease_state(), back.fence()), (LeaseState::Leased, granted.fence()));
}

/// The store compares a lease with its text in the file, and not with the text that it would write at this moment.
#[tokio::test]
async fn a_lease_that_ends_beside_a_mark_leaves_the_file_with_the_next_change() {
    let disk = Disk::start(10).await;
    let granted = grant(&disk, "a").await;
    let mark = ifmatch::core::records::record::Mark {
        leaves_lease: false,
        ..busy(granted.now).claim.expect("a busy record has a claim")
    };
    let held = read(&*disk.store, "a").await.draft();
    put(&*disk.store, "a", Record { unclaimed: vec![mark], ..held }).await;
    disk.pass(MOMENT * 10).await;
    let ended = read(&*disk.store, "a").await;
    assert_eq!(ended.lease_state(), LeaseState::Expired);
    put(&*disk.store, "a", ended.draft()).await;
    let (disk, _) = disk.restart(false).await;
    assert_eq!(read(&*disk.store, "a").await.lease(), None);
}

#[tokio::test]
async fn a_process_that_ends_with_a_write_in_flight_leaves_disorder() {
    let disk = Disk::start(10).await;
    put(&*disk.store, "a", busy(disk.store.now().await.unwrap())).await;
    let (disk, unclean) = disk.restart(true).await;
    assert!(unclean, "closing in the middle of a write is no good order");
    disk.pass(OWED.after_death).await;
    let (_disk, unclean) = disk.restart(true).await;
    assert!(!unclean);
}

#[tokio::test]
async fn one_process_uses_a_file() {
    let disk = Disk::start(10).await;
    let error = open(disk.path(), &disk.clock).await.err().expect("it is in use");
    assert!(error.to_string().ends_with("is in use: only one process can use it at a time"), "{error}");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_refused_and_not_touched() {
    let disk = Disk::start(10).await;
    grant(&disk, "a").await;
    let (disk, _) = disk.restart(true).await;
    let (path, whole) = (disk.path(), std::fs::read(disk.path()).unwrap());
    let (clock, directory) = (Arc::clone(&disk.clock), disk.directory);
    drop(disk.store);
    let damaged = [
        ("empty", Vec::new()),
        ("foreign", b"[server]\nlisten = []\n".to_vec()),
        ("cut off", whole[..whole.len() / 2].to_vec()),
        ("scribbled over", whole.iter().map(|byte| byte ^ 0x55).collect()),
    ];
    for (how, bytes) in damaged {
        let path = path.with_extension("damaged");
        std::fs::write(&path, &bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let error = open(path.clone(), &clock).await.err().unwrap_or_else(|| panic!("{how}"));
        assert!(error.to_string().contains("cannot be read as a store of ifmatch"), "{how}: {error}");
        assert!(std::fs::read(&path).unwrap() == bytes, "{how}: it is left as it is");
    }
    drop(directory);
}

#[tokio::test]
async fn a_missing_directory_is_named_with_the_remedy() {
    let disk = Disk::start(10).await;
    let missing = disk.directory.path().join("missing");
    let error = open(missing.join("leases"), &disk.clock).await.map(drop).expect_err("no directory").to_string();
    assert_eq!(
        error,
        format!("the directory {} does not exist: create it, owned by the user that runs ifmatch", missing.display())
    );
}

#[tokio::test]
async fn nobody_else_reads_the_file() {
    let disk = Disk::start(10).await;
    assert_eq!(std::fs::metadata(disk.path()).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Anyone who can write it can give leases to any client.
#[tokio::test]
async fn a_file_that_others_can_write_is_refused() {
    let disk = Disk::start(10).await;
    let (path, clock) = (disk.path(), Arc::clone(&disk.clock));
    let refusal = async |path: &PathBuf| open(path.clone(), &clock).await.map(drop).expect_err("refused").to_string();
    for mode in [0o666, 0o662, 0o602] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let problem = refusal(&path).await;
        assert!(problem.contains(&format!("can be written by others than its owner (mode 0{mode:o})")), "{problem}");
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(refusal(&path).await.contains("is in use"), "nobody else can write it");
    let link = disk.directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(refusal(&link).await.contains("is a symbolic link"));
    std::fs::remove_file(&path).unwrap();
    assert!(refusal(&link).await.contains("is a symbolic link") && !path.exists(), "it leads nowhere");
}

/// Kubernetes gives the files of a volume to the pod's group, and lets it write, at each start of a pod.
#[tokio::test]
async fn a_file_that_the_own_group_can_write_is_taken_back_and_used() {
    let disk = Disk::start(10).await;
    let (path, clock, directory) = (disk.path(), Arc::clone(&disk.clock), disk.directory);
    drop(disk.store);
    let own_group = std::fs::metadata(directory.path()).unwrap().gid();
    std::os::unix::fs::chown(&path, None, Some(own_group)).unwrap();
    for start in 1..=2 {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o660)).unwrap();
        drop(reopen(&path, &clock).await);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640, "start {start}");
    }
}
