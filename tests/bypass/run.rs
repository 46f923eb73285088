//! The run: one worker for each server. First such requests go to another server of its kind, without the proxy: some of them
//! must harm the resource there, or the run would show nothing.

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::task::JoinSet;

use crate::{
    backends::{self, Backend, CONTENT},
    requests::{self, plain_path},
    routes,
    support::{
        leases::IDS,
        proxy::Proxy,
        random::Random,
        raw::{Connection, send},
        response::Response,
    },
};

/// More breaks than a person reads.
const SHOWN_MAX: usize = 40;
/// The credentials by which the proxy signs its probes of objects.
const CREDENTIALS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "S3RVER"), ("AWS_SECRET_ACCESS_KEY", "S3RVER")];
/// Requests that are refused are looked at together.
const BATCH: usize = 40;
/// Of a hundred requests, how many are tried at the server itself.
const TRIED_PERCENT: usize = 15;
/// More than any server needs to be harmed once: one of a hundred requests does.
const TRIED_MAX: usize = 20_000;

/// The results of the requests to one server.
#[derive(Debug, Default)]
pub struct Counts {
    pub sent: usize,
    pub refused: usize,
    pub forwarded: usize,
    /// How many harmed the resource without the proxy.
    pub harmful: usize,
}

/// The results of all requests.
#[derive(Debug, Default)]
pub struct Tally {
    pub servers: BTreeMap<&'static str, Counts>,
    pub breaks: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (server, counts) in &self.servers {
            let Counts { sent, refused, forwarded, harmful } = counts;
            writeln!(f, "{server}: {sent} sent, {refused} refused, {forwarded} forwarded; {harmful} harmful without")?;
        }
        writeln!(f, "{} breaks", self.breaks.len())?;
        self.breaks.iter().take(SHOWN_MAX).try_for_each(|each| writeln!(f, "\n{each}"))
    }
}

pub async fn run(requests: usize) -> Tally {
    let (backends, unguarded) = (backends::start().await, backends::start().await);
    let proxy = Arc::new(Proxy::start_with(&routes::configuration(&backends), &CREDENTIALS).await);
    let tally = Arc::new(Mutex::new(Tally::default()));
    let (mut random, mut workers) = (Random::new("bypass"), JoinSet::new());
    let each = requests / backends.len();
    for (backend, unguarded) in backends.into_iter().zip(unguarded) {
        let of = |backend| Worker { backend, proxy: proxy.addr(), tally: Arc::clone(&tally) };
        let (guarded, trial) = (of(backend), of(unguarded));
        let (random, tried) = (random.fork(), random.fork());
        workers.spawn(async move {
            trial.try_without_proxy(tried, each * TRIED_PERCENT / 100).await;
            guarded.work(random, each).await;
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended.expect("a worker reaches its end");
    }
    std::mem::take(&mut *tally.lock().expect("nobody panics with it"))
}

struct Worker {
    backend: Backend,
    proxy: SocketAddr,
    tally: Arc<Mutex<Tally>>,
}

/// The effect of a request.
#[derive(Debug, PartialEq, Eq)]
enum Effect {
    Nothing,
    Shown,
    Changed,
}

impl Worker {
    /// Tries so many requests, and goes on until one has harmed.
    async fn try_without_proxy(&self, mut random: Random, requests: usize) {
        let mut has_harmed = false;
        for number in 0..TRIED_MAX {
            if number >= requests && has_harmed {
                return;
            }
            let (method, bytes) = requests::request(&mut random, &self.backend);
            let response = exchange(self.backend.addr, &method, &bytes).await;
            let is_harmful = self.effect(response.as_ref()).await != Effect::Nothing;
            has_harmed |= is_harmful;
            self.note(|counts| counts.harmful += usize::from(is_harmful));
        }
    }

    async fn work(&self, mut random: Random, requests: usize) {
        self.take_lease().await;
        let mut unseen = Vec::new();
        for number in 1..=requests {
            let (method, bytes) = requests::request(&mut random, &self.backend);
            let response = exchange(self.proxy, &method, &bytes).await;
            let is_refused = response.as_ref().is_some_and(is_refusal);
            self.note(|counts| {
                counts.sent += 1;
                counts.refused += usize::from(is_refused);
                counts.forwarded += usize::from(response.is_some() && !is_refused);
            });
            unseen.push(bytes);
            if !is_refused || number % BATCH == 0 || number == requests {
                let effect = self.effect(response.as_ref()).await;
                if effect != Effect::Nothing && excuse(self.backend.name, unseen.last().expect("one")).is_none() {
                    self.tell(&effect, &unseen, response.as_ref());
                }
                unseen.clear();
            }
        }
        self.write_as_holder().await;
    }

    async fn take_lease(&self) {
        let (target, host) = (format!("/.leases{}", plain_path(self.backend.kind)), routes::host(&self.backend));
        let own = [("Host", &*host), ("Lease-Duration", "infinite"), ("Lease-Id", IDS[0])];
        let fields = [&own, self.backend.credentials].concat();
        let response = send(self.proxy, "POST", &target, &fields, "").await;
        assert_eq!(response.status, 201, "{}: {response:?}", self.backend.name);
    }

    /// At the end the lease is still there, and its holder alone can write.
    async fn write_as_holder(&self) {
        let (target, host) = (plain_path(self.backend.kind), routes::host(&self.backend));
        let own = [("Host", &*host), ("Lease-Id", IDS[0]), ("Content-Type", "text/plain")];
        let fields = [&own, self.backend.credentials].concat();
        let response = send(self.proxy, "PUT", target, &fields, "by the holder").await;
        assert!(matches!(response.status, 200..300), "{}: {response:?}", self.backend.name);
        assert_eq!(self.content().await, Some(b"by the holder".to_vec()), "{}", self.backend.name);
    }

    /// Returns the effect of a request on the resource, and restores the resource.
    async fn effect(&self, response: Option<&Response>) -> Effect {
        if self.content().await.as_deref() != Some(CONTENT.as_bytes()) {
            self.backend.restore().await;
            return Effect::Changed;
        }
        let shows = |body: &[u8]| body.windows(CONTENT.len()).any(|window| window == CONTENT.as_bytes());
        if response.is_some_and(|response| shows(&response.body)) { Effect::Shown } else { Effect::Nothing }
    }

    async fn content(&self) -> Option<Vec<u8>> {
        let response =
            send(self.backend.addr, "GET", plain_path(self.backend.kind), self.backend.credentials, "").await;
        (response.status == 200).then_some(response.body)
    }

    fn tell(&self, effect: &Effect, requests: &[Vec<u8>], response: Option<&Response>) {
        // A request that was forwarded is the cause; refused ones are suspected together.
        let is_forwarded = response.is_none_or(|response| !is_refusal(response));
        let first = if is_forwarded { requests.len() - 1 } else { 0 };
        let requests: Vec<_> = requests[first..].iter().map(|bytes| bytes.escape_ascii().to_string()).collect();
        let status = response.map(|response| response.status);
        let told = format!("{}: {effect:?}, status {status:?}\n{}", self.backend.name, requests.join("\n"));
        self.tally.lock().expect("nobody panics with it").breaks.push(told);
    }

    fn note(&self, note: impl FnOnce(&mut Counts)) {
        let mut tally = self.tally.lock().expect("nobody panics with it");
        note(tally.servers.entry(self.backend.name).or_default());
    }
}

/// Returns the reason why a difference is known and permitted (docs/http.md).
fn excuse(server: &str, request: &[u8]) -> Option<&'static str> {
    let line = request.split(|&octet| octet == b'\r').next().unwrap_or_default();
    let path = line.split(|&octet| octet == b'?').next().unwrap_or_default().to_ascii_lowercase();
    let has_mark = path.windows(3).any(|window| window == b"%3f");
    (server == "moto" && has_mark).then_some("moto takes an encoded question mark for the beginning of a query")
}

/// True if the proxy has refused.
fn is_refusal(response: &Response) -> bool {
    response.header("proxy-status").is_some_and(|value| value.starts_with("ifmatch; error"))
}

/// The response, if there was one: a server may close instead.
async fn exchange(addr: SocketAddr, method: &str, bytes: &[u8]) -> Option<Response> {
    let mut connection = Connection::open(addr).await;
    // Whether a method in another case has a response without a body depends on its reader.
    connection.expect_response_to(&method.to_uppercase());
    connection.try_send_bytes(bytes).await.ok()?;
    connection.try_read_response().await.ok()
}
