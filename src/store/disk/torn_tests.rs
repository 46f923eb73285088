//! Power that fails at any moment: of what was written and not synced, some is there, some is not, and some in part.

use std::collections::BTreeMap;

use super::{
    file::read,
    log::new,
    testing::{BOOT, Disk, REGION_BYTES, ROOM, Random, free, leased, place},
    *,
};
use crate::{clock::BootClock, core::record::Stamp};

/// More than there ever is power for.
const OPERATIONS_MAX: usize = 1_000;

/// What clients were told: a fence, or that the lease is released.
type Told = BTreeMap<String, Option<Revision>>;

/// Grants and releases until the power is gone; what was told last, and what was asked for last and not answered.
async fn work(store: &DiskStore, random: &mut Random, told: &mut Told) -> String {
    for _ in 0..OPERATIONS_MAX {
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
    panic!("the power is gone, and it goes on to answer");
}

#[tokio::test]
async fn what_was_told_is_there_after_any_loss_of_power() {
    let clock: Arc<dyn Clock> = Arc::new(BootClock);
    let (mut unanswered_and_there, mut replacements, mut torn) = (0, 0, 0);
    for seed in 1..=60 {
        let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
        let (mut bytes, length) = new(seed, REGION_BYTES).unwrap();
        bytes.resize(place(length), 0);
        let (mut told, mut greatest) = (Told::new(), Revision(0));
        for crash in 0..4 {
            let disk = Disk::holding(bytes.clone());
            let (log, contents) = read(Box::new(disk.clone()), &bytes, clock.now(), BOOT)
                .unwrap_or_else(|error| panic!("seed {seed}, crash {crash}: {error}"));
            assert_eq!(contents.incarnation, Incarnation(seed));
            assert!(contents.reserved >= greatest, "seed {seed}, crash {crash}: a fence could be given twice");
            let there: BTreeMap<_, _> = contents.records.iter().map(|(key, record)| (key.as_str(), record)).collect();
            for (name, fence) in &told {
                let kept = there.get(name.as_str()).map(|record| record.fence);
                assert_eq!(kept, fence.map(Stamp::At), "seed {seed}, crash {crash}: {name}");
            }
            let store =
                DiskStore::begin(log, contents, Arc::clone(&clock), (ROOM, Duration::from_secs(60))).await.unwrap();
            disk.platter().power = Some(random.below(200));
            let unanswered = work(&store, &mut random, &mut told).await;
            greatest = told.values().flatten().copied().max().unwrap_or_default().max(greatest);
            drop(store);
            replacements += usize::from(disk.platter().current.len() > bytes.len());
            bytes = disk.after_crash(&mut random);
            torn += usize::from(bytes != disk.platter().synced && bytes != disk.platter().current);
            // Nobody was told what became of it: either is right, and the next round goes on from what is there.
            let (_, contents) = read(Box::new(Disk::default()), &bytes, clock.now(), BOOT).unwrap();
            let kept = contents.records.iter().find(|(key, _)| key.as_str() == unanswered);
            let fence = kept.map(|(_, record)| record.fence.resolve(Revision(0)));
            unanswered_and_there += usize::from(fence.is_some());
            told.insert(unanswered, fence);
        }
    }
    assert!(unanswered_and_there > 0, "some crash came after the commit and before the answer");
    assert!(replacements > 0 && torn > 0, "{replacements} in larger files, {torn} with half of a write");
}
