//! The clients that get the answer of a keyed write: the declared identity, after the backend has let its credentials
//! read.

use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::send,
    response::{Response, assert_replayed},
};

const KEY: (&str, &str) = ("Idempotency-Key", "\"8e03978e-40d5-43e6-bc93-6e38a6e9e3e4\"");
const BY_USER: &str = "idempotency = \"accept\"\nidentity_headers = [\"X-User\"]";

async fn post(proxy: &Proxy, target: &str, user: &str, token: &str, body: &str) -> Response {
    let fields = [("X-User", user), ("Authorization", token), KEY];
    send(proxy.addr(), "POST", target, &fields, body).await
}

/// Rule 21: the token was renewed. The backend says whether the new one may still read.
#[tokio::test]
async fn a_retry_with_a_renewed_token_gets_its_answer_if_the_backend_lets_it_read() {
    for (read, expected) in [(200, 201), (204, 201), (401, 401), (403, 403), (404, 404), (410, 410)] {
        let backend = Backend::start().await;
        let proxy = Proxy::to(backend.addr()).route(BY_USER).start().await;
        backend.always("POST", "/orders", |_| Answer::status(201).header("Location", "/orders/7"));
        backend.always("GET", "/orders", move |_| Answer::status(read));
        let first = post(&proxy, "/orders", "ann", "1", "one").await;
        assert_eq!((first.status, backend.count("GET", "/orders")), (201, 0));
        assert_replayed(&post(&proxy, "/orders", "ann", "1", "one").await, &first);
        assert_eq!(backend.count("GET", "/orders"), 0, "the backend has taken a write with these credentials");
        let retry = post(&proxy, "/orders", "ann", "2", "one").await;
        assert_eq!((retry.status, backend.count("GET", "/orders")), (expected, 1), "{read} {retry:?}");
        let location = (expected == 201).then_some("/orders/7");
        assert_eq!(retry.header("location"), location, "{read}: nobody else is told what was made");
        let asked = backend.seen("GET", "/orders");
        assert_eq!((asked[0].headers.get("authorization"), asked[0].headers.get("idempotency-key")), (Some("2"), None));
        assert_eq!(backend.count("POST", "/orders"), 1);
    }
}

/// Rule 21: a backend whose answer to GET does not tell, or that gives none, lets no client read.
#[tokio::test]
async fn a_retry_with_a_renewed_token_is_refused_if_the_backend_does_not_tell() {
    for (read, status, code) in [
        (302, 409, "idempotency-key-in-use"),
        (405, 409, "idempotency-key-in-use"),
        (500, 502, "validator-unavailable"),
        (504, 504, "upstream-timeout"),
    ] {
        let backend = Backend::start().await;
        let proxy = Proxy::to(backend.addr()).route(BY_USER).start().await;
        backend.always("POST", "/orders", |_| Answer::status(201).header("Location", "/orders/7"));
        backend.always("GET", "/orders", move |_| Answer::status(read));
        assert_eq!(post(&proxy, "/orders", "ann", "1", "one").await.status, 201);
        post(&proxy, "/orders", "ann", "2", "one").await.refused(status, code);
        assert_eq!(backend.count("POST", "/orders"), 1);
    }
}

/// Rule 21: two honest clients that choose one key by chance, and one that has guessed it. Neither learns more than that
/// the key is in use, even of a write that failed or has another body.
#[tokio::test]
async fn the_key_of_another_client_is_in_use_and_its_write_stays_unknown() {
    let backend = Backend::start().await;
    let proxy = Proxy::to(backend.addr()).route(BY_USER).start().await;
    backend.once("POST", "/failed", Answer::status(500));
    assert_eq!(post(&proxy, "/failed", "ann", "1", "one").await.status, 500);
    post(&proxy, "/failed", "bob", "1", "one").await.refused(409, "idempotency-key-in-use");
    backend.once("POST", "/orders", Answer::status(403));
    assert_eq!(post(&proxy, "/orders", "ann", "1", "one").await.status, 403);
    assert_eq!(post(&proxy, "/orders", "bob", "1", "two").await.status, 201, "the first write came to nothing");
    for body in ["one", "two"] {
        post(&proxy, "/orders", "ann", "1", body).await.refused(409, "idempotency-key-in-use");
    }
    assert_eq!(post(&proxy, "/others", "ann", "1", "one").await.status, 201, "another resource has its own keys");
    let held = backend.hold("POST", "/held");
    let first = tokio::spawn({
        let addr = proxy.addr();
        async move { send(addr, "POST", "/held", &[("X-User", "ann"), KEY], "one").await }
    });
    let held = held.arrived().await;
    let problem = post(&proxy, "/held", "bob", "1", "one").await.refused(409, "idempotency-key-in-use");
    assert_eq!((problem.retry_after_seconds, problem.in_doubt), (None, false), "{}", problem.detail);
    held.answer(Answer::status(201)).await;
    assert_eq!(first.await.unwrap().status, 201);
    assert_eq!(backend.count("POST", "/held"), 1);
}

/// A probe with the proxy's own credentials, or with none, says nothing of the client.
#[tokio::test]
async fn a_probe_without_the_clients_credentials_grants_nothing() {
    let backend = Backend::start().await;
    backend.put("/orders", "open to the proxy");
    let proxy = Proxy::to(backend.addr()).route(&format!("{BY_USER}\nprobe_auth = \"none\"")).start().await;
    assert_eq!(post(&proxy, "/orders", "ann", "1", "one").await.status, 204);
    post(&proxy, "/orders", "ann", "2", "one").await.refused(409, "idempotency-key-in-use");
    assert_eq!((backend.count("GET", "/orders"), backend.count("POST", "/orders")), (0, 1));
}
