//! `WebDAV` clients in front of a server without locks.

mod conditions;
mod folder_locks;
mod folders;
mod litmus;
mod locks;
mod mounts;
mod other_servers;
mod programs;
mod properties;
mod sequences;
mod two_proxies;

use std::net::SocketAddr;

use crate::support::{proxy::Proxy, raw::send, response::Response, wsgidav::Wsgidav};

/// A server without locks behind the proxy.
struct Share {
    server: Wsgidav,
    proxy: Proxy,
}

impl Share {
    async fn start() -> Self {
        Self::requiring("never").await
    }

    /// With this `require` in the route.
    async fn requiring(require: &str) -> Self {
        let server = Wsgidav::start().await;
        let route = ROUTE.replace("never", require);
        let proxy = Proxy::to(server.addr()).route(&route).start().await;
        Self { server, proxy }
    }

    fn addr(&self) -> SocketAddr {
        self.proxy.addr()
    }

    /// Creates a file.
    async fn create(&self, path: &str, content: &str) -> Response {
        let created = send(self.addr(), "PUT", path, &[], content).await;
        assert_eq!(created.status, 201, "{created:?}");
        created
    }

    /// Returns the content of the server at a path.
    fn content(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.server.root().join(path.trim_start_matches('/'))).ok()
    }
}

const ROUTE: &str = "policy = \"pessimistic\"\ndialect = \"webdav\"\netag = \"upstream\"\nrequire = \"never\"\n\
                     collections = \"detect\"";

/// The document that asks for a lock of this scope.
fn lock_info(scope: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:{scope}/></D:lockscope>\
         <D:locktype><D:write/></D:locktype><D:owner><D:href>mailto:me@example.com</D:href></D:owner></D:lockinfo>"
    )
}

async fn lock(addr: SocketAddr, path: &str, scope: &str, fields: &[(&str, &str)]) -> Response {
    send(addr, "LOCK", path, fields, lock_info(scope)).await
}

async fn unlock(addr: SocketAddr, path: &str, token: &str) -> u16 {
    send(addr, "UNLOCK", path, &[("Lock-Token", token)], "").await.status
}

/// The token of a lock, in its angle brackets.
#[track_caller]
fn token(locked: &Response) -> String {
    assert!(matches!(locked.status, 200 | 201), "{locked:?}");
    let token = locked.header("lock-token").expect("a token").to_owned();
    let bare = token.trim_start_matches('<').trim_end_matches('>');
    assert!(token.starts_with("<opaquelocktoken:") && locked.text().contains(bare), "{locked:?}");
    token
}

/// Checks that a refusal names this condition.
#[track_caller]
fn assert_condition(refused: &Response, status: u16, condition: &str) {
    assert_eq!(refused.status, status, "{refused:?}");
    assert!(refused.text().contains(&format!("<D:{condition}")), "{refused:?}");
    assert!(refused.header("proxy-status").is_some_and(|status| status.starts_with("ifmatch")), "{refused:?}");
}
