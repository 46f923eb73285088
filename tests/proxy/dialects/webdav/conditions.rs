//! The field `If` (RFC 4918 section 10.4).

use super::{Share, assert_condition, lock, token};
use crate::support::raw::{get, put, send};

const UNKNOWN: &str = "<opaquelocktoken:181d4fae-7d8c-41d0-a765-00a0c91e6bf2>";

#[tokio::test]
async fn truth_and_submission_are_two_things() {
    let share = Share::start().await;
    let addr = share.addr();
    share.create("/a", "one").await;
    share.create("/b", "one").await;
    let held = token(&lock(addr, "/a", "exclusive", &[]).await);
    let other = token(&lock(addr, "/b", "exclusive", &[]).await);
    let tag = || async { get(addr, "/a").await.etag() };
    for (condition, status) in [
        (format!("({held})"), 204),
        (format!("({held} [TAG])"), 204),
        (format!("</a> ({held})"), 204),
        (format!("<http://test/a> ({held})"), 204),
        (format!("<https://test:443/a> ({held})"), 204),
        (format!("</./%61> ({held})"), 204),
        (format!("({held}) (Not <DAV:no-lock>)"), 204),
        (format!("({held} [\"x\"]) (Not <DAV:no-lock> [TAG])"), 204),
        (format!("(Not {held}) (Not <DAV:no-lock>)"), 204),
        (format!("([\"x\"]) ({held} Not [\"y\"])"), 204),
        (format!("({held} [\"x\"])"), 412),
        (format!("({held} Not [TAG])"), 412),
        (format!("(<DAV:no-lock> {held})"), 412),
        (format!("({held} [TAG] [\"x\"])"), 412),
        (format!("({UNKNOWN})"), 412),
        (format!("(Not {held})"), 412),
        (format!("</b> ({held})"), 412),
        (format!("<http://elsewhere.example/a> ({held})"), 412),
        (format!("({UNKNOWN}) (Not <DAV:no-lock>)"), 423),
        ("([TAG])".to_owned(), 423),
        // The token of another file is true of that file, and opens it alone.
        (format!("</b> ({other})"), 423),
        (format!("({other}) (Not <DAV:no-lock>)"), 423),
        ("(".to_owned(), 400),
    ] {
        let condition = condition.replace("TAG", &tag().await);
        let answered = put(addr, "/a", &[("If", &condition)], "two").await;
        assert_eq!(answered.status, status, "{condition}: {answered:?}");
    }
    assert_condition(&put(addr, "/a", &[], "two").await, 423, "lock-token-submitted");
    assert_eq!(share.content("/b").as_deref(), Some("one"));
}

/// Rule 2: a tag that the backend gives to two states carries a suffix, and `If` takes it as `If-Match` does.
#[tokio::test]
async fn a_tag_in_if_is_the_tag_of_the_route() {
    let share = Share::start().await;
    let addr = share.addr();
    share.create("/a", "aaa").await;
    let first = get(addr, "/a").await.etag();
    let file = share.server.root().join("a");
    let modified = std::fs::metadata(&file).and_then(|data| data.modified()).expect("its time");
    assert_eq!(put(addr, "/a", &[("If", &format!("([{first}])"))], "bbb").await.status, 204);
    let restore = || std::fs::File::options().write(true).open(&file).and_then(|file| file.set_modified(modified));
    restore().expect("its time is set back, as one of a second would be");
    let second = get(addr, "/a").await.etag();
    let stale = put(addr, "/a", &[("If", &format!("([{first}])"))], "ccc").await;
    assert_eq!((stale.status, share.content("/a").as_deref()), (412, Some("bbb")), "{stale:?}");
    let fresh = put(addr, "/a", &[("If", &format!("([{second}])"))], "ccc").await;
    assert_eq!(fresh.status, 204, "{fresh:?}");
}

#[tokio::test]
async fn a_submitted_token_satisfies_what_the_route_requires() {
    let share = Share::requiring("existing").await;
    let addr = share.addr();
    share.create("/a", "one").await;
    assert_eq!(put(addr, "/a", &[], "two").await.status, 428);
    assert_eq!(put(addr, "/a", &[("If", "(Not <DAV:no-lock>)")], "two").await.status, 428);
    let held = token(&lock(addr, "/a", "exclusive", &[]).await);
    // As Office sends it.
    assert_eq!(put(addr, "/a", &[("Lock-Token", &held)], "two").await.status, 204);
    let tag = get(addr, "/a").await.etag();
    let condition = format!("({held})");
    // As davfs2 sends both.
    let stale = put(addr, "/a", &[("If", &condition), ("If-Match", "\"stale\"")], "three").await;
    assert_eq!(stale.status, 412, "{stale:?}");
    assert_eq!(put(addr, "/a", &[("If", &condition), ("If-Match", &tag)], "three").await.status, 204);
    assert_eq!(send(addr, "DELETE", "/a", &[("Lock-Token", &held)], "").await.status, 423, "it counts on some methods");
    assert_eq!(send(addr, "DELETE", "/a", &[("If", &condition)], "").await.status, 204);
    assert_eq!(put(addr, "/a", &[("If-None-Match", "*")], "new").await.status, 201, "the lock ended with the file");
}

/// `KeePass` and others save under another name, and move that over the file.
#[tokio::test]
async fn a_move_is_judged_at_both_of_its_ends() {
    let share = Share::start().await;
    let addr = share.addr();
    share.create("/a", "one").await;
    share.create("/b", "two").await;
    let held = token(&lock(addr, "/a", "exclusive", &[]).await);
    let source = token(&lock(addr, "/b", "exclusive", &[]).await);
    let tag = get(addr, "/a").await.etag();
    let moved = async |condition: &str| {
        let fields = [("Destination", "http://test/a"), ("Overwrite", "T"), ("If", condition)];
        send(addr, "MOVE", "/b", &fields, "").await
    };
    for (condition, status) in [
        ("(Not <DAV:no-lock>)".to_owned(), 423),
        (format!("({source})"), 423),
        (format!("</a> ({held})"), 423),
        (format!("</a> ({held} [\"stale\"]) </b> (<DAV:no-lock> {source})"), 412),
        (format!("</b> ({held})"), 412),
        (format!("</b> ({source} [\"stale\"]) </a> ({held} [\"stale\"])"), 412),
    ] {
        let refused = moved(&condition).await;
        assert_eq!(refused.status, status, "{condition}: {refused:?}");
    }
    let copied = send(addr, "COPY", "/b", &[("Destination", "http://test/c")], "").await;
    assert_eq!(copied.status, 201, "a copy only reads its source: {copied:?}");
    assert_eq!(put(addr, "/c", &[], "no lock is copied").await.status, 204);
    let done = moved(&format!("</b> ({source} [\"stale\"]) </a> ({held} [{tag}]) </b> ({source})")).await;
    assert_eq!(done.status, 204, "{done:?}");
    assert_eq!((share.content("/a").as_deref(), share.content("/b")), (Some("two"), None));
    assert_eq!(put(addr, "/a", &[], "x").await.status, 423, "the lock of the destination stays");
    assert_eq!(put(addr, "/b", &[], "x").await.status, 201, "that of the source is gone");
}
