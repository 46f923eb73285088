//! The requests of clients and their answers, the writes that the backend applied, and the form of both in bodies.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use crate::support::backend::{Backend, Request, style::Named};

/// Returns the resources that a target names: two routes may lead to one document, and an item is a part of its
/// document too.
pub fn named(target: &str) -> Named {
    let own = target.strip_prefix("/alias/").map_or_else(|| target.to_owned(), |id| format!("/docs/{id}"));
    let whole = target.strip_prefix("/items/").map(|id| format!("/docs/{id}"));
    Named { own, whole }
}

/// The state after a write: the number of the write, which is unique in a run. `None` is a resource that is not there.
pub type State = Option<u32>;

/// The state that a write must be based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Any state: the client has a lease.
    Any,
    /// This state and no other.
    Is(State),
}

/// The way in which a write changes a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PUT.
    Replaces,
    /// DELETE.
    Removes,
    /// POST: beside any writes in flight, which may replace it.
    Appends,
    /// A write of an item, which changes its document too, and claims both. It runs beside a lease.
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

    /// True if the write takes any state as its base.
    pub fn is_beside(self) -> bool {
        matches!(self, Self::Appends | Self::Touches)
    }

    /// True if the write runs beside others, which may replace it.
    pub fn is_unclaimed(self) -> bool {
        self == Self::Appends
    }

    /// Returns the state after the write.
    pub fn leaves(self, value: u32) -> State {
        (self != Self::Removes).then_some(value)
    }
}

/// The effect of an operation, if it took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The operation found this state.
    Read(State),
    /// The operation found the state that it was based on, and replaced it with this one.
    Write { base: Base, value: u32, kind: Kind },
    /// The operation found a state other than this.
    Differs(State),
}

/// One operation of a client on one resource.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub client: usize,
    pub step: Step,
    pub invoked: Instant,
    /// The moment of the answer. Without an answer the operation took effect at any later moment, or never.
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
    /// The moment when the release was requested, and the moment of its answer.
    pub released: Option<(Instant, Option<Instant>)>,
}

impl Granted {
    /// Returns the earliest moment when the lease may be over.
    pub fn may_end(&self) -> Instant {
        let end = self.invoked + self.duration;
        self.released.map_or(end, |(invoked, _)| end.min(invoked))
    }
}

/// An answer that only a holder may get, or that only a client other than the holder may get.
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
    /// Refused writes: not one byte of them may have reached the backend.
    pub refused: Vec<u32>,
    pub grants: Vec<Granted>,
    pub leased: Vec<Leased>,
    /// Reads that showed a resource whose leases guard reads.
    pub guarded_reads: Vec<Encounter>,
    /// Refusals that call the client's lease absent or another client's.
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
    /// The `Fencing-Token` of the write.
    pub fence: Option<u64>,
    pub at: Instant,
}

/// The events on one resource at the backend.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The applied writes, in the order of application.
    pub applied: Vec<Applied>,
    /// The writes of which any part arrived.
    pub arrived: Vec<u32>,
}

impl Seen {
    /// Returns the events that a backend has seen, by resource.
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

/// The content of a write's body and of its field `Write`: the writing client, and the base.
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
    /// Parses a body, which may be a JSON object with the text as a member.
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
