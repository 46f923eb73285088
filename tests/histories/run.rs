//! One run: clients, disturbances, and the verdict on what was seen.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::{Arc, Mutex, atomic::Ordering},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::{task::JoinSet, time::sleep};

use super::{
    board::{Board, Manner},
    disturbance::{Counts, Disturber},
    history::{History, Seen, named},
    members,
    options::{Keeping, Options, Source},
    promise::{anomalies_at_backend, anomalies_of_leases},
    register::{describe, is_linearizable},
    support::{
        backend::{Answer, Backend, Request, Validators},
        engines::{Engine, Etcd, Redis, cluster::EtcdCluster},
        gate::Gate,
        proxy::Proxy,
        random::Random,
    },
    workload::{Client, Tally},
};

const CLIENTS: usize = 8;
/// Of generated configurations, in which resources are closed more often.
const MORE_CLIENTS: usize = 16;
const PROXIES: usize = 2;

/// How long a resource may stay closed after all disturbances: the mark of a dead proxy (8.5 s) and a doubt (3 s), on a
/// machine that is busy.
const RECOVERY_MAX: Duration = Duration::from_secs(60);

/// Operations of clients that a run needs for each of its disturbances at the least: a run in which little happens shows
/// little. In the runs that `docs/histories.md` tells of they were a hundred.
const OPERATIONS_OF_A_DISTURBANCE: usize = 20;

/// How long the operations that are still missing after the last disturbance may take, and each of very many.
const OPERATIONS_MAX: Duration = Duration::from_secs(60);
const OPERATION_MAX: Duration = Duration::from_millis(50);

/// What all guarded routes have. Short limits, so that a mark of a dead proxy is over in seconds: its deadline is 8.5 s
/// away, which no stop comes near.
const UPSTREAM: &str = "connect_timeout = \"500ms\"\ntimeout = \"1s\"\nlate_max = \"3s\"";
const GUARDED: &str = "claim = { max_wait = \"150ms\" }\nprobe = { timeout = \"500ms\" }\nhash_wait = \"5s\"";

/// When a late write is applied after it came, in milliseconds, at the least and by how much more: after `timeout`, and
/// well within `late_max`.
const LATE_MS: (usize, usize) = (800, 1_500);

/// How the answers of the backend differ from those of a plain server, in a hundred writes.
const LATE_PERCENT: usize = 2;
const UNANSWERED_PERCENT: usize = 2;
const SLOW_PERCENT: usize = 50;

/// What a run is made of.
pub struct Plan {
    name: String,
    engine: Option<Engine>,
    members: Option<EtcdCluster>,
    /// The file of a disk store.
    directory: Option<TempDir>,
    /// The configuration, in which `{backend}` stands for the backend.
    configuration: String,
    folders: Vec<&'static str>,
    options: Option<Options>,
    clients: usize,
    proxies: usize,
    places: usize,
    disturbances: usize,
    /// Operations that are answered before the end.
    operations: usize,
    random: Random,
}

/// What a run came to.
pub struct Verdict {
    pub anomalies: Vec<String>,
    pub summary: String,
    pub tally: Tally,
    pub counts: Counts,
}

impl Plan {
    /// Guarded and leased resources over a common engine, and disturbances.
    pub fn guarded(engine: Engine, disturbances: usize) -> Self {
        let (name, store) = (engine.name(), engine.store());
        Self { engine: Some(engine), ..Self::with_store(name, &store, disturbances) }
    }

    /// The same over an etcd of three members; the disturbances are elections.
    pub fn members(cluster: EtcdCluster, elections: usize) -> Self {
        let store = format!("kind = \"etcd\"\nendpoints = {:?}", cluster.endpoints());
        Self { members: Some(cluster), ..Self::with_store("etcd of three members", &store, elections) }
    }

    /// Documents and items, as options say; the last disturbance is a stop that outlasts marks, where others go on.
    pub async fn generated(keeping: Keeping, mut random: Random, disturbances: usize, operations: usize) -> Self {
        let options = Options::by_chance(&mut random);
        let (engine, directory, store) = match keeping {
            Keeping::Disk => {
                let directory = tempfile::tempdir().expect("a temporary directory");
                let store = format!("kind = \"disk\"\npath = {:?}", directory.path().join("leases"));
                (None, Some(directory), store)
            }
            Keeping::Etcd => with_engine(Engine::Etcd(Etcd::start().await)),
            Keeping::Redis => with_engine(Engine::Redis(Redis::start().await)),
        };
        Self {
            engine,
            directory,
            options: Some(options),
            clients: MORE_CLIENTS,
            proxies: if keeping == Keeping::Disk { 1 } else { PROXIES },
            places: 4,
            disturbances,
            operations,
            ..Self::bare(format!("{keeping:?}, {options}"), options.text(&store), vec!["docs"], random)
        }
    }

    fn with_store(name: &str, store: &str, disturbances: usize) -> Self {
        let store = format!("{store}\ntimeout = \"1s\"\nidle_ttl = \"1s\"");
        let lease = "policy = \"pessimistic\"\netag = \"version\"\nwriters = \"exclusive\"\n[routes.lease]\n\
                     auth = \"none\"\nabsent = \"allow\"\nmin = \"1s\"\nrequired = true\nremember = \"1s\"\n\
                     max_per_principal = 1000";
        let routes = [
            ("content", "policy = \"optimistic\"\netag = \"content\"\nwriters = \"shared\""),
            ("version", "policy = \"optimistic\"\netag = \"version\"\nwriters = \"exclusive\""),
            ("lease", lease),
        ];
        let operations = disturbances * OPERATIONS_OF_A_DISTURBANCE;
        Self { places: 2, disturbances, operations, ..Self::with_routes(name, &store, &routes) }
    }

    /// No guard at all: conditions are passed on to a backend that does not look at them.
    pub fn unguarded() -> Self {
        let routes = [("content", "policy = \"last-writer-wins\"")];
        Self::with_routes("last-writer-wins", "kind = \"memory\"", &routes)
    }

    /// Two proxies, each with a store of its own.
    pub fn apart() -> Self {
        let routes = [("content", "policy = \"optimistic\"\netag = \"content\"\nwriters = \"shared\"")];
        Self::with_routes("a memory of its own each", "kind = \"memory\"", &routes)
    }

    fn with_routes(name: &str, store: &str, routes: &[(&'static str, &str)]) -> Self {
        let mut file = format!(
            "[server]\n{{listen}}\nspool_dir = \"{{spool}}\"\nthreads = 2\n[store]\n{store}\n[upstreams.backend]\n\
             servers = [\"{{backend}}\"]\n{UPSTREAM}\n"
        );
        for (folder, rules) in routes {
            let common = if rules.contains("last-writer-wins") { "" } else { GUARDED };
            let route = format!("name = \"{folder}\"\npath = \"/{folder}/{{id}}\"\nupstream = \"backend\"");
            write!(file, "[[routes]]\n{route}\n{common}\n{rules}\n").expect("a String takes all");
        }
        let folders = routes.iter().map(|(folder, _)| *folder).collect();
        Self::bare(name.to_owned(), file, folders, Random::new(name))
    }

    fn bare(name: String, configuration: String, folders: Vec<&'static str>, random: Random) -> Self {
        Self {
            name,
            engine: None,
            members: None,
            directory: None,
            configuration,
            folders,
            options: None,
            clients: CLIENTS,
            proxies: PROXIES,
            places: 1,
            disturbances: 0,
            operations: 400,
            random,
        }
    }

    fn manner(&self) -> Manner {
        self.options.map_or_else(Manner::default, |options| Manner {
            has_content_tags: options.source == Source::Content,
            guards_reads: options.guards_reads,
            needs_lease: options.required,
        })
    }
}

fn with_engine(engine: Engine) -> (Option<Engine>, Option<TempDir>, String) {
    let store = engine.store();
    (Some(engine), None, store)
}

/// Carries out a plan and checks what came of it.
pub async fn run(plan: Plan) -> Verdict {
    let (began, manner) = (Instant::now(), plan.manner());
    let Plan { name, engine, members, directory, configuration, options, mut random, .. } = plan;
    let (backend, late_ms) = match options {
        Some(options) => (Backend::in_style(options.style()).await, options.late_ms()),
        None => (Backend::with(Validators::Tags).await, LATE_MS),
    };
    misbehave(&backend, late_ms, random.fork());
    let configuration = configuration.replace("{backend}", &backend.addr().to_string());
    let mut proxies = Vec::new();
    for _ in 0..plan.proxies {
        proxies.push(Proxy::start(&configuration).await);
    }
    let addrs = proxies.iter().map(Proxy::addr).collect();
    let board = Arc::new(Board::new(addrs, &plan.folders, plan.places, manner));
    let mut clients = JoinSet::new();
    for number in 0..plan.clients {
        clients.spawn(Client::new(number, Arc::clone(&board), random.fork()).work());
    }
    let last = Client::new(plan.clients, Arc::clone(&board), random.fork());
    let (counts, too_long) = (Counts::default(), Duration::from_secs(1));
    let mut disturber =
        Disturber { proxies, engine, configuration, board: Arc::clone(&board), random, counts, too_long };
    match &members {
        Some(cluster) => members::disturb(cluster, &board, plan.disturbances).await,
        None => disturber.disturb(plan.disturbances).await,
    }
    if let Some(options) = options.filter(|_| plan.proxies > 1) {
        disturber.outlast_marks(options.mark_lasts()).await;
    }
    work_enough(&board, plan.operations).await;
    board.is_over.store(true, Ordering::Relaxed);
    let mut clients = clients.join_all().await;
    clients.push(finish(last, &clients).await);
    drop(directory);

    let mut histories: BTreeMap<String, History> = BTreeMap::new();
    let mut tally = Tally::default();
    for client in clients {
        tally = tally.plus(client.tally);
        for (target, history) in client.histories {
            histories.entry(target).or_default().merge(history);
        }
    }
    // A proxy that was killed while it wrote leaves half a request.
    let cut_off = backend.take_malformed().len();
    let seen = Seen::by(&backend);
    let anomalies = anomalies(&histories, &seen, began);
    let summary = format!(
        "{name}: {} operations on {} resources in {:.0} s, {tally:?}, {:?}, {cut_off} requests cut off, {} anomalies",
        tally.total(),
        histories.len(),
        began.elapsed().as_secs_f64(),
        disturber.counts,
        anomalies.len()
    );
    Verdict { anomalies, summary, tally, counts: disturber.counts }
}

/// Lets the clients go on until so many of their operations were answered.
async fn work_enough(board: &Board, operations: usize) {
    let most = u32::try_from(operations).expect("so many are never asked for");
    let end = Instant::now() + OPERATIONS_MAX.max(OPERATION_MAX * most);
    loop {
        let answered = board.answered.load(Ordering::Relaxed);
        if answered >= operations {
            return;
        }
        assert!(Instant::now() < end, "only {answered} operations of {operations} were answered");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Every resource takes a write again in the end, and is read once more.
async fn finish(mut last: Client, clients: &[Client]) -> Client {
    let end = Instant::now() + RECOVERY_MAX;
    let targets: BTreeSet<&String> = clients.iter().flat_map(|client| client.histories.keys()).collect();
    let wholes = targets.iter().filter_map(|target| named(target).whole);
    let mut closed: Vec<String> = targets.iter().map(|target| (*target).clone()).chain(wholes).collect();
    closed.sort_unstable();
    closed.dedup();
    while !closed.is_empty() {
        assert!(Instant::now() < end, "closed for ever: {closed:?}");
        let mut still_closed = Vec::new();
        for target in closed {
            if last.write_somehow(&target).await {
                last.read(&target).await;
            } else {
                still_closed.push(target);
            }
        }
        closed = still_closed;
        sleep(Duration::from_millis(10)).await;
    }
    last
}

/// Some writes take their time, some are applied after the proxy has given them up (and well within `late_max`), and some
/// answers are lost.
fn misbehave(backend: &Backend, (late, spread): (usize, usize), random: Random) {
    let random = Mutex::new(random);
    let is_write = |request: &Request| !matches!(request.method.as_str(), "GET" | "HEAD");
    backend.always_where(is_write, move |_request| {
        let mut random = random.lock().expect("nobody panics with it");
        let after = |milliseconds: usize, answer: Answer| {
            let gate = Gate::closed();
            let opened = gate.clone();
            tokio::spawn(async move {
                sleep(Duration::from_millis(milliseconds as u64)).await;
                opened.open();
            });
            answer.after(&gate)
        };
        match random.below(100) {
            luck if luck < LATE_PERCENT => after(late + random.below(spread), Answer::stored()),
            luck if luck < LATE_PERCENT + UNANSWERED_PERCENT => match random.below(4) {
                0 => Answer::close(),
                1 => Answer::close().applied(),
                2 => Answer::status(500),
                _ => Answer::status(500).applied(),
            },
            luck if luck < LATE_PERCENT + UNANSWERED_PERCENT + SLOW_PERCENT => {
                after(random.below(20), Answer::stored())
            }
            _ => Answer::stored(),
        }
    });
}

fn anomalies(histories: &BTreeMap<String, History>, seen: &BTreeMap<String, Seen>, began: Instant) -> Vec<String> {
    let mut found = Vec::new();
    let nothing = Seen::default();
    for (target, history) in histories {
        let seen = seen.get(target).unwrap_or(&nothing);
        let mut wrong = anomalies_at_backend(history, seen);
        wrong.extend(anomalies_of_leases(history, seen));
        if !is_linearizable(&history.operations) {
            wrong.push(format!("not linearizable:\n{}", describe(&history.operations, began)));
        }
        found.extend(wrong.into_iter().map(|wrong| format!("{target}: {wrong}")));
    }
    found
}
