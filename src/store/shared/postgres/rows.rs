//! The rows that the statements return. The files in `sql` say what each column is.

use tokio_postgres::{Row, types::FromSql};

use crate::{
    core::{records::record::Revision, resource::ResourceKey, time::StoreTime},
    store::{
        StoreError,
        shared::{
            engine::{EngineAnswer, KeptText, Swap, SwapOutcome, TextPage},
            epoch::ToldRevisions,
        },
    },
};

/// Reads a row of `clock.sql`.
pub(super) fn clock(row: &Row) -> Result<EngineAnswer<()>, StoreError> {
    answer((), Revision::default(), row, 0)
}

/// Reads a row of `read.sql`.
pub(super) fn kept(row: &Row) -> Result<EngineAnswer<KeptText>, StoreError> {
    let record = column::<Option<i64>>(row, 0)?.map_or_else(|| column(row, 2), Ok)?;
    let kept = KeptText { revision: revision(record), text: text(row, 1)? };
    let seen = kept.revision;
    answer(kept, seen, row, 3)
}

/// Reads a row of `swap.sql` or `update.sql`: the outcome of this swap.
pub(super) fn swapped(row: &Row, swap: &Swap, is_repeated: bool) -> Result<EngineAnswer<SwapOutcome>, StoreError> {
    let made = column::<Option<i64>>(row, 0)?.map(revision);
    let was_absent: bool = column(row, 2)?;
    let outcome = match made {
        Some(revision) => SwapOutcome::Made { revision, is_new: column(row, 1)? },
        None if was_absent && !swap.may_create => SwapOutcome::NoRoom,
        None => {
            let (other, text) = (column::<Option<i64>>(row, 6)?, text(row, 7)?);
            SwapOutcome::Other { kept: other.map(|other| KeptText { revision: revision(other), text }), is_repeated }
        }
    };
    answer(outcome, made.unwrap_or_default(), row, 3)
}

/// Reads the rows of `page.sql`.
pub(super) fn page(rows: &[Row], limit: usize) -> Result<EngineAnswer<TextPage>, StoreError> {
    let record = |row| Ok((key(row)?, KeptText { revision: revision(column(row, 1)?), text: text(row, 2)? }));
    let records = rows.iter().map(record).collect::<Result<Vec<_>, StoreError>>()?;
    let seen = records.iter().map(|(_, kept)| kept.revision).max().unwrap_or_default();
    let last = records.last().filter(|_| rows.len() == limit).map(|(key, _)| key.clone());
    let page = TextPage { records, last };
    match rows.first() {
        Some(first) => answer(page, seen, first, 3),
        None => Ok(EngineAnswer { found: page, now: StoreTime::default(), told: None }),
    }
}

/// Reads the key of a resource, which comes first in its row.
pub(super) fn key(row: &Row) -> Result<ResourceKey, StoreError> {
    column(row, 0).map(ResourceKey::from_text)
}

/// Reads the text of a record, which may be absent.
fn text(row: &Row, number: usize) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(column::<Option<&str>>(row, number)?.map(Into::into))
}

/// Adds the time, and the last number of the sequence, from this column and the next one. A number that nobody has
/// `seen` may belong to a change that is not committed yet.
fn answer<T>(found: T, seen: Revision, row: &Row, number: usize) -> Result<EngineAnswer<T>, StoreError> {
    let now = u64::try_from(column::<i64>(row, number)?).unwrap_or_default();
    let told = Some(ToldRevisions { current: revision(column(row, number + 1)?), seen });
    Ok(EngineAnswer { found, now: StoreTime::from_milliseconds(now), told })
}

/// Reads a column. It fails if another program has made the table.
pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, number: usize) -> Result<T, StoreError> {
    row.try_get(number).map_err(|_foreign| StoreError::Unavailable)
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
