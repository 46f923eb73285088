//! The events that both sides of the proxy have seen so far, and the wait for more of them.

use std::{io, time::Duration};

use tokio::{sync::watch, time::timeout};

use crate::support::message::latin1;

/// How long a step waits for what it needs. What has not happened by then is noted as such: another build may never do it.
const PATIENCE: Duration = Duration::from_secs(12);

/// The note if the other side takes no more of a long answer.
pub const FLOOD_STOPPED: &str = "the flood was stopped";

/// How a message ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It goes on, or was not read further.
    Open,
    /// By its own framing.
    Whole,
    /// Before its framing says so, and how.
    Cut(String),
}

/// A request at the backend, or an answer at the client.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its lines, as they came.
    pub head: Vec<String>,
    pub framing: &'static str,
    pub body: Vec<u8>,
    pub trailers: Vec<String>,
    pub end: End,
}

impl Message {
    pub fn new(head: Vec<String>, framing: &'static str) -> Self {
        Self { head, framing, body: Vec::new(), trailers: Vec::new(), end: End::Open }
    }

    /// The values of a field, one for each of its lines.
    pub fn values(&self, name: &str) -> Vec<&str> {
        values(&self.head[1..], name)
    }

    /// The same of its trailers.
    pub fn trailing(&self, name: &str) -> Vec<&str> {
        values(&self.trailers, name)
    }

    /// The status of an answer; zero if it has none.
    pub fn status(&self) -> u16 {
        self.head[0].split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
    }

    pub fn is_interim(&self) -> bool {
        matches!(self.status(), 100 | 102..200)
    }
}

fn values<'line>(lines: &'line [String], name: &str) -> Vec<&'line str> {
    let pairs = lines.iter().filter_map(|line| line.split_once(':').filter(|(name, _)| !name.is_empty()));
    pairs.filter(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
}

/// The lines of a head or of trailers.
pub fn lines(bytes: &[u8]) -> Vec<String> {
    latin1(bytes).trim_end_matches("\r\n").split("\r\n").map(str::to_owned).collect()
}

/// The same of HTTP/2, below a first line.
pub fn lines_of(first: impl IntoIterator<Item = String>, fields: &http::HeaderMap) -> Vec<String> {
    let fields = fields.iter().map(|(name, value)| format!("{name}: {}", latin1(value.as_bytes())));
    first.into_iter().chain(fields).collect()
}

/// How a connection ended, without words that depend on the moment.
pub fn ending(error: &io::Error) -> String {
    match error.kind() {
        // Which of them it is depends on whether anything was left unread.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            "closed".to_owned()
        }
        io::ErrorKind::InvalidData => error.to_string(),
        kind => kind.to_string(),
    }
}

/// All that was seen of one case.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub requests: Vec<Message>,
    pub answers: Vec<Message>,
    /// Remarks on the side of the backend: steps that failed, bytes that are no request.
    pub backend: Vec<String>,
    pub client: Vec<String>,
    /// True if the client has played all of its steps.
    pub is_played: bool,
    /// How the client's connection ended, if the proxy ended it.
    pub client_over: Option<String>,
}

/// The event that a step waits for.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// This number of requests has reached the backend.
    Arrived(usize),
    /// The backend has so many bytes of the last request's body.
    Taken(usize),
    /// The backend has the end of the last request.
    Whole,
    /// The client has so many interim heads.
    Interim(usize),
    /// The client has so many heads that are final.
    Answered(usize),
    /// The client has so many bytes of the last answer's body.
    Read(usize),
    /// The client has the end of the last answer.
    Done,
    /// The client has played all of its steps.
    Played,
    /// The connection of the client is over.
    Dismissed,
    /// The backend has seen that the client has gone.
    Noticed,
}

impl Seen {
    pub fn has(&self, when: When) -> bool {
        let finals = || self.answers.iter().filter(|answer| !answer.is_interim());
        let is_over = |message: Option<&Message>| message.is_some_and(|message| message.end != End::Open);
        match when {
            When::Arrived(count) => self.requests.len() >= count,
            When::Taken(bytes) => self.requests.last().is_some_and(|request| request.body.len() >= bytes),
            When::Whole => is_over(self.requests.last()),
            When::Interim(count) => self.answers.len() - finals().count() >= count,
            When::Answered(count) => finals().count() >= count,
            When::Read(bytes) => finals().next_back().is_some_and(|answer| answer.body.len() >= bytes),
            When::Done => is_over(finals().next_back()),
            When::Played => self.is_played,
            When::Dismissed => self.client_over.is_some(),
            When::Noticed => {
                let is_cut = self.requests.last().is_some_and(|request| matches!(request.end, End::Cut(_)));
                is_cut || self.backend.iter().any(|note| note == FLOOD_STOPPED)
            }
        }
    }
}

/// The place where one case is played.
#[derive(Debug, Default)]
pub struct Stage(watch::Sender<Seen>);

impl Stage {
    pub fn note(&self, note: impl FnOnce(&mut Seen)) {
        self.0.send_modify(note);
    }

    /// Waits; `false` if it does not happen.
    pub async fn until(&self, when: When) -> bool {
        let mut seen = self.0.subscribe();
        timeout(PATIENCE, seen.wait_for(|seen| seen.has(when))).await.is_ok()
    }

    /// The same for a client, which waits for nothing once it has its answer or its connection has ended.
    pub async fn until_answered_or(&self, when: When) -> bool {
        let mut seen = self.0.subscribe();
        let is_over = |seen: &Seen| seen.has(when) || seen.client_over.is_some() || seen.has(When::Done);
        timeout(PATIENCE, seen.wait_for(is_over)).await.is_ok_and(|seen| seen.is_ok_and(|seen| seen.has(when)))
    }

    /// Waits until an answer has come to its end or the connection has, for as many final answers as this.
    pub async fn answered(&self, count: usize) -> bool {
        let mut seen = self.0.subscribe();
        let is_over =
            |seen: &Seen| seen.client_over.is_some() || (seen.has(When::Answered(count)) && seen.has(When::Done));
        timeout(PATIENCE, seen.wait_for(is_over)).await.is_ok()
    }

    pub fn seen(&self) -> Seen {
        self.0.borrow().clone()
    }
}
