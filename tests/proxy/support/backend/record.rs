//! The memory of a backend about the requests that it saw.

use std::{io, time::Instant};

use super::super::message::{Framing, Head, Headers, latin1, malformed};

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub target: String,
    pub headers: Headers,
    /// The exact bytes of its head.
    pub head: Vec<u8>,
    /// The part of its body that has come, without the chunked coding.
    pub body: Vec<u8>,
    /// True if the end of its body has come.
    pub complete: bool,
    /// The number of its connection, from 0.
    pub connection: usize,
    /// The number of the request on that connection, from 1.
    pub nth_on_connection: usize,
}

impl Request {
    /// The first value of a field.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    /// True if it came over a connection that had carried another before.
    pub fn on_reused_connection(&self) -> bool {
        self.nth_on_connection > 1
    }

    pub(super) fn parse(head: Head, connection: usize, nth_on_connection: usize) -> io::Result<Self> {
        let parts: Vec<&str> = head.start_line.split(' ').collect();
        let [method, target, "HTTP/1.1" | "HTTP/1.0"] = parts.as_slice() else {
            return Err(malformed("a request line", latin1(&head.bytes)));
        };
        if method.is_empty()
            || !method.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
        {
            return Err(malformed("a method", latin1(&head.bytes)));
        }
        if head.headers.all("host").len() != 1 {
            return Err(malformed("not exactly one Host field", latin1(&head.bytes)));
        }
        Framing::of(&head.headers, Framing::Length(0))?;
        let (method, target) = ((*method).to_owned(), (*target).to_owned());
        let (mut headers, head) = (head.headers, head.bytes);
        // The comment in the entry of a proxy is another one in each process.
        for (_, value) in headers.0.iter_mut().filter(|(name, _)| name.eq_ignore_ascii_case("via")) {
            if let Some((entry, _)) = value.split_once(" ifmatch (").filter(|(_, comment)| comment.len() == 17) {
                *value = format!("{entry} ifmatch");
            }
        }
        Ok(Self { method, target, headers, head, body: Vec::new(), complete: false, connection, nth_on_connection })
    }
}

#[derive(Default)]
pub(super) struct Record {
    pub(super) requests: Vec<Request>,
    pub(super) events: Vec<String>,
    /// The requests that were applied, and the moments.
    pub(super) applied: Vec<(usize, Instant)>,
    pub(super) malformed: Vec<String>,
    pub(super) connections: usize,
    pub(super) open_connections: usize,
}

impl Record {
    /// Notes what became of a request.
    pub(super) fn note(&mut self, number: usize, what: &str) {
        let Request { method, target, .. } = &self.requests[number];
        self.events.push(format!("{method} {target} {what}"));
    }
}
