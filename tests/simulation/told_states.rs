//! The states in the events of watches.

use ifmatch::core::{
    lease::{LeaseMode, LeaseState},
    records::record::Snapshot,
};
use serde_json::Value;

/// The state that an event, or an answer with a state, has shown to a client.
#[derive(Clone, Debug)]
pub struct Heard {
    /// The number of the request.
    pub watch: usize,
    pub client: usize,
    pub process: usize,
    pub resource: String,
    pub content: Option<HeardContent>,
    pub lease: Option<HeardLease>,
    /// The number of changes at the backend by then.
    pub serial: u64,
}

impl Heard {
    pub fn tag(&self) -> Option<&str> {
        match &self.content {
            Some(HeardContent::Tagged(tag)) => Some(tag),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeardContent {
    /// It may be another one.
    Unknown,
    Tagged(String),
    Deleted,
    /// The backend does not show it to the client, which gets no more events of it.
    Denied,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardLease {
    state: String,
    pub fence: Option<u64>,
    shared_by: Option<u64>,
}

impl HeardLease {
    /// No lease.
    pub fn none() -> Self {
        Self { state: LeaseState::Available.word().to_owned(), fence: None, shared_by: None }
    }

    /// The lease that a record shows.
    pub fn of(snapshot: &Snapshot) -> Self {
        let (state, lease) = (snapshot.lease_state(), snapshot.lease());
        let is_shared =
            |lease: &&ifmatch::core::lease::Lease| state.is_held() && matches!(lease.mode, LeaseMode::Shared(_));
        Self {
            state: state.word().to_owned(),
            fence: lease.filter(|_| state != LeaseState::Available).map(|_| snapshot.fence().0),
            shared_by: lease.filter(is_shared).map(|_| snapshot.held_leases().count() as u64),
        }
    }

    /// True if it is held no more.
    pub fn has_ended(&self) -> bool {
        [LeaseState::Broken, LeaseState::Expired].into_iter().any(|state| self.state == state.word())
    }

    fn told(data: &Value) -> Self {
        let state = data["state"].as_str().unwrap().to_owned();
        Self {
            fence: data["fence"].as_u64().filter(|_| state != LeaseState::Available.word()),
            state,
            shared_by: data["shared_by"].as_u64(),
        }
    }
}

/// An event of a stream.
pub struct Event {
    pub name: String,
    pub id: Option<String>,
    pub data: Value,
}

/// Reads the events in a piece of a stream.
pub fn read_events(text: &str) -> impl Iterator<Item = Event> {
    text.split("\n\n").filter_map(|block| {
        let value = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let data = serde_json::from_str(value("data")?).unwrap();
        Some(Event { name: value("event")?.to_owned(), id: value("id").map(str::to_owned), data })
    })
}

/// Returns the state of its resource in an event with this name; `None` if it has none.
pub fn state_of(name: &str, data: &Value) -> Option<(Option<HeardContent>, Option<HeardLease>)> {
    let content = || match (data["etag"].as_str(), data["deleted"].as_bool()) {
        (Some(tag), _) => HeardContent::Tagged(tag.to_owned()),
        (None, Some(true)) => HeardContent::Deleted,
        (None, _) => HeardContent::Unknown,
    };
    match name {
        "denied" => Some((Some(HeardContent::Denied), None)),
        "state" if data["status"].is_u64() => Some((Some(HeardContent::Denied), None)),
        "state" => Some((Some(content()), Some(HeardLease::told(&data["lease"])))),
        "changed" => Some((Some(content()), None)),
        "lease" => Some((None, Some(HeardLease::told(data)))),
        _ => None,
    }
}
