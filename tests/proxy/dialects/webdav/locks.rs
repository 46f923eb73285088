//! LOCK and UNLOCK, and the requests that a lock keeps off.

use super::{Share, assert_condition, lock, lock_info, token, unlock};
use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{get, put, send},
};

const CHANGE: &str =
    "<D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop><x xmlns=\"u:1\">1</x></D:prop></D:set></D:propertyupdate>";

/// Rule 10: a lock holds against every method that writes.
#[tokio::test]
async fn only_the_holder_of_a_lock_writes() {
    let share = Share::start().await;
    let addr = share.addr();
    share.create("/a.txt", "one").await;
    let locked = lock(addr, "/a.txt", "exclusive", &[("Timeout", "Second-1800"), ("Depth", "0")]).await;
    assert_eq!(locked.status, 200, "{locked:?}");
    let token = token(&locked);
    for part in ["<D:exclusive/>", "<D:depth>0</D:depth>", "mailto:me@example.com", "<D:timeout>Second-1", "/a.txt"] {
        assert!(locked.text().contains(part), "{part}: {locked:?}");
    }
    for (method, body) in [("PUT", "two"), ("DELETE", ""), ("PROPPATCH", CHANGE), ("PATCH", "two"), ("POST", "two")] {
        let refused = send(addr, method, "/a.txt", &[], body).await;
        assert_condition(&refused, 423, "lock-token-submitted><D:href>/a.txt</D:href>");
    }
    let held = lock(addr, "/a.txt", "shared", &[]).await;
    assert_condition(&held, 423, "no-conflicting-lock><D:href>/a.txt</D:href>");
    assert_eq!(get(addr, "/a.txt").await.text(), "one");
    let condition = format!("({token})");
    assert_eq!(put(addr, "/a.txt", &[("If", &condition)], "two").await.status, 204);
    let changed = send(addr, "PROPPATCH", "/a.txt", &[("If", &condition)], CHANGE).await;
    assert_eq!(changed.status, 207, "{changed:?}");
    assert_eq!(unlock(addr, "/a.txt", &token).await, 204);
    assert_condition(&put(addr, "/a.txt", &[("If", &condition)], "three").await, 412, "error");
    assert_eq!(share.content("/a.txt").as_deref(), Some("two"));
}

/// Rule 10: a lease is that of the resource, for writers of any route and dialect.
#[tokio::test]
async fn a_lock_holds_on_a_route_of_another_dialect() {
    let server = crate::support::wsgidav::Wsgidav::start().await;
    let second = "\n[[routes]]\nname = \"second\"\nhost = \"second.example\"\npath = \"/{*rest}\"\nupstream = \"backend\"\n\
                  policy = \"optimistic\"\netag = \"upstream\"\nrequire = \"never\"\n";
    let proxy = Proxy::to(server.addr()).route(&[super::ROUTE, second].concat()).start().await;
    let addr = proxy.addr();
    assert_eq!(put(addr, "/a", &[], "one").await.status, 201);
    let token = token(&lock(addr, "/a", "exclusive", &[]).await);
    let other = &[("Host", "second.example")];
    assert_eq!(put(addr, "/a", other, "two").await.status, 412);
    assert_eq!(unlock(addr, "/a", &token).await, 204);
    assert_eq!(put(addr, "/a", other, "two").await.status, 204);
}

#[tokio::test]
async fn a_lock_of_nothing_creates_an_empty_file() {
    let share = Share::start().await;
    let locked = lock(share.addr(), "/new.txt", "exclusive", &[]).await;
    assert_eq!(locked.status, 201, "{locked:?}");
    assert_eq!(share.content("/new.txt").as_deref(), Some(""));
    let condition = format!("({})", token(&locked));
    assert_eq!(put(share.addr(), "/new.txt", &[], "x").await.status, 423);
    assert_eq!(put(share.addr(), "/new.txt", &[("If", &condition)], "x").await.status, 204);
    let nowhere = lock(share.addr(), "/none/new.txt", "exclusive", &[]).await;
    assert_eq!(nowhere.status, 409, "its folder is missing: {nowhere:?}");
    let again = lock(share.addr(), "/none/new.txt", "exclusive", &[]).await;
    assert_eq!(again.status, 409, "no lock is left of it: {again:?}");
}

#[tokio::test]
async fn a_refresh_is_a_lock_without_content() {
    let share = Share::start().await;
    let addr = share.addr();
    share.create("/a", "one").await;
    let token = token(&lock(addr, "/a", "exclusive", &[("Timeout", "Second-100")]).await);
    let condition = format!("({token})");
    let fields = [("If", condition.as_str()), ("Timeout", "Infinite"), ("Content-Type", "text/xml")];
    let refreshed = send(addr, "LOCK", "/a", &fields, "").await;
    assert_eq!((refreshed.status, refreshed.header("lock-token")), (200, None), "{refreshed:?}");
    assert!(refreshed.text().contains(token.trim_matches(['<', '>'])), "the token stays: {refreshed:?}");
    assert!(refreshed.text().contains("<D:timeout>Second-3"), "the longest that is granted: {refreshed:?}");
    assert_eq!(send(addr, "LOCK", "/a", &[], "").await.status, 400);
    let wrong = format!("(<opaquelocktoken:{}>) (Not <DAV:no-lock>)", crate::support::leases::IDS[0]);
    let refused = send(addr, "LOCK", "/a", &[("If", &wrong)], "").await;
    assert_condition(&refused, 412, "lock-token-matches-request-uri");
}

#[tokio::test]
async fn clients_share_a_lock_and_each_gives_up_its_own() {
    let share = Share::start().await;
    let addr = share.addr();
    share.create("/a", "one").await;
    let first = token(&lock(addr, "/a", "shared", &[]).await);
    let second = token(&lock(addr, "/a", "shared", &[]).await);
    assert_eq!(lock(addr, "/a", "exclusive", &[]).await.status, 423);
    for token in [&first, &second] {
        assert_eq!(put(addr, "/a", &[("If", &format!("({token})"))], "two").await.status, 204);
    }
    assert_eq!(unlock(addr, "/a", &second).await, 204);
    assert_eq!(put(addr, "/a", &[], "three").await.status, 423);
    assert_eq!(unlock(addr, "/a", &first).await, 204);
    assert_eq!(lock(addr, "/a", "exclusive", &[]).await.status, 200);
}

/// Windows and `webdav` of npm leave the angle brackets out.
#[tokio::test]
async fn a_lock_ends_by_either_spelling_of_its_token_at_its_own_file() {
    let share = Share::start().await;
    let addr = share.addr();
    share.create("/a", "one").await;
    share.create("/b", "one").await;
    let held = token(&lock(addr, "/a", "exclusive", &[]).await);
    for (path, wrong, status) in [
        ("/b", held.as_str(), 409),
        ("/a", "<opaquelocktoken:foobar>", 409),
        ("/a", "<opaquelocktoken:181d4fae-7d8c-41d0-a765-00a0c91e6bf2>", 409),
        ("/a", "foobar", 400),
    ] {
        assert_eq!(unlock(addr, path, wrong).await, status, "{path} {wrong}");
    }
    assert_eq!(send(addr, "UNLOCK", "/a", &[], "").await.status, 400);
    assert_eq!(unlock(addr, "/a", held.trim_matches(['<', '>'])).await, 204);
    assert_eq!(put(addr, "/a", &[], "two").await.status, 204);
}

#[tokio::test]
async fn what_cannot_hold_is_not_locked() {
    let share = Share::start().await;
    let addr = share.addr();
    let utf16: Vec<u8> = lock_info("exclusive").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let typed = lock_info("exclusive").replace("?>", "?><!DOCTYPE a>");
    for (fields, body, status) in [
        (&[("Depth", "1")][..], lock_info("exclusive").into_bytes(), 400),
        (&[("Depth", "2")], lock_info("exclusive").into_bytes(), 400),
        (&[("If", "(")], lock_info("exclusive").into_bytes(), 400),
        (&[], utf16, 415),
        (&[], typed.into_bytes(), 400),
        (&[], lock_info("exclusive").replace("write", "read").into_bytes(), 422),
        (&[], vec![b' '; (64 << 10) + 1], 413),
    ] {
        assert_eq!(send(addr, "LOCK", "/x", fields, body).await.status, status, "{fields:?}");
    }
    assert_eq!(share.content("/x"), None);
}

/// Rule 14: a backend with locks of its own would judge by them.
#[tokio::test]
async fn nothing_that_is_said_of_locks_reaches_the_backend() {
    let backend = Backend::start().await;
    let proxy = Proxy::to(backend.addr()).route(super::ROUTE).start().await;
    let addr = proxy.addr();
    backend.put("/a", "one");
    backend.always("PROPFIND", "/a", |_| Answer::status(405));
    let token = token(&lock(addr, "/a", "exclusive", &[("Timeout", "Second-100")]).await);
    let condition = format!("({token}) (Not <DAV:no-lock>)");
    let fields = [("If", condition.as_str()), ("Lock-Token", token.as_str()), ("Timeout", "Second-100")];
    for method in ["PUT", "PROPPATCH", "GET", "PROPFIND", "OPTIONS"] {
        send(addr, method, "/a", &fields, if method == "PUT" { "two" } else { "" }).await;
    }
    for method in ["lock", "Unlock"] {
        assert_eq!(send(addr, method, "/a", &fields, "").await.status, 405, "{method}");
    }
    assert_eq!(send(addr, "LOCK", "/a", &fields, "").await.status, 200);
    assert_eq!(unlock(addr, "/a", &token).await, 204);
    let requests = backend.requests();
    let methods: Vec<&str> = requests.iter().map(|request| request.method.as_str()).collect();
    assert!(
        ["PUT", "PROPPATCH", "GET", "PROPFIND", "OPTIONS"].iter().all(|method| methods.contains(method)),
        "{methods:?}"
    );
    let is_lock = |method: &&str| ["LOCK", "UNLOCK"].iter().any(|name| method.eq_ignore_ascii_case(name));
    assert!(!methods.iter().any(is_lock), "{methods:?}");
    for request in &requests {
        for name in ["if", "lock-token", "timeout"] {
            assert_eq!(request.headers.get(name), None, "{request:?}");
        }
    }
    let write = requests.iter().find(|request| request.method == "PUT").expect("it went through");
    assert!(write.headers.get("fencing-token").is_some(), "{write:?}");
}

/// `WebDAV` clients take 409 for a missing folder, and try a 503 again.
#[tokio::test]
async fn a_write_in_flight_is_a_passing_obstacle() {
    let backend = Backend::start().await;
    let route = [super::ROUTE, "\nclaim = { max_wait = \"10ms\" }"].concat();
    let proxy = Proxy::to(backend.addr()).route(&route).start().await;
    let addr = proxy.addr();
    backend.always("PROPFIND", "/a", |_| Answer::status(405));
    let held = backend.hold("PUT", "/a");
    let writer = tokio::spawn(async move { put(addr, "/a", &[], "one").await });
    let write = held.arrived().await;
    let refused = lock(addr, "/a", "exclusive", &[]).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    drop(write);
    drop(writer);
}
