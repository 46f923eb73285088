//! A scanner that finds the end of a request head (RFC 9112 section 2.1) as its bytes arrive. It reads each byte once.

use memchr::memchr;

/// The progress of the scan of one head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadScan {
    /// The number of bytes that were read.
    seen: usize,
    /// The offset of the beginning of the unfinished line.
    line: usize,
    /// True if a line that is not empty has ended: empty lines before the request line are not part of the head.
    has_begun: bool,
}

/// The state of a head, by the bytes so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadState {
    /// More bytes must come.
    Unfinished,
    /// The empty line has come. All bytes after it belong to the body.
    Complete,
    /// No request begins with these bytes, no matter what follows.
    Hopeless,
}

impl HeadScan {
    /// Reads the bytes that have come since the last call. `bytes` holds all bytes since the beginning.
    ///
    /// A line may end with LF alone: the parser that reads the head afterwards accepts that.
    pub fn look(&mut self, bytes: &[u8]) -> HeadState {
        while let Some(length) = bytes.get(self.seen..).and_then(|rest| memchr(b'\n', rest)) {
            let line = bytes.get(self.line..self.seen + length).unwrap_or_default();
            let is_empty = matches!(line, b"" | b"\r");
            if !is_empty && !self.has_begun && !line.first().copied().is_some_and(is_token) {
                return HeadState::Hopeless;
            }
            self.seen += length + 1;
            self.line = self.seen;
            if is_empty && self.has_begun {
                return HeadState::Complete;
            }
            self.has_begun |= !is_empty;
        }
        self.seen = bytes.len();
        let first = bytes.get(self.line).filter(|_| !self.has_begun);
        if first.is_none_or(|first| *first == b'\r' || is_token(*first)) {
            HeadState::Unfinished
        } else {
            HeadState::Hopeless
        }
    }

    /// Returns the length of the head in bytes, once it is complete.
    pub fn end(&self) -> usize {
        self.line
    }
}

/// True if a method may have this byte (RFC 9110 section 5.6.2).
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the state after each byte.
    fn states(bytes: &[u8]) -> Vec<HeadState> {
        let mut scan = HeadScan::default();
        (1..=bytes.len()).map(|end| scan.look(&bytes[..end])).collect()
    }

    #[test]
    fn the_first_empty_line_after_the_request_line_ends_a_head() {
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "\r\n\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        ] {
            let states = states(head.as_bytes());
            let (last, before) = states.split_last().unwrap();
            assert_eq!(*last, HeadState::Complete, "{head:?}");
            assert!(before.iter().all(|state| *state == HeadState::Unfinished), "{head:?}: {before:?}");
            assert_eq!(HeadScan::default().look(head.as_bytes()), HeadState::Complete, "{head:?} at once");
            let with_body = [head, "body"].concat();
            assert_eq!(HeadScan::default().look(with_body.as_bytes()), HeadState::Complete, "{with_body:?}");
        }
    }

    #[test]
    fn what_is_no_request_is_known_by_its_first_byte() {
        for bytes in [&b"\x16\x03\x01"[..], b"\r\n GET", b"{", b"\0", b"\xff", b" GET / HTTP/1.1\r\n", b"\rGET /\n"] {
            assert_eq!(HeadScan::default().look(bytes), HeadState::Hopeless, "{bytes:?}");
        }
        assert_eq!(
            states(b"\r\n \r\n"),
            [
                HeadState::Unfinished,
                HeadState::Unfinished,
                HeadState::Hopeless,
                HeadState::Hopeless,
                HeadState::Hopeless,
            ]
        );
    }

    #[test]
    fn each_byte_is_looked_at_once() {
        let mut scan = HeadScan::default();
        let head = [b'x'; 10_000];
        for end in 1..=head.len() {
            assert_eq!((scan.look(&head[..end]), scan.seen), (HeadState::Unfinished, end));
        }
    }
}
