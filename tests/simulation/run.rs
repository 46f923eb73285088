//! One run: from the first request to the last word on what has become of all of them.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use ifmatch::config::{Config, parse};
use tokio::{
    runtime::{Builder, Handle},
    task::{JoinHandle, yield_now},
    time::{Instant, advance, timeout},
};

use crate::{
    backend::{Backend, Style, Tags, resource_of},
    client::{Request, Told, send},
    judge::{Entry, Knowledge, field},
    operation::{Manner, Operation},
    process::{Cellar, Keeping, Process},
    schedule::{Event, Faults},
    world::{Inner, Shared, World},
};

/// Everything that a run begins with.
#[derive(Clone, Debug)]
pub struct Setting {
    pub config: Arc<Config>,
    pub style: Style,
    pub keeping: Keeping,
    pub proxies: usize,
    /// What each client does first, undisturbed.
    pub prologue: Vec<Vec<Step>>,
    /// What each client does then.
    pub steps: Vec<Vec<Step>>,
    pub faults: Faults,
    pub guards_reads: bool,
    pub guards_deletes_alone: bool,
    pub equal_content_is_one_state: bool,
    pub tags_are_versions: bool,
}

/// One request to come.
#[derive(Clone, Debug)]
pub struct Step {
    pub operation: Operation,
    pub target: String,
    pub manner: Manner,
}

/// Who chooses what happens next; none ends the run unjudged: it is known how it goes on.
pub trait Choose {
    fn choose(&mut self, run: &Run, events: &[Event]) -> Option<Event>;
}

pub struct Plan {
    process: usize,
    steps: VecDeque<Step>,
}

pub struct Run {
    pub world: World,
    pub cellar: Cellar,
    pub clients: Vec<Plan>,
    pub tasks: Vec<JoinHandle<()>>,
    pub faults: Faults,
    setting: Arc<Setting>,
    /// By place: which process serves there now.
    processes: Vec<(usize, Arc<Process>)>,
}

/// How a run ended.
pub struct Outcome {
    pub broken: Option<String>,
    pub events: usize,
    pub story: Option<Vec<String>>,
}

/// What can still be waited for, at the most.
const HORIZON: Duration = Duration::from_secs(3_600);

/// How many events a run has at the most: without an end it is one that somebody waits in for ever.
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
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let outcome = runtime.block_on(async {
        let mut run = Run::new(setting, story);
        let events = run.go(choose).await;
        let mut inner = run.world.lock();
        Outcome { broken: inner.ledger.broken.take(), events, story: inner.story.take() }
    });
    runtime.shutdown_background();
    outcome
}

impl Run {
    fn new(setting: &Arc<Setting>, story: bool) -> Self {
        let world = Shared::new(Backend::new(setting.style), story);
        let cellar = Cellar::new(setting.keeping, &world);
        {
            let ledger = &mut world.lock().ledger;
            ledger.clients = vec![Knowledge::default(); setting.steps.len() + 1];
            ledger.guards_reads = setting.guards_reads;
            ledger.guards_deletes_alone = setting.guards_deletes_alone;
            ledger.equal_content_is_one_state = setting.equal_content_is_one_state;
            ledger.tags_are_versions = setting.tags_are_versions;
        }
        let start = |_| Process::start(&world, &setting.config, &cellar, Duration::ZERO);
        let processes = (0..setting.proxies).map(start).collect();
        let plan = |client| Plan { process: client % setting.proxies, steps: VecDeque::new() };
        // The last one is for what is looked at in the end.
        let clients = (0..=setting.steps.len()).map(plan).collect();
        let tasks = Vec::new();
        let faults = Faults { left: 0, ..setting.faults };
        Self { world, cellar, clients, tasks, faults, setting: Arc::clone(setting), processes }
    }

    async fn go(&mut self, choose: &mut dyn Choose) -> usize {
        let setting = Arc::clone(&self.setting);
        for (client, steps) in setting.prologue.iter().enumerate() {
            for step in steps {
                self.alone(client, step.clone()).await;
            }
        }
        self.faults = setting.faults;
        for (client, steps) in setting.steps.iter().enumerate() {
            self.clients[client].steps = steps.clone().into();
        }
        let mut events = 0;
        loop {
            self.settle().await;
            let possible = self.events();
            if possible.is_empty() || self.world.lock().ledger.broken.is_some() {
                break;
            }
            events += 1;
            let Some(event) = choose.choose(self, &possible) else { return events };
            if !self.happen(event).await && self.events() == [Event::Flow] || events > EVENTS_MAX {
                self.breaks("somebody never gets an answer".to_owned());
            }
        }
        if self.world.lock().ledger.broken.is_none() {
            self.finish().await;
        }
        events
    }

    fn breaks(&self, how: String) {
        self.world.lock().ledger.breaks(how);
    }

    /// Lets everybody run who can.
    pub async fn settle(&self) {
        loop {
            let before = self.world.lock().stirs;
            for _ in 0..6 {
                yield_now().await;
            }
            if self.world.lock().stirs == before {
                break;
            }
        }
        self.sweep();
    }

    /// Lets time pass until somebody asks for something or is answered. False: nobody ever is.
    pub async fn flow(&self) -> bool {
        let (before, late) = {
            let inner = self.world.lock();
            (inner.stirs, inner.late.iter().map(|late| late.until).min())
        };
        let until = late.unwrap_or(Instant::now() + HORIZON);
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

    /// Whether every request has an answer, or nobody to answer.
    pub fn is_over(&self, inner: &Inner) -> bool {
        inner.pending.is_empty()
            && self.clients.iter().all(|client| client.steps.is_empty())
            && inner.ledger.requests.iter().all(|entry| entry.answered.is_some() || entry.is_given_up)
    }

    pub fn begin_next(&mut self, client: usize) {
        let step = self.clients[client].steps.pop_front().unwrap();
        self.begin(client, &step);
    }

    fn begin(&mut self, client: usize, step: &Step) -> usize {
        let (process, server) = self.processes[self.clients[client].process].clone();
        let number = {
            let mut inner = self.world.lock();
            let number = inner.ledger.requests.len();
            let resource = resource_of(&step.target);
            let known = inner.ledger.clients[client].clone();
            let lease = known.leases.get(&resource);
            let request = step.operation.request(number, &step.target, &known, lease, step.manner);
            inner.ledger.begin(Entry {
                client,
                process,
                operation: step.operation,
                lease: field(&request, "lease-id"),
                base: known.seen.get(&step.target).cloned(),
                request,
                resource,
                invoked: 0,
                invoked_at: Instant::now(),
                answered: None,
                is_given_up: false,
                arrived: false,
                applied: 0,
            })
        };
        let request = self.world.lock().ledger.requests[number].request.clone();
        self.world.note(|| format!("request {number} of client {client} at process {process}: {request:?}"));
        self.serve(server, number, request);
        number
    }

    fn serve(&mut self, server: Arc<Process>, number: usize, request: Request) {
        self.tasks.push(Handle::current().spawn(send(Arc::clone(&self.world), server, number, request)));
    }

    /// A client's request when nothing else happens, and its answer.
    async fn alone(&mut self, client: usize, step: Step) -> Option<Told> {
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

    /// Lets the first usual thing happen.
    async fn usual(&mut self) -> bool {
        let asked = self.world.lock().pending.first().map(|pending| pending.number);
        match asked {
            Some(number) => self.happen(Event::Do(number)).await,
            None => self.flow().await,
        }
    }

    /// A process dies; another one takes its place.
    pub fn kill(&mut self, process: usize) {
        let place = self.processes.iter().position(|(number, _)| *number == process).unwrap();
        let dead = {
            let mut inner = self.world.lock();
            inner.alive[process] = false;
            let (dead, left) =
                std::mem::take(&mut inner.pending).into_iter().partition(|asked| asked.process == process);
            inner.pending = left;
            if self.setting.keeping == Keeping::Memory {
                inner.ledger.grants.clear();
                // What a memory store knew of tags that repeat is gone, and a tag from before may count again.
                if inner.backend.style.tags != Tags::Precise {
                    inner.ledger.forget_tags();
                }
            }
            let own = inner.ledger.requests.iter_mut().filter(|entry| entry.process == process);
            own.filter(|entry| entry.answered.is_none()).for_each(|entry| entry.is_given_up = true);
            let dead: Vec<_> = dead;
            dead
        };
        // A process that ends closes its connections. A host that is lost does not: they end with its marks.
        let is_lost = self.setting.keeping == Keeping::Shared;
        let closed_after = if is_lost { self.last_deadline() } else { Duration::ZERO };
        for asked in dead {
            self.abandon(asked, closed_after);
        }
        for (number, task) in self.tasks.iter().enumerate() {
            if self.world.lock().ledger.requests[number].process == process {
                task.abort();
            }
        }
        let config = &self.setting.config;
        let hold = self.cellar.restart(&self.world).hold(config);
        self.processes[place] = Process::start(&self.world, config, &self.cellar, hold);
    }

    /// What must be so when all is over: no lease that nobody knows, and nobody is locked out.
    async fn finish(&mut self) {
        self.faults.left = 0;
        for _ in 0..20 {
            self.settle().await;
            while !self.world.lock().pending.is_empty() {
                self.usual().await;
                self.settle().await;
            }
            advance(Duration::from_secs(1)).await;
        }
        self.check_leases();
        self.world.lock().stray.clear();
        let targets = self.setting.steps.iter().flatten().map(|step| step.target.clone());
        let mut targets: Vec<String> = targets.filter(|target| !target.contains("/parts/")).collect();
        targets.sort();
        targets.dedup();
        for target in targets {
            self.audit(&target).await;
        }
    }

    /// No lease is in force whose id nobody has.
    fn check_leases(&self) {
        let records = self.cellar.records();
        for (key, snapshot) in records {
            let Some(lease) = snapshot.lease().filter(|_| snapshot.lease_state().is_held()) else { continue };
            let id = lease.id.reveal();
            let inner = self.world.lock();
            let told = inner.ledger.grants.iter().any(|grant| grant.ids.contains(&id));
            let asked = inner.ledger.requests.iter().filter(|entry| {
                let proposed = ["lease-id", "proposed-lease-id"]
                    .iter()
                    .any(|name| field(&entry.request, name) == Some(id.clone()));
                proposed && entry.operation.is_of_lease() && entry.operation != Operation::Renew
            });
            // A client that was refused has nothing. After a 503 nobody knows, and an id of its own choice gives it the lease.
            let may_have = asked
                .clone()
                .any(|entry| entry.answered.as_ref().is_none_or(|(_, told)| told.status < 300 || told.status == 503));
            let died = inner.alive.iter().any(|alive| !alive);
            drop(inner);
            if !told && !may_have && !died {
                self.breaks(format!("a lease of {key:?} is in force, and nobody has its id"));
            }
        }
    }

    /// Whoever reads a resource now can write it.
    async fn audit(&mut self, target: &str) {
        let client = self.clients.len() - 1;
        let step = |operation| Step { operation, target: target.to_owned(), manner: Manner::default() };
        let mut last = Told::default();
        for _ in 0..6 {
            let Some(read) = self.alone(client, step(Operation::Read)).await else { break };
            let write = if read.status == 404 { Operation::Create } else { Operation::Put };
            let Some(told) = self.alone(client, step(write)).await else { break };
            let is_leased = told.code.is_some_and(|code| code.starts_with("lease-"));
            let reads_leased = read.code.is_some_and(|code| code.starts_with("lease-"));
            if told.status < 300 || is_leased || reads_leased || self.world.lock().ledger.broken.is_some() {
                return;
            }
            last = told;
            advance(Duration::from_secs(60)).await;
        }
        self.breaks(format!("nobody can write {target} any more: {last:?}"));
    }

    /// A hash of all that decides how the run can go on.
    pub fn state(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let records = self.cellar.records();
        for (key, snapshot) in &records {
            (key.as_str(), snapshot.revision, &snapshot.record).hash(&mut hasher);
        }
        let inner = self.world.lock();
        inner.backend.resources.hash(&mut hasher);
        inner.told.hash(&mut hasher);
        inner.alive.hash(&mut hasher);
        let pending: Vec<_> = inner.pending.iter().map(|pending| (pending.request, pending.process)).collect();
        (pending, inner.late.len(), inner.stray.len(), self.faults.left, self.world.now()).hash(&mut hasher);
        for entry in &inner.ledger.requests {
            (entry.answered.is_some(), entry.is_given_up, entry.arrived, entry.applied).hash(&mut hasher);
        }
        self.clients.iter().map(|client| client.steps.len()).for_each(|left| left.hash(&mut hasher));
        hasher.finish()
    }
}
