//! Two proxies with one store in front of one backend are as one (DESIGN, section 7).

use std::{net::SocketAddr, time::Duration};

use crate::{
    dialects::azure_blocks::{commit, staged},
    support::{
        azure::{assert_error, blobs},
        backend::Backend,
        engines::{Engine, Redis},
        leases::{Grant, acquire, is_in_line, lease, leasing_versions, put_with, release, view},
        nginx::Nginx,
        proxy::{Proxy, Setup},
        raw::{Connection, get, put_if_match, race_through, request_bytes, send},
        wait::within,
    },
    writes::races::{count_up, only_winner, refused_but},
};

const DOC: &str = "/doc";
const WRITERS: usize = 32;
const ROUNDS: usize = 4;

/// Two proxies of one configuration on one store.
pub async fn pair(engine: &Engine, setup: Setup) -> [Proxy; 2] {
    // A busy machine must not cost a response its tag, nor a write the store.
    let setup = setup.store(&engine.store()).store("timeout = \"10s\"").route("hash_wait = \"10s\"");
    [setup.clone().start().await, setup.start().await]
}

pub fn addrs(proxies: &[Proxy; 2]) -> [SocketAddr; 2] {
    proxies.each_ref().map(Proxy::addr)
}

/// RFC 9110 section 13.1.1: of all writes based on one state at most one is applied, through any proxy.
/// Rule 7: of two processes that swap one record, one wins.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_writers_through_two_proxies_exactly_one_wins() {
    for engine in Engine::all().await {
        for mode in ["other_writers = true", "other_writers = false\netag = \"version\""] {
            let nginx = Nginx::start().await;
            let proxies = pair(&engine, Proxy::to(nginx.addr()).route(mode)).await;
            let addrs = addrs(&proxies);
            for round in 0..ROUNDS {
                let target = format!("/{}-{round}", mode.len());
                std::fs::write(nginx.root().join(&target[1..]), "the first state").unwrap();
                let tag = get(addrs[round % 2], &target).await.etag();
                let body = |writer: usize| format!("the state of writer {writer}");
                let request = |writer| request_bytes("PUT", &target, &[("If-Match", &tag)], body(writer).as_bytes());
                let responses = race_through(&addrs, (0..WRITERS).map(request).collect()).await;
                let winner = only_winner(&responses, &format!("round {round} with {mode}"));
                refused_but(winner, &responses);
                assert_eq!(get(addrs[0], &target).await.text(), body(winner), "{mode}");
            }
            let writes = nginx.access_lines().await.into_iter().filter(|line| line.starts_with("PUT ")).count();
            assert_eq!(writes, ROUNDS, "{mode}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_counter_behind_two_proxies_ends_at_the_number_of_successes() {
    const CLIENTS: usize = 8;
    const EACH: usize = 5;
    for engine in Engine::all().await {
        let nginx = Nginx::start().await;
        let proxies = pair(&engine, Proxy::to(nginx.addr())).await;
        std::fs::write(nginx.root().join("counter"), "0").unwrap();
        let addrs = addrs(&proxies);
        let client = |number: usize| async move {
            let mut connection = Connection::open(addrs[number % 2]).await;
            for _ in 0..EACH {
                count_up(&mut connection).await;
            }
        };
        let clients: Vec<_> = (0..CLIENTS).map(|number| tokio::spawn(client(number))).collect();
        for client in clients {
            within("a client to count up", client).await.unwrap();
        }
        assert_eq!(get(addrs[0], "/counter").await.text(), (CLIENTS * EACH).to_string());
    }
}

/// Versions and their incarnation belong to the store, not to the process.
#[tokio::test]
async fn a_tag_of_one_proxy_is_good_at_the_other() {
    for engine in Engine::all().await {
        let backend = Backend::start().await;
        backend.put(DOC, "one");
        let proxies = pair(&engine, leasing_versions(&backend)).await;
        let [one, other] = addrs(&proxies);
        let tag = get(one, DOC).await.etag();
        assert_eq!(get(other, DOC).await.etag(), tag);
        assert_eq!(put_if_match(other, DOC, &tag, "two").await.status, 204);
        put_if_match(one, DOC, &tag, "three").await.refused(412, "precondition-failed");
        let current = send(one, "GET", DOC, &[("If-None-Match", &tag)], "").await;
        assert_eq!((current.status, current.text(), current.etag()), (200, "two", get(other, DOC).await.etag()));
        assert_ne!(current.etag(), tag);
    }
}

/// Blocks are in the proxy that got them, and the store shows which one got the last.
#[tokio::test]
async fn blocks_that_were_replaced_at_one_proxy_are_not_joined_at_the_other() {
    for engine in Engine::all().await {
        let backend = Backend::start().await;
        let proxies = pair(&engine, blobs(&backend)).await;
        let [one, other] = addrs(&proxies);
        staged(one, DOC, "a1", &[], "stale").await;
        staged(other, DOC, "a1", &[], "current").await;
        staged(other, DOC, "b1", &[], " blocks").await;
        assert_error(&commit(one, DOC, &["a1"], &[]).await, 400, "InvalidBlockList");
        assert_eq!(commit(other, DOC, &["a1", "b1"], &[]).await.status, 201);
        assert_eq!(backend.content(DOC).as_deref(), Some("current blocks"));
        staged(one, DOC, "a1", &[], "of the first").await;
        assert_eq!(commit(one, DOC, &["a1"], &[]).await.status, 201);
        assert_eq!(backend.content(DOC).as_deref(), Some("of the first"));
    }
}

#[tokio::test]
async fn a_lease_taken_at_one_proxy_is_honoured_at_the_other() {
    for engine in Engine::all().await {
        let backend = Backend::start().await;
        backend.put(DOC, "one");
        let proxies = pair(&engine, leasing_versions(&backend)).await;
        let [one, other] = addrs(&proxies);
        let grant = acquire(one, DOC, "60").await;
        assert_eq!(view(other, DOC).await["state"], "leased");
        lease(other, "POST", DOC, &[("Lease-Duration", "30")]).await.refused(409, "lease-held");
        send(other, "PUT", DOC, &[], "stolen").await.refused(412, "lease-id-missing");
        assert_eq!(put_with(other, DOC, &grant.id, "two").await.status, 204);
        assert_eq!(backend.content(DOC).as_deref(), Some("two"));
        release(other, DOC, &grant.id).await;
        let next = acquire(one, DOC, "60").await;
        assert!(next.fence > grant.fence);
    }
}

/// `Prefer: wait` (RFC 7240 section 4.3): the end of a lease wakes those who wait at another proxy.
#[tokio::test]
async fn a_waiter_at_one_proxy_wakes_when_the_lease_is_released_at_the_other() {
    for engine in Engine::all().await {
        let backend = Backend::start().await;
        backend.put(DOC, "one");
        let proxies = pair(&engine, leasing_versions(&backend).on_one_thread()).await;
        let [one, other] = addrs(&proxies);
        let first = acquire(one, DOC, "60").await;
        let probes = backend.count("HEAD", DOC);
        let waiter = tokio::spawn(async move { lease(other, "POST", DOC, &[("Prefer", "wait=20")]).await });
        backend.reached("HEAD", DOC, probes + 1).await;
        is_in_line(other, DOC).await;
        assert!(!waiter.is_finished());
        release(one, DOC, &first.id).await;
        let granted = within("the waiter to be granted the lease", waiter).await.unwrap();
        assert_eq!((granted.status, granted.header("preference-applied")), (201, Some("wait")), "{granted:?}");
        assert!(Grant::of(&granted).fence > first.fence);
    }
}

/// Rule 16: clients that share a lease at one proxy do not keep away one that waits at the other.
#[tokio::test]
async fn a_lease_is_shared_between_proxies_and_one_that_waits_gets_its_turn() {
    for engine in Engine::all().await {
        let backend = Backend::start().await;
        backend.put(DOC, "one");
        let proxies = pair(&engine, leasing_versions(&backend).route("lease.shared = true")).await;
        let [one, other] = addrs(&proxies);
        let share = async |addr| lease(addr, "POST", DOC, &[("Lease-Mode", "shared"), ("Lease-Duration", "60")]).await;
        let [ann, bob] = [Grant::of(&share(one).await), Grant::of(&share(other).await)];
        assert_eq!(put_with(other, DOC, &ann.id, "two").await.status, 204);
        assert_eq!(put_with(one, DOC, &bob.id, "three").await.status, 204);
        send(one, "PUT", DOC, &[], "stolen").await.refused(412, "lease-id-missing");
        let waiter = tokio::spawn(async move { lease(other, "POST", DOC, &[("Prefer", "wait=30")]).await });
        let kept_away = async {
            loop {
                let joined = share(one).await;
                if joined.status != 201 {
                    return joined;
                }
                release(one, DOC, &Grant::of(&joined).id).await;
            }
        };
        within("the waiter to keep others away", kept_away).await.refused(409, "lease-held");
        release(one, DOC, &ann.id).await;
        release(one, DOC, &bob.id).await;
        let alone = within("the waiter to be granted the lease", waiter).await.unwrap();
        assert!(Grant::of(&alone).fence > bob.fence, "{alone:?}");
    }
}

/// DESIGN, section 3, rule 7: the write of a dead owner is in doubt for as long as its own upstream may apply it late.
/// The upstream of the process that finds it does not count.
#[tokio::test]
async fn a_dead_proxys_write_is_in_doubt_for_the_time_of_its_own_upstream() {
    let (engine, backend) = (Engine::Redis(Redis::start().await), Backend::start().await);
    let routes = ["slow", "fast"].map(|name| {
        let rules = "policy = \"optimistic\"\nrequire = \"never\"\netag = \"version\"\nother_writers = false";
        let limits = "claim = { max_wait = \"100ms\" }\nprobe = { timeout = \"100ms\" }";
        let place = format!("name = {name:?}\npath = \"/{name}/{{id}}\"\nkey = \"{{id}}\"\nupstream = {name:?}");
        format!("[[routes]]\n{place}\n{rules}\n{limits}\n")
    });
    let upstream = |name: &str, late_write_window: &str| {
        let limits = "connect_timeout = \"100ms\"\ntimeout = \"500ms\"\nqueue = { max_wait = \"10ms\" }";
        let servers = format!(
            "servers = [\"{}\"]\nidentity = \"docs\"\nlate_write_window = {late_write_window:?}",
            backend.addr()
        );
        format!("[upstreams.{name}]\n{servers}\n{limits}\n")
    };
    let upstreams = [upstream("slow", "60s"), upstream("fast", "1s")].concat();
    let server = "[server]\n{listen}\nspool_dir = \"{spool}\"\nthreads = 2\n";
    let configuration = format!("{server}[store]\n{}\n{upstreams}{}", engine.store(), routes.concat());
    let (mut dead, alive) = (Proxy::start(&configuration).await, Proxy::start(&configuration).await);
    let held = backend.hold("PUT", "/slow/doc");
    let addr = dead.addr();
    let writer =
        tokio::spawn(async move { Connection::open(addr).await.try_exchange("PUT", "/slow/doc", &[], "x").await });
    let write = held.arrived().await;
    dead.signal("KILL");
    dead.exit_status().await;
    assert!(writer.await.unwrap().is_err(), "nobody was left to answer it");
    let retry_after = within("the dead owner's mark to become a doubt", async {
        loop {
            let answer = send(alive.addr(), "PUT", "/fast/doc", &[], "over it").await;
            answer.refused(409, "write-in-flight");
            let retry_after: u64 = answer.header("retry-after").expect("it says when").parse().expect("seconds");
            if retry_after > 1 {
                break retry_after;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert!(retry_after.await > 50, "it is that of the dead owner's upstream");
    assert_eq!(backend.count("PUT", "/fast/doc"), 0);
    drop(write);
}
