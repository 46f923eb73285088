//! Upstreams that answer before they have the whole request (RFC 9112 section 9.5, RFC 9110 section 15.5.14).

use std::sync::Arc;

use crate::support::{
    backend::Held,
    raw::put_if_match,
    response::Response,
    scene::{Mode, Resource, Scene, all_at_once},
};

/// More than the buffers of two sockets hold, so that the upstream has to read for the proxy to finish.
const BODY_BYTES: usize = 20_000_000;
const REFUSAL: &str = "HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nbig\n";

/// A large write over `one`, with its request in the test's hands; the answer that its client got, and what the test
/// did not let go of.
async fn large_write<T>(resource: &Resource, answer: impl AsyncFnOnce(Held) -> T) -> (Response, T) {
    let held = resource.scene.backend.hold("PUT", &resource.target);
    let body = vec![b'x'; BODY_BYTES];
    let write = put_if_match(resource.scene.proxy.addr(), &resource.target, &resource.tag, body);
    tokio::join!(write, async { answer(held.arrived().await).await })
}

/// The upstream takes no byte of the body. It did not apply the write, and what was known holds.
///
/// Where it does not even close, its answer is found at the end of the time that it has.
#[tokio::test]
async fn a_refusal_in_the_middle_of_an_upload_is_relayed() {
    let scene = Scene::start(|setup| setup.upstream("timeout = \"5s\"")).await;
    all_at_once(Mode::ALL.map(|mode| (format!("{mode:?}"), refused_early(Arc::clone(&scene), mode)))).await;
}

async fn refused_early(scene: Arc<Scene>, mode: Mode) {
    let resource = Resource::create(&scene, mode, "large").await;
    let refuse = async |mut held: Held| {
        held.send_bytes(REFUSAL).await;
        held
    };
    let (closed, ()) = large_write(&resource, async |held| refuse(held).await.close()).await;
    assert_eq!((closed.status, closed.text()), (413, "big\n"));
    let (waited_for, _open) = large_write(&resource, refuse).await;
    assert_eq!((waited_for.status, waited_for.text()), (413, "big\n"));

    let seen = resource.requests();
    assert_eq!(resource.put(&resource.tag, "two").await.status, 204);
    assert_eq!(resource.probes_since(seen), usize::from(mode == Mode::ContentShared));
    assert_eq!(resource.writes(), 4, "the creation and three writes");
}

/// An upstream that says early that all is well may be reading still: it gets the rest.
#[tokio::test]
async fn an_upload_goes_on_after_an_early_success() {
    let scene = Scene::start(|setup| setup.route("max_hash_size = \"32MiB\"")).await;
    let resource = Resource::create(&scene, Mode::ContentExclusive, "large").await;
    let (response, ()) = large_write(&resource, async |mut held| {
        held.send_bytes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        held.apply().await;
        held.close();
    })
    .await;
    assert_eq!(response.status, 200);
    assert_eq!(resource.content().map(|content| content.len()), Some(BODY_BYTES));
    resource.put(&resource.tag, "two").await.refused(412, "precondition-failed");
    assert_eq!(resource.writes(), 2);
}

/// An upstream that takes nothing more of the body is given up after `write_timeout`, long before `timeout`.
#[tokio::test]
async fn an_upload_that_stands_still_is_given_up() {
    let scene = Scene::start(|setup| setup.upstream("timeout = \"1h\"\nwrite_timeout = \"300ms\"")).await;
    let resource = Resource::create(&scene, Mode::VersionExclusive, "large").await;
    let (response, _open) = large_write(&resource, async |held| held).await;
    assert!(response.refused(504, "upstream-timeout").in_doubt);
}
