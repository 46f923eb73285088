//! The records that a log returns after damage, and after a disk that failed and recovered.

use std::{collections::BTreeMap, io, time::Duration};

use super::{
    frame::{Entries, HEAD_BYTES},
    log::{Log, new, read},
    testing::{Disk, REGION_BYTES, Random, place},
};
use crate::core::records::owed::Owed;

const OWED: Owed = Owed::by_writes(Duration::from_secs(30), Duration::from_secs(5));

/// Creates a new log on a new disk.
fn begin() -> (Disk, Log) {
    let (mut bytes, length) = new(7, REGION_BYTES).unwrap();
    bytes.resize(place(length), 0);
    let disk = Disk::holding(bytes);
    let log = go_on(&disk);
    (disk, log)
}

/// Opens the log that would survive a loss of power.
fn go_on(disk: &Disk) -> Log {
    Log::new(Box::new(disk.clone()), &read(&disk.platter().synced).unwrap(), 1)
}

fn entry(name: &str, text: Option<&str>) -> Entries {
    let mut entries = Entries::default();
    entries.push(name, text);
    entries
}

fn grant(log: &mut Log, name: &str, text: &str) -> io::Result<()> {
    log.commit(&entry(name, Some(text)), 1, Owed::NONE).map_err(|failed| failed.error)
}

#[test]
fn a_log_goes_on_where_it_ended() {
    let (disk, mut log) = begin();
    grant(&mut log, "a", "one").unwrap();
    let mut log = go_on(&disk);
    log.commit(&entry("a", None), 2, Owed::NONE).unwrap();
    grant(&mut log, "b", "two").unwrap();
    log.commit(&Entries::default(), 3, OWED).unwrap();
    let bytes = disk.platter().synced.clone();
    let found = read(&bytes).unwrap();
    assert_eq!(found.leases, [("b", "two")].into());
    assert_eq!((found.incarnation, found.numbers.reserved, found.numbers.owed), (7, 3, OWED));
}

#[test]
fn what_does_not_fit_begins_anew_and_grows_with_what_there_is() {
    let (disk, mut log) = begin();
    let (mut expected, text) = (BTreeMap::new(), "x".repeat(100));
    let first_length = disk.platter().synced.len();
    for round in 0..300 {
        let name = format!("item {}", round % 40);
        grant(&mut log, &name, &format!("{text}{round}")).unwrap();
        expected.insert(name, format!("{text}{round}"));
        let bytes = disk.platter().synced.clone();
        let found: BTreeMap<_, _> = read(&bytes).unwrap().leases.into_iter().collect();
        let expected = expected.iter().map(|(key, text): (&String, &String)| (key.as_str(), text.as_str()));
        assert_eq!(found, expected.collect(), "round {round}");
    }
    let length = disk.platter().synced.len();
    // Two regions, each with room for twice the contents, rounded up to a power of two.
    assert!(length > first_length && length <= 8 * 40 * 150 + 4_096, "{length} bytes");
}

/// A flipped bit in any frame but the last is distinguished from a crash.
#[test]
fn damage_in_the_middle_is_found() {
    let (disk, mut log) = begin();
    for (name, text) in [("a", "one"), ("b", "two"), ("c", "three")] {
        grant(&mut log, name, text).unwrap();
    }
    let whole = disk.platter().synced.clone();
    // An empty frame, and two with a lease: 8 bytes of lengths, a key of one byte, a text of three, and zeros.
    let (first, second, last) = (4_096, 4_096 + HEAD_BYTES, 4_096 + 5 * HEAD_BYTES);
    let mut refused = 0;
    for place in first..last {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x10;
        match read(&bytes) {
            Ok(found) => {
                assert!(place >= second && (place - second) % (2 * HEAD_BYTES) >= HEAD_BYTES + 12, "byte {place}");
                assert_eq!(found.leases.len(), 3, "byte {place} means nothing");
            }
            Err(what) => {
                assert!(what.contains("is lost") || what.contains("has a beginning"), "byte {place}: {what}");
                refused += 1;
            }
        }
    }
    assert_eq!(refused, HEAD_BYTES + 2 * (HEAD_BYTES + 12));
    // Damage to the last frame cannot be distinguished from a commit that did not end.
    let mut bytes = whole;
    bytes[last + HEAD_BYTES] ^= 0x10;
    assert_eq!(read(&bytes).unwrap().leases.len(), 2);
}

/// After any damage of a byte, a read returns the last commit or the state before it, or is refused.
#[test]
fn no_damage_makes_another_state() {
    let (disk, mut log) = begin();
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut refused, mut lost) = (0, 0);
    for round in 0..60 {
        before.clone_from(&after);
        after.insert(format!("item {}", round % 5), format!("{round}"));
        grant(&mut log, &format!("item {}", round % 5), &format!("{round}")).unwrap();
        let whole = disk.platter().synced.clone();
        for _ in 0..100 {
            let mut bytes = whole.clone();
            let at = place(4_096 + random.below(bytes.len() as u64 - 4_096));
            bytes[at] ^= u8::try_from(1 + random.below(255)).unwrap();
            let Ok(found) = read(&bytes) else {
                refused += 1;
                continue;
            };
            let is = |state: &BTreeMap<String, String>| {
                found.leases.len() == state.len()
                    && state.iter().all(|(key, text)| found.leases.get(key.as_str()) == Some(&text.as_str()))
            };
            assert!(is(&after) || is(&before), "round {round}: {:?}", found.leases);
            lost += usize::from(!is(&after));
        }
    }
    assert!(refused > 0 && lost > 0, "{refused} refused, {lost} lost");
}

#[test]
fn a_header_that_was_not_written_here_is_refused() {
    let (disk, _) = begin();
    let whole = disk.platter().synced.clone();
    for place in 0..4_096 {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        assert!(read(&bytes).is_err(), "byte {place}");
    }
    let what = read(&whole[..whole.len() - 1]).unwrap_err();
    assert_eq!(what, "it has 8191 bytes instead of 8192");
}

/// The other region has a valid frame of a commit that failed, because only its sync did. A commit that would fit into
/// the first region must not go there: a reader would find the failed one to be the last.
#[test]
fn a_beginning_that_failed_is_made_again() {
    let text = "x".repeat(100);
    for before in 1..20 {
        let (disk, mut log) = begin();
        for _ in 0..before {
            grant(&mut log, "a", &text).unwrap();
        }
        disk.platter().power = Some(1);
        assert!(grant(&mut log, "failed", &"x".repeat(600)).is_err(), "its write succeeds, and its sync does not");
        disk.platter().power = None;
        grant(&mut log, "b", "two").unwrap();
        let bytes = disk.platter().synced.clone();
        let found = read(&bytes).unwrap_or_else(|error| panic!("{before} before: {error}"));
        assert_eq!(found.leases, [("a", text.as_str()), ("b", "two")].into(), "{before} before");
    }
}

/// Commits may fail in any step and continue. Whatever was confirmed is present, whenever the power fails.
#[test]
fn what_failed_is_made_good_by_what_follows() {
    let (mut failures, mut begun) = (0, 0);
    for seed in 1..=200 {
        let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
        let (disk, mut log) = begin();
        let (mut changes, mut told) = (Entries::default(), BTreeMap::new());
        // The texts that were tried since then, without a confirmation.
        let mut tried: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
        for round in 0..60 {
            let name = format!("item {}", random.below(6));
            let text = (random.below(3) > 0).then(|| format!("{round} {}", "x".repeat(place(random.below(200)))));
            tried.entry(name.clone()).or_default().push(text.clone());
            changes.push(&name, text.as_deref());
            let power = random.below(6);
            // The disk fails in this commit, or in none.
            disk.platter().power = (power < 2).then_some(power);
            let committed = log.commit(&changes, 1, Owed::NONE).is_ok();
            disk.platter().power = None;
            let bytes = disk.after_crash(&mut random);
            let there = read(&bytes).unwrap_or_else(|error| panic!("seed {seed}, round {round}: {error}")).leases;
            if committed {
                told.extend(changes.iter().map(|(key, text)| (key.to_owned(), text.map(str::to_owned))));
                changes.clear();
                tried.clear();
            } else {
                failures += 1;
            }
            for (name, text) in &told {
                let kept = there.get(name.as_str()).copied();
                let is_unclear = tried.get(name).is_some_and(|texts| texts.iter().any(|text| text.as_deref() == kept));
                assert!(kept == text.as_deref() || is_unclear, "seed {seed}, round {round}: {name}");
            }
        }
        begun += usize::from(disk.platter().synced.len() > place(new(7, REGION_BYTES).unwrap().1));
    }
    assert!(failures > 0 && begun > 0, "{failures} failures, {begun} larger files");
}
