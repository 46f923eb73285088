//! Active health checks, and how many requests a server is given at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::{
    operations::balancing::{backend, configuration},
    support::{
        backend::{Answer, Backend},
        proxy::Proxy,
        raw::{Connection, get, put_if_match, send},
        wait::until,
    },
};

const HTTP_CHECKS: &str = "[upstreams.backend.health]\ncheck = \"http\"\npath = \"/healthz\"\nstatus = \"204\"\n\
                           interval = \"50ms\"\ntimeout = \"5s\"\nhealthy_after = 1\nunhealthy_after = 2\n";

/// A server whose answer to its checks is a matter of the switch.
async fn switched() -> (Backend, Arc<AtomicBool>) {
    let (server, well) = (backend().await, Arc::new(AtomicBool::new(true)));
    let switch = Arc::clone(&well);
    let status = move || if switch.load(Ordering::SeqCst) { 204 } else { 503 };
    server.always("GET", "/healthz", move |_| Answer::status(status()));
    (server, well)
}

/// Waits until the proxy has said so many times that this server is in this state.
async fn is(proxy: &Proxy, server: &Backend, state: &str, times: usize) {
    let (text, name) = (format!("the server is {state}"), server.addr().to_string());
    let lines = || proxy.log().lines().filter(|line| line.contains(&text) && line.contains(&name)).count();
    until(&text, || lines() >= times).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_gets_no_requests_until_it_is_up() {
    let ((one, well), (other, _)) = (switched().await, switched().await);
    for server in [&one, &other] {
        (0..8).for_each(|number| server.put(&format!("/guarded/{number}"), "one"));
    }
    let proxy = Proxy::start(&configuration(&[one.addr(), other.addr()], HTTP_CHECKS, "")).await;
    well.store(false, Ordering::SeqCst);
    is(&proxy, &one, "down", 1).await;
    for number in 0..8 {
        assert_eq!(get(proxy.addr(), &format!("/open/{number}")).await.status, 404);
        assert_eq!(get(proxy.addr(), &format!("/guarded/{number}")).await.text(), "one");
    }
    let asked = |server: &Backend| server.requests().iter().filter(|request| request.target != "/healthz").count();
    assert_eq!((asked(&one), asked(&other)), (0, 16));
    well.store(true, Ordering::SeqCst);
    is(&proxy, &one, "up", 1).await;
    for number in 0..8 {
        get(proxy.addr(), &format!("/open/{number}")).await;
    }
    assert_eq!(asked(&one), 4, "it takes its turn again");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_all_servers_are_down_nothing_is_sent() {
    let (server, well) = switched().await;
    server.put("/guarded/a", "one");
    let proxy = Proxy::start(&configuration(&[server.addr()], HTTP_CHECKS, "")).await;
    let tag = get(proxy.addr(), "/guarded/a").await.etag();
    well.store(false, Ordering::SeqCst);
    is(&proxy, &server, "down", 1).await;
    get(proxy.addr(), "/open").await.refused(502, "upstream-failed");
    get(proxy.addr(), "/guarded/a").await.refused(502, "upstream-failed");
    let written = put_if_match(proxy.addr(), "/guarded/a", &tag, "two").await;
    assert!(written.status == 502 && !written.problem().in_doubt, "{written:?}");
    assert_eq!((server.count("PUT", "*"), server.count("*", "/open"), server.count("*", "/guarded/a")), (0, 0, 1));
    well.store(true, Ordering::SeqCst);
    is(&proxy, &server, "up", 1).await;
    assert_eq!(put_if_match(proxy.addr(), "/guarded/a", &tag, "two").await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_by_connection_notices_who_is_gone_and_who_is_back() {
    let server = backend().await;
    let checks = HTTP_CHECKS.replace("check = \"http\"\npath = \"/healthz\"\nstatus = \"204\"", "check = \"connect\"");
    let proxy = Proxy::start(&configuration(&[server.addr()], &checks, "")).await;
    server.go_away().await;
    is(&proxy, &server, "down", 1).await;
    server.come_back().await;
    is(&proxy, &server, "up", 1).await;
    assert_eq!(get(proxy.addr(), "/open").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_beyond_the_limit_is_told_so_at_once() {
    let server = backend().await;
    server.put("/guarded/a", "one");
    let limits = "max_connections = 1\nqueue = { max_waiters = 0 }";
    let proxy = Proxy::start(&configuration(&[server.addr()], limits, "")).await;
    let tag = get(proxy.addr(), "/guarded/a").await.etag();
    let held = server.hold("GET", "/slow");
    let addr = proxy.addr();
    let slow = tokio::spawn(async move { get(addr, "/slow").await });
    let request = held.arrived().await;
    for refused in [
        get(addr, "/open").await,
        get(addr, "/guarded/a").await,
        put_if_match(addr, "/guarded/a", &tag, "two").await,
        send(addr, "POST", "/guarded/a", &[], "three").await,
    ] {
        assert_eq!(refused.refused(503, "overloaded").retry_after_seconds, Some(1));
    }
    assert_eq!(server.requests().len(), 2, "the read before, and the slow one");
    request.answer(Answer::status(200)).await;
    assert_eq!(slow.await.unwrap().status, 200);
    assert_eq!(put_if_match(addr, "/guarded/a", &tag, "two").await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_waits_for_the_end_of_another_one() {
    let server = backend().await;
    server.put("/guarded/a", "one");
    let limits = "max_connections = 1\nqueue = { max_wait = \"20s\" }";
    let proxy = Proxy::start(&configuration(&[server.addr()], limits, "")).await;
    let addr = proxy.addr();
    let held = server.hold("GET", "/slow");
    let slow = tokio::spawn(async move { get(addr, "/slow").await });
    let request = held.arrived().await;
    let waiting = [
        tokio::spawn(async move { get(addr, "/guarded/a").await }),
        tokio::spawn(async move { get(addr, "/open").await }),
    ];
    request.answer(Answer::status(200)).await;
    assert_eq!(slow.await.unwrap().status, 200);
    let [guarded, open] = waiting;
    assert_eq!((guarded.await.unwrap().text(), open.await.unwrap().status), ("one", 404));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_servers_take_turns_a_busy_one_is_passed_over() {
    let (one, other) = (backend().await, backend().await);
    let limits = "max_connections = 1\nqueue = { max_waiters = 0 }";
    let proxy = Proxy::start(&configuration(&[one.addr(), other.addr()], limits, "")).await;
    let addr = proxy.addr();
    let held = one.hold("GET", "/slow");
    let slow = tokio::spawn(async move { get(addr, "/slow").await });
    let request = held.arrived().await;
    for _ in 0..4 {
        assert_eq!(get(addr, "/open").await.status, 404);
    }
    assert_eq!((one.count("*", "/open"), other.count("*", "/open")), (0, 4));
    request.answer(Answer::status(200)).await;
    assert_eq!(slow.await.unwrap().status, 200);
}

/// The number of requests that a client sends one after another: each could meet the place of the one before it.
const REQUESTS_IN_TURN: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_never_meets_the_place_of_its_own_last_request() {
    let server = backend().await;
    server.put("/guarded/a", "one");
    server.put("/open/a", "many bytes ".repeat(20_000));
    let limits = "max_connections = 1\nqueue = { max_waiters = 0 }";
    let proxy = Proxy::start(&configuration(&[server.addr()], limits, "")).await;
    let mut connection = Connection::open(proxy.addr()).await;
    for number in 0..REQUESTS_IN_TURN {
        for (method, target, status) in
            [("GET", "/open", 404), ("GET", "/open/a", 200), ("HEAD", "/open/a", 200), ("GET", "/guarded/a", 200)]
        {
            let answer = connection.exchange(method, target, &[], "").await;
            assert_eq!(answer.status, status, "{method} {target} after {number} others: {answer:?}");
        }
    }
}
