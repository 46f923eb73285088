//! The retry of one's own success is recognised by its key (draft-ietf-httpapi-idempotency-key-header-06).

use std::{net::SocketAddr, sync::Arc};

use tokio::time::{Duration, Instant, sleep};

use crate::support::{
    backend::{Answer, Backend, Validators},
    proxy::Proxy,
    raw::{Connection, get, put, send},
    response::{Response, assert_replayed},
    scene::{Mode, Resource, Scene},
    wait::DEADLINE,
};

const KEY: (&str, &str) = ("Idempotency-Key", "\"8e03978e-40d5-43e6-bc93-6e38a6e9e3e4\"");
const ACCEPT: &str = "idempotency = \"accept\"";

async fn scene(lines: &str) -> Arc<Scene> {
    scene_with("300ms", lines).await
}

/// The same, if a write can be applied for as long after its connection was closed.
async fn scene_with(late_write_window: &str, lines: &str) -> Arc<Scene> {
    let window = format!("late_write_window = {late_write_window:?}");
    Scene::start(|setup| setup.upstream(&window).route(ACCEPT).route(lines)).await
}

impl Resource {
    async fn put_named(&self, body: &str) -> Response {
        put(self.scene.proxy.addr(), &self.target, &[("If-Match", &self.tag), KEY], body).await
    }

    /// Repeats the write `two` until it gets another answer than these.
    async fn retry(&self, comes_too_early: impl Fn(&Response) -> bool) -> Response {
        let end = Instant::now() + DEADLINE;
        loop {
            let response = self.put_named("two").await;
            if !comes_too_early(&response) {
                return response;
            }
            assert!(Instant::now() < end, "{} is in flight for ever", self.target);
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// P5, RFC 9110 section 13.1.1: a change that is made already may be answered as the success that it was.
#[tokio::test]
async fn p5_the_retry_of_ones_own_success_gets_its_answer_and_no_412() {
    let scene = scene("on_write = \"probe\"").await;
    for mode in Mode::ALL {
        let resource = Resource::create(&scene, mode, "retry").await;
        let first = resource.put_named("two").await;
        assert_eq!(first.status, 204, "{mode:?} {first:?}");
        let (tag, requests) = (first.etag(), resource.requests());
        assert_replayed(&resource.put_named("two").await, &first);
        assert_eq!(resource.requests(), requests, "{mode:?}: the backend saw nothing of the retry");
        resource.put(&resource.tag, "two").await.refused(412, "precondition-failed");
        assert_eq!(resource.put(&tag, "three").await.status, 204, "{mode:?}: the tag that was replayed is of use");
        assert_replayed(&resource.put_named("two").await, &first);
        assert_eq!(resource.content().as_deref(), Some("three"), "{mode:?}");
    }
}

/// DESIGN, section 3, rule 4; the draft, section 2.7.
#[tokio::test]
async fn a_key_that_was_used_for_another_write_is_refused() {
    let scene = scene("on_write = \"probe\"").await;
    for mode in Mode::ALL {
        let resource = Resource::create(&scene, mode, "mismatch").await;
        let tag = resource.put_named("two").await.etag();
        let requests = resource.requests();
        resource.put_named("three").await.refused(422, "idempotency-mismatch");
        let addr = scene.proxy.addr();
        let other_version = put(addr, &resource.target, &[("If-Match", &tag), KEY], "two").await;
        other_version.refused(422, "idempotency-mismatch");
        assert_eq!(resource.requests(), requests, "{mode:?}: the backend saw neither");
    }
}

/// Rule 21: a key names one write of a resource, no matter who sends it and by which method.
#[tokio::test]
async fn a_key_means_nothing_for_another_resource_and_one_write_for_each() {
    let scene = scene("").await;
    let (addr, mode) = (scene.proxy.addr(), Mode::ContentExclusive);
    let resource = Resource::create(&scene, mode, "own").await;
    let other = Resource::create(&scene, mode, "other").await;
    assert_eq!(resource.put_named("two").await.status, 204);
    assert_eq!(other.put_named("two").await.header("idempotent-replayed"), None);
    let fields = [("If-Match", resource.tag.as_str()), KEY];
    send(addr, "DELETE", &resource.target, &fields, "").await.refused(422, "idempotency-mismatch");
    let stranger = [&fields[..], &[("Authorization", "other")]].concat();
    put(addr, &resource.target, &stranger, "two").await.refused(409, "idempotency-key-in-use");
    assert_eq!(resource.writes(), 2, "the creation and one write");
}

/// The draft, section 2.6; DESIGN, section 3, rule 6.
#[tokio::test]
async fn a_retry_while_the_first_attempt_is_in_flight_is_told_to_come_back() {
    let scene = scene("").await;
    let resource = Resource::create(&scene, Mode::ContentShared, "flight").await;
    let mut held = scene.backend.hold("PUT", &resource.target);
    assert!(held.try_arrived().is_none());
    let writer = tokio::spawn({
        let resource = resource.clone();
        async move { resource.put_named("two").await }
    });
    let mut held = held.arrived().await;
    let problem = resource.put_named("two").await.refused(409, "idempotency-in-flight");
    assert_eq!((problem.retry_after_seconds, problem.in_doubt), (Some(1), false));
    resource.put_named("three").await.refused(422, "idempotency-mismatch");
    held.apply().await;
    held.answer(Answer::status(204)).await;
    let first = writer.await.unwrap();
    assert_eq!(first.status, 204);
    assert_replayed(&resource.put_named("two").await, &first);
    assert_eq!(resource.writes(), 2, "the creation and one write");
}

/// The commonest reason for a retry: the client has given up before the answer came.
#[tokio::test]
async fn a_client_that_went_away_gets_its_answer_later() {
    let scene = scene("").await;
    let resource = Resource::create(&scene, Mode::ContentShared, "gone").await;
    let held = scene.backend.hold("PUT", &resource.target);
    let mut connection = Connection::open(scene.proxy.addr()).await;
    connection.request("PUT", &resource.target, &[("If-Match", &resource.tag), KEY], "two").await;
    let mut held = held.arrived().await;
    connection.reset();
    held.apply().await;
    held.answer(Answer::status(204)).await;
    let retry = resource.retry(|retry| retry.status == 409).await;
    assert_eq!((retry.status, retry.header("idempotent-replayed")), (204, Some("true")));
    assert_eq!(resource.writes(), 2, "the creation and one write");
}

/// Rule 21: a write in doubt is replayed neither as a success nor as a failure, and no retry of it is ever sent.
#[tokio::test]
async fn a_retry_of_a_write_in_doubt_is_told_so() {
    let scene = scene_with("1h", "").await;
    for mode in Mode::ALL {
        for (name, answer) in [("applied", Answer::close().applied()), ("lost", Answer::close())] {
            let resource = Resource::create(&scene, mode, name).await;
            scene.backend.once("PUT", &resource.target, answer);
            assert!(resource.put_named("two").await.refused(502, "upstream-failed").in_doubt);
            let problem = resource.put_named("two").await.refused(409, "idempotency-in-flight");
            assert!(problem.in_doubt && problem.retry_after_seconds == Some(3600), "{mode:?} {problem:?}");
            assert_eq!(resource.writes(), 2, "the creation and one write");
        }
    }
}

/// When the doubt is over a new key says that the write may be repeated, and that one is judged by what is there.
#[tokio::test]
async fn a_retry_of_a_write_is_refused_when_the_doubt_is_over() {
    let scene = scene("").await;
    for mode in Mode::ALL {
        for (name, answer, expected) in [("applied", Answer::close().applied(), 412), ("lost", Answer::close(), 204)] {
            let resource = Resource::create(&scene, mode, name).await;
            scene.backend.once("PUT", &resource.target, answer);
            assert!(resource.put_named("two").await.refused(502, "upstream-failed").in_doubt);
            let problem = resource.retry(|retry| retry.text().contains("idempotency-in-flight")).await;
            let problem = problem.refused(409, "idempotency-outcome-unknown");
            assert_eq!((problem.in_doubt, problem.retry_after_seconds), (false, None), "{mode:?} {problem:?}");
            let again = ("Idempotency-Key", "\"again\"");
            let judged = put(scene.proxy.addr(), &resource.target, &[("If-Match", &resource.tag), again], "two").await;
            // A doubt makes a new version, with any outcome of the write.
            let expected = if mode == Mode::VersionExclusive { 412 } else { expected };
            assert_eq!((judged.status, judged.header("idempotent-replayed")), (expected, None), "{mode:?} {name}");
        }
    }
}

/// The upstream has said that it took the write, and the rest of its answer was lost.
#[tokio::test]
async fn a_success_whose_answer_broke_off_is_replayed_without_its_body() {
    let scene = scene("").await;
    let resource = Resource::create(&scene, Mode::ContentShared, "cut").await;
    let cut = Answer::raw("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nwri").applied();
    scene.backend.once("PUT", &resource.target, cut);
    assert_eq!(resource.put_named("two").await.status, 502);
    let retry = resource.put_named("two").await;
    assert_eq!((retry.status, retry.header("idempotent-replayed")), (200, Some("true")));
    assert_eq!((retry.header("content-type"), retry.text()), (None, ""));
}

/// Rule 21: a status that says that nothing was done releases the key.
#[tokio::test]
async fn what_was_refused_is_judged_anew() {
    let scene = scene("").await;
    let resource = Resource::create(&scene, Mode::ContentShared, "anew").await;
    scene.backend.put(&resource.target, "elsewhere");
    resource.put_named("two").await.refused(412, "precondition-failed");
    scene.backend.put(&resource.target, "one");
    for refusal in [Answer::status(403), Answer::status(429), Answer::status(503).header("Retry-After", "1")] {
        scene.backend.once("PUT", &resource.target, refusal);
        let refused = resource.put_named("two").await;
        assert!(matches!(refused.status, 403 | 429 | 503) && refused.header("idempotent-replayed").is_none());
    }
    let last = resource.put_named("two").await;
    assert_eq!((last.status, last.header("idempotent-replayed")), (204, None));
}

/// Rule 21: a backend may have made the change that it answers with a failure, so the retry gets that answer, whether
/// the write replaces or appends.
#[tokio::test]
async fn a_failure_of_the_backend_is_replayed_and_no_retry_is_sent() {
    let scene = scene("on_write = \"probe\"").await;
    for mode in Mode::ALL {
        for status in [500, 501, 503, 505, 408, 499, 520] {
            let resource = Resource::create(&scene, mode, &status.to_string()).await;
            let failure = Answer::status(status).header("Content-Type", "text/plain").body("broken").applied();
            scene.backend.once("PUT", &resource.target, failure);
            let first = resource.put_named("two").await;
            assert_eq!((first.status, first.text()), (status, "broken"), "{mode:?}");
            let requests = resource.requests();
            assert_replayed(&resource.put_named("two").await, &first);
            assert_eq!(resource.requests(), requests, "{mode:?} {status}: the backend saw nothing of the retry");
        }
    }
    let orders = "/shared/orders";
    let post = || send(scene.proxy.addr(), "POST", orders, &[KEY], "one");
    scene.backend.once("POST", orders, Answer::status(500).applied());
    let first = post().await;
    assert_eq!(first.status, 500);
    assert_replayed(&post().await, &first);
    assert_eq!(scene.backend.count("POST", orders), 1);
}

/// An unclaimed write has no precondition that could keep its retry from being applied twice: the key alone does.
#[tokio::test]
async fn a_post_is_made_once_and_answered_twice() {
    let backend = Backend::start().await;
    let proxy = Proxy::to(backend.addr()).route(ACCEPT).start().await;
    let created = Answer::status(201).header("Location", "/orders/7").header("Set-Cookie", "a=b").body("{\"id\":7}");
    backend.always("POST", "/orders", move |_| created.clone());
    let post = || send(proxy.addr(), "POST", "/orders", &[KEY], "one");
    let first = post().await;
    let retry = post().await;
    assert_replayed(&retry, &first);
    assert_eq!((retry.header("location"), retry.text()), (Some("/orders/7"), "{\"id\":7}"));
    assert_eq!(retry.header("set-cookie"), None);
    assert_eq!(backend.count("POST", "/orders"), 1);
    send(proxy.addr(), "POST", "/orders", &[KEY], "two").await.refused(422, "idempotency-mismatch");
    assert_eq!(send(proxy.addr(), "POST", "/orders", &[], "one").await.status, 201);
}

/// A6, rule 21: after any change of the client's identity that the route does not declare, its retry is never sent.
#[tokio::test]
async fn a6_a_retry_with_another_cookie_or_token_is_not_applied_twice() {
    let backend = Backend::start().await;
    let proxy = Proxy::to(backend.addr()).route(ACCEPT).start().await;
    let first_cookies = ("Cookie", "session=a; _ga=1");
    let post =
        async |fields: &[(&str, &str)]| send(proxy.addr(), "POST", "/orders", &[fields, &[KEY]].concat(), "one").await;
    let first = post(&[first_cookies, ("Authorization", "Bearer 1")]).await;
    assert_eq!(first.status, 201);
    for changed in [
        &[("Cookie", "session=a; _ga=2"), ("Authorization", "Bearer 1")][..],
        &[first_cookies, ("Authorization", "Bearer 2")],
        &[first_cookies],
        &[],
    ] {
        let refused = post(changed).await;
        let problem = refused.refused(409, "idempotency-key-in-use");
        assert_eq!((problem.retry_after_seconds, refused.header("location")), (None, None), "{changed:?}");
    }
    assert_replayed(&post(&[first_cookies, ("Authorization", "Bearer 1")]).await, &first);
    assert_eq!(backend.count("POST", "/orders"), 1);
}

/// Fields that may differ between two attempts at one write.
const HARMLESS: [&str; 29] = [
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "B3",
    "Baggage",
    "Cache-Control",
    "CF-Ray",
    "Date",
    "DNT",
    "From",
    "Origin",
    "Pragma",
    "Prefer",
    "Priority",
    "Referer",
    "Sec-Fetch-Site",
    "Sentry-Trace",
    "Traceparent",
    "Tracestate",
    "User-Agent",
    "X-Amzn-Trace-Id",
    "X-Attempt",
    "X-B3-TraceId",
    "X-Correlation-Id",
    "X-Forwarded-For",
    "X-Meta",
    "X-Request-Id",
    "X-Request-Start",
    "X-Retry-Count",
];

/// Fields that make another write, each with a value that a guarded POST may have.
const MEANT: [(&str, &str); 9] = [
    ("Content-Type", "text/x-other"),
    ("Content-Encoding", "x-other"),
    ("Content-Language", "de"),
    ("Content-Disposition", "inline"),
    ("Content-Location", "/other"),
    ("Content-Other", "1"),
    ("If-None-Match", "\"other\""),
    ("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("If-Schedule-Tag-Match", "\"other\""),
];

/// A7, rule 21: each field that belongs to the attempt changes nothing, with any value, alone or with others. Each one
/// that belongs to the write makes it another write. The seed is printed for a failure.
#[tokio::test]
async fn a7_only_what_the_write_means_makes_it_another_one() {
    let backend = Backend::start().await;
    let route = format!("{ACCEPT}\nidentity_headers = [\"Cookie\"]\nidentity_cookies = [\"session\"]");
    let proxy = Proxy::to(backend.addr()).route(&route).start().await;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let post = async |fields: &[(&str, &str)]| {
        let common = [("Cookie", "session=a; _ga=1"), ("Content-Type", "text/plain"), KEY];
        let given = |name: &str| fields.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let common: Vec<_> = common.into_iter().filter(|(name, _)| !given(name)).collect();
        send(proxy.addr(), "POST", "/orders", &[&common, fields].concat(), "one").await
    };
    let first = post(&[("User-Agent", "first"), ("X-Correlation-Id", "1")]).await;
    assert_eq!(first.status, 201);
    for name in HARMLESS {
        assert_replayed(&post(&[(name, "another")]).await, &first);
    }
    assert_replayed(&post(&[("Cookie", "_ga=2; session=a; balancer=7")]).await, &first);
    for _ in 0..50 {
        let mut names = HARMLESS;
        random.shuffle(&mut names);
        let value = random.u64(..).to_string();
        let fields: Vec<(&str, &str)> = names.iter().take(random.usize(..8)).map(|name| (*name, &*value)).collect();
        assert_replayed(&post(&fields).await, &first);
    }
    for field in MEANT {
        post(&[field]).await.refused(422, "idempotency-mismatch");
    }
    assert_eq!(backend.count("POST", "/orders"), 1);
}

/// The SDKs of Azure give all attempts of an operation one name. One that signs nothing gets its answer. If each
/// attempt has a new signature, only the backend can check it, so the attempt counts as that of another client.
#[tokio::test]
async fn p5_a_retry_by_an_sdk_of_azure_gets_its_answer_in_azures_words() {
    let backend = Backend::with(Validators::Tags).await;
    let route = "policy = \"pessimistic\"\netag = \"upstream\"\nidempotency = \"accept\"\ndialect = \"azure\"";
    let proxy = Proxy::to(backend.addr()).route(route).start().await;
    let attempt = async |target: &str, fields: &[(&str, &str)]| {
        let common = [("x-ms-blob-type", "BlockBlob"), ("x-ms-client-request-id", "8e03978e"), ("If-None-Match", "*")];
        put(proxy.addr(), target, &[&common, fields].concat(), "one").await
    };
    let (date, later) =
        (("x-ms-date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("x-ms-date", "Sun, 06 Nov 1994 08:49:38 GMT"));
    let first = attempt("/container/blob", &[date]).await;
    assert_eq!(first.status, 201, "{first:?}");
    let retry = attempt("/container/blob", &[later]).await;
    assert_eq!((retry.status, retry.header("etag")), (201, first.header("etag")));
    assert_eq!(retry.header("idempotent-replayed"), Some("true"), "{retry:?}");

    let signed = |signature: &'static str| ("Authorization", signature);
    let first = attempt("/container/other", &[signed("SharedKey account:MQ=="), date]).await;
    assert_eq!(first.status, 201, "{first:?}");
    let retry = attempt("/container/other", &[signed("SharedKey account:MQ=="), date]).await;
    assert_eq!(retry.header("idempotent-replayed"), Some("true"), "{retry:?}");
    let redated = attempt("/container/other", &[signed("SharedKey account:MQ=="), later]).await;
    assert_eq!(redated.header("idempotent-replayed"), Some("true"), "{redated:?}");
    let anew = attempt("/container/other", &[signed("SharedKey account:Mg=="), later]).await;
    assert_eq!((anew.status, anew.header("x-ms-error-code")), (409, Some("ResourceAlreadyExists")));
    assert_eq!(backend.count("PUT", "*"), 2);
}

/// The draft, section 2.7.
#[tokio::test]
async fn a_write_without_a_key_is_refused_where_one_is_required() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let proxy = Proxy::to(backend.addr()).route("idempotency = \"required\"\nrequire = \"never\"").start().await;
    let addr: SocketAddr = proxy.addr();
    for method in ["PUT", "PATCH", "DELETE", "POST"] {
        send(addr, method, "/doc", &[], "two").await.refused(400, "idempotency-key-missing");
        let unreadable = send(addr, method, "/doc", &[("Idempotency-Key", "\"two")], "two").await;
        unreadable.refused(400, "malformed-request");
    }
    assert_eq!(backend.requests().len(), 0);
    assert_eq!(get(addr, "/doc").await.status, 200);
    assert_eq!(put(addr, "/doc", &[KEY], "two").await.status, 204);
}

#[tokio::test]
async fn a_success_is_replayed_for_a_time() {
    let scene = scene("idempotency_ttl = \"1s\"").await;
    let resource = Resource::create(&scene, Mode::ContentExclusive, "time").await;
    let first = resource.put_named("two").await;
    let end = Instant::now() + DEADLINE;
    while resource.put_named("two").await.status == first.status {
        assert!(Instant::now() < end, "it is replayed for ever");
        sleep(Duration::from_millis(50)).await;
    }
    resource.put_named("two").await.refused(412, "precondition-failed");
}

/// A backend may keep keys itself, and whole answers with them.
#[tokio::test]
async fn keys_are_the_backends_unless_the_route_says_otherwise() {
    let backend = Backend::start().await;
    let proxy = Proxy::to(backend.addr()).start().await;
    for _ in 0..2 {
        assert_eq!(send(proxy.addr(), "POST", "/orders", &[KEY], "one").await.header("idempotent-replayed"), None);
    }
    let seen = backend.seen("POST", "/orders");
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].headers.get("idempotency-key"), Some(KEY.1));
}
