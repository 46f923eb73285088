//! The log: what the file holds, and how it grows and begins anew.
//!
//! # Design
//!
//! *Why a log of our own, and no engine?* What a lease costs here is what one sync costs, so everything else counts. A
//! tree changes several pages for one commit and some twenty for a large one: `redb` took 1.6 times the least that a
//! disk can do with one client and 4.4 times with 64, and with one row of a log for each commit still more than twice.
//! An engine with a log before its trees (`fjall`) is near the least with one client, but takes what it cannot read at
//! the end of its log for a crash, silently, wherever the damage is; and no test can cut off its power. What is needed is
//! little: the leases are in memory, all of them are read at the start, and nobody else reads the file.
//!
//! *Why two regions?* The log is written into one of them until it is full. Then the other one begins with a frame that
//! has everything, while the first is left as it is: whichever moment the power fails in, one of them is whole. Nothing
//! is made or renamed for it, and a sync has nothing but data to write, because every block was there before.
//!
//! *How is damage told from a crash?* A crash can spoil the last frame and no other, for each one waits for the sync of
//! the one before. So where the log ends, nothing that was written later may be found.

use std::{collections::HashMap, io};

use super::frame::{self, Entries, HEAD_BYTES, LogFrame, Numbers};

/// Another layout of the file has another number.
const FORMAT: u32 = 3;
const MAGIC: &[u8; 8] = b"ifmatch\n";
/// The first region begins here: far enough from the header that no write into one touches the other.
const HEADER_BYTES: usize = 4_096;
/// A region at first: some five thousand leases come and go between two frames with everything.
pub(super) const REGION_BYTES: usize = 4 << 20;
/// A region is so many times what a frame with everything takes, or more, so that most of what is written is news.
const ROOM: usize = 2;
/// What part of a region is room for more. It is less than what is left of one that has just begun anew.
const SPARE_PART: usize = 4;

/// What the log is written to. Its bytes are those of the last [`Medium::replace`], changed by each write since.
pub(super) trait Medium: Send {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns when all that was written is there without power.
    fn sync(&mut self) -> io::Result<()>;

    /// Puts others in the place of all bytes: these, and zeros up to this length. A crash leaves the old or the new
    /// ones; the next sync makes it the new ones.
    fn replace(&mut self, beginning: &[u8], length: u64) -> io::Result<()>;
}

/// What was found in a file.
#[derive(Debug)]
pub(super) struct FoundLog<'a> {
    pub(super) incarnation: u64,
    /// The last word of its last frame.
    pub(super) numbers: Numbers,
    /// The texts of the leases, by their keys.
    pub(super) leases: LeaseTexts<'a>,
    end: NextFrame,
}

/// Texts by their keys.
type LeaseTexts<'a> = HashMap<&'a str, &'a str>;

/// Where the next frame goes.
#[derive(Clone, Copy, Debug)]
struct NextFrame {
    region_bytes: usize,
    region: usize,
    /// Within the region.
    position: usize,
}

/// A commit that was not made.
#[derive(Debug)]
pub(super) struct NotMade {
    pub(super) error: io::Error,
    /// Whether its words stand in the log all the same, where the next commit comes after them. Else the next one comes
    /// in their place, whatever of them is there.
    pub(super) is_in_log: bool,
}

impl From<io::Error> for NotMade {
    fn from(error: io::Error) -> Self {
        Self { error, is_in_log: false }
    }
}

/// A log that goes on.
pub(super) struct Log {
    medium: Box<dyn Medium>,
    incarnation: u64,
    /// The start of the machine that it goes on under.
    boot: u128,
    last: Numbers,
    end: NextFrame,
    /// Whether the other region may have a whole frame of a beginning that failed: only a later one there puts it right.
    is_half_begun: bool,
}

/// The beginning of a file without leases, with regions of this size, and how long the file is.
pub(super) fn new(incarnation: u64, region_bytes: usize) -> io::Result<(Vec<u8>, u64)> {
    let numbers = Numbers { sequence: 1, reserved: 0, in_use: false, boot: 0 };
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

/// Reads a whole file. The error says what is wrong with it.
pub(super) fn read(bytes: &[u8]) -> Result<FoundLog<'_>, String> {
    let (incarnation, region_bytes) = read_header(bytes)?;
    if bytes.len() as u64 != file_bytes(region_bytes) {
        return Err(format!("it has {} bytes in place of {}", bytes.len(), file_bytes(region_bytes)));
    }
    let regions = bytes.get(HEADER_BYTES..).unwrap_or_default().chunks_exact(region_bytes);
    let first_numbers = |region: &[u8]| frame::decode(region).map(|frame| frame.numbers.sequence);
    let newest = regions.clone().enumerate().max_by_key(|(_, region)| first_numbers(region));
    let (region, newest) = newest.ok_or("it has no log")?;
    let (leases, last) = replay(newest).ok_or("it has a frame that is none of this version's")?;
    let (numbers, position) = last.ok_or("neither of its logs has a beginning")?;
    if regions.clone().any(|region| has_later(region, numbers.sequence)) {
        return Err("something in the middle of its log is lost".to_owned());
    }
    Ok(FoundLog { incarnation, numbers, leases, end: NextFrame { region_bytes, region, position } })
}

fn read_header(bytes: &[u8]) -> Result<(u64, usize), String> {
    if bytes.is_empty() {
        return Err("it is empty".to_owned());
    }
    let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as one")?;
    let format = rest.first_chunk().copied().map(u32::from_le_bytes).ok_or("it is too short")?;
    if format != FORMAT {
        return Err(format!("its format is {format}, and this version knows {FORMAT}"));
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

/// The frames of a log, each following on the one before.
fn frames(region: &[u8]) -> impl Iterator<Item = LogFrame<'_>> {
    let (mut left, mut next) = (region, None);
    std::iter::from_fn(move || {
        let frame = frame::decode(left).filter(|frame| next.is_none_or(|next| frame.numbers.sequence == next))?;
        left = left.get(frame.length()..)?;
        next = frame.numbers.sequence.checked_add(1);
        Some(frame)
    })
}

/// Whether there is a frame with a greater number, anywhere.
fn has_later(region: &[u8], than: u64) -> bool {
    let mut places = (0..region.len()).step_by(HEAD_BYTES).filter_map(|at| region.get(at..));
    places.any(|bytes| frame::decode(bytes).is_some_and(|frame| frame.numbers.sequence > than))
}

/// The leases that a log tells of, what its last frame says, and where that ends. `None` where a frame cannot be read.
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
    /// Goes on with what was found, under this start of the machine.
    pub(super) fn new(medium: Box<dyn Medium>, found: &FoundLog<'_>, boot: u128) -> Self {
        let FoundLog { incarnation, numbers, end, .. } = *found;
        Self { medium, incarnation, boot, last: numbers, end, is_half_begun: false }
    }

    /// Writes what has changed, and how it stands with the file; returns when it is there without power. What failed
    /// may be there or not, until another commit is made.
    pub(super) fn commit(&mut self, changes: &Entries, reserved: u64, in_use: bool) -> Result<(), NotMade> {
        self.commit_before(0, changes, reserved, in_use)
    }

    /// The same where there is room for more after it: where that has to be made first, it is an error if it cannot.
    pub(super) fn commit_with_room(&mut self, changes: &Entries, reserved: u64, in_use: bool) -> Result<(), NotMade> {
        self.commit_before(self.end.region_bytes / SPARE_PART, changes, reserved, in_use)
    }

    fn commit_before(&mut self, spare: usize, changes: &Entries, reserved: u64, in_use: bool) -> Result<(), NotMade> {
        let numbers = Numbers { sequence: self.last.sequence + 1, reserved, in_use, boot: self.boot };
        let bytes = frame::encode(numbers, changes).map_err(io::Error::other)?;
        if self.is_half_begun || bytes.len() + spare > self.end.region_bytes - self.end.position {
            return self.begin_anew(changes, numbers, spare);
        }
        self.medium.write_at(self.end.offset(), &bytes)?;
        self.medium.sync()?;
        self.end.position += bytes.len();
        self.last = numbers;
        Ok(())
    }

    /// Begins with everything in the other region, or in larger ones. Where there is no room for these, what is there is
    /// used to its end: who holds a lease can go on, and give it back.
    fn begin_anew(&mut self, changes: &Entries, numbers: Numbers, spare: usize) -> Result<(), NotMade> {
        let mut bytes = vec![0; self.end.position];
        self.medium.read_at(NextFrame { position: 0, ..self.end }.offset(), &mut bytes)?;
        let replayed = replay(&bytes).filter(|(_, last)| *last == Some((self.last, self.end.position)));
        let (mut leases, _) = replayed.ok_or_else(|| io::Error::other("the log is damaged"))?;
        changes.iter().for_each(|(key, text)| change(&mut leases, key, text));
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
        // It is in its place, and has been synced but for its name.
        self.end = NextFrame { region_bytes, region: 0, position: frame.len() };
        (self.last, self.is_half_begun) = (numbers, false);
        self.medium.sync().map_err(|error| NotMade { error, is_in_log: true })
    }
}

impl NextFrame {
    fn offset(&self) -> u64 {
        (HEADER_BYTES + self.region * self.region_bytes + self.position) as u64
    }
}
