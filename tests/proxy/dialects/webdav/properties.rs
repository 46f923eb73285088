//! OPTIONS and PROPFIND.

use super::{Share, lock, token};
use crate::support::raw::{get, put, send};

fn question(names: &str) -> String {
    format!("<?xml version=\"1.0\"?><D:propfind xmlns:D=\"DAV:\"><D:prop>{names}</D:prop></D:propfind>")
}

const ANN: (&str, &str) = ("Authorization", "Basic YW5uOmE=");
const BOB: (&str, &str) = ("Authorization", "Basic Ym9iOmI=");

/// Office opens files for writing only if all of it stands.
#[tokio::test]
async fn options_tell_of_locks() {
    let share = Share::start().await;
    let told = send(share.addr(), "OPTIONS", "/", &[], "").await;
    assert_eq!((told.status, told.header("dav"), told.header("ms-author-via")), (200, Some("1, 2"), Some("DAV")));
    let allow = told.header("allow").expect("a list");
    for method in ["LOCK", "UNLOCK", "PROPFIND", "GET"] {
        assert!(allow.split(", ").any(|allowed| allowed == method), "{method}: {allow}");
    }
}

#[tokio::test]
async fn a_list_tells_the_tag_of_get() {
    let share = Share::start().await;
    let addr = share.addr();
    for path in ["/a", "/b%20c", "/d&e"] {
        share.create(path, path).await;
    }
    let list = send(addr, "PROPFIND", "/", &[("Depth", "1")], question("<D:getetag/><D:getcontentlength/>")).await;
    assert_eq!((list.status, list.header("etag")), (207, None), "{list:?}");
    for path in ["/a", "/b%20c", "/d&e"] {
        let tag = get(addr, path).await.etag().replace('"', "&quot;");
        assert!(list.text().contains(&format!("<D:getetag>{tag}</D:getetag>")), "{path} {tag}: {}", list.text());
    }
    assert!(list.text().contains("getcontentlength>2</"), "the rest is as the server wrote it: {}", list.text());
}

/// Rule 11: only the client that made a lock sees its token.
#[tokio::test]
async fn only_its_maker_sees_a_token() {
    let share = Share::start().await;
    let addr = share.addr();
    share.create("/a", "one").await;
    let token = token(&lock(addr, "/a", "exclusive", &[ANN]).await);
    let bare = token.trim_matches(['<', '>']);
    let asked = async |who| {
        let question = question("<D:lockdiscovery/><D:supportedlock/>");
        send(addr, "PROPFIND", "/a", &[("Depth", "0"), who], question).await
    };
    let own = asked(ANN).await;
    assert!(own.text().contains(bare) && own.text().contains("mailto:me@example.com"), "{}", own.text());
    assert!(own.text().contains("<D:lockentry><D:lockscope><D:shared/>"), "{}", own.text());
    let others = asked(BOB).await;
    assert!(others.text().contains("<D:activelock>") && !others.text().contains(bare), "{}", others.text());
    let shown = others.text().split_once("<D:locktoken><D:href>").and_then(|(_, rest)| rest.split_once('<'));
    let condition = format!("(<{}>) (Not <DAV:no-lock>)", shown.expect("a name").0);
    assert_eq!(put(addr, "/a", &[("If", &condition), BOB], "two").await.status, 423, "the name proves nothing");
}

#[tokio::test]
async fn a_folder_is_told_as_one_that_can_be_locked() {
    let share = Share::start().await;
    let addr = share.addr();
    assert_eq!(send(addr, "MKCOL", "/folder/", &[], "").await.status, 201);
    let told = send(addr, "PROPFIND", "/folder/", &[("Depth", "0")], question("<D:supportedlock/>")).await;
    assert!(told.text().contains("<D:lockentry><D:lockscope><D:shared/>"), "{}", told.text());
    let all = send(addr, "PROPFIND", "/folder/", &[("Depth", "0")], "").await;
    assert!(all.text().contains("<D:lockdiscovery") && all.text().contains("resourcetype"), "{}", all.text());
    let names = "<?xml version=\"1.0\"?><D:propfind xmlns:D=\"DAV:\"><D:propname/></D:propfind>";
    let names = send(addr, "PROPFIND", "/folder/", &[("Depth", "0")], names).await;
    assert!(names.text().contains("<D:lockdiscovery/><D:supportedlock/>"), "{}", names.text());
}

#[tokio::test]
async fn a_long_list_is_told_whole() {
    let share = Share::start().await;
    for number in 0..300 {
        std::fs::write(share.server.root().join(format!("file-{number}")), "x").expect("a file");
    }
    let list = send(share.addr(), "PROPFIND", "/", &[("Depth", "1")], question("<D:getetag/><D:lockdiscovery/>")).await;
    assert_eq!(list.text().matches("<D:getetag>").count(), 300, "the folder has none");
    assert!(list.text().trim_end().ends_with("multistatus>"), "{}", list.text());
}
