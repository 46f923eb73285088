//! Several servers of one upstream: the requests that each gets, and their fate when a server is lost.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

use crate::support::{
    backend::{Backend, Validators},
    nginx::Nginx,
    ports,
    proxy::Proxy,
    raw::{get, put_if_match, send},
    wait::until,
};

/// A configuration for these servers: guarded below `/guarded`, and unguarded elsewhere.
pub fn configuration(servers: &[SocketAddr], upstream: &str, guarded: &str) -> String {
    let servers = servers.iter().map(|server| format!("\"{server}\"")).collect::<Vec<_>>().join(", ");
    // A pause of the machine is not to send a request to the next server.
    let patience = if upstream.contains("connect_timeout") { "" } else { "connect_timeout = \"10s\"" };
    format!(
        "[server]\n{{listen}}\nspool_dir = \"{{spool}}\"\nthreads = 2\n\n\
         [upstreams.backend]\nservers = [{servers}]\n{patience}\n{upstream}\n\n\
         [[routes]]\nname = \"guarded\"\npath = \"/guarded/{{*rest}}\"\nupstream = \"backend\"\npolicy = \"optimistic\"\n\
         {guarded}\n\n\
         [[routes]]\nname = \"open\"\npath = \"/{{*rest}}\"\nupstream = \"backend\"\npolicy = \"last-writer-wins\"\n"
    )
}

/// A backend on a port that no other program takes while it is away.
pub async fn backend() -> Backend {
    loop {
        if let Ok(listener) = TcpListener::bind(ports::free()).await {
            return Backend::on(listener, Validators::None);
        }
    }
}

fn counts(servers: &[Backend], target: &str) -> Vec<usize> {
    servers.iter().map(|server| server.count("*", target)).collect()
}

/// Each server with all of these resources.
async fn replicas(count: usize, targets: &[String]) -> Vec<Backend> {
    let mut servers = Vec::new();
    for _ in 0..count {
        let server = backend().await;
        for target in targets {
            server.put(target, "one");
        }
        servers.push(server);
    }
    servers
}

fn addresses(servers: &[Backend]) -> Vec<SocketAddr> {
    servers.iter().map(Backend::addr).collect()
}

fn targets(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}/{number}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn unguarded_requests_take_turns_by_weight() {
    let (one, other) = (Nginx::start().await, Nginx::start().await);
    let weights = format!("weights = {{ \"{}\" = 3 }}", one.addr());
    let proxy = Proxy::start(&configuration(&[one.addr(), other.addr()], &weights, "")).await;
    for _ in 0..40 {
        assert_eq!(get(proxy.addr(), "/nothing").await.status, 404);
    }
    assert_eq!((one.access_lines().await.len(), other.access_lines().await.len()), (30, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_server_moves_only_what_went_to_it() {
    let targets = targets("", 40);
    let servers = replicas(3, &targets).await;
    let proxy = Proxy::start(&configuration(&addresses(&servers), "balance = \"consistent-hash\"", "")).await;
    let mut before = Vec::new();
    for target in &targets {
        before.push(place_of_next(&proxy, &servers, target).await);
    }
    assert!((0..3).all(|server| before.contains(&server)), "all have a share: {before:?}");
    servers[1].go_away().await;
    for (target, before) in targets.iter().zip(before) {
        let now = place_of_next(&proxy, &servers, target).await;
        assert_ne!(now, 1, "{target}");
        assert!(now == before || before == 1, "{target} went from {before} to {now}");
    }
}

/// Returns the server that answers the next GET.
async fn place_of_next(proxy: &Proxy, servers: &[Backend], target: &str) -> usize {
    let before = counts(servers, target);
    assert_eq!(get(proxy.addr(), target).await.text(), "one");
    let after = counts(servers, target);
    before.iter().zip(&after).position(|(before, after)| after > before).expect("one server was asked")
}

/// DESIGN, section 4: a probe asks the server that took the last write.
#[tokio::test(flavor = "multi_thread")]
async fn all_requests_on_a_guarded_resource_go_to_one_server() {
    let targets = targets("/guarded", 12);
    let servers = replicas(3, &targets).await;
    let proxy = Proxy::start(&configuration(&addresses(&servers), "", "")).await;
    for target in &targets {
        let tag = get(proxy.addr(), target).await.etag();
        assert_eq!(put_if_match(proxy.addr(), target, &tag, "two").await.status, 204);
        let counts = counts(&servers, target);
        assert_eq!(counts.iter().filter(|count| **count > 0).count(), 1, "{target}: {counts:?}");
        // The read, the question before the write, the write, and the question after it.
        assert_eq!(counts.iter().sum::<usize>(), 4, "{target}");
    }
}

/// A write that was judged by the answer of one server is not sent to another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_not_sent_to_another_server_than_it_was_judged_by() {
    let targets = targets("/guarded", 16);
    let other = replicas(1, &targets).await.remove(0);
    let own = Vanishing::start().await;
    // No connection outlives its request, so that a write needs a new one.
    let upstream = "reuse_idle_writes = \"0s\"\nidle_timeout = \"0s\"";
    let proxy = Proxy::start(&configuration(&[own.addr, other.addr()], upstream, "")).await;
    let mut tag = None;
    for target in &targets {
        let read = get(proxy.addr(), target).await;
        if other.count("GET", target) == 0 {
            tag = Some((target, read.etag()));
            break;
        }
    }
    let (target, tag) = tag.expect("one of them is its own");
    own.vanishes.store(true, Ordering::SeqCst);
    let refused = put_if_match(proxy.addr(), target, &tag, "two").await;
    assert!(!refused.refused(502, "upstream-failed").in_doubt);
    assert_eq!(other.count("*", target), 0);
    // The next one is judged by the other server, and written there.
    assert_eq!(put_if_match(proxy.addr(), target, &tag, "three").await.status, 204);
    assert_eq!(other.content(target).as_deref(), Some("three"));
}

/// A server that answers each request with `one`. Once it has to vanish, it takes no more connections, beginning before
/// the answer to the next request.
struct Vanishing {
    addr: SocketAddr,
    vanishes: Arc<AtomicBool>,
}

impl Vanishing {
    async fn start() -> Self {
        let listener = TcpListener::bind(ports::free()).await.expect("a free port");
        let (addr, vanishes) = (listener.local_addr().expect("it is bound"), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&vanishes);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.expect("a request"));
                }
                // An end without a word could meet the next request.
                let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\none";
                if told.load(Ordering::SeqCst) {
                    drop(listener);
                    stream.write_all(answer).await.expect("it is read");
                    return;
                }
                stream.write_all(answer).await.expect("it is read");
            }
        });
        Self { addr, vanishes }
    }
}

/// DESIGN, rules 3 and 6: while servers come and go no update is lost, none is sent twice, and each request is answered.
#[tokio::test(flavor = "multi_thread")]
async fn no_update_is_lost_while_a_server_is_lost_under_load() {
    const WRITERS: usize = 6;
    // This number gives each server some of them, for any hashes of its port; one write of each by each writer.
    const TARGETS: usize = 24;
    let shared = Nginx::start().await;
    // Two servers of the same data: a relay that can be cut off, and the backend itself.
    let relay = Relay::to(shared.addr()).await;
    let upstream = "late_write_window = \"1s\"\nconnect_timeout = \"500ms\"";
    // nginx sends the body after the head: a busy machine must not cost a response its tag.
    let guarded = "other_writers = true\nhash_wait = \"10s\"";
    let proxy = Proxy::start(&configuration(&[relay.addr, shared.addr()], upstream, guarded)).await;
    let targets = Arc::new(targets("/guarded", TARGETS));
    for target in targets.iter() {
        assert_eq!(send(proxy.addr(), "PUT", target, &[("If-None-Match", "*")], "0").await.status, 201);
    }
    let (addr, applied) = (proxy.addr(), Arc::new(AtomicUsize::new(0)));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (targets, applied) = (Arc::clone(&targets), Arc::clone(&applied));
        writers.spawn(async move {
            let (mut done, mut unclear) = (0, [0; TARGETS]);
            while let Some(target) = targets.get(done) {
                let read = get(addr, target).await;
                if read.status != 200 {
                    assert!(matches!(read.status, 502 | 504), "{read:?}");
                    continue;
                }
                let count: usize = read.text().parse().expect("a number");
                let written = put_if_match(addr, target, &read.etag(), (count + 1).to_string()).await;
                match written.status {
                    204 => done += 1,
                    502 | 504 if written.problem().in_doubt => unclear[done] += 1,
                    409 | 412 | 502 | 504 => {}
                    other => panic!("{other}: {written:?}"),
                }
                applied.fetch_add(1, Ordering::Relaxed);
            }
            unclear
        });
    }
    until("the load to begin", || applied.load(Ordering::Relaxed) > WRITERS * 2).await;
    relay.cut().await;
    let mut unclear = [0; TARGETS];
    while let Some(writer) = writers.join_next().await {
        let of_writer = writer.expect("each request was answered");
        unclear.iter_mut().zip(of_writer).for_each(|(all, one)| *all += one);
    }
    for (target, unclear) in targets.iter().zip(unclear) {
        let content = get(shared.addr(), target).await;
        let count: usize = content.text().parse().expect("a number");
        assert!((WRITERS..=WRITERS + unclear).contains(&count), "{target}: {count}, and {unclear} unclear");
    }
    assert!(relay.carried.load(Ordering::Relaxed) > 0, "the relay had its share");
}

/// Passes connections on, until it is cut: then all of them break, and there are no new ones.
struct Relay {
    addr: SocketAddr,
    carried: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Relay {
    async fn to(backend: SocketAddr) -> Self {
        let listener = TcpListener::bind(ports::free()).await.expect("a free port");
        let (addr, carried) = (listener.local_addr().expect("it is bound"), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&carried);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (mut client, _) = listener.accept().await.expect("a connection");
                counter.fetch_add(1, Ordering::Relaxed);
                connections.spawn(async move {
                    let mut server = TcpStream::connect(backend).await.expect("the backend is there");
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { addr, carried, accepting }
    }

    async fn cut(&self) {
        self.accepting.abort();
        until("the relay to end", || self.accepting.is_finished()).await;
    }
}
