//! All cases through the real program, several at a time.

use std::{
    collections::{BTreeMap, VecDeque},
    env,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::task::JoinSet;

use crate::{
    backend::{Backend, Play},
    client, client_http2,
    invariants::{self, Rule},
    report,
    script::Case,
    stage::{Stage, When},
    support::proxy::Proxy,
};

/// How many cases are played at once, each with backends of its own.
const WORKERS: usize = 8;

/// The way of a request.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    pub from_http_1: bool,
    pub to_http_1: bool,
}

impl Lane {
    fn name(self) -> String {
        let version = |is_1: bool| if is_1 { "1" } else { "2" };
        format!("{} to {}", version(self.from_http_1), version(self.to_http_1))
    }
}

const LANES: [Lane; 4] = [
    Lane { from_http_1: true, to_http_1: true },
    Lane { from_http_1: true, to_http_1: false },
    Lane { from_http_1: false, to_http_1: true },
    Lane { from_http_1: false, to_http_1: false },
];

/// The findings of a run.
#[derive(Debug, Default)]
pub struct Findings {
    /// The events that were seen, by the names of the exchanges.
    pub texts: BTreeMap<String, String>,
    /// The broken rules: the rule, and the name of the exchange.
    pub broken: Vec<(String, String)>,
}

/// Plays all cases on each way that they can take.
pub async fn run(cases: Vec<Case>) -> Findings {
    let jobs = cases.into_iter().map(Arc::new).flat_map(|case| {
        let can = |lane: &Lane| {
            (lane.from_http_1 || !case.only_client_of_http_1)
                && (lane.to_http_1 || !(case.only_backend_of_http_1 || case.keeps_connections))
        };
        LANES.into_iter().filter(can).map(|lane| (Arc::clone(&case), lane)).collect::<Vec<_>>()
    });
    let jobs = Arc::new(Mutex::new(jobs.collect::<VecDeque<_>>()));
    let mut backends = Vec::new();
    for _ in 0..WORKERS {
        backends.push([Backend::start(false).await, Backend::start(true).await, Backend::start(false).await]);
    }
    let program =
        env::var("IFMATCH_PROGRAM").map(|path| vec!["sh".into(), "-c".into(), format!("exec '{path}' \"$@\"")]);
    let wrapper: Vec<String> = program.unwrap_or_default();
    let quiet = [("RUST_LOG", "warn,ifmatch::cli=info")];
    let proxy = Proxy::start_under(&configuration(&backends), &quiet, &wrapper).await;
    let findings = Arc::new(Mutex::new(Findings::default()));
    let mut workers = JoinSet::new();
    for (number, backends) in backends.into_iter().enumerate() {
        let worker = Worker { number, backends, proxy: proxy.addr(), findings: Arc::clone(&findings) };
        workers.spawn(worker.work(Arc::clone(&jobs)));
    }
    while let Some(ended) = workers.join_next().await {
        ended.expect("a worker reaches its end");
    }
    assert!(!proxy.log().contains("panicked"));
    let mut findings = std::mem::take(&mut *findings.lock().expect("nobody panics with it"));
    findings.broken.sort();
    findings
}

/// The upstreams of a worker: one that speaks HTTP/1.1, one that speaks HTTP/2, and one whose connections are used again.
const KINDS: [(&str, &str); 3] =
    [("one", "idle_timeout = \"0s\"\nreuse_idle_writes = \"0s\""), ("two", "http2 = true"), ("kept", "")];

fn configuration(backends: &[[Backend; 3]]) -> String {
    let table = |number: usize, kind: (&str, &str), backend: &Backend| {
        let name = format!("{}{number}", kind.0);
        format!(
            "[upstreams.{name}]\nservers = [\"{}\"]\ntimeout = \"5s\"\n{}\n\
             [[routes]]\nname = \"{name}\"\nhost = \"{name}.test\"\npath = \"/{{*rest}}\"\nupstream = \"{name}\"\n\
             policy = \"last-writer-wins\"\n",
            backend.addr, kind.1
        )
    };
    let tables = backends.iter().enumerate().flat_map(|(number, backends)| {
        KINDS.into_iter().zip(backends).map(move |(kind, backend)| table(number, kind, backend))
    });
    let tables: String = tables.collect();
    format!("[server]\n{{listen}}\nspool_dir = \"{{spool}}\"\nthreads = 1\n[telemetry]\naccess_log = false\n{tables}")
}

struct Worker {
    number: usize,
    backends: [Backend; 3],
    proxy: SocketAddr,
    findings: Arc<Mutex<Findings>>,
}

/// The exchanges that no worker has taken.
type Jobs = Mutex<VecDeque<(Arc<Case>, Lane)>>;

impl Worker {
    async fn work(self, jobs: Arc<Jobs>) {
        loop {
            let job = jobs.lock().expect("nobody panics with it").pop_front();
            let Some((case, lane)) = job else { return };
            self.play(case, lane).await;
        }
    }

    async fn play(&self, case: Arc<Case>, lane: Lane) {
        let kind = if case.keeps_connections { 2 } else { usize::from(!lane.to_http_1) };
        let (backend, host) = (&self.backends[kind], format!("{}{}.test", KINDS[kind].0, self.number));
        let stage = Arc::new(Stage::default());
        let play = Play { case: Arc::clone(&case), stage: Arc::clone(&stage) };
        backend.begins(play.clone());
        if lane.from_http_1 {
            client::play(self.proxy, &host, &play).await;
        } else {
            client_http2::play(self.proxy, &host, &play).await;
        }
        // The backend sees that a client has gone only after it.
        if case.rules.contains(&Rule::Noticed) {
            play.waits(When::Noticed).await;
        }
        backend.ends().await;
        // The proxy sees that the connections of this case are over, and takes none of them for the next.
        client::is_read(self.proxy).await;
        let seen = stage.seen();
        let name = format!("{} | {}", case.name, lane.name());
        let broken = invariants::broken(&case, lane, &seen);
        let mut findings = self.findings.lock().expect("nobody panics with it");
        findings.broken.extend(broken.into_iter().map(|rule| (rule, name.clone())));
        let text = report::of(&name, &case, &seen, &host);
        assert!(findings.texts.insert(name.clone(), text).is_none(), "two cases are named {name}");
    }
}
