//! Lost updates in front of the real nginx: of all writers with one tag exactly one gets through, round after round.

use crate::support::{
    nginx::Nginx,
    proxy::Proxy,
    raw::{Connection, get, race, request_bytes},
    response::Response,
    wait::within,
};

const WRITERS: usize = 32;
const ROUNDS: usize = 20;

/// Lines of the route for each way to know what is current.
const MODES: [&str; 3] = ["other_writers = true", "other_writers = false", "other_writers = false\netag = \"version\""];

/// nginx without entity-tags, and the proxy in front of it.
async fn start(mode: &str) -> (Nginx, Proxy) {
    let nginx = Nginx::start().await;
    // A busy machine must not cost a response its tag.
    let proxy = Proxy::to(nginx.addr()).route(mode).route("hash_wait = \"10s\"").start().await;
    (nginx, proxy)
}

/// Writes that nginx has answered.
async fn writes(nginx: &Nginx) -> Vec<String> {
    let lines = nginx.access_lines().await;
    lines.into_iter().filter(|line| line.starts_with("PUT ") || line.starts_with("DELETE ")).collect()
}

/// The number of the one response with a 2xx status.
#[track_caller]
pub fn only_winner(responses: &[Response], context: &str) -> usize {
    let winners: Vec<usize> = (0..responses.len()).filter(|at| responses[*at].status / 100 == 2).collect();
    let statuses: Vec<u16> = responses.iter().map(|response| response.status).collect();
    assert_eq!(winners.len(), 1, "exactly one write is applied in {context}: {statuses:?}");
    winners[0]
}

#[track_caller]
pub fn refused_but(winner: usize, responses: &[Response]) {
    for (_, response) in responses.iter().enumerate().filter(|(number, _)| *number != winner) {
        response.refused(412, "precondition-failed");
    }
}

/// RFC 9110 section 13.1.1: of all writes based on one state at most one is applied.
/// Rule 1: of racing writers exactly one gets past its verdict.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_writers_with_one_tag_exactly_one_wins() {
    for mode in MODES {
        let (nginx, proxy) = start(mode).await;
        for round in 0..ROUNDS {
            let target = format!("/docs/{round}");
            std::fs::create_dir_all(nginx.root().join("docs")).unwrap();
            std::fs::write(nginx.root().join(&target[1..]), "the first state").unwrap();
            let tag = get(proxy.addr(), &target).await.etag();
            let body = |writer: usize| format!("the state of writer {writer}");
            let request = |writer| request_bytes("PUT", &target, &[("If-Match", &tag)], body(writer).as_bytes());
            let responses = race(proxy.addr(), (0..WRITERS).map(request).collect()).await;
            let winner = only_winner(&responses, &format!("round {round} with {mode}"));
            refused_but(winner, &responses);
            assert_eq!(get(proxy.addr(), &target).await.text(), body(winner), "{mode}");
        }
        let expected: Vec<String> = (0..ROUNDS).map(|round| format!("PUT /docs/{round} 204")).collect();
        assert_eq!(writes(&nginx).await, expected, "{mode}");
    }
}

/// RFC 9110 section 13.1.2: of all who create, one creates.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_creators_exactly_one_creates() {
    for mode in MODES {
        let (nginx, proxy) = start(mode).await;
        for round in 0..ROUNDS {
            let target = format!("/docs/{round}");
            let body = |writer: usize| format!("made by {writer}");
            let request = |writer| request_bytes("PUT", &target, &[("If-None-Match", "*")], body(writer).as_bytes());
            let responses = race(proxy.addr(), (0..WRITERS).map(request).collect()).await;
            let winner = only_winner(&responses, &format!("round {round} with {mode}"));
            assert_eq!(responses[winner].status, 201, "{mode}");
            refused_but(winner, &responses);
            assert_eq!(get(proxy.addr(), &target).await.text(), body(winner), "{mode}");
        }
        let expected: Vec<String> = (0..ROUNDS).map(|round| format!("PUT /docs/{round} 201")).collect();
        assert_eq!(writes(&nginx).await, expected, "{mode}");
    }
}

/// A DELETE is a write like any other: with one tag, either it or one PUT is applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_writers_and_deleters_with_one_tag_exactly_one_wins() {
    for mode in MODES {
        let (nginx, proxy) = start(mode).await;
        for round in 0..ROUNDS {
            let target = format!("/{round}");
            std::fs::write(nginx.root().join(&target[1..]), "the first state").unwrap();
            let tag = get(proxy.addr(), &target).await.etag();
            let request = |number: usize| match number % 2 {
                0 => request_bytes("PUT", &target, &[("If-Match", &tag)], b"changed"),
                _ => request_bytes("DELETE", &target, &[("If-Match", &tag)], b""),
            };
            let responses = race(proxy.addr(), (0..WRITERS).map(request).collect()).await;
            let winner = only_winner(&responses, &format!("round {round} with {mode}"));
            let was_deleted = winner % 2 == 1;
            for (number, response) in responses.iter().enumerate().filter(|(number, _)| *number != winner) {
                // Nothing is there to delete any more: that may be the backend's own answer (section 13.2.1).
                if response.status == 404 {
                    assert!(was_deleted && number % 2 == 1, "{mode}: {number} of round {round} got 404");
                } else {
                    response.refused(412, "precondition-failed");
                }
            }
            let after = get(proxy.addr(), &target).await;
            assert_eq!(after.status, if was_deleted { 404 } else { 200 }, "{mode}");
        }
        let writes = writes(&nginx).await;
        let targets: Vec<&str> = writes.iter().map(|line| line.split(' ').nth(1).unwrap()).collect();
        let expected: Vec<String> = (0..ROUNDS).map(|round| format!("/{round}")).collect();
        assert_eq!(targets, expected, "{mode}: one write a round");
    }
}

/// Reads the counter, adds one, writes it back; starts anew until its write is applied. Tells how often it was refused.
pub async fn count_up(connection: &mut Connection) -> usize {
    for refused in 0.. {
        let read = connection.exchange("GET", "/counter", &[], "").await;
        let next = read.text().parse::<usize>().unwrap() + 1;
        let written = connection.exchange("PUT", "/counter", &[("If-Match", &read.etag())], next.to_string()).await;
        match written.status {
            204 => return refused,
            409 | 412 => {}
            status => panic!("{status} for a write of the counter"),
        }
    }
    unreachable!("it returns or goes on")
}

/// The purpose of the promise: read, modify, write, and no update is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_counter_ends_at_the_number_of_successes() {
    const CLIENTS: usize = 8;
    const EACH: usize = 10;
    for mode in MODES {
        let (nginx, proxy) = start(mode).await;
        std::fs::write(nginx.root().join("counter"), "0").unwrap();
        let addr = proxy.addr();
        let client = || async move {
            let mut connection = Connection::open(addr).await;
            let mut refused = 0;
            for _ in 0..EACH {
                refused += count_up(&mut connection).await;
            }
            refused
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| tokio::spawn(client())).collect();
        let mut refused = 0;
        for client in clients {
            refused += within("a client to count up", client).await.unwrap();
        }
        assert_eq!(get(addr, "/counter").await.text(), (CLIENTS * EACH).to_string(), "{mode}");
        assert_eq!(writes(&nginx).await.len(), CLIENTS * EACH, "{mode}: {refused} refused writes never got there");
    }
}
