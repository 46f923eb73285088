//! Reload: another configuration without losing a request, a record or a promise.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;

use crate::support::{
    backend::{Answer, Backend},
    leases::{acquire, lease, put_with},
    proxy::{Proxy, Reload},
    raw::{Connection, get, put, put_if_match, send},
    response::Response,
    wait::{DEADLINE, until},
};

const OPEN: &str = "policy = \"last-writer-wins\"";
pub(super) const GUARDED: &str = "policy = \"optimistic\"";
const LEASED: &str = "policy = \"pessimistic\"\nlease.min = \"1s\"";
pub(super) const OTHER_KEY: &str = "policy = \"optimistic\"\nkey = \"{rest}\"";
/// The time in which a forbidden event must not happen.
pub(super) const A_WHILE: Duration = Duration::from_millis(200);

/// The file of a proxy with one route for every path, which has these lines.
pub(super) fn file(backend: &Backend, route: &str) -> String {
    let setup =
        Proxy::to(backend.addr()).server("control_socket = \"{control}\"").upstream("late_write_window = \"1s\"");
    setup.route(route).configuration()
}

pub(super) async fn start(route: &str) -> (Backend, Arc<Proxy>) {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let proxy = Proxy::start(&file(&backend, route)).await;
    (backend, Arc::new(proxy))
}

/// Begins a reload, and comes back when it holds new writes back.
pub(super) async fn begin_reload(proxy: &Arc<Proxy>, arguments: &'static [&'static str]) -> JoinHandle<Reload> {
    let waits = |proxy: &Proxy| proxy.log().matches("new writes wait").count();
    let before = waits(proxy);
    let asking = Arc::clone(proxy);
    let reload = tokio::spawn(async move { asking.reload(arguments).await });
    until("the reload to close gates", || waits(proxy) > before).await;
    reload
}

#[track_caller]
pub(super) fn done(reload: &Reload, said: &str) {
    assert_eq!(reload.code, Some(0), "{reload:?}");
    assert!(reload.said.contains(said), "{reload:?}");
}

#[track_caller]
pub(super) fn refused(reload: &Reload, code: i32, said: &str) {
    assert_eq!(reload.code, Some(code), "{reload:?}");
    assert!(reload.said.contains(said), "{reload:?}");
}

pub(super) fn put_later(
    proxy: &Proxy,
    target: &'static str,
    tag: Option<String>,
    body: &'static str,
) -> JoinHandle<Response> {
    let addr = proxy.addr();
    tokio::spawn(async move {
        let fields: Vec<_> = tag.iter().map(|tag| ("If-Match", tag.as_str())).collect();
        put(addr, target, &fields, body).await
    })
}

#[tokio::test]
async fn a_connection_that_is_open_is_served_by_the_new_file() {
    let (backend, proxy) = start(OPEN).await;
    let mut connection = Connection::open(proxy.addr()).await;
    assert_eq!(connection.exchange("PUT", "/doc", &[], "two").await.status, 204);
    proxy.rewrite(&file(&backend, GUARDED));
    done(&proxy.reload(&[]).await, "routes changed: all");
    connection.exchange("PUT", "/doc", &[], "three").await.refused(428, "precondition-required");
    let tag = connection.exchange("GET", "/doc", &[], "").await.etag();
    assert_eq!(connection.exchange("PUT", "/doc", &[("If-Match", &tag)], "three").await.status, 204);
}

#[tokio::test]
async fn a_hangup_reloads_and_tells_the_log_what_has_changed() {
    let (backend, proxy) = start(GUARDED).await;
    let narrow =
        "\n[[routes]]\nname = \"new\"\npath = \"/new\"\nupstream = \"backend\"\npolicy = \"last-writer-wins\"\n";
    let file = file(&backend, "require = \"never\"").replace("name = \"all\"", "name = \"every\"");
    // A process that answers here has its handler of signals.
    done(&proxy.reload(&[]).await, "no route has changed");
    proxy.rewrite(&(file.replace("threads = 2", "threads = 3") + narrow));
    proxy.signal("HUP");
    let expected =
        "reloaded: routes added: every, new; routes removed: all; left as it was until the next start: server.threads";
    until("the reload", || proxy.log().contains(expected)).await;
    assert_eq!(put(proxy.addr(), "/new", &[], "x").await.status, 201);
    proxy.rewrite("[server]\n");
    proxy.signal("HUP");
    until("the refusal", || proxy.log().contains("not reloaded, the old configuration stays")).await;
    assert_eq!(put(proxy.addr(), "/new", &[], "y").await.status, 204);
}

/// `server.watch`: a change of the file is enough. A bad file changes nothing, and is mended like any other.
#[tokio::test]
async fn a_watched_file_is_loaded_when_it_changes() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let with = |require: &str| {
        let setup = Proxy::to(backend.addr()).server("watch = true");
        setup.route(&format!("{GUARDED}\nrequire = \"{require}\"")).configuration()
    };
    let proxy = Proxy::start(&with("always")).await;
    put(proxy.addr(), "/doc", &[], "two").await.refused(428, "precondition-required");
    proxy.rewrite(&with("sometimes"));
    until("the refusal", || proxy.log().contains("require cannot be \"sometimes\"")).await;
    put(proxy.addr(), "/doc", &[], "two").await.refused(428, "precondition-required");
    proxy.rewrite(&with("never"));
    until("the reload", || proxy.log().contains("reloaded: routes changed")).await;
    assert_eq!(put(proxy.addr(), "/doc", &[], "two").await.status, 204);
}

#[tokio::test]
async fn a_bad_file_is_refused_with_all_its_problems_and_the_old_one_stays() {
    let (backend, proxy) = start(GUARDED).await;
    proxy.rewrite(&file(&backend, "policy = \"optimist\"\nmax_hash_size = \"1\""));
    let reload = proxy.reload(&["--force"]).await;
    refused(&reload, 78, "policy cannot be \"optimist\"");
    assert!(reload.said.contains("max_hash_size is \"1\"") && reload.said.contains("2 problems"), "{reload:?}");
    until("the log to have it too", || proxy.log().contains("max_hash_size is \"1\"")).await;
    put(proxy.addr(), "/doc", &[], "two").await.refused(428, "precondition-required");
}

/// A request is handled by one generation, from its beginning to its end.
#[tokio::test]
async fn a_request_in_flight_ends_as_it_began() {
    let (backend, proxy) = start(GUARDED).await;
    let (read, addr) = (backend.hold("GET", "/doc"), proxy.addr());
    let reader = tokio::spawn(async move { get(addr, "/doc").await });
    let held = read.arrived().await;
    proxy.rewrite(&file(&backend, OPEN).replace("/{*rest}", "/other/{*rest}"));
    done(&proxy.reload(&[]).await, "routes changed: all");
    get(addr, "/doc").await.refused(404, "no-route");
    held.answer(Answer::stored()).await;
    let response = reader.await.unwrap();
    assert_eq!((response.status, response.text()), (200, "one"));
    assert!(response.etag().starts_with('"'), "it was labelled by the rules that it began under");
}

/// Before, writes were not marked: a guarded one that began now would not see them.
#[tokio::test]
async fn a_route_is_guarded_when_its_unguarded_writes_have_ended() {
    let (backend, proxy) = start(OPEN).await;
    let first = backend.hold("PUT", "/doc");
    let writer = put_later(&proxy, "/doc", None, "unguarded");
    let held = first.arrived().await;
    proxy.rewrite(&file(&backend, GUARDED));
    let reload = begin_reload(&proxy, &[]).await;
    let second = put_later(&proxy, "/doc", None, "blind");
    assert_eq!(get(proxy.addr(), "/doc").await.text(), "one", "reads go on");
    tokio::time::sleep(A_WHILE).await;
    assert_eq!((backend.count("PUT", "/doc"), reload.is_finished(), second.is_finished()), (1, false, false));
    held.answer(Answer::stored()).await;
    assert_eq!(writer.await.unwrap().status, 204);
    done(&reload.await.unwrap(), "routes changed: all");
    second.await.unwrap().refused(428, "precondition-required");
    assert_eq!(backend.content("/doc").as_deref(), Some("unguarded"));
}

/// Two writes with one tag, under two keys of one resource: each would find no mark of the other.
#[tokio::test]
async fn another_key_comes_when_the_writes_under_the_old_one_have_settled() {
    let (backend, proxy) = start(GUARDED).await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    let first = backend.hold("PUT", "/doc");
    let writer = put_later(&proxy, "/doc", Some(tag.clone()), "first");
    let held = first.arrived().await;
    proxy.rewrite(&file(&backend, OTHER_KEY));
    let reload = begin_reload(&proxy, &[]).await;
    let second = put_later(&proxy, "/doc", Some(tag), "second");
    tokio::time::sleep(A_WHILE).await;
    assert_eq!((backend.count("PUT", "/doc"), reload.is_finished()), (1, false));
    held.answer(Answer::stored()).await;
    assert_eq!(writer.await.unwrap().status, 204);
    done(&reload.await.unwrap(), "routes changed: all");
    second.await.unwrap().refused(412, "precondition-failed");
    assert_eq!(backend.content("/doc").as_deref(), Some("first"));
}

/// A write whose connection was lost may be applied until `late_write_window` is over, whether it was marked or not.
#[tokio::test]
async fn a_doubt_holds_up_the_change_until_it_is_over() {
    for (before, after) in [(OPEN, GUARDED), (GUARDED, OTHER_KEY)] {
        let (backend, proxy) = start(before).await;
        let tag = (before == GUARDED).then_some(get(proxy.addr(), "/doc").await.header("etag").map(str::to_owned));
        let first = backend.hold("PUT", "/doc");
        let writer = put_later(&proxy, "/doc", tag.flatten(), "lost");
        let mut held = first.arrived().await;
        held.read_body().await;
        let close = Instant::now();
        held.close();
        assert_eq!(writer.await.unwrap().status, 502);
        proxy.rewrite(&file(&backend, after));
        done(&proxy.reload(&[]).await, "routes changed: all");
        // The store counts whole milliseconds.
        assert!(close.elapsed() >= Duration::from_millis(999), "{before}: {:?}", close.elapsed());
    }
}

/// A route that is gone may have a write in doubt. A guarded one in its place would not see it, after any number of
/// reloads.
#[tokio::test]
async fn a_doubt_on_a_route_that_is_gone_holds_up_the_one_that_takes_its_place() {
    let backend = Backend::start().await;
    let file = |route| file(&backend, route).replace("late_write_window = \"1s\"", "late_write_window = \"3s\"");
    let proxy = Arc::new(Proxy::start(&file(OPEN)).await);
    let first = backend.hold("PUT", "/doc");
    let writer = put_later(&proxy, "/doc", None, "lost");
    let mut held = first.arrived().await;
    held.read_body().await;
    let close = Instant::now();
    held.close();
    assert_eq!(writer.await.unwrap().status, 502);
    proxy.rewrite(&file(OPEN).replace("/{*rest}", "/other/{*rest}"));
    done(&proxy.reload(&[]).await, "routes changed: all");
    done(&proxy.reload(&[]).await, "no route has changed");
    proxy.rewrite(&file(GUARDED));
    done(&proxy.reload(&[]).await, "routes changed: all");
    assert!(close.elapsed() >= Duration::from_millis(2999), "{:?}", close.elapsed());
}

#[tokio::test]
async fn writes_that_do_not_end_refuse_the_reload_and_go_on_by_the_old_rules() {
    let (backend, proxy) = start(OPEN).await;
    let first = backend.hold("PUT", "/doc");
    let writer = put_later(&proxy, "/doc", None, "slow");
    let held = first.arrived().await;
    proxy.rewrite(&file(&backend, GUARDED).replace("threads", "shutdown_timeout = \"300ms\"\nthreads"));
    let reload = begin_reload(&proxy, &["--force"]).await;
    let second = put_later(&proxy, "/doc", None, "blind");
    refused(&reload.await.unwrap(), 1, "writes on routes all (1) did not end within 300ms");
    assert_eq!(second.await.unwrap().status, 204, "it had waited for the reload");
    held.answer(Answer::stored()).await;
    assert_eq!(writer.await.unwrap().status, 204);
    done(&proxy.reload(&[]).await, "routes changed: all");
}

/// A client that is slow to send its body holds nothing up; its write is not sent under rules that are gone.
#[tokio::test]
async fn a_write_whose_body_comes_after_the_change_is_refused_untouched() {
    let (backend, proxy) = start(GUARDED).await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    let mut client = Connection::open(proxy.addr()).await;
    client.send_bytes(format!("PUT /doc HTTP/1.1\r\nHost: a\r\nIf-Match: {tag}\r\nContent-Length: 4\r\n\r\nha")).await;
    proxy.rewrite(&file(&backend, OTHER_KEY));
    done(&proxy.reload(&[]).await, "routes changed: all");
    client.send_bytes("lf").await;
    let problem = client.read_response().await.refused(409, "write-in-flight");
    assert!(problem.detail.contains("rules of this route have changed"), "{}", problem.detail);
    assert_eq!(backend.count("PUT", "/doc"), 0);
}

#[tokio::test]
async fn leases_that_live_refuse_what_would_take_them_from_their_holders() {
    let (backend, proxy) = start(LEASED).await;
    let grant = acquire(proxy.addr(), "/doc", "60").await;
    proxy.rewrite(&file(&backend, "policy = \"pessimistic\"\nlease.min = \"2s\""));
    done(&proxy.reload(&[]).await, "routes changed: all");
    for other in [GUARDED, "policy = \"pessimistic\"\nkey = \"{rest}\""] {
        proxy.rewrite(&file(&backend, other));
        refused(&proxy.reload(&[]).await, 1, "leases live on routes all (1)");
        put(proxy.addr(), "/doc", &[], "x").await.refused(412, "lease-id-missing");
        assert_eq!(put_with(proxy.addr(), "/doc", &grant.id, "held").await.status, 204);
    }
    done(&proxy.reload(&["--force"]).await, "routes changed: all");
    put_with(proxy.addr(), "/doc", &grant.id, "late").await.refused(412, "lease-not-present");
    assert_eq!(put(proxy.addr(), "/doc", &[], "anybody's").await.status, 204);
}

/// Its client would wait for a lease that has lost its keeper.
#[tokio::test]
async fn a_client_that_waits_for_a_lease_is_answered_when_the_rules_change_or_the_process_ends() {
    for ends in [false, true] {
        let (backend, mut proxy) = start(LEASED).await;
        let addr = proxy.addr();
        let _grant = acquire(addr, "/doc", "60").await;
        let probes = backend.count("GET", "/doc");
        let mut waiters = Vec::new();
        for number in 1..=2 {
            waiters.push(tokio::spawn(async move {
                lease(addr, "POST", "/doc", &[("Lease-Duration", "60"), ("Prefer", "wait=30")]).await
            }));
            backend.reached("GET", "/doc", probes + number).await;
        }
        tokio::time::sleep(A_WHILE).await;
        assert!(!waiters.iter().any(JoinHandle::is_finished), "they wait");
        let begin = Instant::now();
        if ends {
            proxy.signal("TERM");
        } else {
            proxy.rewrite(&file(&backend, GUARDED));
            done(&proxy.reload(&["--force"]).await, "routes changed: all");
        }
        for waiter in waiters {
            assert_eq!(waiter.await.unwrap().status, 409);
        }
        if ends {
            let proxy = Arc::get_mut(&mut proxy).unwrap();
            assert_eq!(proxy.exit_status().await.code(), Some(0));
        }
        assert!(begin.elapsed() < DEADLINE, "{:?}", begin.elapsed());
    }
}

/// A tag from before would match a record that knows nothing of what happened meanwhile.
#[tokio::test]
async fn memory_that_missed_writes_is_not_believed() {
    const EXCLUSIVE: &str = "policy = \"optimistic\"\nother_writers = false";
    let (backend, proxy) = start(EXCLUSIVE).await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    proxy.rewrite(&file(&backend, OPEN));
    done(&proxy.reload(&[]).await, "routes changed: all");
    assert_eq!(put(proxy.addr(), "/doc", &[], "unseen").await.status, 204);
    proxy.rewrite(&file(&backend, EXCLUSIVE));
    refused(&proxy.reload(&[]).await, 1, "routes all: other_writers = false would trust");
    proxy.rewrite(&file(&backend, GUARDED));
    done(&proxy.reload(&[]).await, "routes changed: all");
    put_if_match(proxy.addr(), "/doc", &tag, "lost update").await.refused(412, "precondition-failed");
}

#[tokio::test]
async fn what_needs_a_restart_is_said_and_the_rest_is_done() {
    let (backend, proxy) = start(GUARDED).await;
    let other = file(&backend, "require = \"never\"").replace("{listen}", "listen = [\"127.0.0.1:1\"]");
    proxy.rewrite(&(other + "\n[store]\ncapacity = 7\n"));
    let reload = proxy.reload(&[]).await;
    done(&reload, "routes changed: all; left as it was until the next start: server.listen, [store]");
    assert_eq!(put(proxy.addr(), "/doc", &[], "two").await.status, 204);
}

#[tokio::test]
async fn a_reload_that_nobody_hears_is_exit_69() {
    let backend = Backend::start().await;
    let mut proxy = Proxy::start(&file(&backend, GUARDED)).await;
    assert_eq!(send(proxy.addr(), "GET", "/none", &[], "").await.status, 404);
    proxy.signal("TERM");
    assert_eq!(proxy.exit_status().await.code(), Some(0));
    refused(&proxy.reload(&[]).await, 69, "no process answers at");
}
