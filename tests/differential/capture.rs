//! A backend that keeps each request as it came, and answers all of them alike.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
};

use crate::{
    reading::Reading,
    support::message::{Framing, Wire, latin1},
};

/// One request: its bytes, and what a strict reader reads.
#[derive(Clone, Debug)]
pub struct Captured {
    pub bytes: Vec<u8>,
    pub reading: Reading,
}

/// It runs until the test ends.
pub struct Capture {
    pub addr: SocketAddr,
    captured: Arc<Mutex<Vec<Captured>>>,
}

impl Capture {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
        let addr = listener.local_addr().expect("a bound listener");
        let captured = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&captured);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(keep(stream, Arc::clone(&kept)));
            }
        });
        Self { addr, captured }
    }

    /// Returns the requests that have come since the last call.
    pub fn take(&self) -> Vec<Captured> {
        std::mem::take(&mut *self.captured.lock().expect("nobody panics with it"))
    }
}

async fn keep(stream: TcpStream, kept: Arc<Mutex<Vec<Captured>>>) {
    let mut wire = Wire::new(stream);
    // A request that is broken off, because the client's was, is none.
    while let Ok(Some(head)) = wire.reader.read_head().await {
        let framing = Framing::of(&head.headers, Framing::Length(0)).expect("one framing");
        let mut body = Vec::new();
        if wire.reader.read_body(framing, |piece| body.extend(piece)).await.is_err() {
            return;
        }
        let parts: Vec<&str> = head.start_line.split(' ').collect();
        let [method, target, "HTTP/1.1"] = parts.as_slice() else { panic!("{:?}", head.start_line) };
        let reading = Reading {
            method: (*method).to_owned(),
            target: (*target).to_owned(),
            fields: head.headers.0.clone(),
            body: latin1(&body),
        };
        let content = match framing {
            Framing::Chunked if body.is_empty() => b"0\r\n\r\n".to_vec(),
            // The cuts in a body do not matter.
            Framing::Chunked => [format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n0\r\n\r\n"].concat(),
            _ => body,
        };
        let bytes = [head.bytes, content].concat();
        kept.lock().expect("nobody panics with it").push(Captured { bytes, reading });
        if wire.writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.is_err() {
            return;
        }
    }
}
