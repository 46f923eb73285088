//! Lease operations in the native dialect, for scenarios about leases.

use std::net::SocketAddr;

use super::{
    backend::Backend,
    proxy::{Proxy, Setup},
    raw::send,
    response::Response,
    wait::until,
};

/// Three ids that clients may choose: UUIDs of version 4.
pub const IDS: [&str; 3] = [
    "11111111-1111-4111-8111-111111111111",
    "22222222-2222-4222-8222-222222222222",
    "33333333-3333-4333-8333-333333333333",
];

/// A lease that was granted.
#[derive(Clone, Debug)]
pub struct Grant {
    pub id: String,
    pub fence: u64,
}

impl Grant {
    /// Returns the grant in a response.
    #[track_caller]
    pub fn of(response: &Response) -> Self {
        let id = response.header("lease-id").unwrap_or_else(|| panic!("a grant has an id: {response:?}"));
        Self { id: id.to_owned(), fence: fence(response) }
    }
}

/// The `Fencing-Token` of a response.
#[track_caller]
pub fn fence(response: &Response) -> u64 {
    let token = response.header("fencing-token").unwrap_or_else(|| panic!("there is a fence in {response:?}"));
    token.parse().expect("a number")
}

/// A pessimistic route for every path to this backend, with leases from one second on.
pub fn leasing(backend: &Backend) -> Setup {
    Proxy::to(backend.addr()).route("policy = \"pessimistic\"\nlease.min = \"1s\"")
}

/// The same, where tags are versions.
pub fn leasing_versions(backend: &Backend) -> Setup {
    leasing(backend).route("etag = \"version\"\nother_writers = false")
}

/// A request about the lease of a target.
pub async fn lease(addr: SocketAddr, method: &str, target: &str, fields: &[(&str, &str)]) -> Response {
    send(addr, method, &format!("/.leases{target}"), fields, "").await
}

/// Acquires the lease of a target.
pub async fn acquire(addr: SocketAddr, target: &str, duration: &str) -> Grant {
    let response = lease(addr, "POST", target, &[("Lease-Duration", duration)]).await;
    assert_eq!(response.status, 201, "{response:?}");
    Grant::of(&response)
}

/// Releases the lease of a target.
pub async fn release(addr: SocketAddr, target: &str, id: &str) {
    let response = lease(addr, "DELETE", target, &[("Lease-Id", id)]).await;
    assert_eq!(response.status, 204, "{response:?}");
}

/// Returns the view of the lease of a target.
pub async fn view(addr: SocketAddr, target: &str) -> serde_json::Value {
    let response = lease(addr, "GET", target, &[]).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.headers.all("content-type"), ["application/json"]);
    assert_eq!(response.headers.all("cache-control"), ["no-store"]);
    serde_json::from_slice(&response.body).expect("JSON")
}

/// Waits until a client that has asked this proxy for a held lease is in the line for it. The proxy has one thread
/// ([`Setup::on_one_thread`]), which answers those who come later, later.
pub async fn is_in_line(addr: SocketAddr, target: &str) {
    for _ in 0..3 {
        assert_eq!(view(addr, target).await["state"], "leased");
    }
}

/// Waits until the lease of a target is in a state.
pub async fn reaches(addr: SocketAddr, target: &str, state: &str) {
    let end = tokio::time::Instant::now() + super::wait::DEADLINE;
    loop {
        let now = view(addr, target).await;
        if now["state"] == state {
            return;
        }
        assert!(tokio::time::Instant::now() < end, "{target} does not become {state}: {now}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// PUT with a lease.
pub async fn put_with(addr: SocketAddr, target: &str, id: &str, body: &str) -> Response {
    send(addr, "PUT", target, &[("Lease-Id", id)], body).await
}

/// Checks that a secret is nowhere in a response.
#[track_caller]
pub fn assert_silent_about(id: &str, response: &Response) {
    let all = format!("{:?} {}", response.headers, String::from_utf8_lossy(&response.body)).to_lowercase();
    assert!(!all.contains(id) && !all.contains(&id.replace('-', "")), "the id is told in {response:?}");
}

/// Checks that a secret is nowhere in the log of a proxy that has logged all its requests up to `marker`.
pub async fn assert_absent_from_log(proxy: &Proxy, id: &str, marker: &str) {
    until("the log to have the last request", || proxy.log().contains(marker)).await;
    let log = proxy.log().to_lowercase();
    assert!(!log.contains(id) && !log.contains(&id.replace('-', "")), "the id is in the log");
}
