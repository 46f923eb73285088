//! The framing of the body of an HTTP/1.1 message as it is sent (RFC 9112 sections 6 and 7.1).

use bytes::{BufMut as _, Bytes, BytesMut};

/// The framing of a body, as far as it has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentBody {
    /// This number of bytes is left of it.
    Length(u64),
    /// Chunks.
    Chunks,
    /// All bytes until the connection closes.
    UntilClose,
}

impl SentBody {
    /// Frames a piece, which may be empty. Appends the framing before it to `before`. Returns the piece, cut to the length
    /// that is left, and the framing after it.
    pub fn frame(&mut self, before: &mut BytesMut, mut piece: Bytes, is_last: bool) -> (Bytes, &'static [u8]) {
        let after: &[u8] = match self {
            Self::Length(left) => {
                piece.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= piece.len() as u64;
                b""
            }
            Self::Chunks => {
                if !piece.is_empty() {
                    before.put_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                }
                match (piece.is_empty(), is_last) {
                    (true, true) => b"0\r\n\r\n",
                    (true, false) => b"",
                    (false, true) => b"\r\n0\r\n\r\n",
                    (false, false) => b"\r\n",
                }
            }
            Self::UntilClose => b"",
        };
        (piece, after)
    }

    /// True if the framing announces bytes that were not sent.
    pub fn lacks_bytes(&self) -> bool {
        matches!(self, Self::Length(1..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is sent of these pieces, and whether bytes are lacking then.
    fn sent(mut body: SentBody, pieces: &[&'static str]) -> (String, bool) {
        let mut sent = BytesMut::new();
        for (number, piece) in pieces.iter().enumerate() {
            let is_last = number + 1 == pieces.len();
            let (piece, after) = body.frame(&mut sent, Bytes::from_static(piece.as_bytes()), is_last);
            sent.extend_from_slice(&piece);
            sent.extend_from_slice(after);
        }
        (String::from_utf8_lossy(&sent).into_owned(), body.lacks_bytes())
    }

    #[test]
    fn pieces_are_framed_in_each_form() {
        for (body, pieces, expected, lacks_bytes) in [
            (SentBody::Length(4), &["bo", "dy"][..], "body", false),
            (SentBody::Length(4), &["bod"], "bod", true),
            (SentBody::Length(4), &["body, and more"], "body", false),
            (SentBody::Length(0), &[""], "", false),
            (SentBody::Chunks, &["a".repeat(10).leak(), "b"], "a\r\naaaaaaaaaa\r\n1\r\nb\r\n0\r\n\r\n", false),
            (SentBody::Chunks, &["a", "", ""], "1\r\na\r\n0\r\n\r\n", false),
            (SentBody::UntilClose, &["a", "", "b"], "ab", false),
        ] {
            assert_eq!(sent(body, pieces), (expected.to_owned(), lacks_bytes), "{body:?} {pieces:?}");
        }
    }
}
