//! A change that the disk refuses is not in force, neither in memory nor in the file (DESIGN, section 3, rule 15).

use std::collections::BTreeMap;

use futures_util::FutureExt as _;

use super::{
    file::read,
    log::new,
    testing::{BOOT, Disk, REGION_BYTES, ROOM, Random, free, leased, place},
    *,
};
use crate::{
    clock::BootClock,
    core::{
        lease::LeaseSet,
        records::record::{Record, Revision},
        resource::ResourceKey,
    },
    store::{Store as _, StoreError, Swapped},
};

/// Opens a store on this disk that forgets idle records with the next swaps in their shard.
async fn begin(disk: &Disk) -> DiskStore {
    let clock: Arc<dyn Clock> = Arc::new(BootClock);
    let bytes = disk.platter().synced.clone();
    let (log, contents) = read(Box::new(disk.clone()), &bytes, clock.now(), BOOT).unwrap();
    DiskStore::begin(log, contents, clock, (ROOM, Duration::ZERO), Owed::NONE).await.unwrap()
}

fn empty_disk() -> Disk {
    empty_disk_of(REGION_BYTES)
}

fn empty_disk_of(region_bytes: usize) -> Disk {
    let (mut bytes, length) = new(7, region_bytes).unwrap();
    bytes.resize(place(length), 0);
    Disk::holding(bytes)
}

fn key(name: &str) -> ResourceKey {
    ResourceKey::from_text(name)
}

/// Replaces the current record with `next`.
async fn put(store: &DiskStore, name: &str, next: Record) -> Result<Swapped, StoreError> {
    let revision = store.read(&key(name)).await.unwrap().revision;
    store.swap(&key(name), revision, next).await
}

async fn lease(store: &DiskStore, name: &str) -> Option<crate::core::lease::Lease> {
    store.read(&key(name)).await.unwrap().lease().cloned()
}

/// The names of the resources whose leases would survive a loss of power.
fn on_disk(disk: &Disk) -> Vec<String> {
    let bytes = disk.platter().synced.clone();
    let (_, contents) = read(Box::new(Disk::default()), &bytes, BootClock.now(), BOOT).unwrap();
    contents.records.iter().map(|(key, _)| key.as_str().to_owned()).collect()
}

/// Rule 15: a grant that the disk refused is in force for no client.
#[tokio::test]
async fn a_grant_that_cannot_be_written_is_not_in_force() {
    let disk = empty_disk();
    let store = begin(&disk).await;
    disk.platter().power = Some(0);
    let before = store.read(&key("a")).await.unwrap();
    let now = store.now().await.unwrap();
    assert_eq!(store.swap(&key("a"), before.revision, leased(now)).await, Err(StoreError::Unavailable));
    let after = store.read(&key("a")).await.unwrap();
    assert_eq!((after.lease(), after.revision), (None, before.revision));
    disk.platter().power = None;
    assert!(matches!(put(&store, "a", leased(now)).await, Ok(Swapped::Done(_))), "it can be granted again");
}

#[tokio::test]
async fn a_change_or_an_end_of_a_lease_that_cannot_be_written_is_not_in_force() {
    let disk = empty_disk();
    let store = begin(&disk).await;
    let now = store.now().await.unwrap();
    put(&store, "a", leased(now)).await.unwrap();
    let granted = lease(&store, "a").await;
    let renewed = leased(now.plus(Duration::from_secs(1)));
    for next in [renewed, free()] {
        disk.platter().power = Some(0);
        assert_eq!(put(&store, "a", next).await, Err(StoreError::Unavailable));
        disk.platter().power = None;
        assert_eq!(lease(&store, "a").await, granted);
    }
    put(&store, "b", leased(now)).await.unwrap();
    let mut there = on_disk(&disk);
    there.sort();
    assert_eq!(there, ["a", "b"]);
}

/// The words of a failed commit must still be written: a lease that was forgotten meanwhile must not come back.
#[tokio::test]
async fn what_was_forgotten_while_the_disk_failed_leaves_the_file_later() {
    let disk = empty_disk();
    let store = begin(&disk).await;
    let now = store.now().await.unwrap();
    put(&store, "a", leased(now)).await.unwrap();
    let held = lease(&store, "a").await.unwrap();
    let forgettable = crate::core::lease::Lease {
        term: crate::core::lease::Term::Released(now),
        remember_time: Duration::ZERO,
        ..held
    };
    put(&store, "a", Record { leases: LeaseSet::from_iter([forgettable]), ..free() }).await.unwrap();
    assert_eq!(on_disk(&disk), ["a"]);
    disk.platter().power = Some(0);
    // Enough that some are in the same shard.
    for number in 0..1_000 {
        put(&store, &format!("filler {number}"), free()).await.unwrap();
    }
    assert_eq!(put(&store, "b", leased(now)).await, Err(StoreError::Unavailable));
    disk.platter().power = None;
    put(&store, "b", leased(now)).await.unwrap();
    assert_eq!(on_disk(&disk), ["b"]);
}

/// For any failures: confirmed changes hold and refused ones do not, both at once and after a restart.
#[tokio::test]
async fn what_was_answered_holds_and_what_was_refused_does_not() {
    let (mut refused, mut larger) = (0, 0);
    for seed in 1..=60 {
        let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
        let disk = empty_disk();
        let mut told: BTreeMap<String, bool> = BTreeMap::new();
        for restart in 0..3 {
            let store = begin(&disk).await;
            for (name, is_leased) in &told {
                assert_eq!(lease(&store, name).await.is_some(), *is_leased, "seed {seed}, restart {restart}: {name}");
            }
            for round in 0..60 {
                let name = format!("item {}", random.below(30));
                let power = random.below(8);
                disk.platter().power = (power < 3).then_some(power);
                let was_leased = told.get(&name).copied().unwrap_or_default();
                let next = if was_leased { free() } else { leased(store.now().await.unwrap()) };
                match put(&store, &name, next).await {
                    Ok(_) => drop(told.insert(name.clone(), !was_leased)),
                    Err(_) => refused += 1,
                }
                disk.platter().power = None;
                let is_leased = told.get(&name).copied().unwrap_or_default();
                assert_eq!(lease(&store, &name).await.is_some(), is_leased, "seed {seed}, {restart}.{round}: {name}");
            }
            // Words that are still to be written go with the next commit.
            put(&store, "last", leased(store.now().await.unwrap())).await.unwrap();
        }
        larger += usize::from(disk.platter().synced.len() > place(new(7, REGION_BYTES).unwrap().1));
    }
    assert!(refused > 0 && larger > 0, "{refused} refused, {larger} larger files");
}

/// A trial commit leaves room for more: on a full disk it fails before a grant does.
#[tokio::test]
async fn a_disk_without_room_for_more_is_found_out_before_somebody_is_refused() {
    let disk = empty_disk();
    let store = begin(&disk).await;
    assert_eq!(store.try_out().await, Ok(()));
    disk.platter().is_full = true;
    let mut granted = 0;
    while store.try_out().await.is_ok() {
        put(&store, &format!("item {granted}"), leased(store.now().await.unwrap())).await.unwrap();
        granted += 1;
        assert!(granted < 1_000, "it can only grow by another file");
    }
    assert!(granted > 0);
    assert_eq!(store.try_out().await, Err(StoreError::Unavailable));
    disk.platter().is_full = false;
    assert_eq!(store.try_out().await, Ok(()));
}

/// A revision must not be given again after a crash, so none is given if none can be reserved.
#[tokio::test]
async fn no_more_revisions_are_given_than_are_reserved() {
    let disk = empty_disk();
    let store = begin(&disk).await;
    disk.platter().power = Some(0);
    let mut given = Revision(0);
    let refused = loop {
        match put(&store, "a", free()).await {
            Ok(Swapped::Done(snapshot)) => given = snapshot.revision,
            Ok(Swapped::Conflict(_)) => panic!("nobody else writes"),
            Err(refused) => break refused,
        }
        assert!(given < Revision(1 << 16), "they come to an end");
    };
    assert_eq!(refused, StoreError::Unavailable);
    let bytes = disk.platter().synced.clone();
    let (_, contents) = read(Box::new(Disk::default()), &bytes, BootClock.now(), BOOT).unwrap();
    assert_eq!(given, contents.reserved);
    disk.platter().power = None;
    assert!(matches!(put(&store, "a", free()).await, Ok(Swapped::Done(_))), "more can be reserved again");
}

/// Rule 7: of two changes of the same state, one is made, although neither has been written when both begin.
#[tokio::test]
async fn a_change_waits_for_the_one_before_it() {
    let disk = empty_disk();
    let store = begin(&disk).await;
    let (resource, now) = (key("a"), store.now().await.unwrap());
    let seen = store.read(&resource).await.unwrap().revision;
    let mut swaps = [(); 2].map(|()| Box::pin(store.swap(&resource, seen, leased(now))));
    {
        let _platter = disk.platter();
        for swap in &mut swaps {
            assert_eq!(swap.now_or_never(), None, "the disk does nothing meanwhile");
        }
    }
    let [first, second] = swaps;
    assert!(matches!(first.await, Ok(Swapped::Done(_))));
    assert!(matches!(second.await, Ok(Swapped::Conflict(_))));
}

/// The floors rise while a grant waits for the disk, which then refuses it.
#[tokio::test]
async fn a_refused_grant_leaves_a_record_as_absent_as_any_other() {
    let disk = empty_disk();
    let store = begin(&disk).await;
    let (resource, now) = (key("a"), store.now().await.unwrap());
    let seen = store.read(&resource).await.unwrap().revision;
    let mut granting = Box::pin(store.swap(&resource, seen, leased(now)));
    {
        disk.platter().power = Some(0);
        let _platter = disk.platter();
        assert_eq!((&mut granting).now_or_never(), None);
        assert_eq!(store.raise_floors().now_or_never(), Some(Ok(())), "it needs no disk");
    }
    assert_eq!(granting.await, Err(StoreError::Unavailable));
    let (refused, absent) = (store.read(&resource).await.unwrap(), store.read(&key("b")).await.unwrap());
    assert_eq!((refused.revision, refused.record), (absent.revision, absent.record));
}

/// Clients continue to send requests while a disk fails. Each attempted commit once held all words refused before.
#[tokio::test]
async fn what_was_refused_is_not_kept() {
    const LARGE: usize = 1 << 20;
    let disk = empty_disk_of(LARGE);
    let store = begin(&disk).await;
    let now = store.now().await.unwrap();
    put(&store, "held", leased(now)).await.unwrap();
    disk.platter().power = Some(0);
    for number in 0..1_000 {
        assert_eq!(put(&store, &format!("refused {number}"), leased(now)).await, Err(StoreError::Unavailable));
    }
    let tried = disk.platter().tried_bytes;
    assert!(tried <= 1_000 * 1_024, "{tried} bytes for 1,000 requests");
    disk.platter().power = None;
    put(&store, "a", leased(now)).await.unwrap();
    let length = disk.platter().synced.len();
    assert_eq!(length, place(new(7, LARGE).unwrap().1), "the file has not grown");
    let mut there = on_disk(&disk);
    there.sort();
    assert_eq!(there, ["a", "held"]);
}

/// On a disk without room for a larger file, the present one is used to its end. Holders of leases can release them.
#[tokio::test]
async fn a_full_disk_refuses_more_leases_and_takes_back_those_that_there_are() {
    let disk = empty_disk();
    disk.platter().is_full = true;
    let store = begin(&disk).await;
    let now = store.now().await.unwrap();
    let mut granted = Vec::new();
    let refused = loop {
        let name = format!("item {}", granted.len());
        match put(&store, &name, leased(now)).await {
            Ok(_) => granted.push(name),
            Err(refused) => break refused,
        }
        assert!(granted.len() < 1_000, "the file cannot grow");
    };
    assert_eq!(refused, StoreError::Unavailable);
    assert!(granted.len() >= 3, "{granted:?}");
    for name in &granted {
        let renewed = put(&store, name, leased(now.plus(Duration::from_secs(1)))).await;
        assert!(matches!(renewed, Ok(Swapped::Done(_))), "{name} of {granted:?}: {renewed:?}");
    }
    // One is not always enough: each renewed lease has grown by some digits.
    for given_back in granted.split_off(granted.len() - 2) {
        assert!(matches!(put(&store, &given_back, free()).await, Ok(Swapped::Done(_))));
    }
    assert!(matches!(put(&store, "another", leased(now)).await, Ok(Swapped::Done(_))), "there is room for one again");
    granted.push("another".to_owned());
    let mut there = on_disk(&disk);
    there.sort();
    granted.sort();
    assert_eq!(there, granted);
}

/// A larger file is in its place, but the sync of its name failed: none of its changes are confirmed.
#[tokio::test]
async fn what_is_in_a_larger_file_whose_sync_failed_is_taken_out_again() {
    let disk = empty_disk();
    let store = begin(&disk).await;
    let now = store.now().await.unwrap();
    let length = disk.platter().current.len();
    let (mut granted, mut refused) = (Vec::new(), Vec::new());
    for number in 0..1_000 {
        if disk.platter().current.len() > length {
            break;
        }
        let name = format!("item {number:03}");
        disk.platter().fails_sync_after_replacement = true;
        match put(&store, &name, leased(now)).await {
            Ok(_) => granted.push(name),
            Err(_) => refused.push(name),
        }
    }
    assert_eq!(refused.len(), 1, "the commit of the larger file");
    assert!(lease(&store, &refused[0]).await.is_none());
    disk.platter().fails_sync_after_replacement = false;
    put(&store, "last", leased(now)).await.unwrap();
    granted.push("last".to_owned());
    let mut there = on_disk(&disk);
    there.sort();
    granted.sort();
    assert_eq!(there, granted);
}
