//! One run: clients, disturbances, and the verdict on the result.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::sleep};

use super::{
    board::{Board, Events},
    disturbance::{Counts, Disturber},
    history::{History, Seen, named},
    members,
    plan::{Late, Plan},
    promise::{anomalies_at_backend, anomalies_of_leases},
    register::{describe, is_linearizable},
    support::{
        backend::{Answer, Backend, Request, Validators},
        gate::Gate,
        proxy::Proxy,
        random::Random,
    },
    tally::Tally,
    workload::Client,
};

/// How long a resource may stay closed after all disturbances: the mark of a dead proxy (8.5 s) and a doubt (3 s), on a
/// busy machine.
const RECOVERY_MAX: Duration = Duration::from_secs(60);

/// How long no operation may be answered after the last disturbance. A run ends by what has happened, and never by time.
const STANDSTILL_MAX: Duration = Duration::from_secs(60);

/// The share of writes in percent whose answers differ from those of a plain server.
const UNANSWERED_PERCENT: usize = 2;
const SLOW_PERCENT: usize = 50;

/// The result of a run.
pub struct Verdict {
    pub anomalies: Vec<String>,
    pub summary: String,
    pub tally: Tally,
    pub counts: Counts,
}

/// Carries out a plan and checks the result.
pub async fn run(plan: Plan) -> Verdict {
    let (began, manner) = (Instant::now(), plan.manner());
    let Plan { name, engine, members, directory, configuration, options, mut random, .. } = plan;
    let backend = match options {
        Some(options) => Backend::in_style(options.style()).await,
        None => Backend::with(Validators::Tags).await,
    };
    misbehave(&backend, plan.late, random.fork());
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
    if let Some(options) = options.filter(|_| plan.outlasts) {
        disturber.outlast_marks(options.outlasts_marks()).await;
    }
    work_enough(&board, plan.operations, plan.events).await;
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
    // A proxy that was killed during a write leaves half a request.
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

/// Lets the clients go on until this number of their operations has been answered, and enough has happened.
async fn work_enough(board: &Board, operations: usize, events: Events) {
    let (mut last, mut since) = (0, Instant::now());
    while !board.has_seen(operations, events) {
        let answered = board.answered.load(Ordering::Relaxed);
        if answered > last {
            (last, since) = (answered, Instant::now());
        }
        assert!(since.elapsed() < STANDSTILL_MAX, "nothing is answered after {answered} operations of {operations}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Checks that every resource takes a write again in the end, and reads each once more.
async fn finish(mut last: Client, clients: &[Client]) -> Client {
    // The end counts from the first round, which takes as long as the machine needs for this many resources.
    let mut end = None;
    let targets: BTreeSet<&String> = clients.iter().flat_map(|client| client.histories.keys()).collect();
    let wholes = targets.iter().filter_map(|target| named(target).whole);
    let mut closed: Vec<String> = targets.iter().map(|target| (*target).clone()).chain(wholes).collect();
    closed.sort_unstable();
    closed.dedup();
    while !closed.is_empty() {
        assert!(end.is_none_or(|end| Instant::now() < end), "closed forever: {closed:?}");
        let mut still_closed = Vec::new();
        for target in closed {
            if last.write_somehow(&target).await {
                last.read(&target).await;
            } else {
                still_closed.push(target);
            }
        }
        closed = still_closed;
        end.get_or_insert(Instant::now() + RECOVERY_MAX);
        sleep(Duration::from_millis(10)).await;
    }
    last
}

/// Makes the backend misbehave: some writes take their time, some are applied after the proxy has abandoned them (and
/// well within `late_write_window`), and some answers are lost.
fn misbehave(backend: &Backend, late: Late, random: Random) {
    let random = Mutex::new(random);
    let is_write = |request: &Request| !matches!(request.method.as_str(), "GET" | "HEAD");
    backend.always_where(is_write, move |_request| {
        let mut random = random.lock().expect("nobody panics with it");
        let after = |milliseconds: usize, answer: Answer| {
            answer.after(&Gate::opened_after(Duration::from_millis(milliseconds as u64)))
        };
        match random.below(100) {
            luck if luck < late.percent => after(late.after_ms + random.below(late.spread_ms), Answer::stored()),
            luck if luck < late.percent + UNANSWERED_PERCENT => match random.below(4) {
                0 => Answer::close(),
                1 => Answer::close().applied(),
                2 => Answer::status(500),
                _ => Answer::status(500).applied(),
            },
            luck if luck < late.percent + UNANSWERED_PERCENT + SLOW_PERCENT => {
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
