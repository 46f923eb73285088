//! A lease that a stream holds at one proxy, broken and taken up at another.

use super::shared_store::{addrs, pair};
use crate::support::{
    backend::Backend,
    engines::Engine,
    events::Events,
    leases::{lease, leasing_versions, reaches},
};

const DOC: &str = "/doc";
const LEASE: &str = "/.leases/doc";

#[tokio::test]
async fn a_break_at_one_proxy_is_told_at_the_other_at_once() {
    for engine in Engine::all().await {
        let backend = Backend::start().await;
        backend.put(DOC, "one");
        let options = "lease.client_break = true\nlease.auth = \"none\"";
        let proxies = pair(&engine, leasing_versions(&backend).route(options)).await;
        let [one, other] = addrs(&proxies);
        let mut events = Events::post(one, LEASE, &[("Lease-Duration", "60")]).await;
        let granted = events.expect("granted").await;
        assert_eq!(lease(other, "DELETE", DOC, &[("Lease-Break-Period", "0")]).await.status, 202);
        assert_eq!(events.expect("lost").await.data["reason"], "broken", "{}", engine.name());
        let mut next = Events::post(other, LEASE, &[]).await;
        assert!(next.expect("granted").await.data["fence"].as_u64() > granted.data["fence"].as_u64());
    }
}

/// The keeper at the first proxy neither renews nor releases what the client holds at the second one.
#[tokio::test]
async fn a_client_takes_its_lease_up_at_another_proxy() {
    for engine in Engine::all().await {
        let backend = Backend::start().await;
        backend.put(DOC, "one");
        let options = "lease.linger = \"1s\"\nlease.auth = \"none\"";
        let proxies = pair(&engine, leasing_versions(&backend).route(options)).await;
        let [one, other] = addrs(&proxies);
        let mut first = Events::post(one, LEASE, &[("Lease-Duration", "60")]).await;
        let granted = first.expect("granted").await;
        let id = granted.data["id"].as_str().expect("an id");
        let mut second = Events::post(other, LEASE, &[("Lease-Duration", "60"), ("Lease-Id", id)]).await;
        assert_eq!(second.expect("granted").await, granted, "{}", engine.name());
        assert_eq!(first.expect("lost").await.data["reason"], "taken-up", "{}", engine.name());
        drop(first);
        reaches(one, DOC, "leased").await;
        drop(second);
        reaches(one, DOC, "available").await;
    }
}
