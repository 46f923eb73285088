//! A DELETE of a collection would remove resources that were not judged (DESIGN, section 3, rule 18).

use crate::support::{
    backend::{Answer, Backend},
    leases::{acquire, leasing},
    nginx::Nginx,
    proxy::Proxy,
    raw::{put, send},
};

const FREE: &str = "require = \"never\"\ncollections = \"detect\"";
const FOLDER: &str = "/d/folder";
const MEMBER: &str = "/d/folder/doc";

/// Returns the answer of a server with `WebDAV` about a resource.
fn of_type(kind: &str) -> Answer {
    let head = "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\"><D:response><D:href>/</D:href><D:propstat>";
    let end = "</D:propstat></D:response></D:multistatus>";
    let body = format!("{head}<D:prop><D:resourcetype>{kind}</D:resourcetype></D:prop>{end}");
    Answer::status(207).header("Content-Type", "application/xml").body(body)
}

/// A server of `WebDAV` with a folder.
async fn webdav() -> Backend {
    let backend = Backend::start().await;
    backend.put(MEMBER, "one");
    backend.always("OPTIONS", "*", |_| Answer::status(200).header("DAV", "1,2"));
    backend.always("PROPFIND", "*", |_| of_type(""));
    for folder in [FOLDER, "/d/folder/", "/d/folder/?a=1"] {
        backend.always("PROPFIND", folder, |_| of_type("<D:collection/>"));
    }
    backend
}

/// Rule 18: a folder with a leased member stays, in every reading of the request.
#[tokio::test]
async fn a_collection_of_webdav_is_not_removed() {
    let backend = webdav().await;
    let lines = "method_override = \"judge\"\ncollections = \"detect\"";
    let proxy = leasing(&backend).route(lines).start().await;
    acquire(proxy.addr(), MEMBER, "30").await;
    for target in [FOLDER, "/d/folder/", "/d/folder/?a=1"] {
        let refused = send(proxy.addr(), "DELETE", target, &[], "").await.refused(501, "not-supported");
        assert!(refused.detail.contains("one by one"), "{refused:?}");
    }
    send(proxy.addr(), "delete", FOLDER, &[], "").await.refused(501, "not-supported");
    send(proxy.addr(), "PUT", FOLDER, &[("X-HTTP-Method", "DELETE")], "").await.refused(501, "not-supported");
    assert_eq!(["DELETE", "delete", "PUT"].map(|method| backend.count(method, "*")), [0; 3]);
    let asked = &backend.seen("PROPFIND", FOLDER)[0];
    assert_eq!(asked.header("depth"), Some("0"));
    backend.put("/d/file", "one");
    assert_eq!(send(proxy.addr(), "DELETE", "/d/file", &[], "").await.status, 204, "it is no collection");
}

/// A refused write leaves no mark behind.
#[tokio::test]
async fn a_refused_removal_gives_its_claim_back() {
    let backend = webdav().await;
    let proxy = Proxy::to(backend.addr()).route(FREE).start().await;
    send(proxy.addr(), "DELETE", FOLDER, &[], "").await.refused(501, "not-supported");
    assert_eq!(put(proxy.addr(), FOLDER, &[], "x").await.status, 201);
}

/// A plain API is asked once, and keeps working.
#[tokio::test]
async fn a_backend_without_webdav_is_asked_once() {
    let backend = Backend::start().await;
    let proxy = Proxy::to(backend.addr()).route(FREE).start().await;
    backend.always("OPTIONS", "*", |_| Answer::status(405));
    for target in ["/items/1", "/items/2"] {
        backend.put(target, "one");
        assert_eq!(send(proxy.addr(), "DELETE", target, &[], "").await.status, 204);
    }
    assert_eq!((backend.count("OPTIONS", "*"), backend.count("PROPFIND", "*")), (1, 0));
}

/// Rule 18: an application beside the folders of a server says nothing of them.
#[tokio::test]
async fn one_resource_without_webdav_hides_no_collection() {
    let backend = webdav().await;
    backend.put("/app/1", "one");
    backend.always("OPTIONS", "/app/1", |_| Answer::status(200).header("Allow", "GET, DELETE"));
    let proxy = Proxy::to(backend.addr()).route(FREE).start().await;
    assert_eq!(send(proxy.addr(), "DELETE", "/app/1", &[], "").await.status, 204);
    send(proxy.addr(), "DELETE", FOLDER, &[], "").await.refused(501, "not-supported");
}

/// Frameworks redirect to a slash too. What they show there is no page.
#[tokio::test]
async fn an_api_whose_resources_end_with_a_slash_keeps_working() {
    let backend = Backend::start().await;
    let moved = |_: &_| Answer::status(301).header("Location", "/items/1/");
    backend.always("GET", "/items/1", moved);
    backend.always("GET", "/items/1/", |_| Answer::status(200).header("Content-Type", "application/json").body("{}"));
    backend.always("DELETE", "/items/1/", |_| Answer::status(204));
    let proxy = Proxy::to(backend.addr()).route(FREE).start().await;
    assert_eq!(send(proxy.addr(), "DELETE", "/items/1/", &[], "").await.status, 204);
}

/// A resource of unknown type is not removed.
#[tokio::test]
async fn a_backend_that_does_not_say_gets_no_removal() {
    let backend = webdav().await;
    let proxy = Proxy::to(backend.addr()).route(FREE).start().await;
    for answer in [Answer::status(500), Answer::status(207).body("<D:multistatus/>")] {
        backend.once("PROPFIND", "/d/file", answer);
        let refused = send(proxy.addr(), "DELETE", "/d/file", &[], "").await.refused(502, "validator-unavailable");
        assert!(refused.detail.contains("collections = \"none\""), "{refused:?}");
    }
    backend.once("PROPFIND", "/d/file", Answer::status(403));
    assert_eq!(send(proxy.addr(), "DELETE", "/d/file", &[], "").await.status, 403, "the backend's own answer");
    assert_eq!(backend.count("DELETE", "*"), 0);
}

/// The module of nginx has no PROPFIND, and removes a folder with all that is in it.
#[tokio::test]
async fn a_folder_of_nginx_is_not_removed() {
    let nginx = Nginx::start().await;
    let proxy = Proxy::to(nginx.addr()).route(FREE).start().await;
    assert_eq!(put(proxy.addr(), MEMBER, &[], "one").await.status, 201);
    send(proxy.addr(), "DELETE", "/d/folder/", &[], "").await.refused(501, "not-supported");
    assert!(nginx.root().join("d/folder/doc").exists());
    assert_eq!(send(proxy.addr(), "DELETE", MEMBER, &[], "").await.status, 204);
    assert_eq!(send(proxy.addr(), "DELETE", "/d/none/", &[], "").await.status, 404, "there is no such folder");
    let plain = Proxy::to(nginx.addr()).route("require = \"never\"").start().await;
    assert_eq!(send(plain.addr(), "DELETE", "/d/folder/", &[], "").await.status, 204, "nobody was asked");
}
