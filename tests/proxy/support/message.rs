//! HTTP/1.1 messages as they are on the wire (RFC 9112), read strictly and written as told.

use std::{fmt, io};

use tokio::{
    io::AsyncReadExt,
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// More than any head or chunk line of a test.
const LINE_BYTES_MAX: usize = 256 * 1024;

/// Header fields in the order of the message, names spelled as they came. Bytes beyond ASCII stand as Latin-1.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// Returns the first value of a field, in any case of its name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).into_iter().next()
    }

    /// The values of all lines of a field.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str()).collect()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// True if a field that is a list of tokens has this one.
    pub fn has_token(&self, name: &str, token: &str) -> bool {
        self.all(name).iter().flat_map(|value| value.split(',')).any(|member| member.trim().eq_ignore_ascii_case(token))
    }

    pub fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    fn parse(lines: &[u8]) -> io::Result<Self> {
        let mut headers = Self::default();
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let line = latin1(line.strip_suffix(b"\r").ok_or_else(|| malformed("a line ends without CR", line))?);
            let (name, value) = line.split_once(':').ok_or_else(|| malformed("a field without colon", &line))?;
            if name.is_empty() || name.contains([' ', '\t']) {
                return Err(malformed("white space in a field name", &line));
            }
            headers.push(name, value.trim_matches([' ', '\t']));
        }
        Ok(headers)
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(name, value)| (name, value))).finish()
    }
}

/// The first line and the fields of a message.
#[derive(Clone, Debug)]
pub struct Head {
    /// Without its line end.
    pub start_line: String,
    pub headers: Headers,
    /// All bytes, up to and with the empty line.
    pub bytes: Vec<u8>,
}

/// How the end of a body is known (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

impl Framing {
    /// Returns the framing by the fields; `otherwise` if they state none.
    pub fn of(headers: &Headers, otherwise: Self) -> io::Result<Self> {
        let lengths = headers.all("content-length");
        match (headers.get("transfer-encoding"), lengths.as_slice()) {
            (None, []) => Ok(otherwise),
            (None, [length]) => {
                length.parse().map(Self::Length).ok().ok_or_else(|| malformed("Content-Length", length))
            }
            (Some(coding), []) if coding.eq_ignore_ascii_case("chunked") => Ok(Self::Chunked),
            (coding, lengths) => Err(malformed("more than one framing", format!("{coding:?} {lengths:?}"))),
        }
    }
}

/// Both directions of a connection.
pub struct Wire {
    pub reader: Reader,
    pub writer: OwnedWriteHalf,
}

impl Wire {
    pub fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("TCP_NODELAY");
        let (half, writer) = stream.into_split();
        Self { reader: Reader { half, buffer: Vec::new() }, writer }
    }

    /// Closes with RST: what is in flight in both directions is lost.
    pub fn reset(self) {
        // As one again, because a half that is dropped alone sends FIN.
        let stream = self.reader.half.reunite(self.writer).expect("halves of one stream");
        stream.set_zero_linger().expect("SO_LINGER");
    }
}

/// The direction towards us, with what was read too far.
pub struct Reader {
    half: OwnedReadHalf,
    buffer: Vec<u8>,
}

impl Reader {
    /// Reads once; `false` at the end of the stream.
    pub async fn fill(&mut self) -> io::Result<bool> {
        self.buffer.reserve(64 * 1024);
        Ok(self.half.read_buf(&mut self.buffer).await? > 0)
    }

    /// Returns the bytes that were read and not yet taken.
    pub fn unread(&self) -> &[u8] {
        &self.buffer
    }

    /// The next head, or `None` when the peer closed instead of beginning one.
    pub async fn read_head(&mut self) -> io::Result<Option<Head>> {
        let Some(bytes) = self.read_until(b"\r\n\r\n").await? else { return Ok(None) };
        let start = bytes.windows(2).position(|pair| pair == b"\r\n").expect("ends with two of them");
        let fields = &bytes[start + 2..bytes.len() - 2];
        Ok(Some(Head { start_line: latin1(&bytes[..start]), headers: Headers::parse(fields)?, bytes }))
    }

    /// Reads a body to its end and hands over each piece as it comes. Returns the trailer fields.
    pub async fn read_body(&mut self, framing: Framing, mut piece: impl FnMut(&[u8])) -> io::Result<Headers> {
        match framing {
            Framing::Length(length) => self.pass_on(length, &mut piece).await?,
            Framing::UntilClose => {
                while !self.buffer.is_empty() || self.fill().await? {
                    piece(&std::mem::take(&mut self.buffer));
                }
            }
            Framing::Chunked => {
                while let size @ 1.. = self.chunk_size().await? {
                    self.pass_on(size, &mut piece).await?;
                    let end = self.line().await?;
                    if end != b"\r\n" {
                        return Err(malformed("a chunk is longer than its size", latin1(&end)));
                    }
                }
                return self.trailers().await;
            }
        }
        Ok(Headers::default())
    }

    /// The next chunk of a body in the chunked coding; `None` at its end.
    pub async fn read_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let size = self.chunk_size().await?;
        if size == 0 {
            self.trailers().await?;
            return Ok(None);
        }
        let mut chunk = Vec::new();
        self.pass_on(size, &mut |piece: &[u8]| chunk.extend(piece)).await?;
        self.line().await?;
        Ok(Some(chunk))
    }

    async fn pass_on(&mut self, mut missing: usize, piece: &mut impl FnMut(&[u8])) -> io::Result<()> {
        while missing > 0 {
            if self.buffer.is_empty() && !self.fill().await? {
                return Err(ended(format!("{missing} bytes before the end of a body")));
            }
            let taken = missing.min(self.buffer.len());
            piece(&self.buffer[..taken]);
            self.buffer.drain(..taken);
            missing -= taken;
        }
        Ok(())
    }

    async fn chunk_size(&mut self) -> io::Result<usize> {
        let line = latin1(&self.line().await?);
        let size = line.split(';').next().unwrap_or_default().trim_end();
        usize::from_str_radix(size, 16).ok().ok_or_else(|| malformed("a chunk size", &line))
    }

    async fn trailers(&mut self) -> io::Result<Headers> {
        let mut fields = Vec::new();
        loop {
            let line = self.line().await?;
            if line == b"\r\n" {
                return Headers::parse(&fields);
            }
            fields.extend(line);
        }
    }

    async fn line(&mut self) -> io::Result<Vec<u8>> {
        self.read_until(b"\r\n").await?.ok_or_else(|| ended("in a chunked body"))
    }

    /// Takes bytes up to and with `end`; `None` when the stream ends before the first of them.
    async fn read_until(&mut self, end: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            if let Some(found) = self.buffer[searched..].windows(end.len()).position(|window| window == end) {
                return Ok(Some(self.buffer.drain(..searched + found + end.len()).collect()));
            }
            searched = self.buffer.len().saturating_sub(end.len() - 1);
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(malformed("no end of line or head", format!("in {LINE_BYTES_MAX} bytes")));
            }
            if !self.fill().await? {
                return if self.buffer.is_empty() { Ok(None) } else { Err(ended(latin1(&self.buffer))) };
            }
        }
    }
}

/// A message from its first line, fields and body, without adding anything.
pub fn compose(start_line: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{start_line}\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend(format!("{name}: ").into_bytes());
        bytes.extend(value.chars().map(|character| u8::try_from(character).expect("Latin-1 in a field value")));
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"\r\n");
    bytes.extend(body);
    bytes
}

/// A body in the chunked coding, one chunk for each piece.
pub fn chunked(pieces: &[&str]) -> Vec<u8> {
    let chunk = |piece: &&str| format!("{:x}\r\n{piece}\r\n", piece.len());
    pieces.iter().map(chunk).chain(["0\r\n\r\n".to_owned()]).collect::<String>().into_bytes()
}

pub fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

pub fn malformed(what: &str, found: impl fmt::Debug) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed message: {what}: {found:?}"))
}

fn ended(place: impl fmt::Debug) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the peer closed too early: {place:?}"))
}
