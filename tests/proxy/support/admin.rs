//! The admin listener of a proxy.

use std::net::SocketAddr;

use serde_json::Value;

use super::{
    backend::Backend,
    leases::leasing,
    proxy::{Proxy, Setup},
    raw::send,
    response::Response,
    wait::until_some,
};

/// The fields that a tool sends with a request that changes something.
pub const TOOL: [(&str, &str); 3] =
    [("Host", "localhost"), ("Ifmatch-Admin", "1"), ("Content-Type", "application/json")];

/// A pessimistic route for every path to this backend, whose leases may have no end.
pub fn without_end(backend: &Backend) -> Setup {
    leasing(backend).route("lease.infinite = true\nlease.absent = \"allow\"")
}

/// Returns a proxy with an admin listener, and the address of the listener.
pub async fn start(setup: &Setup) -> (Proxy, SocketAddr) {
    start_with(setup, "", &[]).await
}

/// The same with more lines in `[admin]`, and variables in its environment.
pub async fn start_with(setup: &Setup, lines: &str, variables: &[(&str, &str)]) -> (Proxy, SocketAddr) {
    start_of_with(&setup.configuration(), lines, variables).await
}

/// The same with this configuration.
pub async fn start_of(configuration: &str) -> (Proxy, SocketAddr) {
    start_of_with(configuration, "", &[]).await
}

async fn start_of_with(configuration: &str, lines: &str, variables: &[(&str, &str)]) -> (Proxy, SocketAddr) {
    let table = format!("\n[admin]\nlisten = \"127.0.0.1:0\"\n{lines}\n");
    let proxy = Proxy::start_with(&(configuration.to_owned() + &table), variables).await;
    let addr = until_some("the admin listener to be told of", || {
        let log = proxy.log();
        let (_, rest) = log.split_once("admin listener listen=\"")?;
        Some(rest.split_once('"')?.0.parse().expect("an address"))
    })
    .await;
    (proxy, addr)
}

/// GET, as a tool on this machine does.
pub async fn look(addr: SocketAddr, target: &str) -> Response {
    send(addr, "GET", target, &[("Host", "localhost")], "").await
}

/// The JSON of a GET.
pub async fn ask(addr: SocketAddr, target: &str) -> Value {
    let response = look(addr, target).await;
    assert_eq!(response.status, 200, "{response:?}");
    serde_json::from_slice(&response.body).expect("JSON")
}

/// POST of JSON, as a tool on this machine does.
pub async fn tell(addr: SocketAddr, target: &str, document: &Value) -> Response {
    send(addr, "POST", target, &TOOL, document.to_string()).await
}

/// The JSON of a POST.
pub async fn told(addr: SocketAddr, target: &str, document: &Value) -> Value {
    let response = tell(addr, target, document).await;
    assert_eq!(response.status, 200, "{response:?}");
    serde_json::from_slice(&response.body).expect("JSON")
}

/// The code of a problem document.
#[track_caller]
pub fn problem(response: &Response, status: u16) -> String {
    assert_eq!(response.status, status, "{response:?}");
    assert_eq!(response.headers.all("content-type"), ["application/problem+json"]);
    let document: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(document["status"], status);
    document["code"].as_str().expect("a code").to_owned()
}
