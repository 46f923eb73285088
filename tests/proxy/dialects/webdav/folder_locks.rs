//! LOCK and UNLOCK of folders, and the requests that such locks keep off.

use std::net::SocketAddr;

use super::{ROUTE, Share, assert_condition, lock, token, unlock};
use crate::{
    stores::shared_store::{addrs, pair},
    support::{
        engines::Engine,
        proxy::Proxy,
        raw::{get, put, send},
        wsgidav::Wsgidav,
    },
};

const DEEP: &[(&str, &str)] = &[("Depth", "infinity")];
const FLAT: &[(&str, &str)] = &[("Depth", "0")];

async fn create_folder(addr: SocketAddr) {
    for folder in ["/d", "/d/e"] {
        assert_eq!(send(addr, "MKCOL", folder, &[], "").await.status, 201);
    }
    for file in ["/d/one", "/d/e/two", "/other"] {
        assert_eq!(put(addr, file, &[], file).await.status, 201);
    }
}

async fn share() -> Share {
    let share = Share::start().await;
    create_folder(share.addr()).await;
    share
}

async fn write_status(addr: SocketAddr, path: &str, fields: &[(&str, &str)]) -> u16 {
    put(addr, path, fields, "new").await.status
}

/// Rule 10: a lock of a folder is one of all that is in it, and of what arrives there.
#[tokio::test]
async fn a_lock_of_a_folder_covers_all_in_it() {
    let share = share().await;
    let addr = share.addr();
    let locked = lock(addr, "/d", "exclusive", DEEP).await;
    let token = token(&locked);
    assert!(locked.text().contains("<D:depth>infinity</D:depth>"), "{locked:?}");
    for path in ["/d/one", "/d/e/two", "/d/new", "/d/e/new"] {
        assert_condition(&put(addr, path, &[], "lost").await, 423, "lock-token-submitted><D:href>/d</D:href>");
    }
    assert_eq!(send(addr, "MKCOL", "/d/f", &[], "").await.status, 423);
    assert_eq!(send(addr, "DELETE", "/d/e/", &[], "").await.status, 423);
    let conflict = lock(addr, "/d/e", "exclusive", DEEP).await;
    assert_condition(&conflict, 423, "no-conflicting-lock><D:href>/d</D:href>");
    assert_eq!(lock(addr, "/d/absent", "shared", FLAT).await.status, 423);
    assert_eq!(get(addr, "/d/absent").await.status, 404, "nothing was created");
    let submitted = format!("({token})");
    let tagged = format!("<http://{addr}/d/e/two> ({token})");
    assert_eq!(write_status(addr, "/d/one", &[("If", &submitted)]).await, 204);
    assert_eq!(write_status(addr, "/d/e/two", &[("If", &tagged), ("Host", &addr.to_string())]).await, 204);
    let leave = [("Destination", "/one"), ("If", submitted.as_str())];
    assert_eq!(send(addr, "MOVE", "/d/one", &leave, "").await.status, 201);
    assert_eq!(write_status(addr, "/one", &[]).await, 204, "a lock does not travel");
    assert_eq!(send(addr, "MOVE", "/other", &[("Destination", "/d/other")], "").await.status, 423);
    let arrive = format!("</d/> ({token})");
    let arrive = [("Destination", "/d/other"), ("If", arrive.as_str())];
    assert_eq!(send(addr, "MOVE", "/other", &arrive, "").await.status, 201);
    assert_eq!(write_status(addr, "/d/other", &[]).await, 423, "what arrives is locked");
    assert_eq!(unlock(addr, "/d", &token).await, 204);
    assert_eq!(write_status(addr, "/d/other", &[]).await, 204);
}

/// RFC 4918 section 9.10.2 and 9.11: a request from any place in its scope counts.
#[tokio::test]
async fn a_lock_of_a_folder_is_seen_refreshed_and_given_up_at_its_files() {
    let share = share().await;
    let addr = share.addr();
    let token = token(&lock(addr, "/d", "exclusive", &[DEEP, &[("Timeout", "Second-100")]].concat()).await);
    let bare = token.trim_matches(['<', '>']);
    let ask = async |path: &str, depth: &str| {
        let question = "<?xml version=\"1.0\"?><D:propfind xmlns:D=\"DAV:\"><D:prop><D:lockdiscovery/><D:supportedlock/>\
                        </D:prop></D:propfind>";
        send(addr, "PROPFIND", path, &[("Depth", depth)], question).await.text().to_owned()
    };
    for (path, depth, locks) in [("/d/e/two", "0", 1), ("/d/", "1", 3), ("/other", "0", 0)] {
        let told = ask(path, depth).await;
        assert_eq!(told.matches(bare).count(), locks, "{path}: {told}");
        assert!(told.contains("<D:exclusive/>"), "{path} can be locked: {told}");
        assert_eq!(told.matches("<D:lockroot><D:href>/d").count(), locks, "{path}: {told}");
    }
    let submitted = format!("({token})");
    let refresh = [("If", submitted.as_str()), ("Timeout", "Second-3000")];
    let refreshed = send(addr, "LOCK", "/d/e/two", &refresh, "").await;
    assert_eq!(refreshed.status, 200, "{refreshed:?}");
    for part in [bare, "<D:lockroot><D:href>/d<"] {
        assert!(refreshed.text().contains(part), "{part}: {refreshed:?}");
    }
    assert!(["Second-2", "Second-3"].iter().any(|time| refreshed.text().contains(time)), "{refreshed:?}");
    assert_eq!(unlock(addr, "/other", &token).await, 409, "it is out of scope");
    assert_eq!(unlock(addr, "/d/e/two", &token).await, 204);
    assert_eq!(write_status(addr, "/d/one", &[]).await, 204);
}

/// RFC 4918 section 9.10.9.
#[tokio::test]
async fn a_locked_file_keeps_its_folder_from_being_locked() {
    let share = share().await;
    let addr = share.addr();
    let of_file = token(&lock(addr, "/d/e/two", "shared", &[]).await);
    let refused = lock(addr, "/d/", "exclusive", DEEP).await;
    assert_eq!(refused.status, 207, "{refused:?}");
    for part in ["/d/e/two</D:href><D:status>HTTP/1.1 423", "/d/</D:href><D:status>HTTP/1.1 424"] {
        assert!(refused.text().contains(part), "{refused:?}");
    }
    assert_eq!(write_status(addr, "/d/one", &[]).await, 204, "nothing is left of it");
    let shared = token(&lock(addr, "/d/", "shared", DEEP).await);
    assert_eq!(unlock(addr, "/d/e/two", &of_file).await, 204);
    assert_eq!(write_status(addr, "/d/e/two", &[]).await, 423);
    assert_eq!(unlock(addr, "/d/", &shared).await, 204);
}

/// RFC 4918 sections 7.4 and 7.5: a lock of depth 0 guards the list of members, and not their content.
#[tokio::test]
async fn a_flat_lock_of_a_folder_guards_its_list() {
    let share = share().await;
    let addr = share.addr();
    let token = token(&lock(addr, "/d", "exclusive", FLAT).await);
    assert_eq!(write_status(addr, "/d/one", &[]).await, 204);
    assert_eq!(write_status(addr, "/d/e/new", &[]).await, 201);
    assert_condition(&put(addr, "/d/new", &[], "lost").await, 423, "lock-token-submitted><D:href>/d</D:href>");
    let locked = lock(addr, "/d/new", "exclusive", &[]).await;
    assert_condition(&locked, 423, "lock-token-submitted><D:href>/d</D:href>");
    assert_eq!(send(addr, "MKCOL", "/d/f", &[], "").await.status, 423);
    assert_eq!(send(addr, "DELETE", "/d/one", &[], "").await.status, 423);
    assert_eq!(send(addr, "COPY", "/other", &[("Destination", "/d/copy")], "").await.status, 423);
    assert_eq!(send(addr, "MOVE", "/d/one", &[("Destination", "/one")], "").await.status, 423);
    assert_eq!(share.content("/d/new"), None);
    let submitted = format!("</d> ({token})");
    assert_eq!(write_status(addr, "/d/new", &[("If", &submitted)]).await, 201);
    assert_eq!(lock(addr, "/d/newer", "exclusive", &[("If", &submitted)]).await.status, 201);
    assert_eq!(send(addr, "DELETE", "/d/one", &[("If", &submitted)], "").await.status, 204);
    assert_eq!(unlock(addr, "/d", &token).await, 204);
}

/// A locked folder that is removed takes its lock along.
#[tokio::test]
async fn the_lock_of_a_folder_ends_with_it() {
    let share = share().await;
    let addr = share.addr();
    let token = token(&lock(addr, "/d", "exclusive", DEEP).await);
    let submitted = format!("({token})");
    assert_eq!(send(addr, "DELETE", "/d/", &[("If", &submitted)], "").await.status, 204);
    assert_eq!(unlock(addr, "/d", &token).await, 409);
    assert_eq!(send(addr, "MKCOL", "/d", &[], "").await.status, 201);
    assert_eq!(write_status(addr, "/d/one", &[]).await, 201);
}

/// Rule 8: a lock on disk outlives the process, and with it what it covers.
#[tokio::test]
async fn the_lock_of_a_folder_survives_a_crash() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = format!("kind = \"disk\"\npath = {:?}", directory.path().join("records"));
    let server = Wsgidav::start().await;
    let setup = Proxy::to(server.addr()).upstream("late_write_window = \"1ms\"").route(ROUTE).store(&store);
    let mut proxy = setup.start().await;
    create_folder(proxy.addr()).await;
    let token = token(&lock(proxy.addr(), "/d", "exclusive", DEEP).await);
    proxy.signal("KILL");
    proxy.restart().await;
    let submitted = format!("({token})");
    loop {
        match write_status(proxy.addr(), "/d/one", &[("If", &submitted)]).await {
            // Writes are held back after a crash.
            503 => tokio::task::yield_now().await,
            status => break assert_eq!(status, 204),
        }
    }
    assert_eq!(write_status(proxy.addr(), "/d/e/two", &[]).await, 423);
    assert_eq!(unlock(proxy.addr(), "/d", &token).await, 204);
    assert_eq!(write_status(proxy.addr(), "/d/e/two", &[]).await, 204);
}

/// Rule 10: a lease is that of the resource, for writers of any route and dialect.
#[tokio::test]
async fn the_lock_of_a_folder_holds_on_a_route_of_another_dialect() {
    let server = Wsgidav::start().await;
    let second = "\n[[routes]]\nname = \"second\"\nhost = \"second.example\"\npath = \"/{*rest}\"\nupstream = \"backend\"\n\
                  policy = \"pessimistic\"\netag = \"upstream\"\nrequire = \"never\"\n";
    let proxy = Proxy::to(server.addr()).route(&[ROUTE, second].concat()).start().await;
    let addr = proxy.addr();
    create_folder(addr).await;
    let token = token(&lock(addr, "/d", "exclusive", DEEP).await);
    let (other, long) = (("Host", "second.example"), ("Lease-Duration", "30"));
    assert_eq!(write_status(addr, "/d/one", &[other]).await, 412);
    assert_eq!(send(addr, "POST", "/.leases/d/e/two", &[other, long], "").await.status, 409);
    assert_eq!(unlock(addr, "/d", &token).await, 204);
    assert_eq!(write_status(addr, "/d/one", &[other]).await, 204);
    assert_eq!(send(addr, "POST", "/.leases/d/e/two", &[other, long], "").await.status, 201);
    assert_eq!(lock(addr, "/d", "exclusive", DEEP).await.status, 207);
}

/// Rule 10: a lock of a folder holds at each proxy, on each shared store, and so does the wait for what is locked in it.
#[tokio::test]
async fn two_proxies_with_one_store_share_the_locks_of_folders() {
    for engine in Engine::all().await {
        let server = Wsgidav::start().await;
        let proxies = pair(&engine, Proxy::to(server.addr()).route(ROUTE)).await;
        let [one, other] = addrs(&proxies);
        create_folder(one).await;
        let file = lock(one, "/d/e/two", "exclusive", FLAT).await;
        let conflict = lock(other, "/d", "exclusive", DEEP).await;
        assert_eq!(conflict.status, 207, "{}: {conflict:?}", engine.name());
        assert!(conflict.text().contains("<D:href>/d/e/two</D:href>"), "{}: {conflict:?}", engine.name());
        assert_eq!(unlock(other, "/d/e/two", &token(&file)).await, 204, "{}", engine.name());
        for depth in [DEEP, FLAT] {
            let locked = lock(one, "/d", "exclusive", depth).await;
            let token = token(&locked);
            let covers_files = if depth == DEEP { 423 } else { 204 };
            assert_eq!(write_status(other, "/d/one", &[]).await, covers_files, "{} {depth:?}", engine.name());
            assert_eq!(write_status(other, "/d/new", &[]).await, 423, "{} {depth:?}", engine.name());
            // A lock of depth 0 is none of the files, so its token is true of none.
            let of_file = if depth == DEEP { 204 } else { 412 };
            assert_eq!(
                write_status(other, "/d/one", &[("If", &format!("({token})"))]).await,
                of_file,
                "{}",
                engine.name()
            );
            assert_eq!(unlock(other, "/d", &token).await, 204, "{} {depth:?}", engine.name());
            assert_eq!(write_status(one, "/d/one", &[]).await, 204, "{} {depth:?}", engine.name());
        }
    }
}
