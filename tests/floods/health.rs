//! Health beside floods: it answers no matter what clients hold (DESIGN, section 3, rule 17).

use std::{net::SocketAddr, time::Duration};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpListener,
    time::{Instant, sleep},
};

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    frames::{END_HEADERS, END_STREAM, HEADERS, Http2, SETTINGS, fields, frame},
    measure::Sampler,
    process::Process,
    sockets::connections,
    support::{
        admin::look,
        wait::{until, until_some},
    },
};

const ADMIN: &str = "\n[admin]\nlisten = \"127.0.0.1:0\"\n";
/// How long a probe may wait: balancers give it a second or two.
const PROBE_WAIT: Duration = Duration::from_millis(500);

/// The admin listener of an arena.
async fn admin(arena: &Arena) -> SocketAddr {
    until_some("the admin listener to be told of", || {
        let log = arena.proxy.log();
        let (_, rest) = log.split_once("admin listener listen=\"")?;
        Some(rest.split_once('"')?.0.parse().expect("an address"))
    })
    .await
}

/// The longest that one of these probes has waited for the process, and not for the machine. All of them are answered.
async fn probe(process: Process, admin: SocketAddr, times: usize) -> Duration {
    let (mut longest, sampler) = (Duration::ZERO, Sampler::start(process.0));
    for _ in 0..times {
        for path in ["/livez", "/readyz", "/readyz/writes"] {
            let begun = Instant::now();
            assert_eq!(look(admin, path).await.status, 200, "{path}");
            longest = longest.max(begun.elapsed());
        }
        sleep(Duration::from_millis(10)).await;
    }
    longest.saturating_sub(sampler.end().await.pause)
}

/// A client that only connects to the admin listener makes room for a probe.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_do_not_starve_health() {
    let arena = Arena::before("", |setup| setup, ADMIN, None).await;
    let admin = admin(&arena).await;
    let ceiling = Ceiling { resident_mib: 16, descriptors: 250, honest_wait: HONEST_WAIT };
    let flood = async {
        let mut idle = connections(admin, times(200, 1_000)).await;
        for stream in idle.iter_mut().rev().take(50) {
            // Half a head is no request.
            stream.write_all(b"GET /livez HTTP/1.1\r\nHost: ").await.expect("the newest are connected");
        }
        probe(Process(arena.proxy.id()), admin, 20).await
    };
    let (longest, _) = arena.flood("idle connections to the admin listener", ceiling, flood).await;
    assert!(longest < PROBE_WAIT, "a probe waited {longest:?}");
}

/// Others hold every descriptor that there is, and health has its own.
/// Rule 17: health answers when clients hold all other descriptors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_has_descriptors_when_there_are_no_others() {
    let arena = Arena::before("", |setup| setup, ADMIN, None).await;
    let admin = admin(&arena).await;
    let process = Process(arena.proxy.id());
    // Less than was planned with at the start: as if a library had taken the rest.
    let limit = process.highest_descriptor() + 20;
    let pid = Pid::from_raw(i32::try_from(arena.proxy.id()).expect("a number")).expect("a process");
    let few = Rlimit { current: Some(limit as u64), maximum: Some(limit as u64) };
    prlimit(Some(pid), Resource::Nofile, few).expect("the limit of a child can be lowered");
    let _clients = connections(arena.addr(), limit).await;
    until("all descriptors to be taken", || process.descriptors() == limit).await;
    assert!(probe(process, admin, times(20, 200)).await < PROBE_WAIT);
}

/// The plan of the start keeps clients from ever having all of them: neither by connections nor by requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_do_not_get_all_descriptors() {
    const LIMIT: usize = 130;
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let tables = format!(
        "{ADMIN}[upstreams.silent]\nservers = [\"{}\"]\n\
         [[routes]]\nname = \"silent\"\npath = \"/silent/{{*rest}}\"\nupstream = \"silent\"\npolicy = \"last-writer-wins\"\n",
        silent.local_addr().expect("its address"),
    );
    // A trusted proxy, so that the share of one client does not count.
    let lines = "trusted_proxies = [\"127.0.0.3\"]";
    let arena = Arena::before(lines, |setup| setup, &tables, Some(LIMIT)).await;
    let admin = admin(&arena).await;
    let mut clients = Vec::new();
    for _ in 0..5 {
        let mut client = Http2::open(arena.addr(), &frame(SETTINGS, 0, 0, &[])).await;
        for number in 0..100 {
            let head = fields("GET", "/silent/doc", &[]);
            client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &head)).await.expect("it is taken");
        }
        clients.push(client);
    }
    let _idle = connections(arena.addr(), 100).await;
    let process = Process(arena.proxy.id());
    let waits = probe(process, admin, times(50, 500)).await;
    assert!(waits < PROBE_WAIT, "{waits:?}");
    // A connection of a burst is open for a moment, until it is refused.
    until("a reserve to be left", || (60..LIMIT - 20).contains(&process.descriptors())).await;
}
