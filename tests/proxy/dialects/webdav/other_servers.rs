//! litmus before servers that users have. What fails at the server itself fails through the proxy too, and nothing else.

use super::{ROUTE, litmus::run};
use crate::support::{file_servers::FileServer, proxy::Proxy};

/// These servers refuse PROPPATCH, by which three tests change what they have locked.
const NOT_OF_LOCKS: [&str; 3] = ["owner_modify"; 3];

/// Checks that the proxy takes nothing from a server, and that so many tests of locks run through it.
async fn assert_as_itself(server: &FileServer, locks_ran: usize) {
    let proxy = Proxy::to(server.addr()).route(ROUTE).start().await;
    for suite in ["basic", "copymove"] {
        let [itself, through] = [run(server.addr(), suite).await, run(proxy.addr(), suite).await];
        assert_eq!((through.ran, through.failed), (itself.ran, itself.failed), "{suite}:\n{}", through.text);
    }
    let locks = run(proxy.addr(), "locks").await;
    assert_eq!((locks.ran, &locks.failed[..]), (locks_ran, &NOT_OF_LOCKS.map(str::to_owned)[..]), "{}", locks.text);
}

#[tokio::test]
async fn nginx_with_dav_ext() {
    assert_as_itself(&FileServer::nginx().await, 41).await;
}

#[tokio::test]
async fn lighttpd() {
    assert_as_itself(&FileServer::lighttpd().await, 37).await;
}

#[tokio::test]
async fn rclone() {
    assert_as_itself(&FileServer::rclone().await, 41).await;
}
