//! Tests of probes: the question to the upstream, and the answers that show a state (DESIGN, section 4, "Probe").

use http::Method;

use super::testing::Fixture;
use crate::{
    core::policy::{GuardRules, Require},
    testing::guard,
};

async fn start() -> Fixture {
    Fixture::with(GuardRules { require: Require::Never, ..guard() }).await
}

/// Rule 2: a cache between the proxy and the backend may hold an earlier state.
#[tokio::test]
async fn a_probe_takes_nothing_from_a_cache() {
    let fixture = start().await;
    let tag = fixture.tag().await;
    assert_eq!(fixture.put(&tag, "two").await.status, 204);
    let reads = fixture.reads().await;
    let [client, probes @ ..] = reads.as_slice() else { panic!("nothing was read") };
    assert!(!client.contains("cache-control:"), "{client}");
    assert!(!probes.is_empty() && probes.iter().all(|probe| probe.contains("\r\ncache-control: no-cache\r\n")));
}

/// A redirect shows no state, so `If-Match: *` does not pass.
#[tokio::test]
async fn a_redirect_is_no_representation() {
    let fixture = start().await;
    fixture
        .answer_reads(|_| "HTTP/1.1 301 Moved Permanently\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n".to_owned())
        .await;
    let refused = fixture.send(Method::PUT, "If-Match: *\r\n", "two").await;
    assert_eq!((refused.status, fixture.writes()), (502, 0), "{}", refused.body);
}

/// The servers of an upstream may briefly differ. Before the write, any of them will do.
#[tokio::test]
async fn what_was_written_is_read_back_from_the_server_that_it_went_to() {
    let fixture = start().await;
    assert_eq!(fixture.send(Method::PUT, "", "two").await.status, 204);
    assert_eq!(fixture.read_from(), [Some(0)]);
}
