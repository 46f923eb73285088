//! The answers of a backend.

use std::time::SystemTime;

use super::super::{gate::Gate, message::compose};

/// An answer, or what is done instead of one.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) kind: Kind,
    /// True if a write is applied before it is answered.
    pub(super) applied: bool,
    /// 1xx responses before it, as bytes.
    pub(super) early: Vec<u8>,
    /// The gate that must be opened before it is applied or answered.
    pub(super) gate: Option<Gate>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// The answer of a plain server.
    Stored,
    Status {
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    },
    /// Exactly these bytes, then FIN.
    Raw(Vec<u8>),
    /// The request is read to its end; then FIN.
    Close,
    /// FIN without reading on.
    CloseAtHead,
    /// The request is read to its end; then RST.
    Reset,
    /// Nothing, until the peer closes.
    Never,
}

impl Answer {
    const fn new(kind: Kind) -> Self {
        Self { kind, applied: false, early: Vec::new(), gate: None }
    }

    /// The behaviour of a plain server: it answers reads with the kept content, and applies writes.
    pub fn stored() -> Self {
        Self::new(Kind::Stored).applied()
    }

    /// An answer with this status. A write that gets it is not applied, unless [`Self::applied`] says so. Date and
    /// Content-Length are added; with a field `Connection: close` the connection ends after it.
    pub fn status(status: u16) -> Self {
        Self::new(Kind::Status { status, headers: Vec::new(), body: Vec::new() })
    }

    /// Exactly these bytes instead of a proper answer (half a head, a body that is cut short), then FIN.
    pub fn raw(bytes: impl AsRef<[u8]>) -> Self {
        Self::new(Kind::Raw(bytes.as_ref().to_vec()))
    }

    /// No answer: the whole request is read, then the connection is closed.
    pub fn close() -> Self {
        Self::new(Kind::Close)
    }

    /// No answer: the connection is closed as soon as the head is there. A body that is in flight makes this a RST.
    pub fn close_at_head() -> Self {
        Self::new(Kind::CloseAtHead)
    }

    /// No answer: the whole request is read, then the connection is reset.
    pub fn reset() -> Self {
        Self::new(Kind::Reset)
    }

    /// No answer: the whole request is read, and the connection stays open until the peer closes it.
    pub fn never() -> Self {
        Self::new(Kind::Never)
    }

    /// Adds a field to a [`Self::status`] answer.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Kind::Status { headers, .. } = &mut self.kind {
            headers.push((name.to_owned(), value.to_owned()));
        } else {
            panic!("only an answer with a status of its own has fields: {self:?}");
        }
        self
    }

    /// Gives a [`Self::status`] answer a body. With a field `Transfer-Encoding: chunked` it is given with its chunks.
    #[must_use]
    pub fn body(mut self, bytes: impl AsRef<[u8]>) -> Self {
        if let Kind::Status { body, .. } = &mut self.kind {
            *body = bytes.as_ref().to_vec();
        } else {
            panic!("only an answer with a status of its own has a body: {self:?}");
        }
        self
    }

    /// Applies the write first, before any answer.
    #[must_use]
    pub fn applied(mut self) -> Self {
        self.applied = true;
        self
    }

    /// Sends a 1xx response first.
    #[must_use]
    pub fn early(mut self, status: u16, headers: &[(&str, &str)]) -> Self {
        self.early.extend(compose(&format!("HTTP/1.1 {status} Early"), headers, b""));
        self
    }

    /// Does all of this only when the gate is open. The request is read before.
    #[must_use]
    pub fn after(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }
}

/// A response's bytes. Date and Content-Length are added where they may and do not stand there.
pub(super) fn response_bytes(method: &str, status: u16, headers: &[(String, String)], body: &[u8]) -> Vec<u8> {
    let named = |name: &str| headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let date = httpdate::fmt_http_date(SystemTime::now());
    let length = body.len().to_string();
    let mut all: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    if !named("date") {
        all.push(("Date", &date));
    }
    let has_length = !matches!(status, 100..200 | 204 | 304);
    if has_length && !named("content-length") && !named("transfer-encoding") {
        all.push(("Content-Length", &length));
    }
    let sends_body = has_length && method != "HEAD";
    compose(&format!("HTTP/1.1 {status} Status"), &all, if sends_body { body } else { b"" })
}
