//! A write changes more than its target: what its route names (`also_changes`), and what its response names (RFC 9111
//! section 4.4). P20: collections and related resources go stale.

use std::net::SocketAddr;

use tokio::task::{JoinHandle, JoinSet};

use crate::support::{
    backend::{Answer, Backend},
    leases::acquire,
    proxy::Proxy,
    raw::{get, put, put_if_match, put_when_free, send},
    response::Response,
    source::{self, CONTENT, CONTENT_EXCLUSIVE, Source, VERSION},
};

const PROJECT: &str = "/projects/1";
const ITEMS: &str = "/projects/1/items";
const ITEM: &str = "/projects/1/items/a";

/// A proxy with routes for projects and their items: a write to an item touches its project and the list of items.
async fn start(source: Source) -> (Backend, Proxy) {
    start_with(source, "").await
}

/// The same with these lines on each route.
async fn start_with(source: Source, lines: &str) -> (Backend, Proxy) {
    let (backend, setup) = source.start(PROJECT, "0").await;
    backend.put(ITEMS, "[]");
    let setup = setup.upstream("late_write_window = \"2s\"").route("require = \"never\"").route(lines);
    let configuration = setup.configuration();
    let (tables, route) = configuration.split_once("[[routes]]").expect("a route");
    let route = |name: &str, path: &str, lines: &str| {
        let renamed = route.replace("\"all\"", name).replace("\"/{*rest}\"", path);
        format!("[[routes]]{renamed}\n{lines}\n")
    };
    let touches = "also_changes = [\"/projects/{project}\", \"/projects/{project}/items\"]";
    let routes = [
        route("\"projects\"", "\"/projects/{project}\"", ""),
        route("\"lists\"", "\"/projects/{project}/items\"", ""),
        route("\"items\"", "\"/projects/{project}/items/{item}\"", touches),
        route("\"left\"", "\"/left/{id}\"", "also_changes = [\"/right/{id}\"]"),
        route("\"right\"", "\"/right/{id}\"", "also_changes = [\"/left/{id}\"]"),
    ];
    let proxy = Proxy::start(&format!("{tables}{}", routes.concat())).await;
    (backend, proxy)
}

/// The answer to a conditional GET, and whether the backend was asked for it.
async fn ask_again(backend: &Backend, addr: SocketAddr, target: &str, tag: &str) -> (u16, bool) {
    let before = backend.count("GET", target);
    let answer = send(addr, "GET", target, &[("If-None-Match", tag)], "").await;
    (answer.status, backend.count("GET", target) > before)
}

fn spawn_put(addr: SocketAddr, target: &'static str) -> JoinHandle<Response> {
    tokio::spawn(async move { put(addr, target, &[], "new").await })
}

#[tokio::test]
async fn p20_a_created_child_makes_the_tags_of_its_parent_and_collection_new() {
    let (_backend, proxy) = start(VERSION).await;
    let addr = proxy.addr();
    let old = [get(addr, PROJECT).await.etag(), get(addr, ITEMS).await.etag()];
    assert_eq!(put(addr, ITEM, &[("If-None-Match", "*")], "x").await.status, 201);
    for (target, old) in [PROJECT, ITEMS].into_iter().zip(old) {
        assert_ne!(get(addr, target).await.etag(), old);
        put_if_match(addr, target, &old, "lost").await.refused(412, "precondition-failed");
    }
}

/// The resources that a write changes besides its target have no settled state either (`reads = "settled"`).
#[tokio::test]
async fn p20_a_settled_read_of_what_a_write_touches_waits_for_the_write() {
    let (backend, proxy) = start_with(VERSION, "reads = \"settled\"\nclaim.max_wait = \"100ms\"").await;
    let addr = proxy.addr();
    for target in [PROJECT, ITEMS] {
        assert_eq!(get(addr, target).await.status, 200, "only a client that may read waits");
    }
    let coming = backend.hold("PUT", ITEM);
    let write = spawn_put(addr, ITEM);
    let held = coming.arrived().await;
    for target in [PROJECT, ITEMS] {
        get(addr, target).await.refused(503, "unsettled");
        assert_eq!(backend.count("GET", target), 1);
    }
    held.answer(Answer::stored()).await;
    assert_eq!(write.await.unwrap().status, 201);
    for target in [PROJECT, ITEMS] {
        assert_eq!(get(addr, target).await.status, 200);
    }
}

/// The remembered state of the parent is outdated, although its bytes may be the same.
#[tokio::test]
async fn p20_nothing_that_a_write_touches_is_answered_from_memory_before_it_is_asked_for_anew() {
    for source in source::EXCLUSIVE {
        let (backend, proxy) = start(source).await;
        let addr = proxy.addr();
        let tag = get(addr, PROJECT).await.etag();
        assert_eq!(ask_again(&backend, addr, PROJECT, &tag).await, (304, false), "{source}");
        let held = backend.hold("PUT", ITEM);
        let writer = spawn_put(addr, ITEM);
        let write = held.arrived().await;
        assert!(ask_again(&backend, addr, PROJECT, &tag).await.1, "{source}: the write may change it at any moment");
        backend.put(PROJECT, "1");
        write.answer(Answer::stored()).await;
        assert_eq!(writer.await.unwrap().status, 201, "{source}");
        assert_eq!(ask_again(&backend, addr, PROJECT, &tag).await, (200, true), "{source}");
    }
}

/// A write that only appends changes what it touches all the same.
#[tokio::test]
async fn p20_an_unclaimed_write_touches_what_its_route_names() {
    let (backend, proxy) = start(VERSION).await;
    let addr = proxy.addr();
    let tag = get(addr, PROJECT).await.etag();
    assert_eq!(ask_again(&backend, addr, PROJECT, &tag).await, (304, false));
    let held = backend.hold("POST", ITEM);
    let writer = tokio::spawn(async move { send(addr, "POST", ITEM, &[], "x").await });
    let write = held.arrived().await;
    assert!(ask_again(&backend, addr, PROJECT, &tag).await.1, "the write may change it at any moment");
    write.answer(Answer::status(204)).await;
    assert_eq!(writer.await.unwrap().status, 204);
    assert_ne!(get(addr, PROJECT).await.etag(), tag);
    put_if_match(addr, PROJECT, &tag, "lost").await.refused(412, "precondition-failed");
}

/// A write that the backend refuses has changed neither its target nor anything else.
#[tokio::test]
async fn p20_a_write_that_was_not_applied_leaves_what_it_touches_as_it_is() {
    let (backend, proxy) = start(VERSION).await;
    let tag = get(proxy.addr(), PROJECT).await.etag();
    backend.once("PUT", ITEM, Answer::status(422));
    assert_eq!(put(proxy.addr(), ITEM, &[], "x").await.status, 422);
    assert_eq!(get(proxy.addr(), PROJECT).await.etag(), tag);
    assert_eq!(put_if_match(proxy.addr(), PROJECT, &tag, "1").await.status, 204, "and free");
}

/// RFC 9111 section 4.4: Location and Content-Location of the same origin, and no other.
#[tokio::test]
async fn p20_what_a_response_names_in_its_own_origin_is_touched() {
    let cases = [
        ("Location", "/projects/1", 201, true),
        ("Location", "http://test/projects/1?view=short", 303, true),
        ("Content-Location", "../1", 200, true),
        ("Location", "http://elsewhere.test/projects/1", 201, false),
        ("Location", "/projects/1", 422, false),
    ];
    for (name, value, status, is_touched) in cases {
        for method in ["POST", "PUT"] {
            let (backend, proxy) = start(VERSION).await;
            let tag = get(proxy.addr(), PROJECT).await.etag();
            backend.once(method, ITEMS, Answer::status(status).header(name, value).applied());
            assert_eq!(send(proxy.addr(), method, ITEMS, &[], "x").await.status, status);
            assert_eq!(get(proxy.addr(), PROJECT).await.etag() != tag, is_touched, "{method} {name}: {value}");
        }
    }
}

/// Rule 1: the write of the project was judged before the item changes it, and must not be applied after.
#[tokio::test]
async fn p20_a_write_waits_for_the_one_in_flight_on_what_it_touches() {
    for (source, method) in source::ALL.into_iter().flat_map(|source| [(source, "PUT"), (source, "POST")]) {
        let (backend, proxy) = start_with(source, "claim = { max_wait = \"200ms\" }").await;
        let addr = proxy.addr();
        let tag = get(addr, PROJECT).await.etag();
        let coming = backend.hold("PUT", PROJECT);
        let writer = tokio::spawn(async move { put_if_match(addr, PROJECT, &tag, "1").await });
        let write = coming.arrived().await;
        send(addr, method, ITEM, &[], "x").await.refused(409, "write-in-flight");
        assert_eq!(backend.count(method, ITEM), 0, "{source} {method}");
        write.answer(Answer::stored()).await;
        assert_eq!(writer.await.unwrap().status, 204, "{source}");
        assert!(matches!(send(addr, method, ITEM, &[], "x").await.status, 201 | 204), "{source} {method}: it is free");
    }
}

#[tokio::test]
async fn p20_a_write_that_waits_for_what_it_touches_goes_on_when_that_is_free() {
    let (backend, proxy) = start(VERSION).await;
    let addr = proxy.addr();
    let list = get(addr, ITEMS).await.etag();
    let coming = backend.hold("PUT", PROJECT);
    let writer = spawn_put(addr, PROJECT);
    let write = coming.arrived().await;
    let child = spawn_put(addr, ITEM);
    assert_eq!(ask_again(&backend, addr, ITEMS, &list).await, (304, false), "whoever waits has marked nothing");
    write.answer(Answer::stored()).await;
    assert_eq!(writer.await.unwrap().status, 204);
    assert_eq!(child.await.unwrap().status, 201);
    assert_eq!(backend.count("PUT", ITEM), 1);
}

/// Writers of one busy item stand in the line of the item, and keep no other client away from the project.
#[tokio::test]
async fn p20_writers_of_one_item_keep_no_others_of_their_project_waiting() {
    let (backend, proxy) = start(VERSION).await;
    let addr = proxy.addr();
    let coming = backend.hold("PUT", ITEM);
    let writer = spawn_put(addr, ITEM);
    let write = coming.arrived().await;
    let next = spawn_put(addr, ITEM);
    assert_eq!(put(addr, "/projects/1/items/b", &[], "x").await.status, 201);
    write.answer(Answer::stored()).await;
    assert_eq!(writer.await.unwrap().status, 201);
    assert!(next.await.unwrap().status < 300);
}

/// A claimed write waits for a touch as it does for an unclaimed write, at most for a time and holding nothing.
#[tokio::test]
async fn p20_a_write_does_not_begin_on_what_is_being_touched() {
    let (backend, proxy) = start_with(CONTENT, "claim = { max_wait = \"200ms\" }").await;
    let addr = proxy.addr();
    let tag = get(addr, PROJECT).await.etag();
    let held = backend.hold("PUT", ITEM);
    let child = spawn_put(addr, ITEM);
    let write = held.arrived().await;
    put_if_match(addr, PROJECT, &tag, "lost").await.refused(409, "write-in-flight");
    assert_eq!(backend.count("PUT", PROJECT), 0);
    write.answer(Answer::stored()).await;
    assert_eq!(child.await.unwrap().status, 201);
    assert_eq!(put_if_match(addr, PROJECT, &tag, "1").await.status, 204, "its bytes are the same");
}

/// Each claims what the other touches.
#[tokio::test]
async fn p20_writes_that_touch_each_other_do_not_wait_for_each_other_for_ever() {
    let (backend, proxy) = start(CONTENT_EXCLUSIVE).await;
    let addr = proxy.addr();
    let mut writers = JoinSet::new();
    for number in 0..20 {
        let target = if number % 2 == 0 { "/left/1" } else { "/right/1" };
        writers.spawn(async move { put(addr, target, &[], "x").await.status });
    }
    let statuses = writers.join_all().await;
    assert!(statuses.iter().all(|status| matches!(status, 201 | 204)), "{statuses:?}");
    assert_eq!(backend.count("PUT", "*"), 20);
}

/// DESIGN, section 3, rule 3: a write in doubt may have changed all that it touches.
#[tokio::test]
async fn p20_a_write_in_doubt_puts_what_it_touches_in_doubt() {
    let (backend, proxy) = start(VERSION).await;
    let addr = proxy.addr();
    let tag = get(addr, PROJECT).await.etag();
    backend.once("PUT", ITEM, Answer::reset());
    assert!(put(addr, ITEM, &[], "x").await.refused(502, "upstream-failed").in_doubt);
    put_if_match(addr, PROJECT, &tag, "lost").await.refused(409, "write-in-flight");
    put(addr, "/projects/1/items/b", &[], "x").await.refused(409, "write-in-flight");
    put_when_free(addr, PROJECT, &tag, "lost").await.refused(412, "precondition-failed");
}

/// The lease of a resource guards the requests that are sent to it. Who holds it keeps it; who held it has lost it.
#[tokio::test]
async fn p20_what_is_touched_may_be_leased_by_somebody_else() {
    let (_backend, proxy) = start_with(CONTENT, "policy = \"pessimistic\"\nlease.min = \"1s\"").await;
    let addr = proxy.addr();
    let held = acquire(addr, PROJECT, "60").await;
    assert_eq!(put(addr, ITEM, &[], "x").await.status, 201, "the item is not leased");
    put(addr, PROJECT, &[], "1").await.refused(412, "lease-id-missing");
    assert_eq!(put(addr, PROJECT, &[("Lease-Id", &held.id)], "1").await.status, 204);
}

/// Many children and one parent that counts them: each writer creates its child, then counts it with If-Match and
/// tries again where another one was faster.
#[tokio::test]
async fn p20_a_counter_that_sixteen_writers_keep_ends_right() {
    const WRITERS: usize = 16;
    for source in [CONTENT, VERSION] {
        let (backend, proxy) = start(source).await;
        let addr = proxy.addr();
        let mut writers = JoinSet::new();
        for number in 0..WRITERS {
            writers.spawn(async move {
                let child = format!("{ITEMS}/{number}");
                assert_eq!(put(addr, &child, &[("If-None-Match", "*")], "x").await.status, 201);
                loop {
                    let parent = get(addr, PROJECT).await;
                    let count: usize = parent.text().parse().expect("a count");
                    let counted = put_if_match(addr, PROJECT, &parent.etag(), (count + 1).to_string()).await;
                    match counted.status {
                        204 => break,
                        412 => {}
                        _ => panic!("{counted:?}"),
                    }
                }
            });
        }
        writers.join_all().await;
        assert_eq!(backend.content(PROJECT).as_deref(), Some("16"), "{source}");
    }
}
