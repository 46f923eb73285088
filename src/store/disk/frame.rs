//! A frame: the data of one commit, which is valid as a whole or not at all.
//!
//! | bytes | meaning |
//! |---|---|
//! | 0 to 3 | CRC-32 of all that follows |
//! | 4 to 7 | the number of bytes of entries |
//! | 8 to 15 | the sequence number: one more than that of the previous frame |
//! | 16 to 23 | the greatest revision that may have been given |
//! | 24 to 31 | what the process owes if it dies now, in milliseconds |
//! | 32 to 47 | the boot of the machine that the frame was written under; 0 if unknown |
//! | 48 to 55 | what the process owes if the machine restarts now, in milliseconds |
//! | 56 to 63 | 0 |
//! | 64 to the end | entries: the lengths of a key and of a text, as two numbers; the key; the text |
//! | after the end | 0, up to a multiple of 64 bytes, so that another frame can be found without this one |
//!
//! Numbers are little-endian. A text is the record with the lease of that resource. If the resource has no lease, there
//! is no text, and its length is [`NONE`].

use std::time::Duration;

use crate::{core::records::owed::Owed, store::encoding::milliseconds};

/// The offset of the entries. The length of a frame is a multiple of it.
pub(super) const HEAD_BYTES: usize = 64;

/// The length that stands for an absent text.
const NONE: u32 = u32::MAX;

/// The numbers in the head of each frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) sequence: u64,
    pub(super) reserved: u64,
    /// How long the next process must hold writes and grants back, if this is the last frame.
    pub(super) owed: Owed,
    pub(super) boot: u128,
}

/// A valid frame that was found in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogFrame<'a> {
    pub(super) numbers: Numbers,
    entries: &'a [u8],
}

/// Entries in sequence, in the encoding of a frame. Of two with the same key, the later one counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries(Vec<u8>);

impl Entries {
    /// Creates an empty list with room for this many bytes.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// The length of all entries, in bytes.
    pub(super) fn length(&self) -> usize {
        self.0.len()
    }

    /// Adds the text of a key, or notes that it has none. More than 4 GiB fail when the frame is encoded.
    pub(super) fn push(&mut self, key: &str, text: Option<&str>) {
        self.0.extend(length(key).to_le_bytes());
        self.0.extend(text.map_or(NONE, length).to_le_bytes());
        self.0.extend(key.as_bytes());
        self.0.extend(text.unwrap_or_default().as_bytes());
    }

    /// Appends later entries.
    pub(super) fn append(&mut self, later: &Self) {
        self.0.extend(&later.0);
    }

    /// Removes all entries.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns all entries in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        read(&self.0).unwrap_or_default().into_iter()
    }
}

/// Encodes a frame with these entries.
pub(super) fn encode(numbers: Numbers, entries: &Entries) -> Result<Vec<u8>, TooLong> {
    let mut bytes = Vec::with_capacity((HEAD_BYTES + entries.0.len()).next_multiple_of(HEAD_BYTES));
    bytes.resize(HEAD_BYTES, 0);
    bytes.extend(&entries.0);
    let entries = u32::try_from(entries.0.len()).ok().filter(|length| *length < NONE).ok_or(TooLong)?;
    let mut head = [0; HEAD_BYTES];
    put(&mut head, 4, &entries.to_le_bytes());
    put(&mut head, 8, &numbers.sequence.to_le_bytes());
    put(&mut head, 16, &numbers.reserved.to_le_bytes());
    put(&mut head, 24, &milliseconds(numbers.owed.after_death).to_le_bytes());
    put(&mut head, 32, &numbers.boot.to_le_bytes());
    put(&mut head, 48, &milliseconds(numbers.owed.after_power_loss).to_le_bytes());
    put(&mut bytes, 0, &head);
    let sum = crc32fast::hash(bytes.get(4..).unwrap_or_default());
    put(&mut bytes, 0, &sum.to_le_bytes());
    bytes.resize(bytes.len().next_multiple_of(HEAD_BYTES), 0);
    Ok(bytes)
}

/// The error for more than 4 GiB in one frame.
#[derive(Debug, thiserror::Error)]
#[error("too much for one commit")]
pub(super) struct TooLong;

/// Returns the length of a text. One that is too long is detected when the frame is encoded, because all entries
/// together are longer still.
fn length(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(NONE)
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + what.len()) {
        place.copy_from_slice(what);
    }
}

/// Decodes the frame at the start of these bytes, if there is a valid one.
pub(super) fn decode(bytes: &[u8]) -> Option<LogFrame<'_>> {
    let numbers = Numbers {
        sequence: u64::from_le_bytes(*bytes.get(8..)?.first_chunk()?),
        reserved: u64::from_le_bytes(*bytes.get(16..)?.first_chunk()?),
        boot: u128::from_le_bytes(*bytes.get(32..)?.first_chunk()?),
        owed: Owed {
            after_death: Duration::from_millis(u64::from_le_bytes(*bytes.get(24..)?.first_chunk()?)),
            after_power_loss: Duration::from_millis(u64::from_le_bytes(*bytes.get(48..)?.first_chunk()?)),
        },
    };
    if bytes.get(56..HEAD_BYTES)?.iter().any(|byte| *byte != 0) {
        return None;
    }
    let length = usize::try_from(number(bytes.get(4..)?)?).ok()?;
    let entries = bytes.get(HEAD_BYTES..HEAD_BYTES.checked_add(length)?)?;
    let sum = crc32fast::hash(bytes.get(4..HEAD_BYTES + length)?);
    (number(bytes)? == sum).then_some(LogFrame { numbers, entries })
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().copied().map(u32::from_le_bytes)
}

impl<'a> LogFrame<'a> {
    /// The distance to the next frame, in bytes.
    pub(super) fn length(&self) -> usize {
        (HEAD_BYTES + self.entries.len()).next_multiple_of(HEAD_BYTES)
    }

    /// Returns the entries in their order, or `None` if [`encode`] did not write them.
    pub(super) fn entries(&self) -> Option<Vec<(&'a str, Option<&'a str>)>> {
        read(self.entries)
    }
}

fn read(mut left: &[u8]) -> Option<Vec<(&str, Option<&str>)>> {
    let mut entries = Vec::new();
    while !left.is_empty() {
        let (key_bytes, text_bytes) = (number(left)?, number(left.get(4..)?)?);
        let key;
        (key, left) = left.get(8..)?.split_at_checked(usize::try_from(key_bytes).ok()?)?;
        let text = if text_bytes == NONE {
            None
        } else {
            let text;
            (text, left) = left.split_at_checked(usize::try_from(text_bytes).ok()?)?;
            Some(std::str::from_utf8(text).ok()?)
        };
        entries.push((std::str::from_utf8(key).ok()?, text));
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: Numbers = Numbers { sequence: 7, reserved: 1 << 40, owed: OWED, boot: 1 << 100 };
    const OWED: Owed = Owed::by_writes(Duration::from_secs(3_600), Duration::from_millis(1_500));
    const ENTRIES: [(&str, Option<&str>); 4] = [("a", Some("one")), ("b", None), ("", Some("")), ("ü", Some("zwei"))];

    fn frame() -> Vec<u8> {
        let mut entries = Entries::default();
        for (key, text) in ENTRIES {
            entries.push(key, text);
        }
        encode(NUMBERS, &entries).expect("it is short")
    }

    #[test]
    fn what_was_written_is_read() {
        let mut bytes = frame();
        let length = bytes.len();
        bytes.extend([1; 100]);
        let read = decode(&bytes).expect("it is whole");
        assert_eq!((read.numbers, read.length()), (NUMBERS, length));
        assert_eq!(read.entries().expect("valid entries"), ENTRIES);
    }

    #[test]
    fn a_frame_is_whole_or_none() {
        let mut whole = frame();
        whole.truncate(HEAD_BYTES + decode(&whole).expect("it is whole").entries.len());
        for length in 0..whole.len() {
            assert_eq!(decode(&whole[..length]), None, "{length} bytes of it");
        }
        for place in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[place] ^= 1 << bit;
                assert_eq!(decode(&bytes), None, "bit {bit} of byte {place}");
            }
        }
        assert_eq!(decode(&[0; 4_096]), None, "nothing was ever written there");
    }

    #[test]
    fn entries_that_nobody_has_written_are_told_from_others() {
        for entries in [&[1, 0, 0][..], &[9, 0, 0, 0, 0, 0, 0, 0, b'a'], &[1, 0, 0, 0, 0, 0, 0, 0, 0xff]] {
            assert_eq!(LogFrame { numbers: NUMBERS, entries }.entries(), None, "{entries:?}");
        }
    }
}
