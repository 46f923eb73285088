//! Health beside floods: it answers whatever clients hold (DESIGN, section 3, rule 17).

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::AsyncWriteExt as _,
    net::TcpListener,
    time::{Instant, sleep},
};

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    sockets::connections,
    support::{admin::look, h2c, wait::until_some},
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

/// The longest that one of these probes has waited. All of them are answered.
async fn probe(admin: SocketAddr, times: usize) -> Duration {
    let mut longest = Duration::ZERO;
    for _ in 0..times {
        for path in ["/livez", "/readyz", "/readyz/writes"] {
            let begun = Instant::now();
            assert_eq!(look(admin, path).await.status, 200, "{path}");
            longest = longest.max(begun.elapsed());
        }
        sleep(Duration::from_millis(10)).await;
    }
    longest
}

/// Whoever only connects to the admin listener makes room for a probe.
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
        probe(admin, 20).await
    };
    let (longest, _) = arena.flood("idle connections to the admin listener", ceiling, flood).await;
    assert!(longest < PROBE_WAIT, "a probe waited {longest:?}");
}

/// Clients and upstreams hold every descriptor that they can get, and health has its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_has_descriptors_when_clients_hold_all_others() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let tables = format!(
        "{ADMIN}[upstreams.silent]\nservers = [\"{}\"]\n\
         [[routes]]\nname = \"silent\"\npath = \"/silent/{{*rest}}\"\nupstream = \"silent\"\npolicy = \"last-writer-wins\"\n",
        silent.local_addr().expect("its address"),
    );
    let arena = Arena::before("", |setup| setup, &tables, Some(130)).await;
    let admin = admin(&arena).await;
    let mut connection = h2c::Connection::open(arena.addr()).await;
    let mut streams = Vec::new();
    for number in 0..120 {
        streams.push(connection.begin_without_body("GET", &format!("/silent/{number}"), &[]).await);
    }
    let _idle = connections(arena.addr(), 100).await;
    let process = crate::process::Process(arena.proxy.id());
    until_some("nearly all descriptors to be taken", || (process.descriptors() >= 118).then_some(())).await;
    assert!(probe(admin, 20).await < PROBE_WAIT);
}
