//! The requests of Office, Finder and Explorer, in sequence. Their programs do not run here.

use super::{Share, lock, token, unlock};
use crate::support::raw::{get, put, send};

/// Explorer creates an empty file first, and describes it under its lock.
#[tokio::test]
async fn explorer_saves_a_new_file() {
    let share = Share::start().await;
    let addr = share.addr();
    assert_eq!(send(addr, "PROPFIND", "/new.docx", &[("Depth", "0")], "").await.status, 404);
    assert_eq!(put(addr, "/new.docx", &[("translate", "f")], "").await.status, 201);
    let locked = lock(addr, "/new.docx", "exclusive", &[("Timeout", "Second-3600"), ("translate", "f")]).await;
    let held = token(&locked);
    let condition = format!("({held})");
    let times = "<D:propertyupdate xmlns:D=\"DAV:\" xmlns:Z=\"urn:schemas-microsoft-com:\"><D:set><D:prop>\
                 <Z:Win32LastModifiedTime>Thu, 26 Nov 2026 12:00:00 GMT</Z:Win32LastModifiedTime>\
                 <Z:Win32FileAttributes>00000020</Z:Win32FileAttributes></D:prop></D:set></D:propertyupdate>";
    assert_eq!(send(addr, "PROPPATCH", "/new.docx", &[("If", &condition)], times).await.status, 207);
    assert_eq!(send(addr, "HEAD", "/new.docx", &[], "").await.status, 200);
    assert_eq!(put(addr, "/new.docx", &[], "of another").await.status, 423);
    assert_eq!(put(addr, "/new.docx", &[("If", &condition), ("translate", "f")], "content").await.status, 204);
    assert_eq!(send(addr, "PROPPATCH", "/new.docx", &[("If", &condition)], times).await.status, 207);
    assert_eq!(unlock(addr, "/new.docx", &held).await, 204);
    assert_eq!(share.content("/new.docx").as_deref(), Some("content"));
}

/// Office saves with `Lock-Token` alone, and refreshes the lock while the document is open.
#[tokio::test]
async fn office_edits_a_document() {
    let share = Share::start().await;
    let addr = share.addr();
    share.create("/plan.docx", "draft").await;
    assert_eq!(send(addr, "OPTIONS", "/", &[], "").await.header("ms-author-via"), Some("DAV"));
    let held = token(&lock(addr, "/plan.docx", "exclusive", &[("Timeout", "Second-3600")]).await);
    assert_eq!(get(addr, "/plan.docx").await.text(), "draft");
    let condition = format!("({held})");
    for _ in 0..2 {
        let refreshed = send(addr, "LOCK", "/plan.docx", &[("If", &condition), ("Timeout", "Second-3600")], "").await;
        assert!(refreshed.status == 200 && refreshed.text().contains(held.trim_matches(['<', '>'])), "{refreshed:?}");
    }
    let another = lock(addr, "/plan.docx", "exclusive", &[("Timeout", "Second-3600")]).await;
    assert_eq!(another.status, 423, "its user is told that the document is in use: {another:?}");
    assert_eq!(put(addr, "/plan.docx", &[("Lock-Token", &held)], "final").await.status, 204);
    assert_eq!(unlock(addr, "/plan.docx", &held).await, 204);
    // It asks anew after a lock that has ended.
    assert_eq!(send(addr, "LOCK", "/plan.docx", &[("If", &condition)], "").await.status, 412);
    assert_eq!(share.content("/plan.docx").as_deref(), Some("final"));
}

/// Finder reads the token in the document, and sends a file twice.
#[tokio::test]
async fn finder_replaces_a_file() {
    let share = Share::start().await;
    let addr = share.addr();
    assert_eq!(put(addr, "/a.txt", &[], "").await.status, 201);
    let locked = lock(addr, "/a.txt", "exclusive", &[("Depth", "0"), ("Timeout", "Second-600")]).await;
    let text = locked.text().to_owned();
    let (_, rest) = text.split_once("<D:locktoken><D:href>").expect("a token");
    let (token, _) = rest.split_once('<').expect("its end");
    let condition = format!("(<{token}>)");
    let length = [("If", condition.as_str()), ("X-Expected-Entity-Length", "7")];
    assert_eq!(put(addr, "/a.txt", &length, "content").await.status, 204);
    let refreshed = send(addr, "LOCK", "/a.txt", &[("If", &condition), ("Content-Type", "text/xml")], "").await;
    assert_eq!(refreshed.status, 200, "{refreshed:?}");
    assert_eq!(unlock(addr, "/a.txt", &format!("<{token}>")).await, 204);
    assert_eq!(share.content("/a.txt").as_deref(), Some("content"));
}
