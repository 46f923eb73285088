//! One request over HTTP/2 in frames that no library would send (RFC 9113, RFC 7541).

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::wait::within;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 0x1;
const END_STREAM_AND_HEADERS: u8 = 0x5;

/// The answer on the stream of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A response with this status.
    Answered(u16),
    /// `RST_STREAM` with this code.
    Reset(u32),
}

impl Outcome {
    /// True if the request got no further than the proxy.
    pub fn is_refusal(self) -> bool {
        matches!(self, Self::Answered(400) | Self::Reset(1))
    }
}

/// Sends the fields of a request without a body as they are, and tells what comes back.
pub async fn outcome(addr: SocketAddr, fields: &[(&str, &str)]) -> Outcome {
    within("an answer or a reset", exchange(addr, fields)).await.expect("a connection of HTTP/2")
}

/// The kinds of the frames that bring a response, each with the length of its payload, up to the one with `END_STREAM`.
pub async fn response(addr: SocketAddr, fields: &[(&str, &str)]) -> Vec<(u8, usize)> {
    within("a response", read_response(addr, fields)).await.expect("a response over HTTP/2")
}

async fn read_response(addr: SocketAddr, fields: &[(&str, &str)]) -> io::Result<Vec<(u8, usize)>> {
    let (mut stream, mut frames) = (send(addr, fields).await?, Vec::new());
    loop {
        let ([.., kind, flags, _, _, _, stream_id], payload) = read_frame(&mut stream).await?;
        if stream_id == 1 && matches!(kind, DATA | HEADERS) {
            frames.push((kind, payload.len()));
            if flags & END_STREAM != 0 {
                return Ok(frames);
            }
        }
    }
}

async fn exchange(addr: SocketAddr, fields: &[(&str, &str)]) -> io::Result<Outcome> {
    let mut stream = send(addr, fields).await?;
    loop {
        let (head, payload) = read_frame(&mut stream).await?;
        match head[3] {
            HEADERS => return Ok(Outcome::Answered(status(&payload))),
            RST_STREAM => {
                let code = payload.try_into().expect("a code of four bytes");
                return Ok(Outcome::Reset(u32::from_be_bytes(code)));
            }
            _ => {}
        }
    }
}

/// Sends a request as stream 1 of a new connection.
async fn send(addr: SocketAddr, fields: &[(&str, &str)]) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(addr).await?;
    let block: Vec<u8> = fields.iter().flat_map(|(name, value)| literal(name, value)).collect();
    let request = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &frame(HEADERS, END_STREAM_AND_HEADERS, 1, &block)].concat();
    stream.write_all(&request).await?;
    Ok(stream)
}

async fn read_frame(stream: &mut TcpStream) -> io::Result<([u8; 9], Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await?;
    let mut payload = vec![0; usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2])];
    stream.read_exact(&mut payload).await?;
    Ok((head, payload))
}

/// RFC 7541 appendix A: the statuses that have an index of their own, first in each block of a response.
fn status(block: &[u8]) -> u16 {
    let indexed = [200, 204, 206, 304, 400, 404, 500];
    indexed[usize::from(block[0].checked_sub(0x88).expect("a status with an index"))]
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// RFC 7541 section 6.2.2: a literal with a name of its own, without indexing.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| {
        let length = u8::try_from(text.len()).ok().filter(|length| *length < 0x7f).expect("a short text");
        [&[length], text.as_bytes()].concat()
    };
    [vec![0], text(name), text(value)].concat()
}
