//! DELETE, COPY and MOVE of folders: one write of all files in them.

use super::{ROUTE, Share, assert_condition, lock, token, unlock};
use crate::{
    stores::shared_store::{addrs, pair},
    support::{
        engines::Engine,
        proxy::Proxy,
        raw::{get, put, race_through, request_bytes, send},
        wsgidav::Wsgidav,
    },
};

async fn transfer(share: &Share, method: &str, (from, to): (&str, &str), fields: &[(&str, &str)]) -> u16 {
    send(share.addr(), method, from, &[&[("Destination", to)], fields].concat(), "").await.status
}

/// A share with a folder of two files, and one in a folder of it.
async fn share() -> Share {
    let share = Share::start().await;
    for folder in ["/d", "/d/e"] {
        assert_eq!(send(share.addr(), "MKCOL", folder, &[], "").await.status, 201);
    }
    for file in ["/d/one", "/d/two", "/d/e/three"] {
        share.create(file, file).await;
    }
    share
}

#[tokio::test]
async fn a_folder_is_copied_moved_and_removed_with_all_in_it() {
    let share = share().await;
    assert_eq!(transfer(&share, "COPY", ("/d", "/copy"), &[]).await, 201);
    assert_eq!(transfer(&share, "MOVE", ("/d/", "/moved/"), &[("Overwrite", "F")]).await, 201);
    for (file, content) in [("/copy/e/three", Some("/d/e/three")), ("/moved/two", Some("/d/two")), ("/d/one", None)] {
        assert_eq!(share.content(file).as_deref(), content, "{file}");
    }
    assert_eq!(transfer(&share, "MOVE", ("/copy", "/moved"), &[("Overwrite", "F")]).await, 412);
    assert_eq!(transfer(&share, "MOVE", ("/copy", "/copy/e/in"), &[]).await, 403);
    assert_eq!(transfer(&share, "MOVE", ("/copy/e", "/copy"), &[]).await, 403);
    assert_eq!(send(share.addr(), "DELETE", "/moved/", &[], "").await.status, 204);
    assert_eq!(get(share.addr(), "/moved/e/three").await.status, 404);
}

/// Rule 10: a client without the token of a lock in a folder neither removes the folder nor replaces it.
#[tokio::test]
async fn a_lock_in_a_folder_keeps_the_folder() {
    let share = share().await;
    let addr = share.addr();
    let locks = [lock(addr, "/d/e/three", "exclusive", &[]).await, lock(addr, "/d/two", "shared", &[]).await];
    let tokens = locks.each_ref().map(token);
    for path in ["/d", "/d/"] {
        assert_condition(&send(addr, "DELETE", path, &[], "").await, 423, "lock-token-submitted><D:href>/d/");
        let one = format!("</d/two> ({})", tokens[1]);
        let refused = send(addr, "DELETE", path, &[("If", &one)], "").await;
        assert_condition(&refused, 423, "lock-token-submitted><D:href>/d/e/three</D:href>");
    }
    assert_eq!(transfer(&share, "COPY", ("/d", "/copy"), &[]).await, 201, "it only reads");
    assert_eq!(transfer(&share, "COPY", ("/copy", "/d"), &[]).await, 423);
    assert_eq!(transfer(&share, "MOVE", ("/d", "/moved"), &[]).await, 423);
    assert_eq!(share.content("/d/e/three").as_deref(), Some("/d/e/three"));
    let both = format!("</d/e/three> ({}) </d/two> ({})", tokens[0], tokens[1]);
    assert_eq!(transfer(&share, "MOVE", ("/d", "/moved"), &[("If", &both)]).await, 201);
    assert_eq!(unlock(addr, "/d/two", &tokens[1]).await, 409, "a lock does not travel, and ends with its file");
    assert_eq!(put(addr, "/moved/two", &[], "another").await.status, 204);
}

/// Rule 2: the server may give a file that a MOVE brings the tag of the one that it replaces.
#[tokio::test]
async fn a_tag_of_a_replaced_folder_is_refused() {
    let share = share().await;
    let addr = share.addr();
    assert_eq!(transfer(&share, "COPY", ("/d", "/other"), &[]).await, 201);
    let before = get(addr, "/other/one").await.etag();
    assert_eq!(transfer(&share, "COPY", ("/d", "/other"), &[]).await, 204);
    assert_eq!(put(addr, "/other/one", &[("If-Match", &before)], "lost").await.status, 412);
    let after = get(addr, "/other/one").await.etag();
    assert_eq!(put(addr, "/other/one", &[("If-Match", &after)], "new").await.status, 204);
}

/// Rule 1: writes of a file and of the folder that it is in, through two proxies. Whichever come first, no write that knows
/// nothing of a COPY replaces what that has brought.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_proxies_with_one_store_keep_a_folder_and_its_files_apart() {
    const WRITERS: usize = 12;
    for engine in Engine::all().await {
        let server = Wsgidav::start().await;
        let proxies = pair(&engine, Proxy::to(server.addr()).route(ROUTE)).await;
        let addrs = addrs(&proxies);
        for folder in ["/d", "/source"] {
            assert_eq!(send(addrs[0], "MKCOL", folder, &[], "").await.status, 201);
            assert_eq!(put(addrs[0], &format!("{folder}/a"), &[], folder).await.status, 201);
        }
        for round in 0..4 {
            let tag = get(addrs[round % 2], "/d/a").await.etag();
            let request = |writer: usize| match writer % 4 {
                1 => request_bytes("COPY", "/source", &[("Destination", "/d")], b""),
                _ => request_bytes("PUT", "/d/a", &[("If-Match", &tag)], format!("of {writer}").as_bytes()),
            };
            let responses = race_through(&addrs, (0..WRITERS).map(request).collect()).await;
            let done = |is_copy: bool| {
                let of_kind = responses.iter().enumerate().filter(|(writer, _)| (writer % 4 == 1) == is_copy);
                of_kind.filter(|(_, response)| response.status == 204).map(|(writer, _)| writer).collect::<Vec<_>>()
            };
            let (copies, puts) = (done(true), done(false));
            assert!(!copies.is_empty() && puts.len() <= 1, "{} {round}: {responses:?}", engine.name());
            assert_eq!(get(addrs[0], "/d/a").await.text(), "/source", "{} {round}: {responses:?}", engine.name());
        }
    }
}
