//! Two proxies with one store are one server of locks.

use std::{net::SocketAddr, process::Command};

use tempfile::TempDir;

use super::{ROUTE, litmus, lock, token, unlock};
use crate::{
    stores::shared_store::{addrs, pair},
    support::{
        child::Child,
        engines::{Engine, Etcd},
        nginx::Nginx,
        proxy::Proxy,
        raw::{get, put, send},
        response::Response,
        wsgidav::Wsgidav,
    },
};

const WRITERS: usize = 32;
const ROUNDS: usize = 20;

/// Two proxies on one store.
struct Pair {
    _engine: Engine,
    proxies: [Proxy; 2],
}

impl Pair {
    async fn before(server: SocketAddr, engine: Engine) -> Self {
        let proxies = pair(&engine, Proxy::to(server).route(ROUTE)).await;
        Self { _engine: engine, proxies }
    }
}

/// A haproxy that gives each request to the next of two proxies.
struct RoundRobin {
    _child: Child,
    _directory: TempDir,
    addr: SocketAddr,
}

impl RoundRobin {
    async fn before([one, other]: [SocketAddr; 2]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("haproxy.cfg");
        let (addr, child) = Child::on_free_port("haproxy", &directory.path().join("log"), |addr| {
            let text = format!(
                "defaults\n  mode http\n  timeout connect 5s\n  timeout client 50s\n  timeout server 50s\n\
                 listen all\n  bind {addr}\n  balance roundrobin\n  server one {one}\n  server other {other}\n"
            );
            std::fs::write(&file, text).expect("a file");
            let mut command = Command::new("haproxy");
            command.arg("-db").arg("-f").arg(&file);
            command
        })
        .await;
        Self { _child: child, _directory: directory, addr }
    }
}

/// A lock that one proxy has granted is refreshed, heeded and given up at the other.
#[tokio::test]
async fn litmus_locks_are_those_of_one_server() {
    for engine in Engine::all().await {
        println!("{}", engine.name());
        let server = Wsgidav::start().await;
        let pair = Pair::before(server.addr(), engine).await;
        let front = RoundRobin::before(addrs(&pair.proxies)).await;
        litmus::assert_fails_at(front.addr, "locks", 41, &[]).await;
        for proxy in &pair.proxies {
            for method in ["LOCK", "UNLOCK", "PUT"] {
                proxy.logged(&["ifmatch::access", &format!("method=\"{method}\"")]).await;
            }
        }
    }
}

/// How a writer replaces the document by what it has read with its own line.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// A PUT, if the document has still the tag.
    Tag,
    /// A COPY of a file of its own onto the document, if that has still the tag.
    Copy,
    /// A PUT under a lock.
    Lock,
    /// A COPY under a lock.
    CopyUnderLock,
}

const WAYS: [Way; 4] = [Way::Tag, Way::Copy, Way::Lock, Way::CopyUnderLock];

/// Tries once to add the line of a writer to a document. Returns whether the writer was told that it did.
async fn add(addr: SocketAddr, target: &str, writer: usize, seen: Response) -> bool {
    let way = WAYS[writer % WAYS.len()];
    let (held, seen) = match way {
        Way::Tag | Way::Copy => (None, seen),
        Way::Lock | Way::CopyUnderLock => {
            let locked = lock(addr, target, "exclusive", &[]).await;
            if locked.status != 200 {
                assert!(matches!(locked.status, 423 | 503), "{locked:?}");
                return false;
            }
            (Some(token(&locked)), get(addr, target).await)
        }
    };
    assert_eq!(seen.status, 200, "{seen:?}");
    let content = format!("{}{writer}\n", seen.text());
    let condition = held.clone().unwrap_or_else(|| format!("[{}]", seen.etag()));
    let url = format!("http://test{target}");
    let answer = match way {
        Way::Tag | Way::Lock => put(addr, target, &[("If", &format!("({condition})"))], content).await,
        Way::Copy | Way::CopyUnderLock => {
            let source = format!("{target}-{writer}");
            assert_eq!(put(addr, &source, &[], content).await.status, 201);
            let fields = [("Destination", url.as_str()), ("If", &format!("<{url}> ({condition})"))];
            send(addr, "COPY", &source, &fields, "").await
        }
    };
    if let Some(held) = held {
        assert_eq!(unlock(addr, target, &held).await, 204);
        // Its holder may meet the write of another that has begun before.
        assert!(matches!(answer.status, 204 | 503), "{way:?}: {answer:?}");
    }
    assert!(matches!(answer.status, 204 | 412 | 423 | 503), "{way:?}: {answer:?}");
    answer.status == 204
}

/// Rule 1: of all writers, by tags and by locks, by PUT and by COPY, none replaces what it has not seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_copies_locks_and_tags_through_two_proxies_no_update_is_lost() {
    let server = Nginx::with_etags().await;
    let pair = Pair::before(server.addr(), Engine::Etcd(Etcd::start().await)).await;
    let addrs = addrs(&pair.proxies);
    for round in 0..ROUNDS {
        let target = format!("/document-{round}");
        assert_eq!(put(addrs[0], &target, &[], "").await.status, 201);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (addr, target) = (addrs[writer % 2], target.clone());
                tokio::spawn(async move {
                    let seen = get(addr, &target).await;
                    (writer, add(addr, &target, writer, seen).await)
                })
            })
            .collect();
        let mut told = Vec::new();
        for writer in writers {
            let (writer, is_told) = writer.await.expect("no panic");
            told.extend(is_told.then(|| writer.to_string()));
        }
        let content = std::fs::read_to_string(server.root().join(&target[1..])).expect("the document");
        let mut there: Vec<&str> = content.lines().collect();
        there.sort_unstable();
        told.sort_unstable();
        assert!(!told.is_empty(), "round {round}: somebody writes");
        assert_eq!(there, told, "round {round}: nobody is told of a success that is lost");
    }
}
