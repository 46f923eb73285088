//! Clients that read, create, write on what they have read, take leases, write under them and give them back, each
//! through whichever proxy comes, and note what they were told.

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
    history::{Base, Granted, History, Leased, Operation, State, Step, Written},
    support::{leases::Grant, random::Random, raw::Connection, response::Response},
};

/// In a hundred refusals, so many make a client turn to another resource: one that a dead proxy keeps busy would hold
/// up the run.
const TURNING_PERCENT: usize = 25;

/// In a hundred operations, so many are on a resource that was used before; and it is one of the last so many.
const RETURNING_PERCENT: usize = 25;
const RETURNING_MAX: usize = 8;

/// How soon a server that is not there is tried again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(10);

/// How many operations there were, by what clients were told.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub reads: usize,
    pub writes: usize,
    pub differing: usize,
    /// By the code of the refusal.
    pub refused: BTreeMap<String, usize>,
    pub unanswered: usize,
    pub grants: usize,
}

impl Tally {
    pub fn total(&self) -> usize {
        let refused: usize = self.refused.values().sum();
        self.reads + self.writes + self.differing + refused + self.unanswered + self.grants
    }

    pub fn plus(mut self, other: Self) -> Self {
        for (code, count) in other.refused {
            *self.refused.entry(code).or_default() += count;
        }
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            differing: self.differing + other.differing,
            refused: self.refused,
            unanswered: self.unanswered + other.unanswered,
            grants: self.grants + other.grants,
        }
    }
}

/// What a client was told of a write.
enum Told {
    Done,
    /// A precondition was false.
    Differs,
    /// For this reason.
    Refused(String),
    /// It may have been applied.
    Nothing,
}

struct Held {
    target: String,
    id: String,
    fence: u64,
    /// Its place in the history of the resource.
    index: usize,
}

pub struct Client {
    number: usize,
    board: Arc<Board>,
    random: Random,
    connections: HashMap<SocketAddr, Connection>,
    /// The tag of what was found, or that there was nothing, by resource.
    known: HashMap<String, (Option<String>, State)>,
    held: Option<Held>,
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
            held: None,
            histories: BTreeMap::new(),
            tally: Tally::default(),
        }
    }

    /// Does one thing after another until the run is over.
    pub async fn work(mut self) -> Self {
        while !self.board.is_over.load(Ordering::Relaxed) {
            let place = self.random.below(usize::MAX);
            let ago = if self.random.is_one_of(RETURNING_PERCENT) { self.random.below(RETURNING_MAX) } else { 0 };
            let target = self.board.target(place, ago);
            let has_lease = self.held.is_some() && self.random.is_one_of(30);
            if self.random.is_one_of(25) {
                self.read(&target).await;
            } else if has_lease || target.starts_with("/lease/") {
                self.work_with_lease(target).await;
            } else {
                self.write(&target).await;
            }
        }
        self
    }

    /// Reads through some proxy, and now and then only asks whether there is something new.
    pub async fn read(&mut self, target: &str) {
        let known = self.known.get(target).cloned().filter(|_| self.random.is_one_of(30));
        let tag = known.as_ref().and_then(|(tag, _)| tag.clone());
        let fields: Vec<_> = tag.iter().map(|tag| ("If-None-Match", tag.as_str())).collect();
        let invoked = Instant::now();
        let Some(Ok(response)) = self.ask("GET", target, &fields, "").await else { return };
        let state = match response.status {
            200 => Some(Written::parse(&response.body).value),
            304 => known.expect("only a tag is answered so").1,
            404 => None,
            500.. => return,
            _ => panic!("a read is not answered so: {response:?}"),
        };
        self.tally.reads += 1;
        self.note(target, Step::Read(state), invoked, true);
        match response.header("etag") {
            _ if state.is_none() => self.known.insert(target.to_owned(), (None, None)),
            Some(tag) => self.known.insert(target.to_owned(), (Some(tag.to_owned()), state)),
            None => self.known.remove(target),
        };
    }

    /// Writes on what was read last, or creates; reads where nothing is known. Says whether it was done.
    pub async fn write(&mut self, target: &str) -> bool {
        if !self.known.contains_key(target) {
            self.read(target).await;
        }
        let Some((tag, base)) = self.known.get(target).cloned() else { return false };
        let condition = tag.as_ref().map_or(("If-None-Match", "*"), |tag| ("If-Match", tag.as_str()));
        let Some((value, invoked, told, tag)) = self.put(target, condition, Base::Is(base)).await else { return false };
        let step = Step::Write { base: Base::Is(base), value };
        // Who clings to what was overwritten must be refused again.
        if !self.random.is_one_of(20) {
            self.known.remove(target);
        }
        match told {
            Told::Done => {
                self.note(target, step, invoked, true);
                if let Some(tag) = tag {
                    self.known.insert(target.to_owned(), (Some(tag), Some(value)));
                }
            }
            Told::Nothing => self.note(target, step, invoked, false),
            // A version is not the content: a doubt gives the same content a new one.
            Told::Differs if target.starts_with("/content/") => {
                self.note(target, Step::Differs(base), invoked, true);
            }
            Told::Differs | Told::Refused(_) => {}
        }
        matches!(told, Told::Done)
    }

    /// Tries to write, under a lease where one is needed, and says whether it was done.
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

    /// Takes a lease, or does something with the one that is held.
    async fn work_with_lease(&mut self, target: String) {
        let Some(held) = self.held.take() else { return self.acquire(target).await };
        match self.random.below(10) {
            0..6 => match self.write_with(&held).await {
                Some(Told::Refused(code)) if code.starts_with("lease-") => {}
                // Nobody may be let in before the doubt about this write is over.
                Some(Told::Nothing) if self.random.is_one_of(50) => self.release(&held).await,
                _ => self.held = Some(held),
            },
            6..9 => {
                self.release(&held).await;
                if self.random.is_one_of(40) {
                    self.write_with(&held).await;
                }
            }
            // It is forgotten, and runs out.
            _ => {}
        }
    }

    async fn acquire(&mut self, target: String) {
        let seconds = 1 + self.random.below(2);
        let invoked = Instant::now();
        let fields = [("Lease-Duration", &*seconds.to_string())];
        let Some(Ok(response)) = self.ask("POST", &format!("/.leases{target}"), &fields, "").await else { return };
        if response.status != 201 {
            assert!(matches!(response.status, 409 | 503), "{response:?}");
            self.board.note_refusal(&response.problem().code);
            return;
        }
        self.tally.grants += 1;
        let Grant { id, fence } = Grant::of(&response);
        let duration = Duration::from_secs(seconds as u64);
        let answered = Instant::now();
        let grants = &mut self.histories.entry(target.clone()).or_default().grants;
        grants.push(Granted { client: self.number, fence, invoked, answered, duration, released: None });
        self.held = Some(Held { index: grants.len() - 1, target, id, fence });
    }

    async fn release(&mut self, held: &Held) {
        let invoked = Instant::now();
        let response = self.ask("DELETE", &format!("/.leases{}", held.target), &[("Lease-Id", &held.id)], "").await;
        let answered = matches!(&response, Some(Ok(response)) if response.status == 204).then(Instant::now);
        if response.is_some() {
            let history = self.histories.get_mut(&held.target).expect("it was granted");
            history.grants[held.index].released = Some((invoked, answered));
        }
    }

    /// Writes under a lease; `None` if nothing was sent.
    async fn write_with(&mut self, held: &Held) -> Option<Told> {
        let put = self.put(&held.target, ("Lease-Id", &held.id), Base::Any).await;
        let (value, invoked, told, _) = put?;
        let history = self.histories.entry(held.target.clone()).or_default();
        history.leased.push(Leased { value, fence: held.fence, invoked });
        let step = Step::Write { base: Base::Any, value };
        match told {
            Told::Done => self.note(&held.target, step, invoked, true),
            Told::Nothing => self.note(&held.target, step, invoked, false),
            Told::Refused(_) => {}
            Told::Differs => panic!("there was no precondition"),
        }
        Some(told)
    }

    /// A write of a value of its own: the value, when it was asked for, what the client was told, and its tag.
    async fn put(
        &mut self,
        target: &str,
        condition: (&str, &str),
        base: Base,
    ) -> Option<(u32, Instant, Told, Option<String>)> {
        let value = self.board.next_value();
        let body = Written { value, client: self.number, base }.to_string();
        let invoked = Instant::now();
        let response = self.ask("PUT", target, &[condition, ("Write", &value.to_string())], &body).await?;
        let told = response.as_ref().map_or(Told::Nothing, told_by);
        let counter = match &told {
            Told::Done => &mut self.tally.writes,
            Told::Differs => &mut self.tally.differing,
            Told::Refused(code) => self.tally.refused.entry(code.clone()).or_default(),
            Told::Nothing => &mut self.tally.unanswered,
        };
        *counter += 1;
        match &told {
            Told::Done => {
                self.board.done.fetch_add(1, Ordering::Relaxed);
            }
            Told::Refused(code) => self.board.note_refusal(code),
            Told::Differs | Told::Nothing => {}
        }
        if matches!(told, Told::Refused(_) | Told::Differs) {
            self.histories.entry(target.to_owned()).or_default().refused.push(value);
        }
        if matches!(told, Told::Refused(_)) && self.random.is_one_of(TURNING_PERCENT) {
            self.board.turn_from(target);
        }
        let tag = response.ok().and_then(|response| response.header("etag").map(str::to_owned));
        Some((value, invoked, told, tag))
    }

    fn note(&mut self, target: &str, step: Step, invoked: Instant, is_answered: bool) {
        let answered = is_answered.then(Instant::now);
        let operation = Operation { client: self.number, step, invoked, answered };
        self.histories.entry(target.to_owned()).or_default().operations.push(operation);
        self.board.count(target);
    }

    /// A request through some proxy; `None` where none of it was sent.
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
        // The backend's own.
        500 => Told::Nothing,
        _ => match response.problem() {
            problem if problem.in_doubt => Told::Nothing,
            problem if problem.code == "precondition-failed" => Told::Differs,
            problem => Told::Refused(problem.code),
        },
    }
}
