//! Lost updates before backends whose tags name a second: nginx with its own, a field with a date, and a date in a JSON
//! text. Of all writers with one tag one gets through, and no increment of a counter is lost.

use std::net::SocketAddr;

use crate::{
    stores::shared_store::{addrs, pair},
    support::{
        engines::Engine,
        nginx::Nginx,
        proxy::{Proxy, Setup},
        raw::{Connection, get, race_through, request_bytes},
        wait::within,
    },
    writes::races::{only_winner, refused_but},
};

const WRITERS: usize = 32;
const ROUNDS: usize = 5;
const CLIENTS: usize = 8;

/// The sources of tags, each with the other writers.
const MODES: [&str; 10] = [
    "etag = \"upstream\"",
    "etag = \"upstream\"\nother_writers = false",
    "etag = \"upstream\"\nother_writers = false\non_write = \"probe\"",
    "etag = \"json:/updated_at\"",
    "etag = \"json:/updated_at\"\nother_writers = false",
    "etag = \"header:X-Modified\"",
    "etag = \"header:X-Modified\"\nother_writers = false",
    // nginx does not keep the promise of the operator.
    "etag = \"header:X-Document-Etag\"\nunique_tags = true",
    "etag = \"upstream\"\nunique_tags = true",
    "etag = \"json:/updated_at\"\nother_writers = false\nunique_tags = true",
];

/// nginx with tags of a second and a size, also in a field of its own, and with a date in another.
async fn nginx() -> Nginx {
    let fields = "add_header X-Modified $sent_http_last_modified; add_header X-Document-Etag $sent_http_etag;";
    Nginx::with(&format!("etag on; {fields}")).await
}

fn to(nginx: &Nginx, mode: &str) -> Setup {
    Proxy::to(nginx.addr()).route(mode)
}

/// One proxy. A busy machine must not cost a response its tag.
async fn alone(nginx: &Nginx, mode: &str) -> Proxy {
    to(nginx, mode).route("hash_wait = \"10s\"").start().await
}

/// Returns a text of one size, for numbers of up to four digits, and of one date.
fn text(number: usize) -> String {
    format!("{{\"number\": {number:4}, \"updated_at\": \"2024-01-01T00:00:00Z\"}}")
}

fn number_of(text: &str) -> usize {
    serde_json::from_str::<serde_json::Value>(text).unwrap()["number"].as_u64().unwrap().try_into().unwrap()
}

/// Returns the target of a mode, with the number 0 in it: a store that outlives a mode has no record of it.
fn target(nginx: &Nginx, mode: &str) -> String {
    let name = mode.replace(|character: char| !character.is_ascii_alphanumeric(), "");
    std::fs::write(nginx.root().join(&name), text(0)).unwrap();
    format!("/{name}")
}

async fn writes(nginx: &Nginx) -> usize {
    nginx.access_lines().await.into_iter().filter(|line| line.starts_with("PUT ")).count()
}

/// Rounds on one resource: each begins with the tag that the one before has left.
async fn assert_one_winner_each(nginx: &Nginx, addrs: &[SocketAddr], mode: &str) {
    let target = &target(nginx, mode);
    for round in 0..ROUNDS {
        let tag = get(addrs[round % addrs.len()], target).await.etag();
        let request = |writer| request_bytes("PUT", target, &[("If-Match", &tag)], text(writer).as_bytes());
        let responses = race_through(addrs, (0..WRITERS).map(request).collect()).await;
        let winner = only_winner(&responses, &format!("round {round} with {mode}"));
        refused_but(winner, &responses);
        assert_eq!(number_of(get(addrs[0], target).await.text()), winner, "{mode}");
    }
    assert_eq!(writes(nginx).await, ROUNDS, "{mode}");
}

async fn assert_nothing_lost(nginx: &Nginx, addrs: &[SocketAddr], each: usize, mode: &str) {
    let target = target(nginx, mode);
    let client = |number: usize| {
        let (addr, target) = (addrs[number % addrs.len()], target.clone());
        async move {
            let mut connection = Connection::open(addr).await;
            for _ in 0..each {
                count_up(&mut connection, &target).await;
            }
        }
    };
    let clients: Vec<_> = (0..CLIENTS).map(|number| tokio::spawn(client(number))).collect();
    for client in clients {
        within("a client to count up", client).await.unwrap();
    }
    assert_eq!(number_of(get(addrs[0], &target).await.text()), CLIENTS * each, "{mode}");
    assert_eq!(writes(nginx).await, CLIENTS * each, "{mode}: what was refused never got there");
}

/// Reads the counter, adds one, writes it back; starts anew until its write is applied.
async fn count_up(connection: &mut Connection, target: &str) {
    loop {
        let read = connection.exchange("GET", target, &[], "").await;
        let next = text(number_of(read.text()) + 1);
        let written = connection.exchange("PUT", target, &[("If-Match", &read.etag())], next).await;
        match written.status {
            204 => return,
            409 | 412 => {}
            status => panic!("{status} for a write of the counter"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_writers_with_one_coarse_tag_exactly_one_wins() {
    for mode in MODES {
        let nginx = nginx().await;
        let proxy = alone(&nginx, mode).await;
        assert_one_winner_each(&nginx, &[proxy.addr()], mode).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_counter_with_coarse_tags_loses_no_increment() {
    for mode in MODES {
        let nginx = nginx().await;
        let proxy = alone(&nginx, mode).await;
        assert_nothing_lost(&nginx, &[proxy.addr()], 5, mode).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_writers_with_one_coarse_tag_through_two_proxies_exactly_one_wins() {
    for engine in Engine::all().await {
        for mode in MODES {
            let nginx = nginx().await;
            let proxies = pair(&engine, to(&nginx, mode)).await;
            assert_one_winner_each(&nginx, &addrs(&proxies), mode).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_counter_with_coarse_tags_behind_two_proxies_loses_no_increment() {
    for engine in Engine::all().await {
        for mode in MODES {
            let nginx = nginx().await;
            let proxies = pair(&engine, to(&nginx, mode)).await;
            assert_nothing_lost(&nginx, &addrs(&proxies), 2, mode).await;
        }
    }
}
