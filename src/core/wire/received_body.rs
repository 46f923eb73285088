//! The end of the body of an HTTP/1.1 message (RFC 9112 section 6), and the content in it.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, Version, header};

use super::chunks::{ChunkPart, ChunkScan};
use crate::core::digits::decimal_number;

/// The number of bytes that the trailer fields of a message may have. They end here.
const TRAILER_BYTES_MAX: usize = 64 * 1024;
/// The least length of a piece that keeps its buffer. A shorter one would also keep the head before it.
const SHARED_BYTES_MIN: usize = 4 * 1024;

/// The framing of a message contradicts itself, or is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The part of a body that is still to come.
#[derive(Clone, Copy, Debug)]
pub enum ReceivedBody {
    /// This number of bytes.
    Length(u64),
    /// Chunks.
    Chunks(ChunkScan),
    /// Trailer fields, after the last chunk.
    Trailers(TrailerScan),
    /// All bytes that come: a response without a length, or a tunnel.
    UntilClose,
}

impl ReceivedBody {
    /// The body of a request with these fields. A transfer coding takes precedence over a length.
    pub fn of_request(version: Version, fields: &HeaderMap) -> Result<Self, Malformed> {
        let Some(coding) = last_coding(fields) else {
            return declared_length(fields).map(|length| Self::Length(length.unwrap_or(0)));
        };
        if version == Version::HTTP_11 && is_chunked(coding) {
            Ok(Self::Chunks(ChunkScan::default()))
        } else {
            Err(Malformed)
        }
    }

    /// The body of a final response with these fields (RFC 9112 section 6.3). `is_to_head` tells that it answers HEAD.
    pub fn of_response(status: StatusCode, is_to_head: bool, fields: &HeaderMap) -> Result<Self, Malformed> {
        let coding = last_coding(fields);
        // A coding takes precedence, even over a length that is no number.
        let length = if coding.is_some() { None } else { declared_length(fields)? };
        Ok(match (coding, length) {
            _ if is_to_head || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) => Self::Length(0),
            (Some(coding), _) if is_chunked(coding) => Self::Chunks(ChunkScan::default()),
            (Some(_), _) => return Err(Malformed),
            (None, Some(length)) => Self::Length(length),
            (None, None) => Self::UntilClose,
        })
    }

    /// True if nothing more is to come.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Trailers(scan) => scan.state == TrailerState::End,
            Self::Chunks(_) | Self::UntilClose => false,
        }
    }

    /// Returns how many bytes of the body may still come, at most this many.
    pub fn at_most(&self, bytes_max: usize) -> usize {
        let Self::Length(left) = self else { return bytes_max };
        usize::try_from(*left).map_or(bytes_max, |left| left.min(bytes_max))
    }

    /// Takes the content at the beginning of what has arrived. `None` means that more must arrive, or that the body is
    /// done. If what stands behind content is malformed, the next call fails.
    pub fn take(&mut self, arrived: &mut BytesMut) -> Result<Option<Bytes>, Malformed> {
        let content = match self {
            Self::UntilClose => take(arrived, usize::MAX),
            Self::Length(left) => {
                let content = take(arrived, usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= content.len() as u64;
                content
            }
            Self::Chunks(scan) => {
                let content = take_chunks(scan, arrived)?;
                if scan.has_ended() {
                    *self = Self::Trailers(TrailerScan::default());
                }
                content
            }
            Self::Trailers(_) => Bytes::new(),
        };
        if let Self::Trailers(scan) = self {
            let skipped = scan.skip(arrived);
            if content.is_empty() {
                skipped?;
            }
        }
        Ok(Some(content).filter(|content| !content.is_empty()))
    }
}

fn last_coding(fields: &HeaderMap) -> Option<&HeaderValue> {
    fields.get_all(header::TRANSFER_ENCODING).iter().next_back()
}

/// True if the last coding of a list is the one that tells where the body ends.
fn is_chunked(codings: &HeaderValue) -> bool {
    let last = codings.as_bytes().rsplit(|octet| *octet == b',').next().unwrap_or_default();
    last.trim_ascii().eq_ignore_ascii_case(b"chunked")
}

/// Returns the length that a message declares. A list of equal lengths is one (RFC 9110 section 8.6).
pub fn declared_length(fields: &HeaderMap) -> Result<Option<u64>, Malformed> {
    let mut declared = None;
    for line in fields.get_all(header::CONTENT_LENGTH) {
        for member in line.as_bytes().split(|octet| *octet == b',') {
            let length = decimal_number(member.trim_ascii()).ok_or(Malformed)?;
            if *declared.get_or_insert(length) != length {
                return Err(Malformed);
            }
        }
    }
    Ok(declared)
}

/// Takes at most this many bytes. They are copied unless they are most of their buffer, so that a small piece keeps no
/// large one.
fn take(arrived: &mut BytesMut, bytes_max: usize) -> Bytes {
    let (length, room) = (bytes_max.min(arrived.len()), arrived.capacity());
    let piece = arrived.split_to(length);
    if length >= SHARED_BYTES_MIN && 2 * length >= room { piece.freeze() } else { Bytes::copy_from_slice(&piece) }
}

/// Takes the data of all chunks that have arrived, as one piece.
fn take_chunks(scan: &mut ChunkScan, arrived: &mut BytesMut) -> Result<Bytes, Malformed> {
    let (mut content, mut seen) = (BytesMut::new(), 0);
    while let Some(rest) = arrived.get(seen..).filter(|rest| !rest.is_empty()) {
        match scan.part(rest) {
            ChunkPart::Framing(length) => seen += length,
            ChunkPart::Data(length) => {
                content.extend_from_slice(rest.get(..length).unwrap_or_default());
                seen += length;
            }
            ChunkPart::Malformed if content.is_empty() => return Err(Malformed),
            ChunkPart::End | ChunkPart::Malformed => break,
        }
    }
    let _seen = arrived.split_to(seen);
    Ok(content.freeze())
}

/// The progress within the trailer fields of a message.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrailerScan {
    state: TrailerState,
    bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TrailerState {
    /// The beginning of a line.
    #[default]
    Begin,
    /// Within a field.
    Field,
    /// The line feed after a field.
    FieldEnd,
    /// The line feed of the empty line.
    LastEnd,
    /// Nothing: the body is done.
    End,
}

impl TrailerScan {
    /// Removes the trailer fields from the beginning of what has arrived. Once it fails, it fails each time.
    fn skip(&mut self, arrived: &mut BytesMut) -> Result<(), Malformed> {
        let mut seen = 0;
        while self.bytes < TRAILER_BYTES_MAX
            && let Some(octet) = arrived.get(seen)
            && let Some(next) = self.state.after(*octet)
        {
            self.state = next;
            (seen, self.bytes) = (seen + 1, self.bytes + 1);
        }
        let _seen = arrived.split_to(seen);
        if arrived.is_empty() || self.state == TrailerState::End { Ok(()) } else { Err(Malformed) }
    }
}

impl TrailerState {
    /// Returns the state after an octet. `None` if that is malformed, or belongs to no trailer.
    fn after(self, octet: u8) -> Option<Self> {
        match (self, octet) {
            (Self::Begin, b'\r') => Some(Self::LastEnd),
            (Self::Field, b'\r') => Some(Self::FieldEnd),
            (Self::FieldEnd, b'\n') => Some(Self::Begin),
            (Self::LastEnd, b'\n') => Some(Self::End),
            (Self::FieldEnd | Self::LastEnd | Self::End, _) | (_, b'\n' | b'\0') => None,
            _ => Some(Self::Field),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;

    fn chunks() -> ReceivedBody {
        ReceivedBody::of_request(Version::HTTP_11, &fields(&[("transfer-encoding", "chunked")])).unwrap()
    }

    /// Returns the content, and the bytes behind the body.
    fn read(mut body: ReceivedBody, pieces: &[&[u8]]) -> Result<(Vec<u8>, Vec<u8>), Malformed> {
        let (mut arrived, mut content) = (BytesMut::new(), Vec::new());
        for piece in pieces {
            arrived.extend_from_slice(piece);
            while let Some(piece) = body.take(&mut arrived)? {
                content.extend_from_slice(&piece);
            }
        }
        assert!(body.is_done(), "{body:?}");
        Ok((content, arrived.to_vec()))
    }

    #[test]
    fn a_body_ends_where_its_framing_says_in_whatever_pieces_it_comes() {
        for (body, bytes, content) in [
            (ReceivedBody::Length(4), &b"bodyGET"[..], &b"body"[..]),
            (ReceivedBody::Length(0), b"GET", b""),
            (chunks(), b"0\r\n\r\nGET", b""),
            (chunks(), b"3\r\none\r\n1;a=b\r\n-\r\n3\r\ntwo\r\n0\r\n\r\nGET", b"one-two"),
            (chunks(), b"3\r\none\r\n0;last\r\nX-Sum: abc\r\nY:\r\n\r\nGET", b"one"),
        ] {
            let expected = Ok((content.to_vec(), b"GET".to_vec()));
            assert_eq!(read(body, &[bytes]), expected, "{}", bytes.escape_ascii());
            let (last, octets) = (&bytes[bytes.len() - 3..], &bytes[..bytes.len() - 3]);
            let pieces: Vec<&[u8]> = octets.chunks(1).chain([last]).collect();
            assert_eq!(read(body, &pieces), expected, "{} one by one", bytes.escape_ascii());
        }
    }

    #[test]
    fn chunks_and_trailers_with_two_readings_are_malformed() {
        for bytes in
            [&b"\r\n"[..], b"0\r\nX: a\n\r\n", b"0\r\n\n", b"0\r\nX: a\rb\r\n\r\n", b"0\r\n\rX", b"0\r\nX\0\r\n"]
        {
            let mut arrived = BytesMut::from(bytes);
            assert_eq!(chunks().take(&mut arrived), Err(Malformed), "{}", bytes.escape_ascii());
        }
        let mut arrived = BytesMut::from(&b"3\r\nonex"[..]);
        let mut body = chunks();
        assert_eq!(body.take(&mut arrived), Ok(Some(Bytes::from_static(b"one"))));
        assert_eq!(body.take(&mut arrived), Err(Malformed));
        let mut arrived = BytesMut::from(&b"3\r\none\r\n0\r\nX: a\n\r\n"[..]);
        let mut body = chunks();
        assert_eq!(body.take(&mut arrived), Ok(Some(Bytes::from_static(b"one"))), "content before a malformed trailer");
        for _ in 0..2 {
            assert_eq!(body.take(&mut arrived), Err(Malformed));
        }
        let mut arrived = BytesMut::from(&b"0\r\n"[..]);
        arrived.resize(TRAILER_BYTES_MAX + 4, b'x');
        assert_eq!(chunks().take(&mut arrived), Err(Malformed));
    }

    #[test]
    fn a_length_is_one_number_however_often_it_is_told() {
        for (lines, expected) in [
            (&[][..], Ok(None)),
            (&[("content-length", "4")][..], Ok(Some(4))),
            (&[("content-length", "4, 4"), ("content-length", "4")], Ok(Some(4))),
            (&[("content-length", "4"), ("content-length", "5")], Err(Malformed)),
            (&[("content-length", "4,")], Err(Malformed)),
            (&[("content-length", "+4")], Err(Malformed)),
            (&[("content-length", "")], Err(Malformed)),
            (&[("content-length", "18446744073709551616")], Err(Malformed)),
        ] {
            assert_eq!(declared_length(&fields(lines)), expected, "{lines:?}");
        }
    }

    #[test]
    fn the_last_coding_is_chunked_and_no_part_of_http_1_0() {
        for (version, value, is_chunked) in [
            (Version::HTTP_11, "chunked", true),
            (Version::HTTP_11, "gzip, CHUNKED", true),
            (Version::HTTP_11, "chunked, gzip", false),
            (Version::HTTP_11, "chunked,", false),
            (Version::HTTP_11, "identity", false),
            (Version::HTTP_10, "chunked", false),
        ] {
            let body =
                ReceivedBody::of_request(version, &fields(&[("transfer-encoding", value), ("content-length", "x")]));
            assert_eq!(matches!(body, Ok(ReceivedBody::Chunks(_))), is_chunked, "{version:?} {value}");
            assert_eq!(body.is_err(), !is_chunked, "{version:?} {value}");
        }
    }
}
