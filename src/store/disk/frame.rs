//! A frame: what one commit has written, whole or not at all.
//!
//! | bytes | what |
//! |---|---|
//! | 0 to 3 | CRC-32 of all that follows |
//! | 4 to 7 | how many bytes of entries there are |
//! | 8 to 15 | its number: one more than that of the frame before |
//! | 16 to 23 | no greater revision was ever given |
//! | 24 | 1 while a process uses the file |
//! | 25 to 31 | 0 |
//! | 32 to 47 | the start of the machine that it was written under; 0 where that is not known |
//! | 48 to 63 | 0 |
//! | 64 to the end | entries: the bytes of a key and of a text, as two numbers; the key; and the text |
//! | after it | 0, up to a multiple of 64 bytes: so another frame can be found without this one |
//!
//! Numbers are little-endian. A text is the record with the lease of that resource; none at all says that it has none,
//! and its length is told as [`NONE`].

/// Where the entries begin, and what the length of a frame is a multiple of.
pub(super) const HEAD_BYTES: usize = 64;

/// The length of a text that is not there.
const NONE: u32 = u32::MAX;

/// What each frame says beside its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) sequence: u64,
    pub(super) reserved: u64,
    pub(super) in_use: bool,
    pub(super) boot: u128,
}

/// A whole frame, as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogFrame<'a> {
    pub(super) numbers: Numbers,
    entries: &'a [u8],
}

/// Entries one after the other, as they stand in a frame: the later one of two with the same key counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries(Vec<u8>);

impl Entries {
    /// None yet, and room for so many bytes of them.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// All of them, in bytes.
    pub(super) fn length(&self) -> usize {
        self.0.len()
    }

    /// Adds the text of a key, or that it has none. What is longer than 4 GiB is an error when it is written.
    pub(super) fn push(&mut self, key: &str, text: Option<&str>) {
        self.0.extend(length(key).to_le_bytes());
        self.0.extend(text.map_or(NONE, length).to_le_bytes());
        self.0.extend(key.as_bytes());
        self.0.extend(text.unwrap_or_default().as_bytes());
    }

    /// Adds them all, after these.
    pub(super) fn append(&mut self, later: &Self) {
        self.0.extend(&later.0);
    }

    /// Takes all of them out.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// All of them, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        read(&self.0).unwrap_or_default().into_iter()
    }
}

/// The bytes of a frame with these entries.
pub(super) fn encode(numbers: Numbers, entries: &Entries) -> Result<Vec<u8>, TooLong> {
    let mut bytes = Vec::with_capacity((HEAD_BYTES + entries.0.len()).next_multiple_of(HEAD_BYTES));
    bytes.resize(HEAD_BYTES, 0);
    bytes.extend(&entries.0);
    let entries = u32::try_from(entries.0.len()).ok().filter(|length| *length < NONE).ok_or(TooLong)?;
    let mut head = [0; HEAD_BYTES];
    put(&mut head, 4, &entries.to_le_bytes());
    put(&mut head, 8, &numbers.sequence.to_le_bytes());
    put(&mut head, 16, &numbers.reserved.to_le_bytes());
    put(&mut head, 24, &[u8::from(numbers.in_use)]);
    put(&mut head, 32, &numbers.boot.to_le_bytes());
    put(&mut bytes, 0, &head);
    let sum = crc32fast::hash(bytes.get(4..).unwrap_or_default());
    put(&mut bytes, 0, &sum.to_le_bytes());
    bytes.resize(bytes.len().next_multiple_of(HEAD_BYTES), 0);
    Ok(bytes)
}

/// More than 4 GiB in one frame.
#[derive(Debug, thiserror::Error)]
#[error("too much for one commit")]
pub(super) struct TooLong;

/// All entries together are longer than one of them, so one that is too long is found when they are written.
fn length(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(NONE)
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + what.len()) {
        place.copy_from_slice(what);
    }
}

/// The frame that begins with the first of these bytes, if there is a whole one.
pub(super) fn decode(bytes: &[u8]) -> Option<LogFrame<'_>> {
    let numbers = Numbers {
        sequence: u64::from_le_bytes(*bytes.get(8..)?.first_chunk()?),
        reserved: u64::from_le_bytes(*bytes.get(16..)?.first_chunk()?),
        boot: u128::from_le_bytes(*bytes.get(32..)?.first_chunk()?),
        in_use: match bytes.get(24..32)? {
            [0, rest @ ..] if rest.iter().all(|byte| *byte == 0) => false,
            [1, rest @ ..] if rest.iter().all(|byte| *byte == 0) => true,
            _ => return None,
        },
    };
    if bytes.get(48..HEAD_BYTES)?.iter().any(|byte| *byte != 0) {
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
    /// How far it is to the next one.
    pub(super) fn length(&self) -> usize {
        (HEAD_BYTES + self.entries.len()).next_multiple_of(HEAD_BYTES)
    }

    /// Its entries, in their order. `None` where they are not what [`encode`] writes.
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

    const NUMBERS: Numbers = Numbers { sequence: 7, reserved: 1 << 40, in_use: true, boot: 1 << 100 };
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
        assert_eq!(read.entries().expect("they are what was written"), ENTRIES);
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
