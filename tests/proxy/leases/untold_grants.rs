//! Clients that go before they learn the id of their lease (DESIGN, section 3, rule 15).

use crate::support::{
    backend::Backend,
    leases::{leasing, reaches},
    raw::Connection,
};

const DOC: &str = "/doc";

/// Asks for a lease that never ends, and goes while the backend is asked for the document.
async fn go_before_the_answer(method: &str, target: &str, goes: impl FnOnce(Connection)) {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let proxy = leasing(&backend).route("lease.infinite = true\nlease.acquire_on_read = true").start().await;
    let asked = backend.hold_where(|request| request.target == DOC);
    let mut client = Connection::open(proxy.addr()).await;
    client.request(method, target, &[("Lease-Duration", "infinite")], "").await;
    let asked = asked.arrived().await;
    goes(client);
    let answer = asked.stored();
    asked.answer(answer).await;
    proxy.logged(&[&format!("method=\"{method}\"")]).await;
    reaches(proxy.addr(), DOC, "available").await;
}

/// Rule 15: no lease stands without a client that has its id.
#[tokio::test]
async fn a_client_that_goes_before_its_answer_leaves_no_lease() {
    for (method, target) in [("POST", "/.leases/doc"), ("GET", DOC)] {
        go_before_the_answer(method, target, drop).await;
        go_before_the_answer(method, target, Connection::reset).await;
    }
}
