//! A limit of the sizes of files (`LimitFSIZE`, `ulimit -f`): the system signals each write beyond it.

use crate::support::{backend::Backend, proxy::Proxy, raw::put};

/// The log of the test is a file too, and stays below.
const LIMIT_BYTES: usize = 1 << 20;

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_and_the_process_goes_on() {
    let backend = Backend::start().await;
    let setup = Proxy::to(backend.addr()).server("max_body_memory = \"64KiB\"").route("require = \"never\"");
    let wrapper = ["prlimit".to_owned(), format!("--fsize={LIMIT_BYTES}")];
    let proxy = Proxy::start_under(&setup.configuration(), &[], &wrapper).await;
    put(proxy.addr(), "/large", &[], "x".repeat(2 * LIMIT_BYTES)).await.refused(503, "overloaded");
    assert_eq!(backend.count("PUT", "/large"), 0, "rule 4");
    assert_eq!(put(proxy.addr(), "/small", &[], "one").await.status, 201);
}
