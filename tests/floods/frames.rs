//! An HTTP/2 client that sends any frames.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinHandle,
};

use crate::{
    sockets::{FLOOD, connect_from},
    support::wait::within,
};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// The code for a client that goes too far (RFC 9113 section 7).
pub const ENHANCE_YOUR_CALM: u32 = 11;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection on which the client writes, while what the server says is looked at beside.
pub struct Http2 {
    writer: OwnedWriteHalf,
    reader: JoinHandle<Told>,
}

/// The messages of the server until the connection ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The code of its GOAWAY.
    pub goaway: Option<u32>,
    /// Heads of answers.
    pub answers: usize,
    /// Streams that it has reset.
    pub resets: usize,
}

/// The bytes of a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a small payload").to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A list of fields without compression (RFC 7541 section 6.2.2).
pub fn fields(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let pseudo = [(":method", method), (":scheme", "http"), (":authority", "a"), (":path", path)];
    for (name, value) in pseudo.iter().chain(more) {
        bytes.push(0);
        for text in [name, value] {
            assert!(text.len() < 127, "longer ones need another form");
            bytes.push(u8::try_from(text.len()).expect("it is short"));
            bytes.extend(text.as_bytes());
        }
    }
    bytes
}

/// The settings that let a stream send so many bytes of an answer.
pub fn initial_window(bytes: u32) -> Vec<u8> {
    let mut payload = vec![0, 4];
    payload.extend(bytes.to_be_bytes());
    frame(SETTINGS, 0, 0, &payload)
}

impl Http2 {
    /// Connects, and sends the preface with these settings.
    pub async fn open(addr: SocketAddr, settings: &[u8]) -> Self {
        let stream = connect_from(FLOOD, addr).await.expect("the server accepts");
        let mut http2 = Self::of(stream);
        http2.send(PREFACE).await.expect("the preface is taken");
        http2.send(settings).await.expect("the settings are taken");
        http2
    }

    fn of(stream: TcpStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self { writer, reader: tokio::spawn(read(reader)) }
    }

    /// Sends bytes; an error is a server that has closed.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        within("the server to take what is sent", self.writer.write_all(bytes)).await
    }

    /// Returns the messages of the server, once it has closed.
    pub async fn end(self) -> Told {
        let told = within("the server to close", self.reader).await.expect("it is read to its end");
        drop(self.writer);
        told
    }

    /// True if the server has closed.
    pub fn is_over(&self) -> bool {
        self.reader.is_finished()
    }
}

async fn read(mut reader: OwnedReadHalf) -> Told {
    let mut told = Told::default();
    let mut begun = [0; 9];
    while reader.read_exact(&mut begun).await.is_ok() {
        let length = u32::from_be_bytes([0, begun[0], begun[1], begun[2]]);
        let mut payload = vec![0; usize::try_from(length).expect("a length")];
        if reader.read_exact(&mut payload).await.is_err() {
            break;
        }
        match begun[3] {
            HEADERS => told.answers += 1,
            RST_STREAM => told.resets += 1,
            GOAWAY => told.goaway = Some(u32::from_be_bytes(payload[4..8].try_into().expect("a code"))),
            _ => {}
        }
    }
    told
}
