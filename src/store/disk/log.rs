//! The log: its layout in the file, and how it grows and starts over.
//!
//! # Design
//!
//! *Why a log instead of an engine?* A lease costs here what one sync costs, so every other cost counts. A tree changes
//! several pages for one commit, and about twenty for a large one. `redb` took 1.6 times the disk's minimum with one
//! client, and 4.4 times with 64. With one log row per commit it still took more than twice the minimum. An engine with
//! a log in front of its trees (`fjall`) is near the minimum with one client. However, it silently treats any damage at
//! the end of its log as a crash. No test can cut its power. The needs are small: the leases are in memory, all of them
//! are read at the start, and no other program reads the file.
//!
//! *Why two regions?* The log is written into one region until that is full. Then the other one begins with a frame
//! that has everything, while the first stays unchanged. So one of them is valid whenever the power fails. No file is
//! created or renamed for this. A sync writes only data, because every block already exists.
//!
//! *How is damage distinguished from a crash?* A crash can spoil only the last frame, because each frame waits for the
//! sync of the previous one. So nothing that was written later may be found beyond the end of the log. Damage that
//! spoils all frames from some point to the end looks like a crash, and those leases are lost.

use std::{collections::HashMap, io};

use super::frame::{self, Entries, HEAD_BYTES, LogFrame, Numbers};
use crate::core::records::owed::Owed;

/// The number of this file layout. Each layout has a different one.
const FORMAT: u32 = 1;
const MAGIC: &[u8; 8] = b"ifmatch\n";
/// The offset of the first region. It is large enough that no write into the region touches the header.
const HEADER_BYTES: usize = 4_096;
/// The initial size of a region. About five thousand leases come and go between two frames with everything.
pub(super) const REGION_BYTES: usize = 4 << 20;
/// The least ratio of a region to a frame with everything. It ensures that most of what is written is new.
const ROOM: usize = 2;
/// The share of a region, as a divisor, that is spare room. It is less than the free part of a region that was just
/// started.
const SPARE_PART: usize = 4;
/// The part of a region that only changes to leases which are there already may use, if the disk has no room for larger
/// regions: one sixteenth.
const RENEWALS_PART: usize = 16;

/// The medium of the log. Its bytes are those of the last [`Medium::replace`], changed by each write since.
pub(super) trait Medium: Send {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Waits until all written data would survive a loss of power.
    fn sync(&mut self) -> io::Result<()>;

    /// Replaces all bytes by these, and zeros up to this length. A crash leaves either the old or the new bytes. After
    /// the next sync it leaves the new ones.
    fn replace(&mut self, beginning: &[u8], length: u64) -> io::Result<()>;
}

/// The log found in a file.
#[derive(Debug)]
pub(super) struct FoundLog<'a> {
    pub(super) incarnation: u64,
    /// The numbers of the last frame.
    pub(super) numbers: Numbers,
    /// The texts of the leases, by key.
    pub(super) leases: LeaseTexts<'a>,
    end: NextFrame,
}

/// Texts by key.
type LeaseTexts<'a> = HashMap<&'a str, &'a str>;

/// The place of the next frame.
#[derive(Clone, Copy, Debug)]
struct NextFrame {
    region_bytes: usize,
    region: usize,
    /// The offset within the region.
    position: usize,
}

/// The error of a commit that was not made.
#[derive(Debug)]
pub(super) struct NotMade {
    pub(super) error: io::Error,
    /// True if the log holds the words of the commit all the same, so that the next commit follows them. Otherwise the
    /// next commit overwrites the part of them that was written.
    pub(super) is_in_log: bool,
}

impl From<io::Error> for NotMade {
    fn from(error: io::Error) -> Self {
        Self { error, is_in_log: false }
    }
}

/// A log that accepts commits.
pub(super) struct Log {
    medium: Box<dyn Medium>,
    incarnation: u64,
    /// The boot of the machine that the log continues under.
    boot: u128,
    last: Numbers,
    end: NextFrame,
    /// True if the other region may hold a valid frame from a failed start. Only a later frame there corrects that.
    is_half_begun: bool,
}

/// Returns the first bytes of a file without leases, with regions of this size, and the length of the file.
pub(super) fn new(incarnation: u64, region_bytes: usize) -> io::Result<(Vec<u8>, u64)> {
    let numbers = Numbers { sequence: 1, reserved: 0, owed: Owed::NONE, boot: 0 };
    let mut bytes = header(incarnation, region_bytes);
    bytes.extend(frame::encode(numbers, &Entries::default()).map_err(io::Error::other)?);
    Ok((bytes, file_bytes(region_bytes)))
}

fn header(incarnation: u64, region_bytes: usize) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(FORMAT.to_le_bytes());
    bytes.extend(incarnation.to_le_bytes());
    bytes.extend((region_bytes as u64).to_le_bytes());
    let sum = crc32fast::hash(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes.resize(HEADER_BYTES, 0);
    bytes
}

fn file_bytes(region_bytes: usize) -> u64 {
    region_bytes.saturating_mul(2).saturating_add(HEADER_BYTES) as u64
}

/// Reads a whole file. The error describes its fault.
pub(super) fn read(bytes: &[u8]) -> Result<FoundLog<'_>, String> {
    let (incarnation, region_bytes) = read_header(bytes)?;
    if bytes.len() as u64 != file_bytes(region_bytes) {
        return Err(format!("it has {} bytes instead of {}", bytes.len(), file_bytes(region_bytes)));
    }
    let regions = bytes.get(HEADER_BYTES..).unwrap_or_default().chunks_exact(region_bytes);
    let first_numbers = |region: &[u8]| frame::decode(region).map(|frame| frame.numbers.sequence);
    let newest = regions.clone().enumerate().max_by_key(|(_, region)| first_numbers(region));
    let (region, newest) = newest.ok_or("it has no log")?;
    let (leases, last) = replay(newest).ok_or("it has a frame that this version cannot read")?;
    let (numbers, position) = last.ok_or("neither of its logs has a beginning")?;
    if regions.clone().any(|region| has_later(region, numbers.sequence)) {
        return Err("a part in the middle of its log is lost".to_owned());
    }
    Ok(FoundLog { incarnation, numbers, leases, end: NextFrame { region_bytes, region, position } })
}

fn read_header(bytes: &[u8]) -> Result<(u64, usize), String> {
    if bytes.is_empty() {
        return Err("it is empty".to_owned());
    }
    let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin like one")?;
    let format = rest.first_chunk().copied().map(u32::from_le_bytes).ok_or("it is too short")?;
    if format != FORMAT {
        return Err(format!("its format is {format}, but this version supports only {FORMAT}"));
    }
    let number = |at: usize| rest.get(at..)?.first_chunk().copied().map(u64::from_le_bytes);
    let incarnation = number(4).ok_or("it is too short")?;
    let region_bytes = number(12).and_then(|length| usize::try_from(length).ok()).ok_or("it is too short")?;
    if bytes.get(..HEADER_BYTES) == Some(&header(incarnation, region_bytes)) && region_bytes > 0 {
        Ok((incarnation, region_bytes))
    } else {
        Err("its first bytes are damaged".to_owned())
    }
}

/// Returns the frames of a log, in consecutive sequence.
fn frames(region: &[u8]) -> impl Iterator<Item = LogFrame<'_>> {
    let (mut left, mut next) = (region, None);
    std::iter::from_fn(move || {
        let frame = frame::decode(left).filter(|frame| next.is_none_or(|next| frame.numbers.sequence == next))?;
        left = left.get(frame.length()..)?;
        next = frame.numbers.sequence.checked_add(1);
        Some(frame)
    })
}

/// True if a region holds a frame with a greater sequence number, at any offset.
fn has_later(region: &[u8], than: u64) -> bool {
    let mut places = (0..region.len()).step_by(HEAD_BYTES).filter_map(|at| region.get(at..));
    places.any(|bytes| frame::decode(bytes).is_some_and(|frame| frame.numbers.sequence > than))
}

/// Returns the leases in a log, the numbers of its last frame, and the end of that frame. `None` if a frame cannot be
/// read.
fn replay(region: &[u8]) -> Option<(LeaseTexts<'_>, Option<(Numbers, usize)>)> {
    let (mut leases, mut position, mut last) = (LeaseTexts::new(), 0, None);
    for frame in frames(region) {
        for (key, text) in frame.entries()? {
            change(&mut leases, key, text);
        }
        position += frame.length();
        last = Some((frame.numbers, position));
    }
    Some((leases, last))
}

fn change<'a>(leases: &mut LeaseTexts<'a>, key: &'a str, text: Option<&'a str>) {
    match text {
        Some(text) => leases.insert(key, text),
        None => leases.remove(key),
    };
}

impl Log {
    /// Continues the log that was found, under this boot of the machine.
    pub(super) fn new(medium: Box<dyn Medium>, found: &FoundLog<'_>, boot: u128) -> Self {
        let FoundLog { incarnation, numbers, end, .. } = *found;
        Self { medium, incarnation, boot, last: numbers, end, is_half_begun: false }
    }

    /// Writes the changes and what the process owes, and waits until they would survive a loss of power. A failed
    /// commit may be in the file or not, until another commit is made.
    pub(super) fn commit(&mut self, changes: &Entries, reserved: u64, owed: Owed) -> Result<(), NotMade> {
        self.commit_before(0, changes, reserved, owed)
    }

    /// Like [`Self::commit`], but leaves room for more after the commit. Fails if that room must be made and cannot be.
    pub(super) fn commit_with_room(&mut self, changes: &Entries, reserved: u64, owed: Owed) -> Result<(), NotMade> {
        self.commit_before(self.end.region_bytes / SPARE_PART, changes, reserved, owed)
    }

    fn commit_before(&mut self, spare: usize, changes: &Entries, reserved: u64, owed: Owed) -> Result<(), NotMade> {
        let numbers = Numbers { sequence: self.last.sequence + 1, reserved, owed, boot: self.boot };
        let bytes = frame::encode(numbers, changes).map_err(io::Error::other)?;
        let kept = spare.max(self.end.room_for_renewals());
        if self.is_half_begun || bytes.len() + kept > self.end.region_bytes - self.end.position {
            return self.begin_anew(changes, numbers, spare);
        }
        self.medium.write_at(self.end.offset(), &bytes)?;
        self.medium.sync()?;
        self.end.position += bytes.len();
        self.last = numbers;
        Ok(())
    }

    /// Starts over with everything in the other region, or in larger regions. If the disk has no room for larger ones,
    /// the present ones are used to their end. So the holder of a lease can still renew it and release it.
    fn begin_anew(&mut self, changes: &Entries, numbers: Numbers, spare: usize) -> Result<(), NotMade> {
        let mut bytes = vec![0; self.end.position];
        self.medium.read_at(NextFrame { position: 0, ..self.end }.offset(), &mut bytes)?;
        let replayed = replay(&bytes).filter(|(_, last)| *last == Some((self.last, self.end.position)));
        let (mut leases, _) = replayed.ok_or_else(|| io::Error::other("the log is damaged"))?;
        let before = leases.len();
        changes.iter().for_each(|(key, text)| change(&mut leases, key, text));
        // A renewed lease can be longer than before by some digits, so further leases leave room for that.
        let spare = if leases.len() > before { spare.max(self.end.room_for_renewals()) } else { spare };
        let mut everything = Entries::default();
        for (key, text) in leases {
            everything.push(key, Some(text));
        }
        let bytes = frame::encode(numbers, &everything).map_err(io::Error::other)?;
        let room = bytes.len().saturating_mul(ROOM);
        if room > self.end.region_bytes {
            match self.grow(&bytes, room.next_power_of_two(), numbers) {
                Err(failed) if !failed.is_in_log && bytes.len() + spare <= self.end.region_bytes => {}
                grown => return grown,
            }
        }
        let other = NextFrame { region: 1 - self.end.region, position: 0, ..self.end };
        self.is_half_begun = true;
        self.medium.write_at(other.offset(), &bytes)?;
        self.medium.sync()?;
        self.end = NextFrame { position: bytes.len(), ..other };
        (self.last, self.is_half_begun) = (numbers, false);
        Ok(())
    }

    fn grow(&mut self, frame: &[u8], region_bytes: usize, numbers: Numbers) -> Result<(), NotMade> {
        let mut bytes = header(self.incarnation, region_bytes);
        bytes.extend(frame);
        self.medium.replace(&bytes, file_bytes(region_bytes))?;
        // The file is in its place, and everything but its name has been synced.
        self.end = NextFrame { region_bytes, region: 0, position: frame.len() };
        (self.last, self.is_half_begun) = (numbers, false);
        self.medium.sync().map_err(|error| NotMade { error, is_in_log: true })
    }
}

impl NextFrame {
    /// The bytes that further leases leave to those that are there already.
    fn room_for_renewals(&self) -> usize {
        self.region_bytes / RENEWALS_PART
    }

    fn offset(&self) -> u64 {
        (HEADER_BYTES + self.region * self.region_bytes + self.position) as u64
    }
}
