//! A scanner of the chunked coding (RFC 9112 section 7.1) that works as the bytes arrive and skips the data of chunks.
//!
//! # Design
//!
//! *Why a scanner in addition to the parser?* The parser takes an empty size for 0, and so for the end of the body. It
//! also accepts any octet in an extension, including a line feed. A server that reads a chunk's size up to the first
//! line feed, as many do, finds the chunks elsewhere.
//!
//! *Why is everything after the last chunk skipped?* [`super::received_body`] finds the end of the trailer fields.

/// The maximum number of digits of a size.
const DIGITS_MAX: u32 = 15;

/// The element that the scanner expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    /// A digit of a size.
    Size { digits: u32, size: u64 },
    /// Blanks between a size and its extensions.
    Blank { size: u64 },
    /// An extension.
    Extension { size: u64 },
    /// The line feed after a size.
    SizeEnd { size: u64 },
    /// The number of bytes of data that are left.
    Data { left: u64 },
    /// The carriage return after the data.
    DataReturn,
    /// The line feed after that carriage return.
    DataEnd,
    /// The rest after the last chunk, which does not matter.
    End,
    /// Nothing: the coding is malformed.
    Broken,
}

/// The part at the beginning of some bytes of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkPart {
    /// This number of bytes of framing.
    Framing(usize),
    /// This number of bytes of data.
    Data(usize),
    /// The bytes after the line of the last chunk.
    End,
    /// Bytes that the coding does not allow.
    Malformed,
}

/// The progress of the scan of one body.
#[derive(Clone, Copy, Debug)]
pub struct ChunkScan(ChunkState);

impl Default for ChunkScan {
    fn default() -> Self {
        Self(ChunkState::Size { digits: 0, size: 0 })
    }
}

impl ChunkScan {
    /// Scans the next bytes and returns how many of them are well-formed. No byte after the first malformed one is.
    pub fn look(&mut self, bytes: &[u8]) -> usize {
        let mut seen = 0;
        while let Some(rest) = bytes.get(seen..).filter(|rest| !rest.is_empty()) {
            seen += match self.part(rest) {
                ChunkPart::Framing(length) | ChunkPart::Data(length) => length,
                ChunkPart::End => rest.len(),
                ChunkPart::Malformed => return seen,
            };
        }
        seen
    }

    /// Scans the part that stands at the beginning of the next bytes, of which there is at least one.
    pub fn part(&mut self, bytes: &[u8]) -> ChunkPart {
        match self.0 {
            ChunkState::Broken => ChunkPart::Malformed,
            ChunkState::End => ChunkPart::End,
            ChunkState::Data { left } => {
                let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
                let left = left - taken as u64;
                self.0 = if left == 0 { ChunkState::DataReturn } else { ChunkState::Data { left } };
                ChunkPart::Data(taken)
            }
            framing => self.framing(framing, bytes),
        }
    }

    /// Scans framing up to the next data. Small chunks are mostly framing, so it is scanned at once.
    fn framing(&mut self, mut state: ChunkState, bytes: &[u8]) -> ChunkPart {
        let mut seen = 0;
        for octet in bytes {
            match next(state, *octet) {
                ChunkState::Broken => break,
                after => state = after,
            }
            seen += 1;
            if matches!(state, ChunkState::Data { .. } | ChunkState::End) {
                break;
            }
        }
        self.0 = if seen == 0 { ChunkState::Broken } else { state };
        if seen == 0 { ChunkPart::Malformed } else { ChunkPart::Framing(seen) }
    }

    /// True if the line of the last chunk has ended.
    pub fn has_ended(&self) -> bool {
        self.0 == ChunkState::End
    }
}

fn next(state: ChunkState, octet: u8) -> ChunkState {
    match (state, octet) {
        (ChunkState::Size { digits, size }, _) if octet.is_ascii_hexdigit() && digits < DIGITS_MAX => {
            let digit = char::from(octet).to_digit(16).map_or(0, u64::from);
            ChunkState::Size { digits: digits + 1, size: size << 4 | digit }
        }
        (ChunkState::Size { digits: 0, .. }, _) => ChunkState::Broken,
        (ChunkState::Size { size, .. } | ChunkState::Blank { size }, b' ' | b'\t') => ChunkState::Blank { size },
        (ChunkState::Size { size, .. } | ChunkState::Blank { size } | ChunkState::Extension { size }, b'\r') => {
            ChunkState::SizeEnd { size }
        }
        (ChunkState::Size { size, .. } | ChunkState::Blank { size }, b';')
        | (ChunkState::Extension { size }, b'\t' | b' '..=b'~' | 0x80..) => ChunkState::Extension { size },
        (ChunkState::SizeEnd { size: 0 }, b'\n') => ChunkState::End,
        (ChunkState::SizeEnd { size }, b'\n') => ChunkState::Data { left: size },
        (ChunkState::DataReturn, b'\r') => ChunkState::DataEnd,
        (ChunkState::DataEnd, b'\n') => ChunkState::Size { digits: 0, size: 0 },
        _ => ChunkState::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many bytes are well-formed, whether they come at once or one by one.
    fn in_order(body: &[u8]) -> usize {
        let at_once = ChunkScan::default().look(body);
        let mut scan = ChunkScan::default();
        let one_by_one: usize = body.chunks(1).map(|octet| scan.look(octet)).sum();
        assert_eq!(at_once, one_by_one, "{}", body.escape_ascii());
        at_once
    }

    #[test]
    fn chunks_are_followed_to_the_last() {
        for body in [
            &b"0\r\n\r\n"[..],
            b"5\r\nhello\r\n0\r\n\r\n",
            b"2\r\n\r\n\r\n00a \t; a=\"b\" ;\xff\r\n0123456789\r\n000;x\r\nTrailer: x\r\n\r\nafter",
            b"A\r\n0123456789\r\n0\r\nnot a field\n\n",
        ] {
            assert_eq!(in_order(body), body.len(), "{}", body.escape_ascii());
        }
    }

    #[test]
    fn what_has_two_readings_is_in_order_up_to_there() {
        for (body, expected) in [
            (&b"\r\n1\r\nx\r\n0\r\n\r\n"[..], 0),
            (b";a\r\nx\r\n0\r\n\r\n", 0),
            (b" 1\r\nx\r\n", 0),
            (b"\n", 0),
            (b"1;a\nb\r\nx\r\n0\r\n\r\n", 3),
            (b"1;a\0\r\nx", 3),
            (b"1;a\rb\r\nx", 4),
            (b"1\nx\r\n", 1),
            (b"1 1\r\nx\r\n", 2),
            (b"0x1\r\nx\r\n", 1),
            (b"-1\r\n", 0),
            (b"1\r\nxy\r\n", 4),
            (b"1\r\nx\n0\r\n", 4),
            (b"1\r\nx\r\n\r\n0\r\n", 6),
            (b"1\r\nx\r\n;\r\n", 6),
            (b"0000000000000001\r\nx\r\n", 15),
        ] {
            assert_eq!(in_order(body), expected, "{}", body.escape_ascii());
        }
    }
}
