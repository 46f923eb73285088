//! An application behind SCGI that reports its input.

use std::{io, net::SocketAddr};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::support::message::{latin1, malformed};

/// It runs until the test ends.
pub async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
    let addr = listener.local_addr().expect("a bound listener");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move { answer(stream).await.expect("a request of SCGI") });
        }
    });
    addr
}

async fn answer(stream: TcpStream) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut length = String::new();
    loop {
        match stream.read_u8().await {
            Ok(b':') => break,
            Ok(digit) => length.push(char::from(digit)),
            // A connection that only tests whether a server listens.
            Err(_) if length.is_empty() => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    let length: usize = length.parse().map_err(|_unread| malformed("a length", &length))?;
    let mut variables = vec![0; length + 1];
    stream.read_exact(&mut variables).await?;
    variables.truncate(length);
    let texts: Vec<String> = variables.split(|octet| *octet == 0).map(latin1).collect();
    let pairs: Vec<(&str, &str)> = texts.chunks_exact(2).map(|pair| (&*pair[0], &*pair[1])).collect();
    let variable = |name: &str| pairs.iter().find(|(other, _)| *other == name).map_or("", |(_, value)| value);
    let mut body = vec![0; variable("CONTENT_LENGTH").parse().unwrap_or(0)];
    stream.read_exact(&mut body).await?;
    let told = json!({
        "method": variable("REQUEST_METHOD"),
        "target": variable("REQUEST_URI"),
        "fields": pairs,
        "body": latin1(&body),
    });
    let told = told.to_string();
    let head = format!("Status: 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", told.len());
    stream.write_all(&[head, told].concat().into_bytes()).await?;
    stream.shutdown().await
}
