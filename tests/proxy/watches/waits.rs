//! The wait for one change, without a stream.

use super::{DOC, start};
use crate::support::{
    leases::{acquire, release},
    raw::{get, send},
    response::Response,
    wait::until,
};

fn tag(response: &Response) -> String {
    response.header("etag").expect("a tag").to_owned()
}

#[tokio::test]
async fn a_client_waits_until_the_state_is_another() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let first = get(addr, "/.watch/doc").await;
    assert_eq!((first.status, first.header("content-type")), (200, Some("application/json")));
    let state: serde_json::Value = serde_json::from_slice(&first.body).expect("JSON");
    assert_eq!((&state["path"], &state["lease"]["state"]), (&DOC.into(), &"available".into()));
    assert_eq!(state["etag"], get(addr, DOC).await.header("etag").expect("a tag"));

    let tag_of_state = tag(&first);
    let known = [("If-None-Match", &*tag_of_state)];
    let same = send(addr, "GET", "/.watch/doc", &known, "").await;
    assert_eq!((same.status, same.header("etag"), same.body.len()), (304, Some(&*tag_of_state), 0));
    let same = send(addr, "GET", "/.watch/doc", &[known[0], ("Prefer", "wait=1")], "").await;
    assert_eq!(same.status, 304);

    let asked = || backend.count("GET", DOC) + backend.count("HEAD", DOC);
    let before = asked();
    let waits = [known[0], ("Prefer", "wait=20")];
    let waiting = send(addr, "GET", "/.watch/doc", &waits, "");
    let changes = async {
        until("the client to wait", || asked() > before).await;
        acquire(addr, DOC, "30").await
    };
    let (told, grant) = tokio::join!(waiting, changes);
    assert_eq!(told.status, 200, "{told:?}");
    let state: serde_json::Value = serde_json::from_slice(&told.body).expect("JSON");
    assert_eq!(state["lease"]["state"], "leased");
    release(addr, DOC, &grant.id).await;
    let at_once = send(addr, "GET", "/.watch/doc", &[("If-None-Match", &tag(&told)), waits[1]], "").await;
    assert_eq!((at_once.status, tag(&at_once)), (200, tag_of_state.clone()), "the state before the lease");
}

#[tokio::test]
async fn several_resources_are_one_answer() {
    let (backend, proxy) = start(|setup| setup).await;
    backend.put("/other", "one");
    let states = get(proxy.addr(), "/.watch?path=/doc&path=/none&path=/other").await;
    let list: serde_json::Value = serde_json::from_slice(&states.body).expect("JSON");
    let paths: Vec<_> = list.as_array().expect("a list").iter().map(|state| &state["path"]).collect();
    assert_eq!(paths, [DOC, "/other", "/none"]);
    assert_eq!(list[2]["status"], 404);
}
