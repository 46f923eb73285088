//! The rows that the statements return.

use tokio_postgres::Row;

use crate::core::{records::record::Revision, resource::ResourceKey, time::StoreTime};

/// The time of an answer, and the last number of the sequence at that time.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: StoreTime,
    pub(super) last: Revision,
}

/// The result of a read.
pub(super) struct FoundRow<'a> {
    /// The revision and the text of the record.
    pub(super) record: Option<(Revision, &'a str)>,
    /// The revision of an absent record.
    pub(super) floor: Revision,
    pub(super) at: Moment,
}

/// The outcome of a swap.
pub(super) struct SwapOutcome {
    /// The revision of the record, if it was put.
    pub(super) revision: Option<Revision>,
    /// Whether the record was absent before.
    pub(super) is_new: bool,
    /// Whether the record was absent, and had the expected revision.
    pub(super) was_absent: bool,
    /// The revision of what is there instead, if the statement could tell.
    pub(super) other: Option<Revision>,
    /// The text of the record that is there instead, unless it is absent.
    pub(super) other_text: Option<String>,
    pub(super) at: Moment,
    /// Whether an earlier attempt got no answer. It may have been carried out before this one or after it.
    pub(super) is_repeated: bool,
}

/// A record of a page.
pub(super) struct PageRow<'a> {
    pub(super) key: ResourceKey,
    pub(super) revision: Revision,
    pub(super) text: &'a str,
    pub(super) at: Moment,
}

impl<'a> FoundRow<'a> {
    pub(super) fn read(row: &'a Row) -> Option<Self> {
        let (found, text) = (row.try_get::<_, Option<i64>>(0).ok()?, row.try_get::<_, Option<&str>>(1).ok()?);
        Some(Self { record: found.map(revision).zip(text), floor: revision(row.try_get(2).ok()?), at: moment(row, 3)? })
    }
}

impl SwapOutcome {
    pub(super) fn read(row: &Row, is_repeated: bool) -> Option<Self> {
        Some(Self {
            revision: row.try_get::<_, Option<i64>>(0).ok()?.map(revision),
            is_new: row.try_get(1).ok()?,
            was_absent: row.try_get(2).ok()?,
            other: row.try_get::<_, Option<i64>>(6).ok()?.map(revision),
            other_text: row.try_get(7).ok()?,
            at: moment(row, 3)?,
            is_repeated,
        })
    }
}

impl<'a> PageRow<'a> {
    pub(super) fn read(row: &'a Row) -> Option<Self> {
        let key = ResourceKey::from_text(row.try_get(1).ok()?);
        Some(Self { key, revision: revision(row.try_get(2).ok()?), text: row.try_get(3).ok()?, at: moment(row, 4)? })
    }
}

/// Reads the time and the last number of the sequence from this column and the next one.
pub(super) fn moment(row: &Row, column: usize) -> Option<Moment> {
    let now = u64::try_from(row.try_get::<_, i64>(column).ok()?).ok()?;
    Some(Moment { now: StoreTime::from_milliseconds(now), last: revision(row.try_get(column + 1).ok()?) })
}

/// Converts a number of the sequence.
fn revision(number: i64) -> Revision {
    Revision(u64::try_from(number).unwrap_or_default())
}

/// Converts a number for PostgreSQL. None exceeds the greatest `i64`: a revision comes from there, and a time is in
/// milliseconds.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
