//! Health, activity and the configuration in force (docs/admin.md).

use std::{
    io::{Read as _, Write as _},
    net::SocketAddr,
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::{
    admin::{ask, look, start, start_with, without_end},
    backend::{Answer, Backend},
    engines,
    leases::acquire,
    proxy::Proxy,
    raw::{get, put, put_if_match, send},
    wait::{DEADLINE, until, within},
};

/// How often something is asked for until it is so.
const INTERVAL: Duration = Duration::from_millis(3);

#[tokio::test]
async fn a_proxy_that_serves_is_alive_and_ready() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&Proxy::to(backend.addr())).await;
    assert_eq!(ask(admin, "/livez").await, json!({ "alive": true }));
    let expected = json!({
        "ready": true,
        "reads": true,
        "writes": true,
        "store": { "kind": "memory", "available": true, "writable": true, "problem": null },
        "listeners": [proxy.addr().to_string()],
        "draining": false,
        "start_grace": { "over": true, "remaining_ms": 0 },
    });
    for path in ["/readyz", "/readyz/reads", "/readyz/writes"] {
        assert_eq!(ask(admin, path).await, expected, "{path}");
    }
}

/// Reads are served during it, and writes are not.
#[tokio::test]
async fn the_grace_of_a_start_is_told_and_is_no_reason_to_send_nothing() {
    let backend = Backend::start().await;
    let (_proxy, admin) = start(&Proxy::to(backend.addr()).store("start_grace = \"1h\"")).await;
    let ready = ask(admin, "/readyz").await;
    assert_eq!((&ready["ready"], &ready["start_grace"]["over"]), (&json!(true), &json!(false)));
    assert!(ready["start_grace"]["remaining_ms"].as_u64().is_some_and(|left| left > 3_000_000), "{ready}");
    assert_eq!(ready["writes"], false);
    assert_eq!(look(admin, "/readyz/writes").await.status, 503);
}

/// The process is alive all the same, and serves reads: a restart, or its removal, would help no client.
#[tokio::test]
async fn a_proxy_whose_store_does_not_answer_is_ready_for_reads_alone_until_it_does() {
    let (backend, redis) = (Backend::start().await, engines::Redis::start().await);
    let store = format!("kind = \"redis\"\nurl = \"{}\"\ntimeout = \"1s\"", redis.url());
    let (_proxy, admin) = start(&Proxy::to(backend.addr()).store(&store)).await;
    assert_eq!(
        ask(admin, "/readyz").await["store"],
        json!({ "kind": "redis", "available": true, "writable": true, "problem": null })
    );
    redis.signal("STOP");
    for path in ["/readyz", "/readyz/reads"] {
        let document = ask(admin, path).await;
        assert_eq!((&document["ready"], &document["store"]["available"]), (&json!(true), &json!(false)), "{path}");
        assert_eq!((&document["reads"], &document["writes"]), (&json!(true), &json!(false)), "{path}");
    }
    let answer = look(admin, "/readyz/writes").await;
    assert_eq!(answer.status, 503);
    let document: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!((&document["ready"], &document["store"]["available"]), (&json!(false), &json!(false)));
    assert_eq!(look(admin, "/livez").await.status, 200);
    assert_eq!(look(admin, "/leases").await.status, 503);
    redis.signal("CONT");
    let end = Instant::now() + DEADLINE;
    while look(admin, "/readyz/writes").await.status != 200 {
        assert!(Instant::now() < end, "it is ready again");
    }
}

/// Reads that a lease guards are refused without the store.
#[tokio::test]
async fn where_leases_guard_reads_these_need_the_store_too() {
    let (backend, redis) = (Backend::start().await, engines::Redis::start().await);
    let store = format!("kind = \"redis\"\nurl = \"{}\"\ntimeout = \"1s\"", redis.url());
    let route = "policy = \"pessimistic\"\nlease.guards = [\"read\", \"write\"]";
    let (_proxy, admin) = start(&Proxy::to(backend.addr()).store(&store).route(route)).await;
    assert_eq!(look(admin, "/readyz").await.status, 200);
    redis.signal("STOP");
    for path in ["/readyz", "/readyz/reads", "/readyz/writes"] {
        assert_eq!(look(admin, path).await.status, 503, "{path}");
    }
    redis.signal("CONT");
}

/// Rule 17: a store that can be read says nothing of its writes, which have a readiness of their own.
#[tokio::test]
async fn a_proxy_whose_store_takes_no_writes_is_not_ready_for_them_until_it_does() {
    let (backend, redis) = (Backend::start().await, engines::Redis::start().await);
    let store = format!("kind = \"redis\"\nurl = \"{}\"", redis.url());
    let (_proxy, admin) = start(&Proxy::to(backend.addr()).store(&store)).await;
    assert_eq!(ask(admin, "/readyz/writes").await["store"]["writable"], true);
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let is_ready = async || look(admin, "/readyz/writes").await.status == 200;
    // A result of the check counts for a second.
    within("it to be not ready", async {
        while is_ready().await {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let document: Value = serde_json::from_slice(&look(admin, "/readyz/writes").await.body).expect("JSON");
    assert_eq!(
        document["store"],
        json!({ "kind": "redis", "available": true, "writable": false, "problem": "failed" })
    );
    assert_eq!(look(admin, "/readyz").await.status, 200, "reads pass");
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    within("it to be ready again", async {
        while !is_ready().await {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// An unreachable store answers again on its own. One that has lost acknowledged writes waits for an operator.
#[tokio::test]
async fn lost_writes_are_told_apart_from_a_store_that_does_not_answer() {
    let (backend, mut redis) = (Backend::start().await, engines::Redis::start().await);
    let store = format!("kind = \"redis\"\nurl = \"{}\"\ntimeout = \"1s\"", redis.url());
    let (proxy, admin) = start(&Proxy::to(backend.addr()).store(&store).route("require = \"never\"")).await;
    assert_eq!(put(proxy.addr(), "/doc", &[], "one").await.status, 201);
    let refused = async || {
        let answer = look(admin, "/readyz/writes").await;
        assert_eq!(answer.status, 503);
        let document: Value = serde_json::from_slice(&answer.body).expect("JSON");
        let problem = put(proxy.addr(), "/doc", &[], "two").await.refused(503, "store-unavailable");
        (document["store"]["problem"].clone(), problem.json["reason"].clone(), problem.retry_after_seconds)
    };
    redis.signal("KILL");
    let failed = || (json!("failed"), json!("store-failed"), Some(1));
    assert_eq!(refused().await, failed());
    redis.lose_everything().await;
    let lost = within("the loss to be noticed", async {
        loop {
            let now = refused().await;
            if now.0 != failed().0 {
                break now;
            }
        }
    });
    assert_eq!(lost.await, (json!("lost-writes"), json!("store-lost-writes"), None));
}

/// A balancer must hear of it while requests are still ending.
#[tokio::test]
async fn a_proxy_that_ends_is_not_ready() {
    let backend = Backend::start().await;
    let (mut proxy, admin) = start(&Proxy::to(backend.addr())).await;
    let addr = proxy.addr();
    let held = backend.hold("GET", "/slow");
    let reader = tokio::spawn(async move { get(addr, "/slow").await });
    let read = held.arrived().await;
    proxy.signal("TERM");
    until("the signal to be seen", || proxy.log().contains("asked to stop")).await;
    let answer = look(admin, "/readyz").await;
    assert_eq!(answer.status, 503);
    let document: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!((&document["draining"], &document["store"]["available"]), (&json!(true), &json!(true)));
    read.answer(Answer::status(204)).await;
    assert_eq!(reader.await.unwrap().status, 204);
    assert!(proxy.exit_status().await.success());
}

/// Until a write waits for its turn.
async fn until_waiting(admin: SocketAddr) {
    let end = Instant::now() + DEADLINE;
    let is_one = |line: &str| {
        line.starts_with("ifmatch_waiters{") && line.contains("ifmatch_queue=\"claim\"") && line.ends_with(" 1")
    };
    while !look(admin, "/metrics").await.text().lines().any(is_one) {
        assert!(Instant::now() < end, "nobody waits");
        sleep(INTERVAL).await;
    }
}

/// The activity when so many requests were counted: each is when it has ended, and its client has its answer before.
async fn activity_after(admin: SocketAddr, requests: u64) -> Value {
    let end = Instant::now() + DEADLINE;
    loop {
        let activity = ask(admin, "/activity").await;
        if activity["routes"][0]["requests"] == requests {
            return activity;
        }
        assert!(Instant::now() < end, "{requests} requests are not counted: {activity}");
        sleep(INTERVAL).await;
    }
}

#[tokio::test]
async fn outcomes_and_hot_resources_are_counted() {
    let backend = Backend::start().await;
    backend.put("/hot", "one");
    let (proxy, admin) = start(&Proxy::to(backend.addr())).await;
    let addr = proxy.addr();
    let tag = get(addr, "/hot").await.etag();
    for _ in 0..3 {
        put_if_match(addr, "/hot", "\"stale\"", "x").await.refused(412, "precondition-failed");
    }
    put_if_match(addr, "/cold", "\"stale\"", "x").await.refused(412, "precondition-failed");
    send(addr, "PUT", "/hot", &[], "x").await.refused(428, "precondition-required");
    // One waits for the other's claim.
    let held = backend.hold("PUT", "/hot");
    let first = tag.clone();
    let first = tokio::spawn(async move { put_if_match(addr, "/hot", &first, "two").await });
    let mut write = held.arrived().await;
    let second = tokio::spawn(async move { put_if_match(addr, "/hot", &tag, "three").await });
    until_waiting(admin).await;
    let waits = Instant::now();
    write.apply().await;
    // A wait of less than a millisecond counts as none.
    sleep(INTERVAL).await;
    let waited_ms = u64::try_from(waits.elapsed().as_millis()).expect("no test takes so long");
    write.answer(Answer::status(204)).await;
    assert_eq!(first.await.unwrap().status, 204);
    second.await.unwrap().refused(412, "precondition-failed");
    let activity = activity_after(admin, 8).await;
    let route = &activity["routes"][0];
    assert_eq!((route["route"].as_str(), route["policy"].as_str()), (Some("all"), Some("optimistic")));
    assert_eq!(route["outcomes"], json!({ "passed": 2, "precondition-failed": 5, "precondition-required": 1 }));
    assert_eq!((&route["conflicts"], &route["failures"]), (&json!(5), &json!(0)));
    let hot = &activity["hot"];
    assert_eq!((&hot[0]["key"], &hot[0]["conflicts"]), (&json!("backend:/hot"), &json!(4)));
    assert_eq!((&hot[1]["key"], &hot[1]["conflicts"]), (&json!("backend:/cold"), &json!(1)));
    // On a busy machine a wait without others in front may take a millisecond too.
    assert!(hot[0]["waits"].as_u64().is_some_and(|waits| waits >= 1), "{hot}");
    assert!(hot[0]["longest_wait_ms"].as_u64().is_some_and(|wait| wait >= waited_ms), "{waited_ms} ms: {hot}");
}

/// A lease that another client holds is no conflict of versions.
#[tokio::test]
async fn a_refusal_for_a_lease_is_told_apart_from_conflicts() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend)).await;
    let addr = proxy.addr();
    acquire(addr, "/doc", "infinite").await;
    put(addr, "/doc", &[], "two").await.refused(412, "lease-id-missing");
    put_if_match(addr, "/free", "\"stale\"", "x").await.refused(412, "precondition-failed");
    let activity = activity_after(admin, 3).await;
    let route = &activity["routes"][0];
    assert_eq!((&route["conflicts"], &route["refused"]), (&json!(1), &json!(1)), "{activity}");
    let hot: Vec<&Value> = activity["hot"].as_array().expect("a list").iter().map(|hot| &hot["key"]).collect();
    assert_eq!(hot, ["backend:/free"]);
}

#[tokio::test]
async fn the_configuration_is_shown_with_its_defaults() {
    let backend = Backend::start().await;
    let (_proxy, admin) = start(&Proxy::to(backend.addr()).route("max_hash_size = \"2MiB\"")).await;
    let config = ask(admin, "/config").await;
    assert_eq!(config["server"]["max_body_size"], "1GiB");
    assert_eq!(config["upstreams"]["backend"]["servers"], json!([backend.addr().to_string()]));
    assert_eq!(config["store"]["kind"], "memory");
    let route = &config["routes"][0];
    assert_eq!(
        (&route["max_hash_size"], &route["etag"], &route["key"]),
        (&json!("2MiB"), &json!("content"), &json!("{path}"))
    );
    assert_eq!(ask(admin, "/routes").await["routes"][0], *route);
}

#[tokio::test]
async fn a_unix_socket_is_for_its_owner() {
    let backend = Backend::start().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("admin");
    let table = format!("\n[admin]\nlisten = \"unix:{}\"\n", path.display());
    let proxy = Proxy::start(&(Proxy::to(backend.addr()).configuration() + &table)).await;
    until("the admin listener to be told of", || proxy.log().contains("admin listener")).await;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

/// Found out at the start, and not by the first who asks.
#[tokio::test]
async fn a_token_that_is_not_there_ends_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ifmatch.toml");
    let backend = Backend::start().await;
    let base = Proxy::to(backend.addr()).configuration().replace("{listen}", "listen = [\"127.0.0.1:0\"]");
    let base = base.replace("{spool}", "/var/tmp") + "\n[admin]\nlisten = \"127.0.0.1:0\"\n";
    for token in ["token_env = \"NOT_SET_ANYWHERE\"", "token_file = \"/nowhere/token\""] {
        std::fs::write(&file, format!("{base}{token}\n")).unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ifmatch"));
        let output = command.arg("run").arg(&file).env("RUST_LOG", "info").output().unwrap();
        assert_eq!(output.status.code(), Some(78), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("token of the admin listener"), "{output:?}");
    }
}

/// Without a key for it, no listener exists.
#[tokio::test]
async fn the_metrics_are_text_for_prometheus() {
    let backend = Backend::start().await;
    let (_proxy, admin) = start_with(&Proxy::to(backend.addr()), "", &[]).await;
    let answer = look(admin, "/metrics").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain; version=0.0.4; charset=utf-8")));
}
