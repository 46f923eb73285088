//! Each client that waits gets a turn (DESIGN, section 3, rule 16): a stream of writes that overlap starves no other
//! request.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::task::JoinSet;

use crate::support::{
    backend::{Answer, Backend},
    engines::{Engine, Redis},
    gate::Gate,
    leases::{lease, leasing_versions, release},
    proxy::{Proxy, Setup},
    raw::{Connection, send},
    response::Response,
    wait::within,
};

const DOC: &str = "/doc";
const CLIENTS: usize = 8;

/// How long the backend takes for a write of the stream: far longer than any of the proxy's own steps.
const EXCHANGE: Duration = Duration::from_millis(40);

/// As many writes of the stream as may come before one that waits: those in flight when it was sent, and those that came
/// while it was on its way.
const BEFORE_MAX: usize = 3 * CLIENTS;

/// The same if the stream comes through another proxy, which has to learn of it first.
const BEFORE_ELSEWHERE_MAX: usize = 6 * CLIENTS;

/// Clients who write again and again, until it is over or they are refused.
struct Stream {
    clients: JoinSet<()>,
    is_over: Arc<AtomicBool>,
    method: &'static str,
    target: &'static str,
}

impl Stream {
    /// Clients of this proxy. When this returns, each of them has written, and their writes overlap.
    async fn begin(backend: &Backend, addr: SocketAddr, method: &'static str, target: &'static str) -> Self {
        backend.always(method, target, |_| {
            let gate = Gate::closed();
            let opener = gate.clone();
            tokio::spawn(async move {
                tokio::time::sleep(EXCHANGE).await;
                opener.open();
            });
            Answer::status(204).after(&gate)
        });
        let (mut clients, is_over) = (JoinSet::new(), Arc::new(AtomicBool::new(false)));
        for number in 1..=CLIENTS {
            let is_over = Arc::clone(&is_over);
            clients.spawn(async move {
                let mut connection = Connection::open(addr).await;
                while !is_over.load(Ordering::Relaxed) {
                    if connection.exchange(method, target, &[], "+").await.status != 204 {
                        return;
                    }
                }
            });
            backend.reached(method, target, number).await;
        }
        backend.reached(method, target, 3 * CLIENTS).await;
        Self { clients, is_over, method, target }
    }

    /// Returns the answer to a request, and the number of writes of the stream that the backend has got meanwhile.
    async fn meanwhile(self, backend: &Backend, request: impl Future<Output = Response>) -> (Response, usize) {
        let before = backend.count(self.method, self.target);
        let response = request.await;
        let meanwhile = backend.count(self.method, self.target) - before;
        self.is_over.store(true, Ordering::Relaxed);
        within("the stream to end", self.clients.join_all()).await;
        (response, meanwhile)
    }
}

/// A route on which each wait has an end. The wait is that of 250 exchanges, because the disk of a busy machine may
/// take longer for a turn than the backend.
fn patient(setup: Setup) -> Setup {
    setup.route("claim = { max_wait = \"10s\" }\nrequire = \"never\"")
}

async fn start() -> (Backend, Setup) {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let setup = patient(leasing_versions(&backend));
    (backend, setup)
}

async fn put(addr: SocketAddr) -> Response {
    send(addr, "PUT", DOC, &[], "two").await
}

async fn acquire(addr: SocketAddr) -> Response {
    lease(addr, "POST", DOC, &[("Lease-Duration", "60")]).await
}

#[track_caller]
fn assert_turn(came: &(Response, usize), status: u16, before_max: usize) {
    assert_eq!(came.0.status, status, "after {} writes of others: {:?}", came.1, came.0);
    assert!(came.1 <= before_max, "{} writes of others came first", came.1);
}

/// Rule 16: a stream of unclaimed writes starves no claim.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_that_overlap_do_not_starve_a_put() {
    let (backend, setup) = start().await;
    let proxy = setup.start().await;
    let stream = Stream::begin(&backend, proxy.addr(), "POST", DOC).await;
    assert_turn(&stream.meanwhile(&backend, put(proxy.addr())).await, 204, BEFORE_MAX);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_that_overlap_do_not_starve_a_grant() {
    let (backend, setup) = start().await;
    let proxy = setup.start().await;
    let stream = Stream::begin(&backend, proxy.addr(), "POST", DOC).await;
    assert_turn(&stream.meanwhile(&backend, acquire(proxy.addr())).await, 201, BEFORE_MAX);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn puts_do_not_starve_a_grant() {
    let (backend, setup) = start().await;
    let proxy = setup.start().await;
    let stream = Stream::begin(&backend, proxy.addr(), "PUT", DOC).await;
    assert_turn(&stream.meanwhile(&backend, acquire(proxy.addr())).await, 201, BEFORE_MAX);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn puts_do_not_starve_a_post() {
    let (backend, setup) = start().await;
    let proxy = setup.start().await;
    let stream = Stream::begin(&backend, proxy.addr(), "PUT", DOC).await;
    let post = send(proxy.addr(), "POST", DOC, &[], "+");
    assert_turn(&stream.meanwhile(&backend, post).await, 204, BEFORE_MAX);
}

/// A touched resource is marked with the write: a stream of such writes stands in the line of that resource too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_elsewhere_do_not_starve_a_put_of_what_they_touch() {
    let backend = Backend::start().await;
    let routes = format!(
        "{{listen}}\nthreads = 2\n[upstreams.main]\nservers = [\"{}\"]\n\
         [defaults]\npolicy = \"optimistic\"\nupstream = \"main\"\netag = \"version\"\nother_writers = false\n\
         require = \"never\"\nclaim = {{ max_wait = \"2s\" }}\n\
         [[routes]]\nname = \"whole\"\npath = \"/doc\"\n\
         [[routes]]\nname = \"parts\"\npath = \"/doc/parts\"\nalso_changes = [\"/doc\"]\n",
        backend.addr(),
    );
    let proxy = Proxy::start(&format!("[server]\n{routes}")).await;
    let stream = Stream::begin(&backend, proxy.addr(), "POST", "/doc/parts").await;
    let put = async { send(proxy.addr(), "PUT", DOC, &[], "two").await };
    let came = stream.meanwhile(&backend, put).await;
    assert!(matches!(came.0.status, 201 | 204), "after {} writes of others: {:?}", came.1, came.0);
    assert!(came.1 <= BEFORE_MAX, "{} writes of others came first", came.1);
}

/// Rule 16: a write of several resources stands in all their lines, so a stream of writes to one of them does not
/// starve it. A stream of such writes starves no other request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_of_one_and_of_several_resources_do_not_starve_each_other() {
    let redis = Redis::start().await;
    let shared = format!("[store]\nkind = \"redis\"\nurl = \"{}\"\ntimeout = \"10s\"\n", redis.url());
    for store in ["", &shared] {
        for (stream, request) in [(DOC, "/doc/parts"), ("/doc/parts", DOC), ("/z", DOC), (DOC, "/z")] {
            let backend = Backend::start().await;
            let file = format!(
                "[server]\n{{listen}}\nthreads = 2\n{store}[upstreams.main]\nservers = [\"{}\"]\n\
                 [defaults]\npolicy = \"optimistic\"\nupstream = \"main\"\netag = \"version\"\n\
                 other_writers = false\nrequire = \"never\"\nclaim = {{ max_wait = \"10s\" }}\n\
                 [[routes]]\nname = \"whole\"\npath = \"/doc\"\nalso_changes = [\"/z\"]\n\
                 [[routes]]\nname = \"parts\"\npath = \"/doc/parts\"\nalso_changes = [\"/doc\"]\n\
                 [[routes]]\nname = \"other\"\npath = \"/z\"\nalso_changes = [\"/doc\"]\n",
                backend.addr(),
            );
            let one = Proxy::start(&file).await;
            let other = if store.is_empty() { None } else { Some(Proxy::start(&file).await) };
            let addr = other.as_ref().unwrap_or(&one).addr();
            let before_max = if other.is_some() { BEFORE_ELSEWHERE_MAX } else { BEFORE_MAX };
            let stream = Stream::begin(&backend, one.addr(), "PUT", stream).await;
            let came = stream.meanwhile(&backend, send(addr, "PUT", request, &[], "two")).await;
            assert!(came.0.status < 300, "{request} after {} writes of others: {:?}", came.1, came.0);
            assert!(came.1 <= before_max, "{request}: {} writes of others came first", came.1);
        }
    }
}

/// Rule 16: between processes the number of turns is bounded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_through_one_proxy_starves_nobody_at_the_other() {
    for engine in Engine::all().await {
        for (method, grant) in [("POST", false), ("POST", true), ("PUT", false), ("PUT", true)] {
            let (backend, setup) = start().await;
            let setup = setup.store(&engine.store()).store("timeout = \"10s\"");
            let [one, other] = [setup.clone().start().await, setup.start().await];
            let stream = Stream::begin(&backend, one.addr(), method, DOC).await;
            let addr = other.addr();
            let request = async { if grant { acquire(addr).await } else { put(addr).await } };
            let came = stream.meanwhile(&backend, request).await;
            assert_turn(&came, if grant { 201 } else { 204 }, BEFORE_ELSEWHERE_MAX);
            if grant {
                let id = came.0.header("lease-id").unwrap();
                release(addr, DOC, id).await;
            }
        }
    }
}
