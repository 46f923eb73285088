//! Records as text, for stores that keep them outside the process. The text is JSON, so that the engine's own tools
//! show it in readable form.
//!
//! # Design
//!
//! *Why are moments relative to a base?* The zero of a store's time may differ between processes (`etcd`), or after
//! each start (`disk`). There the base is the time of writing, and the text holds distances from it. A store whose time
//! is the same for all processes (`redis`) uses time zero as the base.
//!
//! *Why mirror the types of the record?* So that the written format never changes by accident.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::error::Category;

use crate::core::{
    digits::hexadecimal_text,
    lease::TargetName,
    records::{
        presence::Presence,
        record::{Doubt, Mark, Record, Revision, Stamp, WaitingSign},
    },
    tags::{bare_tags::BareTags, told_dates::FirstDate},
    time::StoreTime,
};

mod attempt;
mod known;
mod lease;
mod object;
mod pending_delete;
mod trees;

use attempt::WrittenAttempt;
use known::{WrittenKnown, WrittenStates, WrittenTags};
use lease::WrittenLease;
use object::ObjectWriter;
use pending_delete::WrittenPendingDelete;
use trees::WrittenTrees;

/// The format of records. A record of another format is rejected: it may hold data unknown to this version.
const FORMAT: u32 = 1;

/// The initial capacity of a text. A record with a lease or a mark is seldom longer. A longer one costs another
/// allocation.
const USUAL_BYTES: usize = 512;

/// A record that cannot be read. The text names the fault, and nothing of the record's content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record in the store cannot be read: {0}")]
pub struct DamagedRecord(String);

/// The writer of a record, and the time of writing. Stores that several processes write to keep it with the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// The name of this attempt to write, unique among all attempts of all processes.
    pub attempt: String,
    /// The time of writing, in seconds since 1970, by the clock of the writing machine. These clocks are sometimes
    /// wrong, so this decides only when a record is cleaned up.
    pub unix_seconds: u64,
}

/// Writes a record as JSON, with its moments counted from `base`.
pub fn encode(record: &Record, base: StoreTime) -> String {
    encode_labelled(record, base, None)
}

/// Like [`encode`], but adds a label.
pub fn encode_labelled(record: &Record, base: StoreTime, label: Option<Label>) -> String {
    let mut text = Vec::with_capacity(USUAL_BYTES);
    ObjectWriter::write(&mut text, |object| write_record(record, base, label, object));
    // JSON is UTF-8.
    String::from_utf8(text).unwrap_or_default()
}

fn write_record(record: &Record, base: StoreTime, label: Option<Label>, object: &mut ObjectWriter<'_>) {
    object.number("format", u64::from(FORMAT));
    object.number_or_null("version", stamp(record.version));
    object.number_or_null("touched", stamp(record.touched));
    object.number_or_null("fence", stamp(record.fence));
    object.value("known", record.known.as_ref().map(WrittenKnown::of));
    if let Some(Presence { target, is_present }) = record.presence {
        object.hexadecimal(if is_present { "present" } else { "removed" }, &target.0);
    }
    object.value("bare_tags", WrittenTags::of(&record.bare_tags));
    object.value("recent_tags", record.recent_tags.as_deref().map(WrittenStates::of_recent));
    if record.first_date != FirstDate::NONE {
        object.number("first_date", record.first_date.number());
    }
    if let Some(mark) = &record.claim {
        object.object("claim", |object| WrittenMark::write(mark, base, object));
    }
    object.objects("unclaimed", &record.unclaimed, |mark, object| WrittenMark::write(mark, base, object));
    if let Some(doubt) = record.doubt {
        object.object("doubt", |object| {
            object.signed("until_ms", since(base, doubt.until));
            object.number_or_null("version", stamp(doubt.version));
        });
    }
    object.objects("leases", record.leases.iter(), |lease, object| WrittenLease::write(lease, base, object));
    if let Some(until) = record.exclusive_awaited_until {
        object.signed("exclusive_awaited_until_ms", since(base, until));
    }
    object.value("pending_delete", record.pending_delete.as_deref().map(WrittenPendingDelete::of));
    object.objects("waiting", &record.waiting, |waiting, object| WrittenWaiting::write(waiting, base, object));
    object.value("attempt", record.attempt.as_deref().map(|attempt| WrittenAttempt::of(attempt, base)));
    if record.tree_change != Revision(0) {
        object.number("tree_change", record.tree_change.0);
    }
    object.value("trees", record.trees.as_deref().map(WrittenTrees::of));
    object.value("label", label);
}

/// Reads a record that [`encode`] wrote, with its moments counted from `base`.
pub fn decode(text: &[u8], base: StoreTime) -> Result<Record, DamagedRecord> {
    decode_labelled(text, base).map(|(record, _)| record)
}

/// Like [`decode`], but also returns the label.
pub fn decode_labelled(text: &[u8], base: StoreTime) -> Result<(Record, Option<Label>), DamagedRecord> {
    let written =
        serde_json::from_slice::<WrittenRecord>(text).map_err(|error| match serde_json::from_slice(text) {
            // The content of another format is not damage.
            Ok(OfFormat { format }) if format != FORMAT => of_format(format),
            _ => unreadable(&error),
        })?;
    if written.format != FORMAT {
        return Err(of_format(written.format));
    }
    let record = Record {
        version: read_stamp(written.version),
        touched: read_stamp(written.touched),
        fence: read_stamp(written.fence),
        known: written.known.map(WrittenKnown::read).transpose()?,
        presence: read_presence(written.present, written.removed)?,
        bare_tags: written.bare_tags.map_or(Ok(BareTags::None), WrittenTags::read)?,
        recent_tags: written.recent_tags.map(|recent| recent.read_recent().map(Box::new)).transpose()?,
        first_date: written.first_date.map_or(FirstDate::NONE, FirstDate::of_number),
        claim: written.claim.map(|mark| mark.read(base)).transpose()?,
        unclaimed: written.unclaimed.into_iter().map(|mark| mark.read(base)).collect::<Result<_, _>>()?,
        doubt: written
            .doubt
            .map(|doubt| Doubt { until: moment(base, doubt.until_ms), version: read_stamp(doubt.version) }),
        leases: written.leases.into_iter().map(|lease| lease.read(base)).collect::<Result<_, _>>()?,
        exclusive_awaited_until: written.exclusive_awaited_until_ms.map(|until| moment(base, until)),
        pending_delete: written.pending_delete.map(|delete| delete.read().map(Box::new)).transpose()?,
        waiting: written.waiting.into_iter().map(|waiting| waiting.read(base)).collect::<Result<_, _>>()?,
        attempt: written.attempt.map(|attempt| attempt.read(base).map(Box::new)).transpose()?,
        tree_change: Revision(written.tree_change),
        trees: written.trees.map(|trees| Box::new(trees.read())),
    };
    Ok((record, written.label))
}

/// The field that all formats share.
#[derive(Deserialize)]
struct OfFormat {
    format: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRecord {
    format: u32,
    /// The version, or `null` for the revision that the engine gives to this record.
    version: Option<u64>,
    touched: Option<u64>,
    fence: Option<u64>,
    #[serde(default)]
    known: Option<WrittenKnown>,
    /// The target to which the last write has given content, if it is known.
    #[serde(default)]
    present: Option<String>,
    /// The target that the last write has removed.
    #[serde(default)]
    removed: Option<String>,
    /// The bare tags. If absent, no tag is bare.
    #[serde(default)]
    bare_tags: Option<WrittenTags>,
    #[serde(default)]
    recent_tags: Option<WrittenStates>,
    /// The first date that counts, in Unix seconds. If absent, no date does.
    #[serde(default)]
    first_date: Option<u64>,
    #[serde(default)]
    claim: Option<WrittenMark>,
    #[serde(default)]
    unclaimed: Vec<WrittenMark>,
    #[serde(default)]
    doubt: Option<WrittenDoubt>,
    #[serde(default)]
    leases: Vec<WrittenLease>,
    #[serde(default)]
    exclusive_awaited_until_ms: Option<i64>,
    #[serde(default)]
    pending_delete: Option<WrittenPendingDelete>,
    #[serde(default)]
    waiting: Vec<WrittenWaiting>,
    #[serde(default)]
    attempt: Option<WrittenAttempt>,
    #[serde(default)]
    tree_change: u64,
    #[serde(default)]
    trees: Option<WrittenTrees>,
    #[serde(default)]
    label: Option<Label>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMark {
    owner: String,
    nonce: u64,
    deadline_ms: i64,
    late_write_window_ms: u64,
    leaves_lease: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWaiting {
    owner: String,
    until_ms: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDoubt {
    until_ms: i64,
    version: Option<u64>,
}

impl WrittenMark {
    fn write(mark: &Mark, base: StoreTime, object: &mut ObjectWriter<'_>) {
        object.hexadecimal("owner", &mark.owner.to_be_bytes());
        object.number("nonce", mark.nonce);
        object.signed("deadline_ms", since(base, mark.deadline));
        object.number("late_write_window_ms", milliseconds(mark.late_write_window));
        object.flag("leaves_lease", mark.leaves_lease);
    }

    fn read(self, base: StoreTime) -> Result<Mark, DamagedRecord> {
        Ok(Mark {
            owner: read_owner(&self.owner)?,
            nonce: self.nonce,
            deadline: moment(base, self.deadline_ms),
            late_write_window: Duration::from_millis(self.late_write_window_ms),
            leaves_lease: self.leaves_lease,
        })
    }
}

impl WrittenWaiting {
    fn write(waiting: &WaitingSign, base: StoreTime, object: &mut ObjectWriter<'_>) {
        object.hexadecimal("owner", &waiting.owner.to_be_bytes());
        object.signed("until_ms", since(base, waiting.until));
    }

    fn read(self, base: StoreTime) -> Result<WaitingSign, DamagedRecord> {
        Ok(WaitingSign { owner: read_owner(&self.owner)?, until: moment(base, self.until_ms) })
    }
}

fn read_presence(present: Option<String>, removed: Option<String>) -> Result<Option<Presence>, DamagedRecord> {
    let target = |written: String| name(&written).map(TargetName);
    let present = present.map(target).transpose()?.map(Presence::present);
    Ok(removed.map(target).transpose()?.map(Presence::removed).or(present))
}

fn read_owner(written: &str) -> Result<u64, DamagedRecord> {
    u64::from_str_radix(written, 16).map_err(|_error| damaged("the owner of a mark"))
}

fn stamp(stamp: Stamp) -> Option<u64> {
    match stamp {
        Stamp::Itself => None,
        Stamp::At(Revision(revision)) => Some(revision),
    }
}

fn read_stamp(written: Option<u64>) -> Stamp {
    written.map_or(Stamp::Itself, |revision| Stamp::At(Revision(revision)))
}

fn since(base: StoreTime, moment: StoreTime) -> i64 {
    let difference = i128::from(moment.milliseconds()) - i128::from(base.milliseconds());
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

fn moment(base: StoreTime, since: i64) -> StoreTime {
    StoreTime::from_milliseconds(base.milliseconds().saturating_add_signed(since))
}

/// Converts a duration to milliseconds, rounded up: an end may come late, but never early.
pub(super) fn milliseconds(duration: Duration) -> u64 {
    StoreTime::default().plus(duration).milliseconds()
}

/// Writes a name as 32 hexadecimal digits.
fn hex(name: [u8; 16]) -> String {
    hexadecimal_text(&name)
}

fn name(hex: &str) -> Result<[u8; 16], DamagedRecord> {
    u128::from_str_radix(hex, 16).map(u128::to_be_bytes).map_err(|_error| damaged("a name in it"))
}

/// Maps each byte to the character with the same number, because the bytes of a tag are not always UTF-8.
fn latin(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

fn bytes(latin: &str) -> Vec<u8> {
    latin.chars().filter_map(|character| u8::try_from(character).ok()).collect()
}

/// Describes a serde error without its message, which may quote a lease id.
fn unreadable(error: &serde_json::Error) -> DamagedRecord {
    let what = match error.classify() {
        Category::Eof => "it is cut off",
        Category::Data => "it is JSON, but not a record,",
        Category::Syntax | Category::Io => "it is not JSON",
    };
    DamagedRecord(format!("{what} at line {}, column {}", error.line(), error.column()))
}

fn of_format(format: u32) -> DamagedRecord {
    DamagedRecord(format!("its format is {format}, but this version supports only {FORMAT}"))
}

fn damaged(what: &str) -> DamagedRecord {
    DamagedRecord(format!("{what} is damaged"))
}

#[cfg(test)]
#[path = "encoding_tests.rs"]
mod tests;
