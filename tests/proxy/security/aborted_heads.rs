//! A client that goes away in the middle of a head, or sends none that could be read, is no error of the proxy.

use crate::support::{
    backend::Backend,
    proxy::Proxy,
    raw::{Connection, get},
};

#[tokio::test]
async fn an_aborted_head_is_no_error_in_the_log() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let proxy = Proxy::to(backend.addr()).start().await;
    for head in ["", "G", "GET / HTTP/1.1\r\nHost: a\r\n", "PUT /doc HTTP/1.1\r\nContent-Le", "PRI * HTTP/2.0\r\n\r\nS"]
    {
        for by_reset in [false, true] {
            let mut connection = Connection::open(proxy.addr()).await;
            connection.send_bytes(head).await;
            if by_reset {
                connection.reset();
            } else {
                connection.half_close().await;
                connection.closed().await;
            }
        }
    }
    // Its line is written after theirs would be.
    assert_eq!(get(proxy.addr(), "/doc").await.status, 200);
    assert_eq!(backend.count("GET", "/doc"), 1);
    let errors: Vec<String> = proxy.log().lines().filter(|line| line.contains("ERROR")).map(str::to_owned).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}
