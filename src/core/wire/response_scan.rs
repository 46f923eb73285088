//! A scanner of the responses on a connection of HTTP/1.1, as their bytes arrive: it follows each head to its end, and a
//! body in the chunked coding from chunk to chunk.
//!
//! # Design
//!
//! *Why a scanner in addition to the parser?* As for requests ([`chunks`](super::chunks)): the parser takes a chunk
//! without a size for the last one. A body that broke off there would be taken for a whole one, and would get a tag.

use super::{
    chunks::ChunkScan,
    head::{HeadScan, HeadState},
    request_line::has_field,
};

/// The longest head that is followed, in bytes. The parser takes no longer one.
const HEAD_BYTES_MAX: usize = 1024 * 1024;

/// The beginnings of a line that names a coding: in a response, the parser takes blanks between a name and its colon.
const CODING: [&[u8]; 3] = [b"transfer-encoding:", b"transfer-encoding ", b"transfer-encoding\t"];

/// The progress of the scan of one exchange.
#[derive(Debug)]
pub struct ResponseScan(ScanState);

#[derive(Debug)]
enum ScanState {
    /// The bytes of a head so far.
    Head { bytes: Vec<u8>, scan: HeadScan },
    /// A body in the chunked coding.
    Chunks(ChunkScan),
    /// A body in no coding, or bytes that the parser refuses itself.
    Rest,
}

impl ScanState {
    fn head() -> Self {
        Self::Head { bytes: Vec::new(), scan: HeadScan::default() }
    }
}

impl Default for ResponseScan {
    fn default() -> Self {
        Self(ScanState::head())
    }
}

impl ResponseScan {
    /// Scans the next bytes and returns how many of them are well-formed. No byte after the first malformed one is.
    pub fn look(&mut self, received: &[u8]) -> usize {
        let mut seen = 0;
        while let Some(rest) = received.get(seen..).filter(|rest| !rest.is_empty()) {
            match &mut self.0 {
                ScanState::Rest => return received.len(),
                ScanState::Chunks(chunks) => return seen + chunks.look(rest),
                ScanState::Head { bytes, scan } => {
                    let before = bytes.len();
                    bytes.extend_from_slice(rest);
                    let (state, end) = (scan.look(bytes), scan.end());
                    match state {
                        HeadState::Unfinished if bytes.len() <= HEAD_BYTES_MAX => return received.len(),
                        HeadState::Unfinished | HeadState::Hopeless => self.0 = ScanState::Rest,
                        HeadState::Complete => {
                            self.0 = after(bytes.get(..end).unwrap_or_default());
                            seen += end.saturating_sub(before);
                        }
                    }
                }
            }
        }
        received.len()
    }
}

/// Returns what follows a head.
fn after(head: &[u8]) -> ScanState {
    if is_interim(head) {
        ScanState::head()
    } else if CODING.iter().any(|name| has_field(head, name)) {
        ScanState::Chunks(ChunkScan::default())
    } else {
        ScanState::Rest
    }
}

/// True if another head follows this one (RFC 9110 section 15.2). After 101, another protocol does.
fn is_interim(head: &[u8]) -> bool {
    let status = head.split(|octet| *octet == b' ').nth(1).unwrap_or_default();
    status.starts_with(b"1") && !status.starts_with(b"101")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

    /// Returns how many bytes are well-formed, whether they come at once or one by one.
    fn in_order(bytes: &[u8]) -> usize {
        let at_once = ResponseScan::default().look(bytes);
        let mut scan = ResponseScan::default();
        let one_by_one: usize = bytes.chunks(1).map(|octet| scan.look(octet)).sum();
        assert_eq!(at_once, one_by_one, "{}", bytes.escape_ascii());
        at_once
    }

    #[test]
    fn a_chunked_body_is_followed_behind_any_heads() {
        let interim = "HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: x\r\n\r\n";
        for before in [String::new(), interim.to_owned(), interim.repeat(2), "\r\n".to_owned()] {
            let whole = format!("{before}{CHUNKED}5\r\nhello\r\n0\r\n\r\n");
            assert_eq!(in_order(whole.as_bytes()), whole.len(), "{whole:?}");
            let begun = format!("{before}{CHUNKED}5\r\nhello\r\n");
            let broken = format!("{begun}\r\nmore");
            assert_eq!(in_order(broken.as_bytes()), begun.len(), "{broken:?}");
            let spaced = broken.replace("coding: chunked", "coding \t: chunked");
            assert_eq!(in_order(spaced.as_bytes()), begun.len() + 2, "{spaced:?}");
        }
    }

    #[test]
    fn nothing_else_is_looked_at() {
        for whole in [
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encodings: chunked\r\n\r\nbody",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\r\n\r\n",
            "\x16\x03\x01\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: y",
        ] {
            assert_eq!(in_order(whole.as_bytes()), whole.len(), "{whole:?}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(2 * HEAD_BYTES_MAX));
        assert_eq!(ResponseScan::default().look(endless.as_bytes()), endless.len());
    }
}
