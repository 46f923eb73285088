//! The stream that keeps a console up to date (docs/admin.md).

use std::{collections::BTreeMap, net::SocketAddr};

use serde_json::{Value, json};

use crate::support::{
    admin::{ask, look, problem, start, without_end},
    backend::Backend,
    events::Events,
    leases::{Grant, lease, release},
    proxy::Proxy,
    raw::{Connection, put},
    wait::within,
};

/// The state that a console has learned from a stream.
struct Watched {
    events: Events,
    parts: BTreeMap<String, Value>,
}

impl Watched {
    async fn open(admin: SocketAddr, target: &str) -> Self {
        Self { events: Events::open(admin, target, &[("Host", "localhost")]).await, parts: BTreeMap::new() }
    }

    /// Waits until what it knows is so.
    async fn until(&mut self, what: &str, is_so: impl Fn(&BTreeMap<String, Value>) -> bool) {
        while !is_so(&self.parts) {
            let event = self.events.next().await.unwrap_or_else(|| panic!("the stream ended before {what}"));
            self.parts.insert(event.name, event.data);
        }
    }
}

fn leases(parts: &BTreeMap<String, Value>) -> &[Value] {
    parts.get("leases").and_then(|part| part["leases"].as_array()).map_or(&[], Vec::as_slice)
}

#[tokio::test]
async fn a_stream_begins_with_every_part_and_goes_on_with_what_changes() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend)).await;
    let addr = proxy.addr();
    let mut watched = Watched::open(admin, "/watch?key=backend:/doc").await;
    let names = ["doubts", "history", "hot", "leases", "refusals", "routes", "servers", "state", "timeline"];
    watched.until("all parts", |parts| parts.keys().eq(names)).await;
    assert_eq!(watched.parts["state"]["store"]["writable"], true);
    assert_eq!(watched.parts["servers"]["servers"][0]["state"], "up");
    let fields = [("Lease-Duration", "60"), ("Lease-Holder", "ann")];
    let grant = Grant::of(&lease(addr, "POST", "/doc", &fields).await);
    watched.until("a lease", |parts| leases(parts).iter().any(|lease| lease["holder"] == "ann")).await;
    let age = |parts: &BTreeMap<String, Value>| leases(parts)[0]["age_ms"].as_u64().expect("an age");
    let before = age(&watched.parts);
    assert_eq!(lease(addr, "PUT", "/doc", &[("Lease-Id", &grant.id)]).await.status, 200);
    watched.until("its renewal", |parts| age(parts) > before).await;
    put(addr, "/doc", &[], "x").await.refused(412, "lease-id-missing");
    watched.until("the refusal", |parts| parts["timeline"]["refusals"][0]["code"] == "lease-id-missing").await;
    watched.until("its group", |parts| parts["refusals"]["groups"][0]["code"] == "lease-id-missing").await;
    assert!(!format!("{:?}", watched.parts).contains(&grant.id), "rule 11: the id is a secret");
    release(addr, "/doc", &grant.id).await;
    watched.until("the end of the lease", |parts| leases(parts).is_empty()).await;
}

#[tokio::test]
async fn a_stream_has_the_leases_of_its_prefix_alone() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend)).await;
    for path in ["/a/1", "/b/1"] {
        Grant::of(&lease(proxy.addr(), "POST", path, &[("Lease-Duration", "60")]).await);
    }
    let mut watched = Watched::open(admin, "/watch?prefix=backend:/b/").await;
    watched.until("a lease", |parts| !leases(parts).is_empty()).await;
    let keys: Vec<_> = leases(&watched.parts).iter().map(|lease| lease["key"].as_str()).collect();
    assert_eq!(keys, [Some("backend:/b/1")]);
}

/// Rule 13: each stream holds a connection, and there are not many.
#[tokio::test]
async fn a_seventeenth_console_waits_until_another_is_closed() {
    let backend = Backend::start().await;
    let (_proxy, admin) = start(&without_end(&backend)).await;
    let mut open = Vec::new();
    for _ in 0..16 {
        open.push(Watched::open(admin, "/watch").await);
    }
    assert_eq!(problem(&look(admin, "/watch").await, 503), "too-many-watchers");
    open.pop();
    // The listener finds out that a connection is closed when it writes to it, or reads from it.
    within("a place", async { while look_at_head(admin).await != 200 {} }).await;
}

/// The status of a stream, which is closed at once.
async fn look_at_head(admin: SocketAddr) -> u16 {
    let mut connection = Connection::open(admin).await;
    connection.request("GET", "/watch", &[("Host", "localhost")], "").await;
    connection.read_head().await.0
}

#[tokio::test]
async fn the_history_names_its_counts() {
    let backend = Backend::start().await;
    let (_proxy, admin) = start(&Proxy::to(backend.addr())).await;
    let history = ask(admin, "/history").await;
    assert_eq!(history["meanings"], json!(["passed", "local", "conflicts", "refused", "failures"]));
    assert!(history["minute_age_ms"].is_u64() && history["routes"].is_array(), "{history}");
}
