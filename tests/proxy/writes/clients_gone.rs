//! Clients that leave early. A write that has begun is finished and settled by its answer. So nothing is in doubt only
//! because a client did not wait for it (DESIGN, section 3, rule 5).

use std::sync::Arc;

use h2::Reason;

use crate::support::{
    backend::Answer,
    h2c,
    raw::{Connection, request_bytes},
    scene::{Mode, Resource, Scene, all_at_once},
    wait::until,
};

/// A doubt would hold others back for longer than any test takes.
const LIMITS: &str = "late_write_window = \"1h\"";

/// How a client leaves while its write is at the backend.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    /// It sends FIN with its request and still reads.
    HalfCloses,
    /// It closes the connection.
    Closes,
    /// It resets the connection.
    Resets,
    /// It sends `RST_STREAM`.
    ResetsStream,
    /// It closes an HTTP/2 connection.
    ClosesHttp2,
}

impl Leaves {
    const ALL: [Self; 5] = [Self::HalfCloses, Self::Closes, Self::Resets, Self::ResetsStream, Self::ClosesHttp2];
}

async fn open_and_send(resource: &Resource, fields: &[(&str, &str)], body: &str) -> Connection {
    let mut client = Connection::open(resource.scene.proxy.addr()).await;
    client.request("PUT", &resource.target, fields, body).await;
    client
}

#[tokio::test]
async fn a_write_is_settled_by_its_answer_after_its_client_has_left() {
    let scene = Scene::start(|setup| setup.upstream(LIMITS)).await;
    let cases = Mode::ALL.into_iter().flat_map(|mode| Leaves::ALL.map(|leaves| (mode, leaves)));
    all_at_once(cases.map(|(mode, leaves)| (format!("{mode:?} {leaves:?}"), leave(Arc::clone(&scene), mode, leaves))))
        .await;
}

async fn leave(scene: Arc<Scene>, mode: Mode, leaves: Leaves) {
    let resource = Resource::create(&scene, mode, &format!("{leaves:?}")).await;
    let held = scene.backend.hold("PUT", &resource.target);
    let if_match = [("If-Match", &*resource.tag)];
    let held = match leaves {
        Leaves::HalfCloses => {
            let mut client = open_and_send(&resource, &if_match, "two").await;
            client.half_close().await;
            held.arrived().await.answer(Answer::stored()).await;
            assert_eq!(client.read_response().await.status, 204);
            None
        }
        Leaves::Closes | Leaves::Resets => {
            let client = open_and_send(&resource, &if_match, "two").await;
            let held = held.arrived().await;
            if matches!(leaves, Leaves::Resets) {
                client.reset();
            } else {
                drop(client);
            }
            Some(held)
        }
        Leaves::ResetsStream | Leaves::ClosesHttp2 => {
            let mut client = h2c::Connection::open(scene.proxy.addr()).await;
            let mut stream = client.begin("PUT", &resource.target, &[("if-match", &*resource.tag)]).await;
            stream.send_last("two").await;
            let held = held.arrived().await;
            if matches!(leaves, Leaves::ResetsStream) {
                stream.reset(Reason::CANCEL);
                // The proxy has seen the reset before this, which came after it.
                assert_eq!(client.exchange("GET", &resource.target, &[], "").await.status, 200);
            }
            Some(held)
        }
    };
    // Others wait for the claim until the backend has answered.
    let waiting = resource.put(&resource.tag, "three");
    let answered = async {
        if let Some(held) = held {
            held.answer(Answer::stored()).await;
        }
    };
    let (waited, ()) = tokio::join!(waiting, answered);
    waited.refused(412, "precondition-failed");
    let tag = resource.get().await.etag();
    assert_eq!(resource.put(&tag, "four").await.status, 204);
    assert_eq!((resource.writes(), resource.content().as_deref()), (3, Some("four")));
}

/// A write in the queue is carried out in its turn although no client waits for its answer. The one after it still has
/// to wait for it.
#[tokio::test]
async fn a_write_in_the_queue_keeps_its_turn() {
    let scene = Scene::start(|setup| setup.upstream(LIMITS).route("allow_any = true")).await;
    let queued = async |mode: Mode| {
        let resource = Resource::create(&scene, mode, "queue").await;
        let holds = [(); 2].map(|()| scene.backend.hold("PUT", &resource.target));
        let [earlier, later] = holds;
        let mut first = open_and_send(&resource, &[("If-Match", &resource.tag)], "first").await;
        let held = earlier.arrived().await;
        drop(open_and_send(&resource, &[("If-Match", "*")], "second").await);
        held.answer(Answer::stored()).await;
        assert_eq!(first.read_response().await.status, 204);
        let queued_write = later.arrived().await;
        let answered = async { queued_write.answer(Answer::stored()).await };
        let (third, ()) = tokio::join!(resource.put("*", "third"), answered);
        assert_eq!(third.status, 204);
        assert_eq!((resource.writes(), resource.content().as_deref()), (4, Some("third")));
        resource.assert_one_write_at_a_time();
    };
    tokio::join!(queued(Mode::ContentShared), queued(Mode::ContentExclusive), queued(Mode::VersionExclusive));
}

/// Of a write whose body breaks off the backend sees nothing, and it is no write.
#[tokio::test]
async fn nothing_of_a_broken_upload_reaches_the_backend() {
    let scene = Scene::start(|setup| setup.upstream(LIMITS)).await;
    for mode in Mode::ALL {
        let resource = Resource::create(&scene, mode, "upload").await;
        let seen = resource.requests();
        let if_match = ("If-Match", &*resource.tag);
        for framing in [("Content-Length", "6"), ("Transfer-Encoding", "chunked")] {
            for is_reset in [false, true] {
                let mut client = Connection::open(scene.proxy.addr()).await;
                let body = if framing.1 == "chunked" { "6\r\ntwo" } else { "two" };
                client.send_bytes(request_bytes("PUT", &resource.target, &[if_match, framing], body.as_bytes())).await;
                let logged = scene.proxy.log().matches("method=\"PUT\"").count();
                if is_reset {
                    client.reset();
                } else {
                    client.half_close().await;
                    assert_eq!(client.closed().await, b"", "{mode:?} {framing:?}: there is nothing to answer");
                }
                until("the end of the broken request to be logged", || {
                    scene.proxy.log().matches("method=\"PUT\"").count() > logged
                })
                .await;
            }
        }
        let mut client = h2c::Connection::open(scene.proxy.addr()).await;
        let mut stream = client.begin("PUT", &resource.target, &[("if-match", &*resource.tag)]).await;
        stream.send("two").await;
        stream.reset(Reason::CANCEL);
        assert_eq!(client.exchange("GET", "/nowhere", &[], "").await.status, 404);
        assert_eq!(resource.requests(), seen, "{mode:?}: nothing has reached the backend");
        assert_eq!(resource.put(&resource.tag, "three").await.status, 204, "{mode:?}");
        assert_eq!(resource.writes(), 2, "{mode:?}");
    }
}

/// A body that breaks the rules of its framing is its sender's fault (RFC 9112 section 7.1).
#[tokio::test]
async fn a_malformed_upload_is_not_blamed_on_the_upstream() {
    let scene = Scene::start(|setup| setup.upstream(LIMITS)).await;
    let resource = Resource::create(&scene, Mode::ContentExclusive, "upload").await;
    let seen = resource.requests();
    let mut client = Connection::open(scene.proxy.addr()).await;
    let fields = [("If-Match", &*resource.tag), ("Transfer-Encoding", "chunked")];
    let response = client.exchange("PUT", &resource.target, &fields, "zz\r\ntwo\r\n0\r\n\r\n").await;
    response.refused(400, "malformed-request");
    assert_eq!(resource.requests(), seen);
}
