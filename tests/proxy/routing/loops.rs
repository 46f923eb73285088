//! Requests that come back over other hosts, which `check` cannot see.

use std::net::SocketAddr;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    time::{Duration, Instant},
};

use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{get, send},
};

/// A host on the way: each connection to it goes on to the address that it gets later.
struct Host(TcpListener);

impl Host {
    async fn new() -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("its address");
        (Self(listener), addr)
    }

    fn leads_to(self, to: SocketAddr) {
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = self.0.accept().await {
                tokio::spawn(async move {
                    if let Ok(mut on) = TcpStream::connect(to).await {
                        let _ = copy_bidirectional(&mut stream, &mut on).await;
                    }
                });
            }
        });
    }
}

/// RFC 9110 section 7.6.3: a guarded write would wait for itself until `claim.max_wait`, and an unguarded request would
/// go round until its head is too large.
#[tokio::test]
async fn a_request_that_comes_back_is_refused_at_once() {
    for policy in ["policy = \"optimistic\"\nrequire = \"never\"", "policy = \"last-writer-wins\""] {
        let (host, addr) = Host::new().await;
        let inner = Proxy::to(addr).route(policy).start().await;
        let outer = Proxy::to(inner.addr()).route(policy).start().await;
        host.leads_to(outer.addr());
        let begun = Instant::now();
        for method in ["GET", "PUT", "POST", "OPTIONS"] {
            let body = if method == "PUT" || method == "POST" { "x" } else { "" };
            let refused = send(outer.addr(), method, "/doc", &[], body).await;
            assert_eq!(refused.status, 508, "{policy} {method}: {refused:?}");
            assert!(refused.text().contains("\"code\":\"loop-detected\""), "{policy} {method}: {refused:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "a write that waits for itself takes 30 s");
    }
}

/// One proxy behind another is no loop.
#[tokio::test]
async fn several_proxies_in_a_row_are_passed() {
    let backend = Backend::start().await;
    backend.always("*", "*", |_| Answer::status(204));
    let mut proxies: Vec<Proxy> = Vec::new();
    for _ in 0..3 {
        let next = proxies.last().map_or(backend.addr(), Proxy::addr);
        proxies.push(Proxy::to(next).route("policy = \"last-writer-wins\"").start().await);
    }
    assert_eq!(get(proxies[2].addr(), "/doc").await.status, 204);
    assert_eq!(backend.requests()[0].headers.all("via").len(), 3);
}
