//! Clients that read, modify and write, read, and lease, until they have to stop or no server answers any more.
//!
//! # The definition of a request
//!
//! A request is sent when its first byte was written to a connection that the proxy had accepted or was still listening
//! for. Each must be answered, completely. Three things are no requests. The first is a connection that is refused
//! after the signal to end, and the second is one that was in the listener's line when it closed. The third is a
//! connection between two requests, which a server may close at any time (RFC 9112 section 9.5), and closes when it
//! ends. In the last two a client may have written a request that no server has taken. So after the signal, and only
//! then, a connection may end before the first byte of an answer. The caller checks that the proxy took none of those:
//! it has logged as many requests as were answered, and the contents are what the answers say.

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::task::JoinSet;

use crate::support::{leases::Grant, random::Random, raw::Connection, response::Response};

/// How many resources of each kind there are: few enough for conflicts.
pub const KEYS: usize = 8;
/// Clients of each kind.
const COUNTERS: usize = 8;
const READERS: usize = 3;
const HOLDERS: usize = 4;
/// How many exchanges of a hundred are made over a fresh connection.
const FRESH_PERCENT: usize = 25;

/// The results of all clients together.
#[derive(Default)]
pub struct Tally {
    pub answers: AtomicUsize,
    /// Answers to each kind of request, by status.
    pub statuses: Mutex<BTreeMap<(&'static str, u16), usize>>,
    /// Confirmed increments of each optimistic counter, and of each leased one.
    pub counted: [AtomicUsize; KEYS],
    pub held: [AtomicUsize; KEYS],
    /// True if the process was asked to end.
    pub ends: AtomicBool,
    /// Connections that ended then before an answer began.
    pub not_taken: AtomicUsize,
    /// True if clients have to stop on their own.
    pub stop: AtomicBool,
}

/// One client, with its connection.
struct Client {
    addr: SocketAddr,
    connection: Option<Connection>,
    tally: Arc<Tally>,
    random: Random,
}

/// Runs all clients to their end.
pub async fn run(addr: SocketAddr, tally: &Arc<Tally>, name: &str) {
    let mut random = Random::new(name);
    let mut clients = JoinSet::new();
    let mut client = || Client { addr, connection: None, tally: Arc::clone(tally), random: random.fork() };
    for _ in 0..COUNTERS {
        clients.spawn(client().count());
    }
    for _ in 0..READERS {
        clients.spawn(client().read());
    }
    for _ in 0..HOLDERS {
        clients.spawn(client().hold());
    }
    while let Some(ended) = clients.join_next().await {
        ended.expect("a client sees nothing that must not be");
    }
}

impl Client {
    /// Adds one to counters, by read-modify-write with retry.
    async fn count(mut self) -> Option<()> {
        while self.goes_on() {
            let key = self.random.below(KEYS);
            let target = format!("/docs/{key}");
            let read = self.expect("GET doc", "GET", &target, &[], "", &[200]).await?;
            let next = next(&read);
            // A response that was too slow to be hashed has no tag.
            let Some(tag) = read.header("etag").map(str::to_owned) else { continue };
            let fields = [("If-Match", tag.as_str())];
            let written = self.expect("PUT doc", "PUT", &target, &fields, &next, &[204, 409, 412]).await?;
            if written.status == 204 {
                self.tally.counted[key].fetch_add(1, Ordering::SeqCst);
            }
        }
        Some(())
    }

    /// Reads an unguarded resource.
    async fn read(mut self) -> Option<()> {
        while self.goes_on() {
            let response = self.expect("GET open", "GET", "/open/page", &[], "", &[200]).await?;
            assert_eq!(response.text(), "page");
        }
        Some(())
    }

    /// Adds one to counters that only a holder of their lease may write.
    async fn hold(mut self) -> Option<()> {
        while self.goes_on() {
            let key = self.random.below(KEYS);
            let (target, lease) = (format!("/jobs/{key}"), format!("/.leases/jobs/{key}"));
            let fields = [("Lease-Duration", "15"), ("Prefer", "wait=2")];
            let granted = self.expect("POST lease", "POST", &lease, &fields, "", &[201, 409]).await?;
            if granted.status != 201 {
                continue;
            }
            let id = Grant::of(&granted).id;
            let read = self.expect("GET job", "GET", &target, &[], "", &[200]).await?;
            let fields = [("Lease-Id", id.as_str())];
            let written = self.expect("PUT job", "PUT", &target, &fields, &next(&read), &[204]).await?;
            assert_eq!(written.status, 204);
            self.tally.held[key].fetch_add(1, Ordering::SeqCst);
            self.expect("DELETE lease", "DELETE", &lease, &fields, "", &[204]).await?;
        }
        Some(())
    }

    fn goes_on(&self) -> bool {
        !self.tally.stop.load(Ordering::SeqCst)
    }

    /// Sends a request that must be answered with one of these. `None` if no server has taken it because the process
    /// ends.
    async fn expect(
        &mut self,
        kind: &'static str,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &str,
        statuses: &[u16],
    ) -> Option<Response> {
        let response = self.exchange(method, target, fields, body).await?;
        self.tally.answers.fetch_add(1, Ordering::SeqCst);
        *self.tally.statuses.lock().unwrap().entry((kind, response.status)).or_default() += 1;
        assert!(statuses.contains(&response.status), "{method} {target}: {response:?}");
        Some(response)
    }

    async fn exchange(&mut self, method: &str, target: &str, fields: &[(&str, &str)], body: &str) -> Option<Response> {
        if self.random.is_one_of(FRESH_PERCENT) {
            self.connection = None;
        }
        let ends = || self.tally.ends.load(Ordering::SeqCst);
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => match Connection::try_open(self.addr).await {
                Ok(connection) => connection,
                Err(error) => {
                    assert!(ends(), "{method} {target}: no connection: {error}");
                    return None;
                }
            },
        };
        match connection.try_exchange(method, target, fields, body).await {
            Ok(response) => {
                self.connection = (!response.headers.has_token("connection", "close")).then_some(connection);
                Some(response)
            }
            Err(error) => {
                let before_answer = matches!(
                    error.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
                );
                assert!(ends() && before_answer, "{method} {target} has no answer: {error}");
                self.tally.not_taken.fetch_add(1, Ordering::SeqCst);
                // The listener may still be there for a moment; who comes then is served or refused.
                tokio::time::sleep(Duration::from_millis(1)).await;
                None
            }
        }
    }
}

/// The number after that which a response shows.
fn next(response: &Response) -> String {
    (response.text().trim().parse::<usize>().expect("a number") + 1).to_string()
}
