//! Writes that stand in the line of a claim: of clients that may not write, and of one that takes the whole line.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::task::JoinSet;

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    requests::{exchange, request},
    sockets::{FLOOD, HONEST, connect_from, connections},
    support::{
        backend::{Answer, Request},
        gate::Gate,
        raw::send,
    },
};

const TARGET: &str = "/owned";
const OWNER: (&str, &str) = ("Authorization", "owner");

/// More than the line of one resource takes (`claim.max_waiters`).
const CONNECTIONS: usize = 70;

/// The places of the line that one client fills.
const LINE: usize = 8;

/// How long the backend looks for the rights of a client, or for a resource.
const LOOKS_FOR: Duration = Duration::from_millis(20);

/// Clients from one address that write without a pause, each with a tag that no state has.
struct Flooding {
    is_over: Arc<AtomicBool>,
    clients: JoinSet<Vec<u16>>,
}

impl Flooding {
    async fn start(to: SocketAddr) -> Self {
        let (is_over, mut clients) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        for mut stream in connections(to, CONNECTIONS).await {
            let is_over = Arc::clone(&is_over);
            clients.spawn(async move {
                let put = request("PUT", TARGET, "If-Match: \"w\"\r\n", "x");
                let mut statuses = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let (status, goes_on) = exchange(&mut stream, &put).await;
                    statuses.push(status);
                    if !goes_on {
                        stream = connect_from(FLOOD, to).await.expect("it is let in");
                    }
                }
                statuses
            });
        }
        Self { is_over, clients }
    }

    /// Ends them, and returns the statuses that they got.
    async fn end(self) -> Vec<u16> {
        self.is_over.store(true, Ordering::Relaxed);
        self.clients.join_all().await.concat()
    }
}

/// The backend refuses each of them, but not at once.
fn slow_refusal() -> Answer {
    Answer::status(403).after(&Gate::opened_after(LOOKS_FOR))
}

/// Rule 16: they filled the line, and the client with rights got 409 for each of its writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_without_rights_take_no_place_in_a_line() {
    let arena = Arena::start("").await;
    arena.backend.put(TARGET, "0");
    let is_refused = |request: &Request| request.target == TARGET && request.headers.get("authorization").is_none();
    arena.backend.always_where(is_refused, |_| slow_refusal());
    let writes = times(10, 100);
    let ceiling = Ceiling { resident_mib: 24, descriptors: 2 * CONNECTIONS + 60, honest_wait: HONEST_WAIT };
    let flood = async {
        let clients = Flooding::start(arena.addr()).await;
        let mut owners = Vec::new();
        for number in 0..writes {
            let tag = send(arena.addr(), "GET", TARGET, &[OWNER], "").await.etag();
            let fields = [OWNER, ("If-Match", tag.as_str())];
            owners.push(send(arena.addr(), "PUT", TARGET, &fields, &number.to_string()).await.status);
        }
        (owners, clients.end().await)
    };
    let ((owners, others), _) = arena.flood("writes without rights to one resource", ceiling, flood).await;
    assert_eq!(owners, vec![204; writes], "beside {} writes without rights", others.len());
    assert!(others.len() > writes && others.iter().all(|status| *status == 403), "{others:?}");
}

/// Rule 16: one client with rights filled the line, and all others got 409. Now a client has a place that comes from
/// another address, or from the same one with other credentials.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_fills_a_line_leaves_places_to_others() {
    let line = format!("claim = {{ max_waiters = {LINE} }}");
    let arena = Arena::before("", |setup| setup.route(&line), "", None).await;
    arena.backend.put(TARGET, "0");
    // Each write has its turn for as long as the state is looked up that its tag is compared with.
    let is_read = |request: &Request| request.target == TARGET && request.method == "GET";
    arena.backend.always_where(is_read, |_| Answer::stored().after(&Gate::opened_after(LOOKS_FOR)));
    let rounds = times(3, 30);
    let ceiling = Ceiling { resident_mib: 24, descriptors: 2 * CONNECTIONS + 60, honest_wait: HONEST_WAIT };
    let flood = async {
        let clients = Flooding::start(arena.addr()).await;
        let mut statuses = Vec::new();
        for round in 0..rounds {
            for (from, fields) in [(HONEST, ""), (FLOOD, "Authorization: owner\r\n")] {
                let mut stream = connect_from(from, arena.addr()).await.expect("it is let in");
                let tag = send(arena.addr(), "GET", TARGET, &[], "").await.etag();
                let put = request("PUT", TARGET, &format!("If-Match: {tag}\r\n{fields}"), &round.to_string());
                statuses.push(exchange(&mut stream, &put).await.0);
            }
        }
        (statuses, clients.end().await)
    };
    let ((statuses, others), _) = Box::pin(arena.flood("writes of one client to one resource", ceiling, flood)).await;
    assert!(statuses.iter().all(|status| *status == 204), "{statuses:?} beside {} writes of one client", others.len());
    for status in [409, 412] {
        assert!(others.contains(&status), "{status}: the line was full, and served in order");
    }
}
