//! What clients asked for and were told, what the backend applied, and how both are written in bodies.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use crate::support::backend::{Backend, Request, style::Named};

/// What a target stands for: two routes may lead to one document, and an item is a part of its document too.
pub fn named(target: &str) -> Named {
    let own = target.strip_prefix("/alias/").map_or_else(|| target.to_owned(), |id| format!("/docs/{id}"));
    let whole = target.strip_prefix("/items/").map(|id| format!("/docs/{id}"));
    Named { own, whole }
}

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

/// How a write changes a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PUT.
    Replaces,
    /// DELETE.
    Removes,
    /// POST: beside whatever else is in flight, which may replace it.
    Appends,
    /// A write of an item, which changes its document too; beside others as well, and beside a lease.
    Touches,
}

impl Kind {
    fn of(method: &str) -> Self {
        match method {
            "PUT" => Self::Replaces,
            "DELETE" => Self::Removes,
            "POST" => Self::Appends,
            _ => panic!("no client sends {method}"),
        }
    }

    /// Whether it runs beside others.
    pub fn is_beside(self) -> bool {
        matches!(self, Self::Appends | Self::Touches)
    }

    /// What is there after it.
    pub fn leaves(self, value: u32) -> State {
        (self != Self::Removes).then_some(value)
    }
}

/// What an operation did, if it did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It found this.
    Read(State),
    /// It found what it was based on, and put this in its place.
    Write { base: Base, value: u32, kind: Kind },
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

impl Granted {
    /// From when on it may be over, at the earliest.
    pub fn may_end(&self) -> Instant {
        let end = self.invoked + self.duration;
        self.released.map_or(end, |(invoked, _)| end.min(invoked))
    }
}

/// A moment at which a client was told what only holders and nobody else may be told, or the other way round.
#[derive(Clone, Copy, Debug)]
pub struct Encounter {
    /// The fence of the client's own lease on the resource.
    pub fence: Option<u64>,
    pub invoked: Instant,
    pub answered: Instant,
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
    /// Reads that were answered where leases guard them.
    pub guarded_reads: Vec<Encounter>,
    /// Refusals of a lease as none, or another's.
    pub disowned: Vec<Encounter>,
}

impl History {
    pub fn merge(&mut self, other: Self) {
        self.operations.extend(other.operations);
        self.refused.extend(other.refused);
        self.grants.extend(other.grants);
        self.leased.extend(other.leased);
        self.guarded_reads.extend(other.guarded_reads);
        self.disowned.extend(other.disowned);
    }
}

/// A write as the backend saw it.
#[derive(Clone, Copy, Debug)]
pub struct Applied {
    pub value: u32,
    pub base: Base,
    pub kind: Kind,
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
        let is_write = |method: &str| !matches!(method, "GET" | "HEAD");
        let written = |request: &Request| Written::parse(request.header("write").expect("each write says what it is"));
        for request in backend.requests().iter().filter(|request| is_write(&request.method)) {
            all.entry(named(&request.target).own).or_default().arrived.push(written(request).value);
        }
        for (request, at) in backend.applied() {
            let Written { value, base, .. } = written(&request);
            let fence = request.header("fencing-token").map(|fence| fence.parse().expect("a number"));
            let kind = Kind::of(&request.method);
            let Named { own, whole } = named(&request.target);
            all.entry(own).or_default().applied.push(Applied { value, base, kind, fence, at });
            if let Some(whole) = whole {
                let touch = Applied { value, base: Base::Any, kind: Kind::Touches, fence: None, at };
                all.entry(whole).or_default().applied.push(touch);
            }
        }
        all
    }
}

/// The body of a write, and its field `Write`: who wrote it, and on what.
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
    /// What a body shows, which may be a member of a JSON object.
    #[track_caller]
    pub fn shown(body: &[u8]) -> Self {
        match serde_json::from_slice::<serde_json::Value>(body) {
            Ok(object) => Self::parse(object["is"].as_str().expect("a text")),
            Err(_) => Self::parse(std::str::from_utf8(body).expect("UTF-8")),
        }
    }

    #[track_caller]
    pub fn parse(text: &str) -> Self {
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
        assert_eq!(Written::shown(written.to_string().as_bytes()), written);
        assert_eq!(Written::shown(format!("{{\"is\":\"{written}\",\"rev\":\"s1\"}}").as_bytes()), written);
    }
}
