//! Clients that read, create, write on what they have read, take leases, write under them and give them back. Each
//! request goes through a random proxy, and the client records its answer.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::time::sleep;

use super::{
    board::Board,
    history::{Base, Encounter, Granted, History, Kind, Leased, Operation, State, Step, Written, named},
    support::{leases::Grant, random::Random, raw::Connection, response::Response},
    tally::Tally,
};

/// The percentage of refusals that make a client turn to another resource: one that a dead proxy keeps busy would hold
/// up the run.
const TURNING_PERCENT: usize = 25;

/// The percentage of operations on an earlier resource, and the number of latest resources to choose from.
const RETURNING_PERCENT: usize = 25;
const RETURNING_MAX: usize = 8;

/// The pause of a client after it met a write in flight: a client held back after a crash would otherwise only repeat
/// its request.
const REFUSED_PAUSE: Duration = Duration::from_millis(10);

/// The pause before a client tries an unreachable server again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(10);

/// The answer to a write.
pub enum Told {
    Done,
    /// The backend found nothing to change.
    Missing,
    /// A precondition was false.
    Differs,
    /// The write was refused with this code.
    Refused(String),
    /// No answer, or one that leaves the outcome open: the write may have been applied.
    Nothing,
}

pub struct Held {
    /// The target by which the lease was taken.
    pub target: String,
    pub id: String,
    pub fence: u64,
    /// The place of the lease in the history of the resource.
    pub index: usize,
}

/// A write that was sent.
pub struct Sent {
    pub value: u32,
    pub invoked: Instant,
    pub told: Told,
    /// The tag of the answer.
    pub tag: Option<String>,
}

pub struct Client {
    number: usize,
    pub board: Arc<Board>,
    pub random: Random,
    connections: HashMap<SocketAddr, Connection>,
    /// The tag and the state that the client found, by target; both are `None` if there was nothing.
    pub known: HashMap<String, (Option<String>, State)>,
    /// The last date that the client was told, and the state with it, by target.
    pub dated: HashMap<String, (String, State)>,
    pub held: Option<Held>,
    pub histories: BTreeMap<String, History>,
    pub tally: Tally,
}

impl Client {
    pub fn new(number: usize, board: Arc<Board>, random: Random) -> Self {
        Self {
            number,
            board,
            random,
            connections: HashMap::new(),
            known: HashMap::new(),
            dated: HashMap::new(),
            held: None,
            histories: BTreeMap::new(),
            tally: Tally::default(),
        }
    }

    /// Does one operation after another until the run is over.
    pub async fn work(mut self) -> Self {
        while !self.board.is_over.load(Ordering::Relaxed) {
            let place = self.random.below(usize::MAX);
            let ago = if self.random.is_one_of(RETURNING_PERCENT) { self.random.below(RETURNING_MAX) } else { 0 };
            let target = self.board.target(place, ago);
            let has_lease = self.held.is_some() && self.random.is_one_of(30);
            if target.starts_with("/docs/") {
                self.work_on_document(&target).await;
            } else if self.random.is_one_of(25) {
                self.read(&target).await;
            } else if has_lease || target.starts_with("/lease/") {
                self.work_with_lease(target).await;
            } else {
                self.write(&target).await;
            }
        }
        self
    }

    /// Reads through some proxy, at times with a condition that asks only for changes.
    pub async fn read(&mut self, target: &str) {
        let known = self.known.get(target).cloned().filter(|_| self.random.is_one_of(30));
        let tag = known.as_ref().and_then(|(tag, _)| tag.clone());
        let mut fields: Vec<_> = tag.iter().map(|tag| ("If-None-Match", tag.as_str())).collect();
        let own = self.own_lease(target);
        fields.extend(own.iter().map(|(id, _)| ("Lease-Id", id.as_str())));
        let invoked = Instant::now();
        let Some(Ok(response)) = self.ask("GET", target, &fields, "").await else { return };
        let state = match response.status {
            200 => Some(Written::shown(&response.body).value),
            304 => known.expect("only a tag is answered so").1,
            404 => None,
            500.. => return,
            412 if own.is_some() || self.board.manner.guards_reads => {
                let code = response.problem().code;
                assert!(code.starts_with("lease-"), "a read is not refused so: {response:?}");
                return self.note_disowned(target, own.map(|(_, fence)| fence), invoked);
            }
            _ => panic!("a read is not answered so: {response:?}"),
        };
        self.tally.reads += 1;
        self.note(target, Step::Read(state), invoked, true);
        // A client that may not know of the lease gets the backend's own 404.
        if state.is_some() && self.board.manner.guards_reads && named(target).whole.is_none() {
            let fence = own.map(|(_, fence)| fence);
            let read = Encounter { fence, invoked, answered: Instant::now() };
            self.history(target).guarded_reads.push(read);
        }
        if let (Some(date), Some(_)) = (response.header("last-modified"), state) {
            self.dated.insert(target.to_owned(), (date.to_owned(), state));
        }
        match response.header("etag") {
            _ if state.is_none() => self.known.insert(target.to_owned(), (None, None)),
            Some(tag) => self.known.insert(target.to_owned(), (Some(tag.to_owned()), state)),
            None => self.known.remove(target),
        };
    }

    /// Writes on what was read last, or creates; reads first if nothing is known. Returns whether the write was done.
    pub async fn write(&mut self, target: &str) -> bool {
        if !self.known.contains_key(target) {
            self.read(target).await;
        }
        let Some((tag, base)) = self.known.get(target).cloned() else { return false };
        let condition = tag.as_ref().map_or(("If-None-Match", "*"), |tag| ("If-Match", tag.as_str()));
        let Some(sent) = self.send("PUT", target, &[condition], Base::Is(base)).await else { return false };
        self.conclude(target, Base::Is(base), Kind::Replaces, sent)
    }

    /// Records the outcome of a write that had a precondition. Returns whether the write was done.
    pub fn conclude(&mut self, target: &str, base: Base, kind: Kind, sent: Sent) -> bool {
        let Sent { value, invoked, told, tag } = sent;
        let step = Step::Write { base, value, kind };
        // A client that keeps an overwritten tag must be refused again.
        if !self.random.is_one_of(20) {
            self.known.remove(target);
        }
        let is_content = target.starts_with("/content/") || self.board.manner.has_content_tags;
        match (told, base) {
            (Told::Done, _) => {
                self.note_write(target, step, invoked, true);
                if let Some(tag) = tag.filter(|_| kind == Kind::Replaces) {
                    self.known.insert(target.to_owned(), (Some(tag), Some(value)));
                }
                return true;
            }
            (Told::Nothing, _) => self.note_write(target, step, invoked, false),
            // A version is not the content: a doubt gives the same content a new one.
            (Told::Differs, Base::Is(base)) if is_content => self.note(target, Step::Differs(base), invoked, true),
            (Told::Missing, _) => {
                let missing = named(target).whole.unwrap_or_else(|| target.to_owned());
                self.note(&missing, Step::Read(None), invoked, true);
            }
            (Told::Differs | Told::Refused(_), _) => {}
        }
        false
    }

    /// Tries to write, under a lease if one is needed, and returns whether the write was done.
    pub async fn write_somehow(&mut self, target: &str) -> bool {
        if !target.starts_with("/lease/") {
            return self.write(target).await;
        }
        self.acquire(target.to_owned()).await;
        let before = self.tally.writes;
        if let Some(held) = self.held.take() {
            self.write_with(&held).await;
            self.release(&held).await;
        }
        self.tally.writes > before
    }

    /// Takes a lease, or uses the one that is held.
    async fn work_with_lease(&mut self, target: String) {
        let Some(held) = self.held.take() else { return self.acquire(target).await };
        match self.random.below(10) {
            0..6 => match self.write_with(&held).await {
                Some(Told::Refused(code)) if code.starts_with("lease-") => {}
                // No other client may be let in before the doubt about this write is over.
                Some(Told::Nothing) if self.random.is_one_of(50) => self.release(&held).await,
                _ => self.held = Some(held),
            },
            6..9 => {
                self.release(&held).await;
                if self.random.is_one_of(40) {
                    self.write_with(&held).await;
                }
            }
            // The lease is forgotten, and runs out.
            _ => {}
        }
    }

    async fn acquire(&mut self, target: String) {
        let seconds = 1 + self.random.below(2);
        self.acquire_for(target, seconds).await;
    }

    /// Takes a lease, if no client has it.
    pub async fn acquire_for(&mut self, target: String, seconds: usize) {
        let invoked = Instant::now();
        let fields = [("Lease-Duration", &*seconds.to_string())];
        let Some(Ok(response)) = self.ask("POST", &format!("/.leases{target}"), &fields, "").await else { return };
        if response.status != 201 {
            assert!(matches!(response.status, 409 | 503), "{response:?}");
            self.board.note_refusal(&response.problem().code);
            return;
        }
        self.tally.grants += 1;
        self.board.grants.fetch_add(1, Ordering::Relaxed);
        let Grant { id, fence } = Grant::of(&response);
        let duration = Duration::from_secs(seconds as u64);
        let answered = Instant::now();
        let client = self.number;
        let grants = &mut self.history(&target).grants;
        grants.push(Granted { client, fence, invoked, answered, duration, released: None });
        self.held = Some(Held { index: grants.len() - 1, target, id, fence });
    }

    pub async fn release(&mut self, held: &Held) {
        let invoked = Instant::now();
        let response = self.ask("DELETE", &format!("/.leases{}", held.target), &[("Lease-Id", &held.id)], "").await;
        let answered = matches!(&response, Some(Ok(response)) if response.status == 204).then(Instant::now);
        if response.is_some() {
            self.history(&held.target).grants[held.index].released = Some((invoked, answered));
        }
    }

    /// Writes under a lease; returns `None` if nothing was sent.
    async fn write_with(&mut self, held: &Held) -> Option<Told> {
        let Sent { value, invoked, told, .. } =
            self.send("PUT", &held.target, &[("Lease-Id", &held.id)], Base::Any).await?;
        self.note_leased(held, value, invoked);
        let step = Step::Write { base: Base::Any, value, kind: Kind::Replaces };
        match told {
            Told::Done => self.note(&held.target, step, invoked, true),
            Told::Nothing => self.note(&held.target, step, invoked, false),
            Told::Refused(_) => {}
            Told::Differs | Told::Missing => panic!("there was no precondition, and PUT creates"),
        }
        Some(told)
    }

    /// Sends a write with a new value.
    pub async fn send(&mut self, method: &str, target: &str, fields: &[(&str, &str)], base: Base) -> Option<Sent> {
        let value = self.board.next_value();
        let sent = self.send_value(value, method, target, fields, base).await?;
        self.count_write(target, &sent).await;
        Some(sent)
    }

    /// Sends a write with this value.
    pub async fn send_value(
        &mut self,
        value: u32,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        base: Base,
    ) -> Option<Sent> {
        let written = Written { value, client: self.number, base }.to_string();
        let body = if method == "DELETE" { "" } else { &written };
        let fields = [fields, &[("Write", written.as_str())]].concat();
        let invoked = Instant::now();
        let response = self.ask(method, target, &fields, body).await?;
        let told = response.as_ref().map_or(Told::Nothing, told_by);
        let tag = response.ok().and_then(|response| response.header("etag").map(str::to_owned));
        Some(Sent { value, invoked, told, tag })
    }

    /// Counts a write by its answer, and turns to another resource at times if it was refused.
    async fn count_write(&mut self, target: &str, sent: &Sent) {
        let Sent { value, told, .. } = sent;
        let counter = match told {
            Told::Done => &mut self.tally.writes,
            Told::Missing => &mut self.tally.missing,
            Told::Differs => &mut self.tally.differing,
            Told::Refused(code) => self.tally.refused.entry(code.clone()).or_default(),
            Told::Nothing => &mut self.tally.unanswered,
        };
        *counter += 1;
        match told {
            Told::Done => drop(self.board.done.fetch_add(1, Ordering::Relaxed)),
            Told::Differs => drop(self.board.conflicts.fetch_add(1, Ordering::Relaxed)),
            Told::Nothing => drop(self.board.doubts.fetch_add(1, Ordering::Relaxed)),
            Told::Refused(code) => self.board.note_refusal(code),
            Told::Missing => {}
        }
        if matches!(told, Told::Refused(_) | Told::Differs) {
            self.history(target).refused.push(*value);
        }
        if matches!(told, Told::Refused(_)) && self.random.is_one_of(TURNING_PERCENT) {
            self.board.turn_from(&named(target).own);
        }
        if matches!(told, Told::Refused(code) if code == "write-in-flight") {
            sleep(REFUSED_PAUSE).await;
        }
    }

    /// Returns this client's history of the resource behind a target.
    pub fn history(&mut self, target: &str) -> &mut History {
        self.histories.entry(named(target).own).or_default()
    }

    /// Returns the id and the fence of the lease that this client has on the resource behind a target.
    pub fn own_lease(&self, target: &str) -> Option<(String, u64)> {
        let held = self.held.as_ref().filter(|held| named(&held.target).own == named(target).own)?;
        Some((held.id.clone(), held.fence))
    }

    /// Records a write that was sent under a lease.
    pub fn note_leased(&mut self, held: &Held, value: u32, invoked: Instant) {
        self.history(&held.target).leased.push(Leased { value, fence: held.fence, invoked });
    }

    /// Records that a lease was not accepted.
    pub fn note_disowned(&mut self, target: &str, fence: Option<u64>, invoked: Instant) {
        let answered = Instant::now();
        self.history(target).disowned.extend(fence.map(|fence| Encounter { fence: Some(fence), invoked, answered }));
    }

    /// Records a write, which may have changed a second resource.
    pub fn note_write(&mut self, target: &str, step: Step, invoked: Instant, is_answered: bool) {
        if let (Some(whole), Step::Write { value, .. }) = (named(target).whole, step) {
            let touch = Step::Write { base: Base::Any, value, kind: Kind::Touches };
            self.note(&whole, touch, invoked, is_answered);
        }
        self.note(target, step, invoked, is_answered);
    }

    pub fn note(&mut self, target: &str, step: Step, invoked: Instant, is_answered: bool) {
        let answered = is_answered.then(Instant::now);
        let operation = Operation { client: self.number, step, invoked, answered };
        self.history(target).operations.push(operation);
        self.board.count(&named(target).own);
    }

    /// Sends a request through some proxy; returns `None` if none of it was sent.
    async fn ask(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> Option<io::Result<Response>> {
        let addr = {
            let addrs = self.board.addrs.lock().expect("nobody panics with it");
            addrs[self.random.below(addrs.len())]
        };
        let mut connection = if let Some(connection) = self.connections.remove(&addr) {
            connection
        } else if let Ok(connection) = Connection::try_open(addr).await {
            connection
        } else {
            sleep(RECONNECT_PAUSE).await;
            return None;
        };
        let response = connection.try_exchange(method, target, fields, body).await;
        if response.as_ref().is_ok_and(|response| !response.headers.has_token("connection", "close")) {
            self.connections.insert(addr, connection);
        }
        Some(response)
    }
}

fn told_by(response: &Response) -> Told {
    match response.status {
        200 | 201 | 204 => Told::Done,
        404 => Told::Missing,
        // A 500 comes from the backend.
        500 => Told::Nothing,
        _ => match response.problem() {
            problem if problem.in_doubt => Told::Nothing,
            problem if problem.code == "precondition-failed" => Told::Differs,
            problem => Told::Refused(problem.code),
        },
    }
}
