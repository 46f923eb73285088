//! Power that fails at any moment. Unsynced writes may survive completely, in part, or not at all.

use std::collections::BTreeMap;

use super::{
    file::read,
    log::new,
    testing::{BOOT, Disk, REGION_BYTES, ROOM, Random, free, leased, place},
    *,
};
use crate::{
    clock::BootClock,
    core::{
        records::record::{Revision, Stamp},
        resource::ResourceKey,
    },
    store::{Incarnation, Store as _, Swapped},
};

/// The debt of a process from its first commit on, no matter how its last one was torn.
const OWED: Owed = Owed::by_writes(Duration::from_secs(30), Duration::from_secs(5));

/// A number of operations that the power never lasts for.
const OPERATIONS_MAX: usize = 1_000;

/// The answers that clients got: a fence, or a released lease.
type Told = BTreeMap<String, Option<Revision>>;

/// Grants and releases leases until the power is gone, and notes the answers. Returns the last resource whose request
/// got no answer.
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
    panic!("the power is gone, but the store still answers");
}

#[tokio::test]
async fn what_was_told_is_there_after_any_loss_of_power() {
    let clock: Arc<dyn Clock> = Arc::new(BootClock);
    let (mut unanswered_and_there, mut replacements, mut torn) = (0, 0, 0);
    for seed in 1..=60 {
        let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
        let (mut bytes, length) = new(seed, REGION_BYTES).unwrap();
        bytes.resize(place(length), 0);
        let (mut told, mut greatest, mut owed) = (Told::new(), Revision(0), false);
        for crash in 0..4 {
            let disk = Disk::holding(bytes.clone());
            let (log, contents) = read(Box::new(disk.clone()), &bytes, clock.now(), BOOT)
                .unwrap_or_else(|error| panic!("seed {seed}, crash {crash}: {error}"));
            assert_eq!(contents.incarnation, Incarnation(seed));
            assert_eq!(
                contents.hold,
                if owed { OWED.after_death } else { Duration::ZERO },
                "seed {seed}, crash {crash}"
            );
            assert!(contents.reserved >= greatest, "seed {seed}, crash {crash}: a fence could be given twice");
            let there: BTreeMap<_, _> = contents.records.iter().map(|(key, record)| (key.as_str(), record)).collect();
            for (name, fence) in &told {
                let kept = there.get(name.as_str()).map(|record| record.fence);
                assert_eq!(kept, fence.map(Stamp::At), "seed {seed}, crash {crash}: {name}");
            }
            let store = DiskStore::begin(log, contents, Arc::clone(&clock), (ROOM, Duration::from_secs(60)), OWED)
                .await
                .unwrap();
            owed = true;
            disk.platter().power = Some(random.below(200));
            let unanswered = work(&store, &mut random, &mut told).await;
            greatest = told.values().flatten().copied().max().unwrap_or_default().max(greatest);
            drop(store);
            replacements += usize::from(disk.platter().current.len() > bytes.len());
            bytes = disk.after_crash(&mut random);
            torn += usize::from(bytes != disk.platter().synced && bytes != disk.platter().current);
            // The last request got no answer, so either outcome is right. The next round continues from the state that
            // is found.
            let (_, contents) = read(Box::new(Disk::default()), &bytes, clock.now(), BOOT).unwrap();
            let kept = contents.records.iter().find(|(key, _)| key.as_str() == unanswered);
            let fence = kept.map(|(_, record)| record.fence.resolve(Revision(0)));
            unanswered_and_there += usize::from(fence.is_some());
            told.insert(unanswered, fence);
        }
    }
    assert!(unanswered_and_there > 0, "some crash came between the commit and the answer");
    assert!(replacements > 0 && torn > 0, "{replacements} in larger files, {torn} with half of a write");
}
