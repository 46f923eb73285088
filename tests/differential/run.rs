//! The run: workers side by side, each with a backend of its own behind the one proxy.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use tokio::task::JoinSet;

use crate::{
    capture::{Capture, Captured},
    heads,
    reading::Reading,
    servers::{Client, NAMES, Servers, Told},
    support::{proxy::Proxy, random::Random, raw::Connection},
};

const WORKERS: usize = 4;
/// More differences than a person reads.
const SHOWN_MAX: usize = 20;

/// The results of all requests.
#[derive(Debug, Default)]
pub struct Tally {
    pub sent: usize,
    pub refused: usize,
    pub forwarded: usize,
    /// How many each server has read as they were sent.
    pub alike: BTreeMap<&'static str, usize>,
    /// The differences that have a reason, by server and reason.
    pub excused: BTreeMap<(&'static str, &'static str), usize>,
    pub differences: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} sent, {} refused, {} forwarded", self.sent, self.refused, self.forwarded)?;
        for (server, count) in &self.alike {
            writeln!(f, "{server}: {count} alike")?;
        }
        for ((server, reason), count) in &self.excused {
            writeln!(f, "{server}: {count} refused for {reason}")?;
        }
        self.differences.iter().take(SHOWN_MAX).try_for_each(|difference| writeln!(f, "\n{difference}"))
    }
}

pub async fn run(requests: usize) -> Tally {
    let servers = Servers::start().await;
    let mut captures = Vec::new();
    for _ in 0..WORKERS {
        captures.push([Capture::start().await, Capture::start().await]);
    }
    let proxy = Proxy::start(&configuration(&captures)).await;
    let tally = Arc::new(Mutex::new(Tally::default()));
    let mut random = Random::new("differential");
    let mut workers = JoinSet::new();
    for (number, captures) in captures.into_iter().enumerate() {
        let worker = Worker { number, captures, clients: servers.clients(), tally: Arc::clone(&tally) };
        workers.spawn(worker.work(proxy.addr(), random.fork(), requests / WORKERS));
    }
    while let Some(ended) = workers.join_next().await {
        ended.expect("a worker reaches its end");
    }
    std::mem::take(&mut *tally.lock().expect("nobody panics with it"))
}

/// For each worker a route that is not guarded and leads to nothing that is, and one that is guarded.
fn configuration(captures: &[[Capture; 2]]) -> String {
    let table = |(number, [open, kept]): (usize, &[Capture; 2])| {
        format!(
            "[upstreams.open{number}]\nservers = [\"{}\"]\n[upstreams.kept{number}]\nservers = [\"{}\"]\n\
             [[routes]]\nname = \"open{number}\"\npath = \"/open{number}/{{*rest}}\"\nupstream = \"open{number}\"\n\
             policy = \"last-writer-wins\"\n\
             [[routes]]\nname = \"kept{number}\"\npath = \"/kept{number}/{{*rest}}\"\nupstream = \"kept{number}\"\n\
             policy = \"optimistic\"\netag = \"version\"\nother_writers = false\nrequire = \"never\"\n",
            open.addr, kept.addr
        )
    };
    let tables: String = captures.iter().enumerate().map(table).collect();
    format!("[server]\n{{listen}}\nspool_dir = \"{{spool}}\"\nthreads = 2\n[telemetry]\naccess_log = false\n{tables}")
}

struct Worker {
    number: usize,
    captures: [Capture; 2],
    clients: Vec<Client>,
    tally: Arc<Mutex<Tally>>,
}

impl Worker {
    async fn work(mut self, proxy: std::net::SocketAddr, mut random: Random, requests: usize) {
        for _ in 0..requests {
            let route = ["open", "kept"][random.below(2)];
            let request = heads::request(&mut random, &format!("/{route}{}/", self.number));
            let mut connection = Connection::open(proxy).await;
            // It may refuse before it has read all, and close; then nothing is forwarded.
            let _sent_or_not = connection.try_send_bytes(&request).await;
            let status = connection.try_read_response().await.map_or(0, |response| response.status);
            let captured = self.captures.each_ref().map(Capture::take).concat();
            self.note(|tally| {
                tally.sent += 1;
                tally.refused += usize::from(captured.is_empty());
                assert!(status >= 400 || status == 0 || !captured.is_empty(), "{}", request.escape_ascii());
            });
            for captured in captured.iter().filter(|captured| captured.reading.method != "HEAD") {
                self.compare(&request, captured).await;
            }
        }
    }

    async fn compare(&mut self, request: &[u8], captured: &Captured) {
        self.note(|tally| tally.forwarded += 1);
        for at in 0..NAMES.len() {
            let client = &mut self.clients[at];
            let (name, told) = (client.name, client.ask(&captured.bytes).await);
            let expected =
                if matches!(name, "nginx" | "Apache") { captured.reading.for_cgi() } else { captured.reading.clone() };
            self.note(|tally| match told {
                Told::Read(reading) if reading == expected => *tally.alike.entry(name).or_default() += 1,
                told => match excuse(name, &captured.reading, &told) {
                    Some(reason) => *tally.excused.entry((name, reason)).or_default() += 1,
                    None => tally.differences.push(format!(
                        "{name}\nsent:     {}\nforwarded: {}\nexpected: {expected:?}\nread:     {told:?}",
                        request.escape_ascii(),
                        captured.bytes.escape_ascii()
                    )),
                },
            });
        }
    }

    fn note(&self, note: impl FnOnce(&mut Tally)) {
        note(&mut self.tally.lock().expect("nobody panics with it"));
    }
}

/// The differences that are known, each with its reason (docs/http.md): all of them are refusals, so that nothing is read
/// in two ways.
fn excuse(server: &str, sent: &Reading, told: &Told) -> Option<&'static str> {
    let Told::Refused(status) = told else { return None };
    let lines =
        |name: &str| sent.fields.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name)).collect::<Vec<_>>();
    match (server, status) {
        ("nginx" | "Apache", 400) if lines("host").iter().any(|(_, value)| value.is_empty()) => Some("an empty Host"),
        ("nginx", 400) if lines("authorization").len() > 1 => Some("two lines of Authorization"),
        ("Node.js", 400) if !sent.target.is_ascii() => Some("octets beyond ASCII in the target"),
        ("nginx" | "Apache", 400 | 404) if has_unreadable_path(&sent.target) => {
            Some("a path with % and no two digits after it, %00, or .. above the root")
        }
        ("Apache", 411) if !lines("transfer-encoding").is_empty() => Some("chunks for an application behind SCGI"),
        _ => None,
    }
}

fn has_unreadable_path(target: &str) -> bool {
    let path = target.split('?').next().unwrap_or_default();
    let is_encoding = |text: &str| text.len() >= 2 && text.bytes().take(2).all(|octet| octet.is_ascii_hexdigit());
    let mut encodings = path.split('%').skip(1);
    let is_broken = encodings.any(|text| !is_encoding(text) || text.starts_with("00"));
    let decoded = path.replace("%2e", ".").replace("%2f", "/");
    let depth = decoded.split('/').skip(1).try_fold(0_usize, |depth, segment| match segment {
        "" | "." => Some(depth),
        ".." => depth.checked_sub(1),
        _ => Some(depth + 1),
    });
    is_broken || depth.is_none()
}
