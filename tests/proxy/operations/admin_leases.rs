//! The view of an operator: leases, records and known states, and the operations on them (docs/admin.md).

use serde_json::{Value, json};

use crate::support::{
    admin::{ask, look, problem, start, tell, told, without_end},
    backend::{Answer, Backend},
    leases::{IDS, acquire, assert_absent_from_log, assert_silent_about, lease, put_with, view},
    proxy::Proxy,
    raw::{get, put_if_match, send},
    wait::until,
};

fn keys(page: &Value) -> Vec<&str> {
    page["leases"].as_array().expect("a list").iter().map(|row| row["key"].as_str().expect("a key")).collect()
}

#[tokio::test]
async fn leases_are_listed_with_what_their_holders_say_of_themselves() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend).route("lease.bind = true")).await;
    let addr = proxy.addr();
    let fields = [("Lease-Duration", "60"), ("Lease-Holder", "ann's desk"), ("Authorization", "ann")];
    assert_eq!(lease(addr, "POST", "/a", &fields).await.status, 201);
    let infinite = [("Lease-Duration", "infinite"), ("Authorization", "ann"), ("Lease-Id", IDS[0])];
    assert_eq!(lease(addr, "POST", "/b", &infinite).await.status, 201);
    acquire(addr, "/other/c", "30").await;
    let page = ask(admin, "/leases?prefix=backend:/a").await;
    let row = &page["leases"][0];
    assert_eq!(keys(&page), ["backend:/a"]);
    assert_eq!((row["state"].as_str(), row["holder"].as_str()), (Some("leased"), Some("ann's desk")));
    assert_eq!(row["duration_ms"], 60_000);
    let remaining = row["remaining_ms"].as_u64().expect("a number");
    assert!(remaining <= 60_000 && remaining + row["age_ms"].as_u64().expect("a number") >= 59_000, "{row}");
    let infinite = ask(admin, "/leases?prefix=backend:/b").await;
    assert_eq!(infinite["leases"][0]["remaining_ms"], Value::Null);
    assert_eq!(infinite["leases"][0]["principal"], row["principal"], "both are ann's");
    assert_eq!(ask(admin, "/leases?prefix=backend:/other").await["leases"][0]["principal"], "anonymous");
    assert_eq!(keys(&ask(admin, "/leases?holder=desk").await), ["backend:/a"]);
    assert_eq!(keys(&ask(admin, "/leases?state=broken").await), [""; 0]);
    assert_eq!(keys(&ask(admin, "/leases?state=leased,broken").await).len(), 3);
}

#[tokio::test]
async fn many_leases_come_in_pages() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend)).await;
    for number in 0..25 {
        acquire(proxy.addr(), &format!("/{number}"), "infinite").await;
    }
    let (mut all, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = ask(admin, &format!("/leases?limit=10{cursor}")).await;
        all.extend(keys(&page).into_iter().map(str::to_owned));
        pages += 1;
        let Some(next) = page["cursor"].as_str() else { break };
        assert!(!next.contains("backend"), "a cursor says nothing: {next}");
        cursor = format!("&cursor={next}");
    }
    all.sort();
    all.dedup();
    assert_eq!((all.len(), pages), (25, 3));
}

/// `lease.client_break` is about clients: an operator may always break.
#[tokio::test]
async fn an_operator_breaks_a_lease_and_its_holder_writes_no_more() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend)).await;
    let addr = proxy.addr();
    let grant = acquire(addr, "/doc", "infinite").await;
    let by_client = [("Lease-Break-Period", "0"), ("Authorization", "bob")];
    assert!(lease(addr, "DELETE", "/doc", &by_client).await.status >= 400, "clients may not break here");
    let broken = told(admin, "/leases/break", &json!({ "key": "backend:/doc" })).await;
    assert_eq!((broken["key"].as_str(), broken["leases"][0]["state"].as_str()), (Some("backend:/doc"), Some("broken")));
    let again = told(admin, "/leases/break", &json!({ "key": "backend:/doc" })).await;
    assert_eq!((&broken["was_broken"], &again["was_broken"]), (&json!(false), &json!(true)));
    put_with(addr, "/doc", &grant.id, "too late").await.refused(412, "lease-lost");
    assert_eq!(backend.count("PUT", "/doc"), 0);
    let next = acquire(addr, "/doc", "30").await;
    assert!(next.fence > grant.fence);
    let lines = proxy.logged(&["a lease was broken"]).await;
    let [line] = &lines[..] else { panic!("the log tells of one break: {lines:?}") };
    assert!(line.contains("ifmatch::audit") && line.contains("backend:/doc") && line.contains("127.0.0.1:"), "{line}");
}

#[tokio::test]
async fn a_holder_can_be_given_time_to_finish() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend)).await;
    let addr = proxy.addr();
    let grant = acquire(addr, "/doc", "infinite").await;
    let breaking = told(admin, "/leases/break", &json!({ "key": "backend:/doc", "period": "1m" })).await;
    assert_eq!(breaking["leases"][0]["state"], "breaking");
    assert_eq!(put_with(addr, "/doc", &grant.id, "in time").await.status, 201);
    assert_eq!(told(admin, "/leases/break", &json!({ "key": "backend:/doc" })).await["leases"][0]["state"], "broken");
    put_with(addr, "/doc", &grant.id, "too late").await.refused(412, "lease-lost");
    assert_eq!(
        problem(&tell(admin, "/leases/break", &json!({ "key": "backend:/no" })).await, 404),
        "lease-not-present"
    );
}

/// Rule 11: an id is the secret of its holder, also before operators.
#[tokio::test]
async fn no_answer_and_no_line_tells_a_lease_id() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend)).await;
    let id = acquire(proxy.addr(), "/doc", "60").await.id;
    assert_eq!(put_with(proxy.addr(), "/doc", &id, "x").await.status, 201);
    let targets = [
        "/leases",
        "/records?key=backend:/doc",
        "/activity",
        "/metrics",
        "/config",
        "/routes",
        "/doubts",
        "/refusals",
        "/history",
        "/servers",
        "/timeline?key=backend:/doc",
        "/",
    ];
    for target in targets {
        let answer = look(admin, target).await;
        assert_eq!(answer.status, 200);
        assert_silent_about(&id, &answer);
    }
    for target in ["/leases/break", "/forget"] {
        assert_silent_about(&id, &tell(admin, target, &json!({ "key": "backend:/doc" })).await);
    }
    assert_silent_about(&id, &look(admin, "/leases").await);
    get(proxy.addr(), "/the-end").await;
    assert_absent_from_log(&proxy, &id, "/the-end").await;
}

#[tokio::test]
async fn a_record_is_shown_with_all_that_is_known_of_its_resource() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend).route("etag = \"version\"\nother_writers = false")).await;
    let addr = proxy.addr();
    let grant = acquire(addr, "/doc", "60").await;
    assert_eq!(put_with(addr, "/doc", &grant.id, "one").await.status, 201);
    let tag = get(addr, "/doc").await.etag();
    let record = ask(admin, "/records?key=backend:/doc").await;
    assert_eq!(record["fence"], grant.fence);
    assert_eq!(record["leases"][0]["state"], "leased");
    assert_eq!((&record["doubt"], &record["write_in_flight"]), (&Value::Null, &Value::Null));
    let version_tag = record["version_tag"].as_str().expect("a tag");
    let without_variant = |tag: &str| tag.rsplit_once('-').map(|(version, _)| version.to_owned());
    assert_eq!(without_variant(version_tag), without_variant(&tag));
    let held = backend.hold("PUT", "/doc");
    let writer = tokio::spawn(async move { put_with(addr, "/doc", &grant.id, "two").await });
    let write = held.arrived().await;
    let busy = ask(admin, "/records?key=backend:/doc").await;
    assert!(busy["write_in_flight"]["deadline_ms"].as_u64().is_some_and(|deadline| deadline > 0), "{busy}");
    assert_eq!(ask(admin, "/leases").await["leases"][0]["write_in_flight"], true);
    write.answer(Answer::status(204)).await;
    assert_eq!(writer.await.unwrap().status, 204);
}

/// A write that broke off: its resource is in doubt for `late_write_window`.
#[tokio::test]
async fn a_doubt_is_shown_until_it_is_over() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&Proxy::to(backend.addr()).upstream("late_write_window = \"60s\"")).await;
    let addr = proxy.addr();
    let held = backend.hold("PUT", "/doc");
    let writer = tokio::spawn(async move { send(addr, "PUT", "/doc", &[("If-None-Match", "*")], "x").await });
    held.arrived().await.reset();
    let problem = writer.await.unwrap().refused(502, "upstream-failed");
    // The line about a request follows its answer.
    until("the request to be logged", || proxy.log().contains("verdict=\"upstream-failed\"")).await;
    let doubt = ask(admin, "/doubts").await["doubts"][0].clone();
    assert_eq!(doubt["key"], "backend:/doc");
    let request = doubt["request_id"].as_str().expect("this process has sent the write");
    assert_eq!(problem.json["instance"], format!("urn:ifmatch:request:{request}"));
    let (since, remaining) = (doubt["since_ms"].as_u64().unwrap(), doubt["remaining_ms"].as_u64().unwrap());
    assert!(remaining <= 60_000 && since + remaining == 60_000, "{doubt}");
    let forgotten = told(admin, "/forget", &json!({ "key": "backend:/doc" })).await;
    assert_eq!(forgotten["busy"], json!(["backend:/doc"]));
    assert_eq!(ask(admin, "/doubts").await["doubts"][0]["key"], "backend:/doc", "it is not broken");
}

/// An operator has edited the backend by hand, which `other_writers = false` rules out: the earlier tags must die.
#[tokio::test]
async fn what_is_forgotten_is_asked_for_again() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let setup = Proxy::to(backend.addr()).route("etag = \"version\"\nother_writers = false");
    let (proxy, admin) = start(&setup).await;
    let addr = proxy.addr();
    let tag = get(addr, "/doc").await.etag();
    let unchanged = |tag: String| async move { send(addr, "GET", "/doc", &[("If-None-Match", &tag)], "").await.status };
    assert_eq!(unchanged(tag.clone()).await, 304);
    let reads = backend.count("GET", "/doc");
    assert_eq!(unchanged(tag.clone()).await, 304);
    assert_eq!(backend.count("GET", "/doc"), reads, "it is answered from memory");
    backend.put("/doc", "by hand");
    assert_eq!(told(admin, "/forget", &json!({ "key": "backend:/doc" })).await["forgotten"], 1);
    assert_eq!(unchanged(tag.clone()).await, 200);
    put_if_match(addr, "/doc", &tag, "lost update").await.refused(412, "precondition-failed");
    let fresh = get(addr, "/doc").await.etag();
    assert_ne!(fresh, tag);
    assert_eq!(put_if_match(addr, "/doc", &fresh, "two").await.status, 204);
}

/// Reads write nothing to the store, so most of what a prefix covers has no record.
#[tokio::test]
async fn a_prefix_is_forgotten_with_what_was_only_read() {
    let backend = Backend::start().await;
    let setup = Proxy::to(backend.addr()).route("etag = \"version\"\nother_writers = false");
    let (proxy, admin) = start(&setup).await;
    let addr = proxy.addr();
    backend.put("/docs/read", "one");
    let created = send(addr, "PUT", "/docs/written", &[("If-None-Match", "*")], "one").await;
    assert_eq!(created.status, 201);
    let created = send(addr, "PUT", "/else/written", &[("If-None-Match", "*")], "one").await;
    assert_eq!(created.status, 201);
    let (read, written) = (get(addr, "/docs/read").await.etag(), get(addr, "/docs/written").await.etag());
    let other = get(addr, "/else/written").await.etag();
    let answer = told(admin, "/forget", &json!({ "prefix": "backend:/docs/" })).await;
    assert_eq!((&answer["forgotten"], &answer["cursor"], &answer["busy"]), (&json!(1), &Value::Null, &json!([])));
    for (target, tag) in [("/docs/read", read), ("/docs/written", written)] {
        put_if_match(addr, target, &tag, "lost update").await.refused(412, "precondition-failed");
    }
    assert_eq!(put_if_match(addr, "/else/written", &other, "two").await.status, 204, "it was not meant");
    assert_eq!(proxy.logged(&["records were forgotten"]).await.len(), 1);
}

/// A write in flight is not broken by it; it ends as it would have, and keeps nothing.
#[tokio::test]
async fn a_write_in_flight_survives_being_forgotten() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend)).await;
    let addr = proxy.addr();
    let grant = acquire(addr, "/doc", "60").await;
    let held = backend.hold("PUT", "/doc");
    let id = grant.id.clone();
    let writer = tokio::spawn(async move { put_with(addr, "/doc", &id, "one").await });
    let write = held.arrived().await;
    assert_eq!(told(admin, "/forget", &json!({ "key": "backend:/doc" })).await["busy"], json!(["backend:/doc"]));
    assert_ne!(ask(admin, "/records?key=backend:/doc").await["write_in_flight"], Value::Null);
    assert_eq!(view(addr, "/doc").await["state"], "leased");
    write.answer(Answer::status(204)).await;
    assert_eq!(writer.await.unwrap().status, 204);
}
