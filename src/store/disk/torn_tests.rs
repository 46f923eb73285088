//! Power that fails at any moment: of what was written and not synced, some is there, some is not, and some in part.

use std::{
    collections::BTreeMap,
    io,
    sync::{Mutex, MutexGuard},
};

use redb::StorageBackend;

use super::{
    file::{begin, database, read},
    *,
};
use crate::{
    clock::BootClock,
    core::{
        lease::{Lease, LeaseDuration, LeaseId, Term},
        record::Stamp,
    },
};

/// What a disk is given while it caches.
#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

#[derive(Debug, Default)]
struct Platter {
    /// What a reader sees.
    current: Vec<u8>,
    /// What is there without power.
    synced: Vec<u8>,
    /// What was changed since.
    unsynced: Vec<Change>,
    /// How many more operations there is power for.
    power: Option<u64>,
}

/// A disk that loses its power after so many operations.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<Platter>>);

impl Disk {
    fn holding(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Platter { synced: bytes.clone(), current: bytes, ..Platter::default() })))
    }

    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().unwrap()
    }

    fn change(&self, change: Change) -> io::Result<()> {
        let mut platter = self.powered()?;
        apply(&mut platter.current, &change, usize::MAX);
        platter.unsynced.push(change);
        Ok(())
    }

    fn powered(&self) -> io::Result<MutexGuard<'_, Platter>> {
        let mut platter = self.platter();
        match &mut platter.power {
            Some(0) => return Err(io::Error::other("there is no power")),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(platter)
    }

    /// What is found when the power is back: each unsynced change is there, or not, or only its first sectors.
    fn after_crash(&self, random: &mut Random) -> Vec<u8> {
        let platter = self.platter();
        let mut found = platter.synced.clone();
        for change in &platter.unsynced {
            match random.below(3) {
                0 => {}
                1 => apply(&mut found, change, usize::MAX),
                _ => apply(&mut found, change, 512 * place(random.below(8))),
            }
        }
        found
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change, at_most: usize) {
    match change {
        Change::Length(length) => bytes.resize(place(*length), 0),
        Change::Write(offset, data) => {
            let (offset, data) = (place(*offset), &data[..data.len().min(at_most)]);
            let end = offset + data.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[offset..end].copy_from_slice(data);
        }
    }
}

fn place(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.platter().current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let offset = place(offset);
        out.copy_from_slice(&self.platter().current[offset..offset + out.len()]);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.change(Change::Length(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut platter = self.powered()?;
        platter.synced = platter.current.clone();
        platter.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(Change::Write(offset, data.to_vec()))
    }
}

/// Numbers that look random and follow from a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What clients were told: a fence, or that the lease is released.
type Told = BTreeMap<String, Option<Revision>>;

fn leased(now: StoreTime) -> Record {
    let lease = Lease {
        id: LeaseId::from_random([1; 16]),
        term: Term::Held(None),
        duration: LeaseDuration::Infinite,
        granted: now,
        holder: None,
        principal: None,
        remember: Duration::from_secs(600),
    };
    Record { lease: Some(lease), ..free() }
}

fn free() -> Record {
    Record { version: Stamp::Itself, touched: Stamp::Itself, fence: Stamp::Itself, ..Record::absent(Revision(0)) }
}

/// Grants and releases until the power is gone; what was told last, and what was asked for last and not answered.
async fn work(store: &DiskStore, random: &mut Random, told: &mut Told) -> String {
    loop {
        let name = format!("item {}", random.below(20));
        let key = ResourceKey::from_text(&name);
        let snapshot = store.read(&key).await.unwrap();
        let next = if snapshot.lease().is_some() { free() } else { leased(snapshot.now) };
        match store.swap(&key, snapshot.revision, next).await {
            Ok(Swapped::Done(done)) => {
                let fence = done.lease().is_some().then(|| done.fence());
                told.insert(name, fence);
            }
            Ok(Swapped::Conflict(_)) => panic!("nobody else writes"),
            Err(_) => return name,
        }
    }
}

#[tokio::test]
async fn what_was_told_is_there_after_any_loss_of_power() {
    let clock: Arc<dyn Clock> = Arc::new(BootClock);
    let mut unanswered_and_there = 0;
    for seed in 1..=40 {
        let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
        let first = Disk::default();
        let new = database(first.clone()).unwrap();
        begin(&new, seed).unwrap();
        drop(new);
        let (mut bytes, mut told, mut greatest) = (first.platter().synced.clone(), Told::new(), Revision(0));
        for crash in 0..3 {
            let disk = Disk::holding(bytes);
            let engine = database(disk.clone()).unwrap_or_else(|error| panic!("seed {seed}, crash {crash}: {error}"));
            let contents = read(&engine, clock.now()).unwrap();
            assert!(contents.reserved >= greatest, "seed {seed}, crash {crash}: a fence could be given twice");
            let there: BTreeMap<_, _> = contents.records.iter().map(|(key, record)| (key.as_str(), record)).collect();
            for (name, fence) in &told {
                let kept = there.get(name.as_str()).map(|record| record.fence);
                assert_eq!(kept, fence.map(Stamp::At), "seed {seed}, crash {crash}: {name}");
            }
            let store =
                DiskStore::begin(engine, contents, Arc::clone(&clock), (100, Duration::from_secs(60))).await.unwrap();
            disk.platter().power = Some(random.below(60));
            let unanswered = work(&store, &mut random, &mut told).await;
            greatest = told.values().flatten().copied().max().unwrap_or_default().max(greatest);
            drop(store);
            bytes = disk.after_crash(&mut random);
            // Nobody was told what became of it: either is right, and the next round goes on from what is there.
            let engine = database(Disk::holding(bytes.clone())).unwrap();
            let contents = read(&engine, clock.now()).unwrap();
            let kept = contents.records.iter().find(|(key, _)| key.as_str() == unanswered);
            let fence = kept.map(|(_, record)| record.fence.resolve(Revision(0)));
            unanswered_and_there += usize::from(fence.is_some());
            told.insert(unanswered, fence);
        }
    }
    assert!(unanswered_and_there > 0, "some crash came after the commit and before the answer");
}
