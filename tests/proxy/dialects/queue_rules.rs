//! The rules of queues in Azure's dialect, which hold for any behaviour of their client and their server.

use std::net::SocketAddr;

use crate::{
    operations::example_files::{start_changed, start_in_front_of},
    support::{
        azure::assert_error,
        backend::{Answer, Backend, Request},
        nginx::Nginx,
        proxy::Proxy,
        queues::{Taken, body_of, create, put, take},
        raw::{Connection, send},
        response::Response,
        wait::{until, within},
    },
};

/// The index of a backend that a test writes.
const INDEX: &str = "/jobs/";

/// A queue before a backend under the test's control.
async fn jobs() -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put(INDEX, "[]");
    let short = "connect_timeout = \"10s\"\ntimeout = \"20s\"\nlate_write_window = \"100ms\"";
    let text = |text: String| text.replace("[[routes]]", &format!("{short}\n\n[[routes]]"));
    let proxy = start_changed(backend.addr(), "azure-queue.toml", text).await;
    create(proxy.addr(), "jobs").await;
    (backend, proxy)
}

/// Puts a message, shows it in the index, and returns its id.
async fn put_shown(backend: &Backend, addr: SocketAddr, text: &str) -> String {
    let put = put(addr, "jobs", text).await;
    let id =
        put.text().split_once("<MessageId>").and_then(|(_, rest)| rest.split_once('<')).expect("an id").0.to_owned();
    backend.put(INDEX, format!(r#"[{{"name":"{id}","type":"file"}}]"#));
    id
}

async fn delete(addr: SocketAddr, taken: &Taken) -> Response {
    send(addr, "DELETE", &taken.target("jobs"), &[], "").await
}

/// Rule 1: of all that take a message at once, one gets it.
#[tokio::test]
async fn a_message_goes_to_one_of_those_that_want_it() {
    let (backend, proxy) = jobs().await;
    let addr = proxy.addr();
    put_shown(&backend, addr, "one").await;
    let is_read = |request: &Request| request.method == "GET" && request.target.starts_with("/jobs/0");
    let reads = [backend.hold_where(is_read), backend.hold_where(is_read)];
    // Two principals share no line, and so look at the same message.
    let worker = |name: &'static str| {
        let fields = [("Authorization", name)];
        tokio::spawn(async move { Taken::all(&send(addr, "GET", "/jobs/messages", &fields, "").await) })
    };
    let workers = [worker("Bearer ann"), worker("Bearer bob")];
    let mut arrived = Vec::new();
    for read in reads {
        arrived.push(read.arrived().await);
    }
    for held in arrived {
        let content = backend.content(&held.request().target).expect("the message");
        held.answer(Answer::status(200).body(content)).await;
    }
    let mut got = Vec::new();
    for worker in workers {
        got.extend(worker.await.expect("no panic"));
    }
    assert_eq!(got.len(), 1, "{got:?}");
    assert_eq!((got[0].count, got[0].text.as_str()), (1, "one"));
}

/// Rule 3: a take without an answer is in doubt. The message is not lost, and no two workers have it.
#[tokio::test]
async fn a_take_that_fails_loses_no_message() {
    let (backend, proxy) = jobs().await;
    let addr = proxy.addr();
    let id = put_shown(&backend, addr, "one").await;
    let file = format!("/jobs/{id}");
    let taking = async || send(addr, "GET", "/jobs/messages?visibilitytimeout=1", &[], "").await;
    backend.once("PUT", &file, Answer::status(500));
    assert_error(&taking().await, 500, "InternalError");
    backend.once("PUT", &file, Answer::close());
    assert_error(&taking().await, 500, "InternalError");
    backend.once("PUT", &file, Answer::close().applied());
    let taken = within("the message to come back", async {
        loop {
            let response = taking().await;
            if let Some(taken) = (response.status == 200).then(|| Taken::all(&response).pop()).flatten() {
                return taken;
            }
        }
    })
    .await;
    assert_eq!((taken.id.as_str(), taken.text.as_str()), (id.as_str(), "one"));
    assert_eq!(delete(addr, &taken).await.status, 204);
    assert_eq!(backend.content(&file), None);
}

/// Rule 4: a receipt that is not the last one reaches no file, and neither does one for another queue.
#[tokio::test]
async fn what_a_stale_receipt_asks_for_is_not_done() {
    let (backend, proxy) = jobs().await;
    let addr = proxy.addr();
    let id = put_shown(&backend, addr, "one").await;
    let first = take(addr, "jobs", (1, 30)).await.pop().expect("a message");
    let update = async |taken: &Taken| {
        let target = format!("{}&visibilitytimeout=0", taken.target("jobs"));
        send(addr, "PUT", &target, &[], body_of("two")).await
    };
    let updated = update(&first).await;
    assert_eq!(updated.status, 204, "{updated:?}");
    let receipt = updated.header("x-ms-popreceipt").expect("a receipt").to_owned();
    assert!(updated.header("x-ms-time-next-visible").is_some());
    let kept = backend.content(&format!("/jobs/{id}")).expect("the message");
    assert!(!kept.contains(&receipt) && kept.contains("two"), "{kept}");
    let writes = || backend.requests().iter().filter(|request| request.method != "GET").count();
    let before = writes();
    assert_error(&delete(addr, &first).await, 400, "PopReceiptMismatch");
    assert_error(&update(&first).await, 400, "PopReceiptMismatch");
    create(addr, "other").await;
    let elsewhere = send(addr, "DELETE", &first.target("other"), &[], "").await;
    assert_error(&elsewhere, 404, "MessageNotFound");
    assert_eq!(writes(), before + 1, "only the other queue was written");
    let last = Taken { receipt, ..first };
    assert_eq!(delete(addr, &last).await.status, 204);
    assert_error(&delete(addr, &last).await, 404, "MessageNotFound");
}

/// Rule 1: a deletion is judged by the state whose receipt was compared. Another worker may take the message meanwhile.
#[tokio::test]
async fn a_late_worker_deletes_nothing_that_another_takes_meanwhile() {
    let (backend, proxy) = jobs().await;
    let addr = proxy.addr();
    let id = put_shown(&backend, addr, "one").await;
    let late = take(addr, "jobs", (1, 1)).await.pop().expect("a message");
    let file = format!("/jobs/{id}");
    let peek = async || send(addr, "GET", "/jobs/messages?peekonly=true", &[], "").await;
    within("it to be visible", async { while !peek().await.text().contains(&id) {} }).await;
    let held = backend.hold("PUT", &file);
    let next = tokio::spawn(async move { take(addr, "jobs", (1, 30)).await });
    let mut held = held.arrived().await;
    let reads = backend.count("GET", &file);
    let deletion = tokio::spawn(async move { delete(addr, &late).await });
    backend.reached("GET", &file, reads + 1).await;
    held.apply().await;
    held.answer(Answer::status(204)).await;
    assert_error(&deletion.await.expect("no panic"), 400, "PopReceiptMismatch");
    let next = next.await.expect("no panic").pop().expect("a message");
    assert_eq!(delete(addr, &next).await.status, 204);
}

/// Rule 20: what a worker has taken stays its own through a restart of the proxy.
#[tokio::test]
async fn a_restart_changes_nothing_for_workers() {
    let nginx = Nginx::with(crate::leases::next_member::LISTING).await;
    let mut proxy = start_in_front_of(nginx.addr(), "azure-queue.toml").await;
    create(proxy.addr(), "jobs").await;
    put(proxy.addr(), "jobs", "one").await;
    let taken = take(proxy.addr(), "jobs", (1, 60)).await.pop().expect("a message");
    proxy.signal("KILL");
    proxy.restart().await;
    let addr = proxy.addr();
    assert_eq!(take(addr, "jobs", (1, 60)).await, [], "it is still hidden");
    assert_eq!(delete(addr, &taken).await.status, 204);
    assert_eq!(take(addr, "jobs", (32, 1)).await, []);
}

/// The backend decides who may see and change messages.
#[tokio::test]
async fn credentials_reach_the_backend_and_signatures_do_not() {
    let (backend, proxy) = jobs().await;
    let addr = proxy.addr();
    put_shown(&backend, addr, "one").await;
    let before = backend.requests().len();
    let signed = [("Authorization", "SharedKey account:c2ln"), ("x-ms-date", "Sat, 28 Nov 2026 00:00:00 GMT")];
    let looked = send(addr, "GET", "/jobs/messages?peekonly=true&sig=c2ln&sv=1", &signed, "").await;
    assert!(looked.text().contains("<MessageText>one</MessageText>"), "{looked:?}");
    let sent: Vec<Request> = backend.requests().into_iter().skip(before).collect();
    let is_bare = |request: &Request| {
        request.header("authorization").is_none()
            && request.header("x-ms-date").is_none()
            && !request.target.contains('?')
    };
    assert!(!sent.is_empty() && sent.iter().all(is_bare), "{sent:?}");
    let knows = |request: &Request| request.header("authorization") == Some("Bearer ann");
    backend.always_where(move |request| !knows(request), |_| Answer::status(401).header("WWW-Authenticate", "Bearer"));
    let stranger = send(addr, "GET", "/jobs/messages", &[("Authorization", "Bearer bob")], "").await;
    assert_error(&stranger, 401, "NoAuthenticationInformation");
    assert_eq!(stranger.header("www-authenticate"), Some("Bearer"));
    let listed = send(addr, "GET", "/jobs/messages", &[("Authorization", "Bearer ann")], "").await;
    assert_eq!(Taken::all(&listed).len(), 1);
}

/// Rule 13: one request costs the backend a bounded number of requests, and what is hidden costs it none.
#[tokio::test]
async fn a_take_reads_so_many_messages_at_most() {
    let (backend, proxy) = jobs().await;
    let addr = proxy.addr();
    let file = |number: u32| format!(r#"{{"name":"01900000-0000-7000-8000-{number:012x}","type":"file"}}"#);
    let listed: Vec<String> = (0..300).map(file).collect();
    backend.put(INDEX, format!("[{}]", listed.join(",")));
    let before = backend.requests().len();
    assert_eq!(take(addr, "jobs", (32, 30)).await, []);
    let reads = backend.requests().len() - before;
    assert!((200..=260).contains(&reads), "{reads}");
}

/// A message that always fails, or is none, keeps the others from no worker.
#[tokio::test]
async fn a_message_that_fails_is_passed_over() {
    let (backend, proxy) = jobs().await;
    let addr = proxy.addr();
    let ids = [put_shown(&backend, addr, "one").await, put_shown(&backend, addr, "two").await];
    let strange = "01900000-0000-7000-8000-000000000000";
    backend.put(&format!("/jobs/{strange}"), "no message");
    let listed = [strange, &ids[0], &ids[1]].map(|id| format!(r#"{{"name":"{id}","type":"file"}}"#));
    backend.put(INDEX, format!("[{}]", listed.join(",")));
    backend.always("GET", &format!("/jobs/{}", ids[0]), |_| Answer::status(500));
    let taken = take(addr, "jobs", (32, 30)).await;
    assert_eq!(taken.iter().map(|taken| taken.text.as_str()).collect::<Vec<_>>(), ["two"]);
    let failed = send(addr, "GET", "/jobs/messages", &[], "").await;
    assert_error(&failed, 500, "InternalError");
}

/// A worker gets the messages that it has taken, even if the next message fails.
#[tokio::test]
async fn a_worker_gets_its_messages_although_the_next_one_fails() {
    let (backend, proxy) = jobs().await;
    let addr = proxy.addr();
    let ids = [put_shown(&backend, addr, "one").await, put_shown(&backend, addr, "two").await];
    let listed = ids.each_ref().map(|id| format!(r#"{{"name":"{id}","type":"file"}}"#));
    backend.put(INDEX, format!("[{}]", listed.join(",")));
    backend.always("PUT", &format!("/jobs/{}", ids[1]), |_| Answer::status(500));
    let taken = take(addr, "jobs", (32, 30)).await;
    assert_eq!(taken.iter().map(|taken| taken.id.as_str()).collect::<Vec<_>>(), [ids[0].as_str()]);
}

#[tokio::test]
async fn a_hidden_message_costs_the_backend_nothing() {
    let (backend, proxy) = jobs().await;
    let addr = proxy.addr();
    let id = put_shown(&backend, addr, "one").await;
    assert_eq!(take(addr, "jobs", (1, 600)).await.len(), 1);
    let file = format!("/jobs/{id}");
    let reads = backend.count("GET", &file);
    for _ in 0..3 {
        assert_eq!(take(addr, "jobs", (32, 30)).await, []);
    }
    assert_eq!(backend.count("GET", &file), reads);
}

#[tokio::test]
async fn a_message_of_a_queue_before_is_in_no_later_queue() {
    let (backend, proxy) = jobs().await;
    let addr = proxy.addr();
    let id = put_shown(&backend, addr, "one").await;
    let message = backend.content(&format!("/jobs/{id}")).expect("the message");
    assert_eq!(send(addr, "DELETE", "/jobs", &[], "").await.status, 204);
    create(addr, "jobs").await;
    // It was on its way while the queue was deleted.
    backend.put(&format!("/jobs/{id}"), message);
    assert_eq!(take(addr, "jobs", (1, 30)).await, []);
    until("it is removed", || backend.content(&format!("/jobs/{id}")).is_none()).await;
}

/// A client that puts a message into a new queue does not lose it to one that still deletes the queue before, or to a worker
/// that has begun with that.
#[tokio::test]
async fn a_message_of_a_later_queue_stays() {
    for (method, target, status) in [("DELETE", "/jobs", 204), ("GET", "/jobs/messages", 200)] {
        let (backend, proxy) = jobs().await;
        let addr = proxy.addr();
        let index = backend.hold("GET", INDEX);
        let begun = tokio::spawn(async move { send(addr, method, target, &[], "").await });
        let index = index.arrived().await;
        if method == "GET" {
            backend.put(INDEX, "[]");
            assert_eq!(send(addr, "DELETE", "/jobs", &[], "").await.status, 204);
        }
        create(addr, "jobs").await;
        let id = put_shown(&backend, addr, "one").await;
        let shown = backend.content(INDEX).expect("the index");
        index.answer(Answer::status(200).body(shown)).await;
        let ended = begun.await.expect("no panic");
        assert_eq!(ended.status, status, "{ended:?}");
        let taken = take(addr, "jobs", (1, 30)).await;
        assert_eq!(taken.iter().map(|taken| taken.id.as_str()).collect::<Vec<_>>(), [id.as_str()], "{method} {target}");
    }
}

/// The rest of a queue is removed, also a document that cannot be read.
#[tokio::test]
async fn a_cleared_queue_has_no_messages() {
    let (backend, proxy) = jobs().await;
    let addr = proxy.addr();
    let id = put_shown(&backend, addr, "one").await;
    let strange = "01900000-0000-7000-8000-000000000000";
    backend.put(&format!("/jobs/{strange}"), "no message");
    let listed = [strange, &id].map(|id| format!(r#"{{"name":"{id}","type":"file"}}"#));
    backend.put(INDEX, format!("[{}]", listed.join(",")));
    assert_eq!(take(addr, "jobs", (1, 600)).await.len(), 1);
    assert_eq!(send(addr, "DELETE", "/jobs/messages", &[], "").await.status, 204);
    for id in [strange, &id] {
        assert_eq!(backend.content(&format!("/jobs/{id}")), None, "{id}");
    }
}

/// Rule 15: while a proxy gives no message to any client, no worker learns that there is none.
#[tokio::test]
async fn a_proxy_that_has_just_begun_tells_no_worker_that_the_queue_is_empty() {
    let (backend, proxy) = jobs().await;
    put_shown(&backend, proxy.addr(), "one").await;
    let begins = |text: String| format!("{text}\n[store]\nkind = \"memory\"\nstart_grace = \"10m\"\n");
    let later = start_changed(backend.addr(), "azure-queue.toml", begins).await;
    let refused = send(later.addr(), "GET", "/jobs/messages", &[], "").await;
    assert_error(&refused, 503, "ServerBusy");
    assert_eq!(take(proxy.addr(), "jobs", (1, 30)).await.len(), 1);
}

/// A request that is no operation, or names nothing, is refused by name and reaches no backend.
#[tokio::test]
async fn each_refusal_has_azures_name() {
    let (backend, proxy) = jobs().await;
    let addr = proxy.addr();
    let before = backend.requests().len();
    for (method, target, body, status, code) in [
        ("GET", "/jobs/messages?numofmessages=33", "", 400, "OutOfRangeQueryParameterValue"),
        ("GET", "/jobs/messages?visibilitytimeout=604801", "", 400, "OutOfRangeQueryParameterValue"),
        ("POST", "/jobs/messages", "<a/>", 400, "InvalidXmlDocument"),
        ("POST", "/jobs/messages", "", 400, "InvalidXmlDocument"),
        ("GET", "/jobs?comp=acl", "", 501, "NotImplemented"),
        ("GET", "/?restype=service&comp=properties", "", 501, "NotImplemented"),
        ("PUT", "/no_name", "", 400, "InvalidResourceName"),
        ("GET", "/jobs.json", "", 400, "InvalidResourceName"),
        ("PATCH", "/jobs/messages", "", 405, "UnsupportedHttpVerb"),
        ("GET", "/jobs", "", 405, "UnsupportedHttpVerb"),
    ] {
        assert_error(&send(addr, method, target, &[], body).await, status, code);
    }
    assert_eq!(backend.requests().len(), before);
    let mut connection = Connection::open(addr).await;
    let long = connection.exchange("POST", "/jobs/messages", &[], body_of(&"a".repeat(65_537))).await;
    assert_error(&long, 413, "RequestBodyTooLarge");
}
