//! One run: from the first request to the check of what became of all requests.

use std::{collections::VecDeque, fs, sync::Arc, time::Duration};

use ifmatch::config::{Config, parse};
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Handle},
    task::{JoinHandle, spawn_blocking, yield_now},
    time::{Instant, advance, timeout},
};

use crate::{
    azure_queues,
    backend::{Backend, Style, resource_of},
    client::{Request, Told, send},
    dates,
    heads::demands_versions,
    judge::{Entry, Knowledge, Ledger, field},
    metadata::{self, Parts},
    operation::{Manner, Operation},
    options::{Options, Source},
    process::{ALL, Cellar, Keeping, Process, Remembers, memory_directory},
    retries::Keys,
    schedule::{Event, Faults},
    trees::{collection_of, is_root, of_lock},
    watchers::name_of,
    world::{Inner, Shared, World},
};

/// All that a run begins with.
#[derive(Clone, Debug)]
pub struct Setting {
    pub config: Arc<Config>,
    pub style: Style,
    pub keeping: Keeping,
    pub remembers: Remembers,
    pub proxies: usize,
    /// The configurations of the processes that take the place of ended ones; none if each has that of the one before.
    pub successors: Vec<Arc<Config>>,
    /// Another configuration that a process may load.
    pub other: Option<String>,
    /// True if that configuration changes the source of tags.
    pub reload_changes_tags: bool,
    /// The first steps of each client, undisturbed.
    pub prologue: Vec<Vec<Step>>,
    /// The further steps of each client.
    pub steps: Vec<Vec<Step>>,
    pub faults: Faults,
    pub guards_reads: bool,
    pub guards_writes: bool,
    pub guards_deletes: bool,
    pub equal_content_is_one_state: bool,
    pub tags_are_versions: bool,
    pub settled_reads: bool,
    pub has_metadata: bool,
    /// True if each configuration recognises the retries of keyed writes.
    pub keeps_keys: bool,
    /// True if the only faults are stops of owners after their marks.
    pub has_slow_owners: bool,
    /// True if the leases of the first steps have run out before the further steps begin.
    pub have_leases_ended: bool,
    /// True if notices of changed records can be lost.
    pub loses_notices: bool,
    /// How many times the wall clock of the shared store is set back; 0 if the store has none.
    pub clock_steps: u32,
    /// True if each client has credentials of its own.
    pub names_clients: bool,
    /// True if the run is about a queue in Azure's dialect.
    pub has_queue: bool,
    /// How long the right of a client that watches lasts, if clients watch.
    pub right_lasts: Option<Duration>,
}

impl Setting {
    /// One undisturbed process with these options, which guards writes by leases. `text` is its configuration.
    pub fn of(options: &Options, text: &str) -> Self {
        Self {
            config: config(text),
            style: options.style(),
            keeping: Keeping::Memory,
            remembers: ALL,
            proxies: 1,
            successors: Vec::new(),
            other: None,
            reload_changes_tags: false,
            prologue: Vec::new(),
            steps: Vec::new(),
            faults: Faults { left: 0, kills: true, fails: true },
            guards_reads: false,
            guards_writes: true,
            guards_deletes: true,
            equal_content_is_one_state: options.source == Source::Content,
            tags_are_versions: options.source == Source::Version,
            settled_reads: options.has_settled_reads(),
            has_metadata: options.has_metadata,
            keeps_keys: false,
            has_slow_owners: false,
            have_leases_ended: false,
            loses_notices: false,
            clock_steps: 0,
            names_clients: false,
            has_queue: false,
            right_lasts: None,
        }
    }
}

/// One request to come.
#[derive(Clone, Debug)]
pub struct Step {
    pub operation: Operation,
    pub target: String,
    pub manner: Manner,
}

impl Step {
    /// A request of the first document, in no special manner.
    pub fn of_document(operation: Operation) -> Self {
        Self { operation, target: "/docs/1".to_owned(), manner: Manner::default() }
    }
}

/// Chooses the next event; `None` ends the run without a verdict, because its continuation is known.
pub trait Choose {
    fn choose(&mut self, run: &Run, events: &[Event]) -> Option<Event>;
}

pub struct Plan {
    process: usize,
    pub steps: VecDeque<Step>,
}

pub struct Run {
    pub world: World,
    pub cellar: Cellar,
    pub clients: Vec<Plan>,
    pub tasks: Vec<JoinHandle<()>>,
    pub faults: Faults,
    pub setting: Arc<Setting>,
    /// The process that serves at each place now.
    pub processes: Vec<(usize, Arc<Process>)>,
    /// The directory of the other configuration.
    pub directory: Option<TempDir>,
    /// The number of reloads left, and the tasks of those in flight.
    pub reloads_left: u32,
    /// The number of times that the clock may still be set back.
    pub clock_steps_left: u32,
    /// The number of moments that may still pass, and of writes without ifmatch.
    pub beside_left: (u32, u32),
    pub reloads: Vec<(usize, JoinHandle<()>)>,
}

/// The end of a run.
pub struct Outcome {
    pub broken: Option<String>,
    /// A hash of all that clients and the backend have at the end; `None` if the run was not taken to its end.
    pub end: Option<u64>,
    pub events: usize,
    pub story: Option<Vec<String>>,
}

/// The longest wait for an event.
const HORIZON: Duration = Duration::from_secs(3_600);

/// The largest number of times that a process loads the other configuration.
const RELOADS_MAX: u32 = 2;

/// The name of the file with that configuration.
pub const FILE: &str = "other.toml";

/// The largest number of events in a run: a run with more has a request that waits forever.
const EVENTS_MAX: usize = 2_000;

/// Reads a configuration.
pub fn config(text: &str) -> Arc<Config> {
    match parse("simulation", text) {
        Ok(loaded) => Arc::new(loaded.config),
        Err(problems) => panic!("{problems}\n{text}"),
    }
}

/// Does one run.
pub fn run(setting: &Arc<Setting>, choose: &mut dyn Choose, story: bool) -> Outcome {
    // Chance is the seed's alone: numbers of answers begin anew, and files are read one after the other.
    fastrand::seed(0);
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).max_blocking_threads(1).build().unwrap();
    let outcome = runtime.block_on(async {
        let mut run = Run::new(setting, story);
        let (events, end) = run.go(choose).await;
        let mut inner = run.world.lock();
        Outcome { broken: inner.ledger.broken.take(), end, events, story: inner.story.take() }
    });
    runtime.shutdown_background();
    outcome
}

impl Run {
    fn new(setting: &Arc<Setting>, story: bool) -> Self {
        azure_queues::begin_time();
        let world = Shared::new(Backend::new(setting.style), story, setting.clock_steps > 0);
        let cellar = Cellar::new(setting.keeping, setting.remembers, &world, &setting.config);
        world.lock().backend.incarnation = cellar.store.incarnation().0;
        world.lock().loses_notices = setting.loses_notices;
        let directory = setting.other.as_ref().map(|text| {
            let directory = tempfile::tempdir_in(memory_directory()).unwrap();
            fs::write(directory.path().join(FILE), text).unwrap();
            directory
        });
        let file = directory.as_ref().map(|directory| directory.path().join(FILE));
        {
            let ledger = &mut world.lock().ledger;
            ledger.clients = vec![Knowledge::default(); setting.steps.len() + 1];
            ledger.guards_reads = setting.guards_reads;
            ledger.guards_writes = setting.guards_writes;
            ledger.guards_deletes = setting.guards_deletes;
            ledger.equal_content_is_one_state = setting.equal_content_is_one_state;
            ledger.tags_are_versions = setting.tags_are_versions;
            ledger.store_forgets = setting.remembers != ALL;
            ledger.sets_clock_back = setting.clock_steps > 0;
            ledger.settled_reads = setting.settled_reads;
            ledger.demands_versions = demands_versions(setting);
            ledger.has_metadata = setting.has_metadata;
            ledger.losses_max = dates::losses(setting);
            ledger.forgives_doubts = dates::says_unique(setting);
            ledger.queues.is_there = setting.has_queue;
            ledger.watches.names_clients = setting.names_clients;
            ledger.watches.right_lasts = setting.right_lasts;
            ledger.keys = match (setting.keeps_keys, setting.keeping) {
                (false, _) => Keys::Forgotten,
                (true, Keeping::Shared) => Keys::Shared,
                (true, Keeping::Memory | Keeping::Disk) => Keys::InProcess,
            };
        }
        let start = |_| Process::start(&world, &setting.config, &cellar, Duration::ZERO, file.as_deref());
        let processes = (0..setting.proxies).map(start).collect();
        let plan = |client| Plan { process: client % setting.proxies, steps: VecDeque::new() };
        // The last client makes the checks at the end.
        let clients = (0..=setting.steps.len()).map(plan).collect();
        let tasks = Vec::new();
        let faults = Faults { left: 0, ..setting.faults };
        let setting = Arc::clone(setting);
        Self {
            world,
            cellar,
            clients,
            tasks,
            faults,
            setting,
            processes,
            directory,
            reloads_left: 0,
            clock_steps_left: 0,
            beside_left: (0, 0),
            reloads: Vec::new(),
        }
    }

    async fn go(&mut self, choose: &mut dyn Choose) -> (usize, Option<u64>) {
        let setting = Arc::clone(&self.setting);
        for (client, steps) in setting.prologue.iter().enumerate() {
            for step in steps {
                self.pause().await;
                self.alone(client, step.clone()).await;
            }
        }
        if setting.have_leases_ended {
            advance(self.longest_wait()).await;
        }
        self.faults = setting.faults;
        self.beside_left = dates::beside(&setting);
        self.clock_steps_left = setting.clock_steps;
        self.reloads_left = if setting.other.is_some() { RELOADS_MAX } else { 0 };
        for (client, steps) in setting.steps.iter().enumerate() {
            self.clients[client].steps = steps.clone().into();
        }
        let mut events = 0;
        loop {
            self.settle().await;
            self.world.lock().note_standing();
            let possible = self.events();
            if possible.is_empty() || self.world.lock().ledger.broken.is_some() {
                break;
            }
            events += 1;
            let Some(event) = choose.choose(self, &possible) else { return (events, None) };
            if !self.happen(event).await && self.events() == [Event::Flow] || events > EVENTS_MAX {
                self.breaks("a request never gets an answer".to_owned());
            }
        }
        let end = self.end();
        if self.world.lock().ledger.broken.is_none() {
            self.finish().await;
        }
        (events, Some(end))
    }

    pub fn breaks(&self, how: String) {
        self.world.lock().ledger.breaks(how);
    }

    /// Lets every task run that can.
    pub async fn settle(&self) {
        loop {
            let before = self.world.lock().stirs;
            for _ in 0..6 {
                yield_now().await;
            }
            if self.reloads.iter().any(|(_, reload)| !reload.is_finished()) {
                // The file of a reload is read on the one other thread, which takes this after it.
                spawn_blocking(|| {}).await.unwrap();
                for _ in 0..6 {
                    yield_now().await;
                }
            }
            if self.world.lock().stirs == before {
                break;
            }
        }
        self.sweep();
    }

    /// Lets time pass until a task asks a question or is answered. Returns false if that never happens.
    pub async fn flow(&self) -> bool {
        let (before, late) = {
            let inner = self.world.lock();
            (inner.stirs, inner.late.iter().map(|late| late.until).min())
        };
        let until = late.map_or(Instant::now() + HORIZON, |late| late - self.setting.style.later_by);
        while self.world.lock().stirs == before {
            let left = until.saturating_duration_since(Instant::now());
            if timeout(left, self.world.stirred.notified()).await.is_err() {
                return late.is_some();
            }
        }
        true
    }

    pub fn may_begin(&self, inner: &Inner, client: usize) -> bool {
        let mut own = inner.ledger.requests.iter().filter(|entry| entry.client == client);
        let is_idle = own.next_back().is_none_or(|last| last.answered.is_some() || last.is_given_up);
        is_idle && !self.clients[client].steps.is_empty()
    }

    /// True if every request has an answer, or no client to answer.
    pub fn is_over(&self, inner: &Inner) -> bool {
        inner.pending.is_empty()
            && self.clients.iter().all(|client| client.steps.is_empty())
            && inner.ledger.requests.iter().all(|entry| entry.answered.is_some() || entry.is_given_up)
    }

    pub fn begin_next(&mut self, client: usize) {
        let step = self.clients[client].steps.pop_front().unwrap();
        match step.operation {
            Operation::HangUp => self.hang_up(client),
            Operation::Revoke => self.revoke(client),
            Operation::Watch => {
                // A client reads one stream at a time.
                self.hang_up(client);
                self.begin(client, &step);
            }
            _ => {
                self.begin(client, &step);
            }
        }
    }

    fn begin(&mut self, client: usize, step: &Step) -> usize {
        let place = self.clients[client].process + usize::from(step.manner.goes_elsewhere);
        let (process, server) = self.processes[place % self.processes.len()].clone();
        let number = {
            let mut inner = self.world.lock();
            let number = inner.ledger.requests.len();
            let retry = step.manner.resends.then(|| inner.ledger.retry(client, process, step.manner.changes)).flatten();
            let mut entry = retry.unwrap_or_else(|| entry(&inner.ledger, (client, process), number, step));
            if let Operation::OfQueue(of) = step.operation {
                entry.request = azure_queues::request(&mut inner.ledger, (client, number), of, step.manner);
            }
            inner.ledger.begin(entry)
        };
        let request = self.world.lock().ledger.requests[number].request.clone();
        self.world.note(|| format!("request {number} of client {client} at process {process}: {request:?}"));
        self.serve(server, number, request);
        number
    }

    fn serve(&mut self, server: Arc<Process>, number: usize, request: Request) {
        self.tasks.push(Handle::current().spawn(send(Arc::clone(&self.world), server, number, request)));
    }

    /// Sends a client's request while nothing else happens, and returns its answer.
    pub async fn alone(&mut self, client: usize, step: Step) -> Option<Told> {
        let number = self.begin(client, &step);
        for _ in 0..EVENTS_MAX {
            self.settle().await;
            if let Some((_, told)) = &self.world.lock().ledger.requests[number].answered {
                return Some(told.clone());
            }
            self.usual().await;
        }
        None
    }

    /// Lets the first usual event happen.
    pub async fn usual(&mut self) -> bool {
        let asked = self.world.lock().pending.first().map(|pending| pending.number);
        match asked {
            Some(number) => self.happen(Event::Do(number)).await,
            None => self.flow().await,
        }
    }
}

/// Builds a new request of a client.
fn entry(ledger: &Ledger, (client, process): (usize, usize), number: usize, step: &Step) -> Entry {
    let resource = resource_of(&step.target);
    let known = &ledger.clients[client];
    let around = || collection_of(&resource).and_then(|collection| known.leases.get(&collection));
    let lease = known.leases.get(&resource).or_else(|| around().filter(|_| !step.operation.is_of_lease()));
    let is_of_lock = is_root(&step.target) && step.operation.is_of_lease();
    let mut request = if is_of_lock {
        of_lock(step.operation, &step.target, lease, step.manner)
    } else {
        step.operation.request(number, &step.target, known, lease, step.manner)
    };
    if ledger.watches.names_clients {
        request.fields.retain(|(name, _)| *name != "authorization");
        request.fields.push(("authorization", name_of(client)));
    }
    if step.operation == Operation::Watch {
        request.fields.extend(ledger.watches.fields(client, step.manner));
    }
    if ledger.has_metadata {
        request.fields.extend(metadata::fields(step.operation, number));
    }
    Entry {
        client,
        process,
        operation: step.operation,
        retry_of: None,
        lease: if is_of_lock { lease.cloned() } else { field(&request, "lease-id") },
        base: known.seen.get(&step.target).cloned(),
        request,
        resource,
        invoked: 0,
        invoked_at: Instant::now(),
        answered: None,
        is_given_up: false,
        shows_beside: None,
        asked: false,
        arrived: false,
        applied: 0,
        parts: Parts::default(),
    }
}
