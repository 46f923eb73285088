//! Requests, as the backend of the fixture reads them.

use http::Method;
use tokio::{io::AsyncReadExt as _, net::TcpStream};

use crate::routing::Facet;

/// Returns the head of the next request in lower case, and its body. Returns `None` at the end of the connection.
pub(super) async fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, body))
}

/// Returns the answer to a question for the type of a resource. A resource named `folder` is a collection, and one
/// named `absent` does not exist.
pub(super) fn type_of(head: &str) -> String {
    let is_named = |name| head.split(' ').nth(1).is_some_and(|target| target.ends_with(name));
    if is_named("absent") {
        return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned();
    }
    let is_folder = is_named("folder");
    let content = if is_folder { "<resourcetype><collection/></resourcetype>" } else { "<resourcetype/>" };
    format!("HTTP/1.1 207 Multi-Status\r\nContent-Length: {}\r\n\r\n{content}", content.len())
}

/// Returns the head of a request with these fields, and with content of this length.
pub(super) fn head(path: &str, method: &Method, fields: &str, length: usize) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{fields}\r\n").into_bytes()
}

/// Returns the facet of the resource that a path names, whose leases lie at `lease`.
pub(super) fn facet(path: &str, lease: &str) -> Facet {
    match path {
        _ if path.starts_with(lease) => Facet::Lease,
        _ if path.starts_with("/.watch") => Facet::Watch,
        _ => Facet::Resource,
    }
}
