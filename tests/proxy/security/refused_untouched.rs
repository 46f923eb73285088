//! Refused means untouched: of a write that is refused the upstream sees no byte (DESIGN, section 3, rule 4).

use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{Connection, put_if_match, request_bytes, send},
    scene::{Mode, Resource, Scene, all_at_once},
};

/// A write, and the refusal that it gets.
struct Refused {
    method: &'static str,
    /// Below the folder of the mode.
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body_bytes: usize,
    status: u16,
    code: &'static str,
}

const STALE: (&str, &str) = ("If-Match", "\"stale\"");

const fn refused(
    method: &'static str,
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
    status: u16,
    code: &'static str,
) -> Refused {
    Refused { method, path, headers, body_bytes: 3, status, code }
}

/// Writes that nothing in the record can make good.
const MALFORMED_OR_UNASKED: [Refused; 25] = [
    refused("PUT", "doc", &[], 428, "precondition-required"),
    refused("PATCH", "doc", &[], 428, "precondition-required"),
    refused("DELETE", "doc", &[], 428, "precondition-required"),
    refused("PUT", "doc", &[("If-Match", "*")], 428, "precondition-required"),
    refused("PUT", "doc", &[("If-None-Match", "\"a\"")], 428, "precondition-required"),
    refused("PUT", "doc", &[("If-Match", "unquoted")], 400, "malformed-precondition"),
    refused("PUT", "doc", &[("If-Match", "\"a\" \"b\"")], 400, "malformed-precondition"),
    refused("POST", "doc", &[("If-Match", "\"open")], 400, "malformed-precondition"),
    refused("DELETE", "doc", &[("If-None-Match", "W/")], 400, "malformed-precondition"),
    refused("PUT", "a%2Fb", &[STALE], 400, "ambiguous-target"),
    refused("PUT", "a%5Cb", &[STALE], 400, "ambiguous-target"),
    refused("POST", "a;v=1", &[], 400, "ambiguous-target"),
    refused("DELETE", "a%00", &[STALE], 400, "ambiguous-target"),
    refused("PUT", "doc", &[STALE, ("X-HTTP-Method", "GET")], 400, "method-override"),
    refused("POST", "doc", &[("X-HTTP-Method-Override", "DELETE")], 400, "method-override"),
    refused("GET", "doc", &[("X-Method-Override", "PUT")], 400, "method-override"),
    refused("TRACE", "doc", &[], 405, "method-not-allowed"),
    refused("COPY", "doc", &[], 400, "malformed-request"),
    refused("COPY", "doc", &[("Destination", "http://other.test/other")], 502, "destination-elsewhere"),
    refused("MOVE", "doc", &[STALE, ("Destination", "/nowhere/other")], 502, "destination-elsewhere"),
    refused("PUT", "doc", &[STALE, ("Destination", "/other")], 501, "not-supported"),
    refused("POST", "doc", &[("Destination", "/other")], 501, "not-supported"),
    refused("PUT", "../nowhere", &[STALE], 404, "no-route"),
    Refused { body_bytes: 40_000, ..refused("POST", "doc", &[], 413, "body-too-large") },
    Refused { body_bytes: 40_000, ..refused("PUT", "new", &[("If-None-Match", "*")], 413, "body-too-large") },
];

/// Writes whose precondition is false.
const FALSE: [Refused; 6] = [
    refused("PUT", "doc", &[STALE], 412, "precondition-failed"),
    refused("PUT", "doc", &[("If-Match", "\"a\", W/\"b\", \"c\"")], 412, "precondition-failed"),
    refused("PATCH", "doc", &[STALE], 412, "precondition-failed"),
    refused("DELETE", "doc", &[STALE], 412, "precondition-failed"),
    refused("POST", "doc", &[STALE], 412, "precondition-failed"),
    refused("PUT", "doc", &[("If-None-Match", "*")], 412, "precondition-failed"),
];

/// The backend sees nothing of them; if others write too it sees the probe, which is a read.
/// Rule 4: refusals of every kind leave the upstream without a byte of the write.
#[tokio::test]
async fn nothing_of_a_refused_write_reaches_the_backend() {
    let scene = Scene::start(|setup| setup.server("max_body_size = \"32KiB\"")).await;
    for mode in Mode::ALL {
        let resource = Resource::create(&scene, mode, "doc").await;
        let before = scene.backend.count("*", "*");
        for refused in &MALFORMED_OR_UNASKED {
            send_refused(&resource, refused).await;
        }
        assert_eq!(scene.backend.count("*", "*"), before, "{mode:?}: {:?}", scene.backend.events());
        for refused in &FALSE {
            let seen = resource.requests();
            send_refused(&resource, refused).await;
            // A version alone does not tell whether the resource exists.
            let is_known = match mode {
                Mode::ContentShared => false,
                Mode::ContentExclusive => true,
                Mode::VersionExclusive => refused.headers[0].0 == "If-Match",
            };
            let probes = usize::from(!is_known);
            assert_eq!(resource.requests() - seen, probes, "{mode:?} {} {:?}", refused.method, refused.headers);
        }
        assert_eq!((resource.writes(), resource.content().as_deref()), (1, Some("one")), "{mode:?}");
    }
}

async fn send_refused(resource: &Resource, refused: &Refused) {
    let Refused { method, path, headers, body_bytes, status, code } = *refused;
    let target = format!("/{}/{path}", resource.mode.folder());
    let body = if matches!(method, "GET" | "TRACE") { vec![] } else { vec![b'x'; body_bytes] };
    let response = send(resource.scene.proxy.addr(), method, &target, headers, body).await;
    assert_eq!(response.status, status, "{method} {target} {headers:?}: {response:?}");
    response.refused(status, code);
}

/// Memory judges a version tag only for clients that were let read it. For any other client the upstream is asked
/// first, and its 403 is the answer.
#[tokio::test]
async fn a_stranger_learns_of_the_state_from_the_upstream_alone() {
    let scene = Scene::start(|setup| setup).await;
    for mode in [Mode::ContentExclusive, Mode::VersionExclusive] {
        let resource = Resource::create(&scene, mode, "private").await;
        let stranger = |request: &crate::support::backend::Request| request.header("Authorization").is_some();
        scene.backend.always_where(stranger, |_| Answer::status(403));
        let headers = [("If-Match", "\"stale\""), ("Authorization", "Basic c3RyYW5nZXI6")];
        let response = send(scene.proxy.addr(), "PUT", &resource.target, &headers, "two").await;
        assert_eq!(response.status, 403, "{mode:?}");
        assert_eq!(resource.writes(), 1, "{mode:?}");
    }
}

/// A write that finds another one in flight, and may not wait for it.
#[tokio::test]
async fn nothing_of_a_write_in_conflict_reaches_the_backend() {
    let scene = Scene::start(|setup| setup.route("claim = { max_waiters = 0 }")).await;
    all_at_once(Mode::ALL.map(|mode| {
        let scene = scene.clone();
        let conflict = async move {
            let resource = Resource::create(&scene, mode, "busy").await;
            let held = scene.backend.hold("PUT", &resource.target);
            let (first, ()) = tokio::join!(resource.put(&resource.tag, "two"), async {
                let held = held.arrived().await;
                let seen = resource.requests();
                resource.put(&resource.tag, "three").await.refused(409, "write-in-flight");
                assert_eq!(resource.requests(), seen);
                held.answer(Answer::stored()).await;
            });
            assert_eq!(first.status, 204);
        };
        (format!("{mode:?}"), conflict)
    }))
    .await;
}

/// A client that waits for `100 Continue` keeps its 20 MB when its tag is stale: it gets 412, and no 100
/// (RFC 9110 section 10.1.1).
#[tokio::test]
async fn an_upload_in_vain_is_never_sent() {
    let scene = Scene::start(|setup| setup).await;
    for mode in Mode::ALL {
        let resource = Resource::create(&scene, mode, "upload").await;
        let seen = resource.requests();
        let mut client = Connection::open(scene.proxy.addr()).await;
        let fields = [("If-Match", "\"stale\""), ("Expect", "100-continue"), ("Content-Length", "20000000")];
        client.expect_response_to("PUT");
        client.send_bytes(request_bytes("PUT", &resource.target, &fields, b"")).await;
        let response = client.read_response().await;
        response.refused(412, "precondition-failed");
        assert_eq!(response.informational.len(), 0, "{mode:?}");
        let probes = usize::from(mode == Mode::ContentShared);
        assert_eq!((resource.requests() - seen, resource.writes()), (probes, 1), "{mode:?}");
    }
}

/// A request for a host that no route has.
#[tokio::test]
async fn nothing_reaches_a_backend_without_a_route() {
    let backend = Backend::start().await;
    let proxy = Proxy::to(backend.addr()).route("host = \"test\"").start().await;
    let other = [("Host", "other"), ("If-Match", "\"a\"")];
    send(proxy.addr(), "PUT", "/doc", &other, "two").await.refused(404, "no-route");
    assert_eq!(backend.connections(), 0);
    put_if_match(proxy.addr(), "/doc", "\"a\"", "two").await.refused(412, "precondition-failed");
    assert_eq!((backend.count("GET", "/doc"), backend.count("*", "*")), (1, 1), "the probe alone");
}
