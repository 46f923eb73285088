//! Writes that would stand in the line of a claim, from clients that may not write.

use std::{
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
    sockets::{FLOOD, connect_from, connections},
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

/// How long the backend looks for the rights of a client.
const LOOKS_FOR: Duration = Duration::from_millis(20);

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
        let is_over = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for mut stream in connections(arena.addr(), CONNECTIONS).await {
            let (is_over, to) = (Arc::clone(&is_over), arena.addr());
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
        let mut owners = Vec::new();
        for number in 0..writes {
            let tag = send(arena.addr(), "GET", TARGET, &[OWNER], "").await.etag();
            let fields = [OWNER, ("If-Match", tag.as_str())];
            owners.push(send(arena.addr(), "PUT", TARGET, &fields, &number.to_string()).await.status);
        }
        is_over.store(true, Ordering::Relaxed);
        (owners, clients.join_all().await.concat())
    };
    let ((owners, others), _) = arena.flood("writes without rights to one resource", ceiling, flood).await;
    assert_eq!(owners, vec![204; writes], "beside {} writes without rights", others.len());
    assert!(others.len() > writes && others.iter().all(|status| *status == 403), "{others:?}");
}
