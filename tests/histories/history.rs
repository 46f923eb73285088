//! What clients asked for and were told, what the backend applied, and how both are written in bodies.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use crate::support::backend::Backend;

/// What a write puts there: the number of the write, of which there is one in a whole run. `None` is a resource that is
/// not there.
pub type State = Option<u32>;

/// What a write asks to be based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Whatever is there: it has a lease.
    Any,
    /// This and nothing else.
    Is(State),
}

/// What an operation did, if it did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It found this.
    Read(State),
    /// It found what it was based on, and put this in its place.
    Write { base: Base, value: u32 },
    /// It found that there is something else than this.
    Differs(State),
}

/// One operation of a client on one resource.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub client: usize,
    pub step: Step,
    pub invoked: Instant,
    /// When it was answered. Without an answer it took effect at any later moment, or never.
    pub answered: Option<Instant>,
}

/// A lease that a client was granted.
#[derive(Clone, Copy, Debug)]
pub struct Granted {
    pub client: usize,
    pub fence: u64,
    pub invoked: Instant,
    pub answered: Instant,
    pub duration: Duration,
    /// When its release was asked for, and when that was answered.
    pub released: Option<(Instant, Option<Instant>)>,
}

/// A write that was sent under a lease.
#[derive(Clone, Copy, Debug)]
pub struct Leased {
    pub value: u32,
    pub fence: u64,
    pub invoked: Instant,
}

/// Everything that clients know of one resource.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub operations: Vec<Operation>,
    /// Writes that were refused: not one byte of them may have reached the backend.
    pub refused: Vec<u32>,
    pub grants: Vec<Granted>,
    pub leased: Vec<Leased>,
}

impl History {
    pub fn merge(&mut self, other: Self) {
        self.operations.extend(other.operations);
        self.refused.extend(other.refused);
        self.grants.extend(other.grants);
        self.leased.extend(other.leased);
    }
}

/// A write as the backend saw it.
#[derive(Clone, Copy, Debug)]
pub struct Applied {
    pub value: u32,
    pub base: Base,
    /// The `Fencing-Token` that came with it.
    pub fence: Option<u64>,
    pub at: Instant,
}

/// What happened on one resource at the backend.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The writes that it applied, in that order.
    pub applied: Vec<Applied>,
    /// The writes of which anything arrived.
    pub arrived: Vec<u32>,
}

impl Seen {
    /// By resource, what a backend has seen.
    pub fn by(backend: &Backend) -> BTreeMap<String, Self> {
        let mut all: BTreeMap<String, Self> = BTreeMap::new();
        for request in backend.requests().iter().filter(|request| request.method == "PUT") {
            let value = request.header("write").expect("each write carries its number").parse().expect("a number");
            all.entry(request.target.clone()).or_default().arrived.push(value);
        }
        for (request, at) in backend.applied() {
            let written: Written = Written::parse(&request.body);
            let fence = request.header("fencing-token").map(|fence| fence.parse().expect("a number"));
            let applied = Applied { value: written.value, base: written.base, fence, at };
            all.entry(request.target.clone()).or_default().applied.push(applied);
        }
        all
    }
}

/// The body of a write: who wrote it, and on what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub value: u32,
    pub client: usize,
    pub base: Base,
}

impl fmt::Display for Written {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, client, base } = self;
        write!(formatter, "write {value} of client {client} on ")?;
        match base {
            Base::Any => formatter.write_str("anything"),
            Base::Is(None) => formatter.write_str("nothing"),
            Base::Is(Some(base)) => write!(formatter, "{base}"),
        }
    }
}

impl Written {
    #[track_caller]
    pub fn parse(body: &[u8]) -> Self {
        let text = std::str::from_utf8(body).expect("UTF-8");
        let words: Vec<&str> = text.split(' ').collect();
        let ["write", value, "of", "client", client, "on", base] = words[..] else { panic!("no such body: {text:?}") };
        let base = match base {
            "anything" => Base::Any,
            "nothing" => Base::Is(None),
            number => Base::Is(Some(number.parse().expect("a number"))),
        };
        Self { value: value.parse().expect("a number"), client: client.parse().expect("a number"), base }
    }
}

#[test]
fn bodies_tell_what_they_were_made_of() {
    for base in [Base::Any, Base::Is(None), Base::Is(Some(6))] {
        let written = Written { value: 7, client: 3, base };
        assert_eq!(Written::parse(written.to_string().as_bytes()), written);
    }
}
