//! Proxies that share a store recognise the retries of each other's writes (DESIGN, sections 7 and 8).

use std::{net::SocketAddr, time::Duration};

use serde_json::json;
use tokio::time::sleep;

use super::shared_store::{addrs, pair};
use crate::support::{
    admin::{ask, start, told},
    backend::{Answer, Backend},
    engines::{Engine, Redis},
    proxy::{Proxy, Setup},
    raw::{Connection, get, put, send},
    response::assert_replayed,
    wait::within,
};

const DOC: &str = "/doc";
const KEY: (&str, &str) = ("Idempotency-Key", "\"8e03978e-40d5-43e6-bc93-6e38a6e9e3e4\"");

fn accepting(backend: &Backend) -> Setup {
    Proxy::to(backend.addr()).route("idempotency = \"accept\"")
}

/// The answer is kept with the record, and no process has to be there for it.
#[tokio::test]
async fn a_retry_at_another_proxy_or_after_a_restart_gets_the_first_answer() {
    for engine in Engine::all().await {
        let backend = Backend::start().await;
        backend.put(DOC, "one");
        let created = Answer::status(201).header("Location", "/orders/7").body([0, 7, 0xff].as_slice());
        backend.always("POST", "/orders", move |_| created.clone());
        let proxies = pair(&engine, accepting(&backend)).await;
        let [one, other] = addrs(&proxies);
        let tag = get(one, DOC).await.etag();
        let write = async |addr: SocketAddr| put(addr, DOC, &[("If-Match", &tag), KEY], "two").await;
        let append = async |addr: SocketAddr| send(addr, "POST", "/orders", &[KEY], "one").await;
        let (written, appended) = (write(one).await, append(one).await);
        assert_eq!((written.status, appended.status), (204, 201), "{}", engine.name());
        assert_replayed(&write(other).await, &written);
        let retry = append(other).await;
        assert_replayed(&retry, &appended);
        assert_eq!((retry.header("location"), &*retry.body), (Some("/orders/7"), [0, 7, 0xff].as_slice()));
        put(other, DOC, &[("If-Match", &tag), KEY], "three").await.refused(422, "idempotency-mismatch");
        drop(proxies);
        let later = pair(&engine, accepting(&backend)).await;
        let [one, other] = addrs(&later);
        assert_replayed(&write(one).await, &written);
        assert_replayed(&append(other).await, &appended);
        put(one, DOC, &[("If-Match", &tag)], "two").await.refused(412, "precondition-failed");
        assert_eq!((backend.count("PUT", DOC), backend.count("POST", "/orders")), (1, 1), "{}", engine.name());
    }
}

/// Rule 6: no write is sent twice, no matter how its retry comes.
#[tokio::test]
async fn a_retry_at_another_proxy_while_the_first_attempt_is_in_flight_is_told_to_come_back() {
    for engine in Engine::all().await {
        let backend = Backend::start().await;
        let proxies = pair(&engine, accepting(&backend)).await;
        let [one, other] = addrs(&proxies);
        let append = async move |addr: SocketAddr, body| send(addr, "POST", "/orders", &[KEY], body).await;
        let held = backend.hold("POST", "/orders");
        let first = tokio::spawn(append(one, "one"));
        let held = held.arrived().await;
        let problem = append(other, "one").await.refused(409, "idempotency-in-flight");
        assert_eq!((problem.retry_after_seconds, problem.in_doubt), (Some(1), false), "{}", engine.name());
        append(other, "two").await.refused(422, "idempotency-mismatch");
        held.answer(Answer::status(201)).await;
        let first = first.await.unwrap();
        assert_replayed(&append(other, "one").await, &first);
        assert_eq!(backend.count("POST", "/orders"), 1, "{}", engine.name());
    }
}

/// Rule 21: the write of a killed proxy may have been applied, and may still be. Its retry is never sent, and says why. A
/// new key says that the write may be repeated.
#[tokio::test]
async fn the_retry_of_a_killed_proxys_write_is_in_doubt_and_then_refused() {
    let engines = Engine::all().await;
    let [one, two, three] = engines.each_ref().map(kill_during_a_write);
    tokio::join!(one, two, three);
}

async fn kill_during_a_write(engine: &Engine) {
    let backend = Backend::start().await;
    let setup = accepting(&backend)
        .upstream("connect_timeout = \"100ms\"\ntimeout = \"1s\"\nlate_write_window = \"2s\"")
        .upstream("queue = { max_wait = \"10ms\" }")
        .route("claim = { max_wait = \"100ms\" }\nprobe = { timeout = \"100ms\" }");
    let [mut dead, alive] = pair(engine, setup).await;
    let held = backend.hold("POST", "/orders");
    let addr = dead.addr();
    let first =
        tokio::spawn(async move { Connection::open(addr).await.try_exchange("POST", "/orders", &[KEY], "x").await });
    let held = held.arrived().await;
    dead.signal("KILL");
    dead.exit_status().await;
    assert!(first.await.unwrap().is_err(), "nobody was left to answer it");
    let (mut in_flight, mut in_doubt) = (0, 0);
    let refused = within("the write of the killed proxy to be over", async {
        loop {
            let retry = send(alive.addr(), "POST", "/orders", &[KEY], "x").await;
            if retry.text().contains("idempotency-outcome-unknown") {
                break retry;
            }
            let problem = retry.refused(409, "idempotency-in-flight");
            *(if problem.in_doubt { &mut in_doubt } else { &mut in_flight }) += 1;
            assert_eq!(backend.count("POST", "/orders"), 1, "{}", engine.name());
            sleep(Duration::from_millis(100)).await;
        }
    });
    let problem = refused.await.refused(409, "idempotency-outcome-unknown");
    assert_eq!((problem.in_doubt, problem.retry_after_seconds), (false, None), "{}", problem.detail);
    assert_eq!(backend.count("POST", "/orders"), 1, "{}", engine.name());
    let anew = send(alive.addr(), "POST", "/orders", &[("Idempotency-Key", "\"another\"")], "x").await;
    assert_eq!((anew.status, anew.header("idempotent-replayed")), (201, None), "{anew:?}");
    assert!(in_flight > 0 && in_doubt > 0, "{}: {in_flight} {in_doubt}", engine.name());
    assert_eq!(backend.count("POST", "/orders"), 2, "{}", engine.name());
    drop(held);
}

/// The record of a write belongs to no resource.
#[tokio::test]
async fn the_admin_interface_lists_resources_and_no_writes() {
    let (engine, backend) = (Engine::Redis(Redis::start().await), Backend::start().await);
    let setup = accepting(&backend).upstream("late_write_window = \"60s\"").store(&engine.store());
    let (proxy, admin) = start(&setup).await;
    backend.once("PUT", DOC, Answer::close());
    let lost = put(proxy.addr(), DOC, &[("If-None-Match", "*"), KEY], "one").await;
    assert!(lost.refused(502, "upstream-failed").in_doubt);
    let doubts = ask(admin, "/doubts").await;
    assert_eq!((&doubts["doubts"][0]["key"], &doubts["doubts"][1]), (&json!("backend:/doc"), &json!(null)));
    assert_eq!(doubts["looked_at"], 2);
    let forgotten = told(admin, "/forget", &json!({ "prefix": "" })).await;
    assert_eq!((&forgotten["forgotten"], &forgotten["busy"]), (&json!(1), &json!(["backend:/doc"])));
    let retry = put(proxy.addr(), DOC, &[("If-None-Match", "*"), KEY], "one").await;
    assert!(retry.refused(409, "idempotency-in-flight").in_doubt);
}
