//! The scripts, and the interpretation of their answers.

use std::sync::LazyLock;

use redis::Script;

use crate::{
    core::{records::record::Revision, resource::ResourceKey, time::StoreTime},
    store::{
        StoreError,
        shared::{
            damaged,
            engine::{EngineAnswer, KeptText},
            epoch::ToldRevisions,
        },
    },
};

macro_rules! script {
    ($name:ident, $file:literal) => {
        pub(super) static $name: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!($file)));
    };
}

script!(READ, "scripts/read.lua");
script!(SWAP, "scripts/swap.lua");
script!(AGED, "scripts/aged.lua");
script!(FORGET, "scripts/forget.lua");
script!(PAGE, "scripts/page.lua");
script!(RAISE, "scripts/raise.lua");

/// The answer of a script: what it did, the record, the floor of its bucket, the revision counter, and the time as
/// seconds and microseconds.
pub(super) type Reply = (String, Option<Vec<u8>>, u64, u64, u64, u64);

/// The records of a page, the revision counter, and the time.
pub(super) type PageReply = (Vec<Option<Vec<u8>>>, u64, u64, u64);

/// Makes an answer of what a script has found, the revision counter, and the time.
pub(super) fn answer<T>(found: T, counter: u64, (seconds, microseconds): (u64, u64)) -> EngineAnswer<T> {
    EngineAnswer { found, now: moment(seconds, microseconds), told: Some(ToldRevisions::committed(Revision(counter))) }
}

/// Reads a stored record or, if there is none, the floor of its bucket.
pub(super) fn kept_or_floor(key: &ResourceKey, record: Option<Vec<u8>>, floor: u64) -> Result<KeptText, StoreError> {
    record.map_or(Ok(KeptText { revision: Revision(floor), text: None }), |record| kept(key, &record))
}

/// Reads a stored record. A damaged one is logged.
pub(super) fn kept(key: &ResourceKey, record: &[u8]) -> Result<KeptText, StoreError> {
    let (revision, text) = split(record).ok_or_else(|| damaged(key, &"a record in the store has no revision"))?;
    Ok(KeptText { revision, text: Some(text.to_vec()) })
}

/// Converts a time of Redis's clock.
const fn moment(seconds: u64, microseconds: u64) -> StoreTime {
    StoreTime::from_milliseconds(seconds.saturating_mul(1_000).saturating_add(microseconds / 1_000))
}

/// Splits a stored record into its revision and its JSON.
fn split(kept: &[u8]) -> Option<(Revision, &[u8])> {
    let blank = kept.iter().position(|byte| *byte == b' ')?;
    let (revision, text) = kept.split_at(blank);
    let revision = std::str::from_utf8(revision).ok()?.parse().ok()?;
    Some((Revision(revision), text.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_record_is_its_revision_and_its_text() {
        assert_eq!(split(b"12 {\"a\": 1}"), Some((Revision(12), b"{\"a\": 1}".as_slice())));
        for damaged in ["", "12", "x {}", "-1 {}"] {
            assert_eq!(split(damaged.as_bytes()), None, "{damaged:?}");
        }
    }

    #[test]
    fn microseconds_are_rounded_down() {
        assert_eq!(moment(7, 1_999), StoreTime::from_milliseconds(7_001));
    }
}
