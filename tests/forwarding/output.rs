//! The bytes that a client or a backend writes to a connection of HTTP/1.1.

use std::io;

use tokio::{io::AsyncWriteExt, net::tcp::OwnedWriteHalf};

use crate::script::Fields;

/// One direction of a connection.
pub struct Output {
    writer: OwnedWriteHalf,
    /// True if a body is sent in chunks.
    pub is_chunked: bool,
}

impl Output {
    pub fn new(writer: OwnedWriteHalf) -> Self {
        Self { writer, is_chunked: false }
    }

    pub async fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes).await
    }

    /// A head, whose fields tell whether chunks follow.
    pub async fn head(&mut self, first: &str, fields: &Fields) -> io::Result<()> {
        let is_chunked = |(name, value): &(String, String)| {
            name.eq_ignore_ascii_case("transfer-encoding") && value.to_ascii_lowercase().ends_with("chunked")
        };
        self.is_chunked = fields.iter().any(is_chunked);
        self.raw(&[first.as_bytes(), b"\r\n", &lines(fields)].concat()).await
    }

    pub async fn part(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_chunked {
            return self.raw(&[format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()).await;
        }
        self.raw(bytes).await
    }

    pub async fn end(&mut self, trailers: &Fields) -> io::Result<()> {
        if !self.is_chunked {
            return Ok(());
        }
        self.raw(&[&b"0\r\n"[..], &lines(trailers)].concat()).await
    }

    /// Sends FIN.
    pub async fn half_close(&mut self) -> io::Result<()> {
        self.writer.shutdown().await
    }

    /// The connection ends with RST as soon as its reader has gone.
    pub fn abort(self) {
        // It fails only on a connection that is over.
        let _over = self.writer.as_ref().set_zero_linger();
        self.writer.forget();
    }
}

fn lines(fields: &Fields) -> Vec<u8> {
    let line = |(name, value): &(String, String)| {
        let value = value.chars().map(|character| u8::try_from(character).expect("Latin-1"));
        [name.as_bytes(), b": ", &value.collect::<Vec<_>>(), b"\r\n"].concat()
    };
    fields.iter().flat_map(line).chain(*b"\r\n").collect()
}
