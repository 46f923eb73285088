//! Writes that cannot be sent: nothing is in doubt, no request is held back, and the known state is still right
//! (DESIGN, section 3, rule 3: a doubt is a write of which a byte may have been sent).

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    time::{Duration, timeout},
};

use crate::support::{
    backend::{Backend, Validators},
    ports,
    raw::send,
    scene::{Mode, Resource, Scene},
};

/// How long a test waits for a connection that is not to be made.
const LONG_ENOUGH: Duration = Duration::from_millis(300);

/// A resource in each mode, before a backend that can go away.
async fn resources() -> Vec<Resource> {
    let listener = loop {
        // Another process may have taken the port meanwhile.
        if let Ok(listener) = TcpListener::bind(ports::free()).await {
            break listener;
        }
    };
    let backend = Backend::on(listener, Validators::None);
    let scene =
        Scene::before(backend, |setup| setup.upstream("connect_timeout = \"300ms\"\nlate_write_window = \"1h\"")).await;
    let mut resources = Vec::new();
    for mode in Mode::ALL {
        resources.push(Resource::create(&scene, mode, "doc").await);
    }
    resources
}

/// Writes with the claim and without, while no server can be reached. Returns how much the backend had seen until then.
async fn write_in_vain(resources: &[Resource], status: u16, code: &str, error: &str) -> Vec<usize> {
    for Resource { scene, mode, target, tag } in resources {
        let claimed = send(scene.proxy.addr(), "PUT", target, &[("If-Match", tag)], "two").await;
        let unclaimed = send(scene.proxy.addr(), "POST", target, &[], "two").await;
        for (response, is_sent_unasked) in [(claimed, *mode != Mode::ContentShared), (unclaimed, true)] {
            assert_eq!(response.status, status, "{mode:?}: {response:?}");
            assert!(!response.problem().in_doubt, "{mode:?}: {response:?}");
            // If others write too, the question for the current tag fails before the write.
            if is_sent_unasked {
                assert_eq!(response.problem().code, code, "{mode:?}");
                assert_eq!(
                    response.header("Proxy-Status"),
                    Some(&*format!("ifmatch; error={error}; details=\"{code}\""))
                );
            }
        }
    }
    resources.iter().map(Resource::requests).collect()
}

async fn write_at_once(resources: &[Resource], seen: Vec<usize>) {
    for (resource, seen) in resources.iter().zip(seen) {
        let written = resource.put(&resource.tag, "three").await;
        assert_eq!(written.status, 204, "{:?}: {written:?}", resource.mode);
        let probes = usize::from(resource.mode == Mode::ContentShared);
        assert_eq!(resource.probes_since(seen), probes, "{:?}: what was known still holds", resource.mode);
        assert_eq!((resource.writes(), resource.content().as_deref()), (2, Some("three")));
    }
}

#[tokio::test]
async fn a_refused_connection_leaves_no_doubt() {
    let resources = resources().await;
    let backend = &resources[0].scene.backend;
    backend.go_away().await;
    let seen = write_in_vain(&resources, 502, "upstream-failed", "connection_refused").await;
    backend.come_back().await;
    write_at_once(&resources, seen).await;
}

#[tokio::test]
async fn a_connection_that_takes_too_long_leaves_no_doubt() {
    let resources = resources().await;
    let backend = &resources[0].scene.backend;
    backend.go_away().await;
    // A listener that accepts nothing, and whose queue is full: the system answers no further attempt.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(backend.addr()).unwrap();
    let listener = socket.listen(1).unwrap();
    let mut queue = Vec::new();
    while let Ok(connected) = timeout(LONG_ENOUGH, TcpStream::connect(backend.addr())).await {
        queue.push(connected.unwrap());
        assert!(queue.len() < 100, "the queue of a listener is never full");
    }
    let seen = write_in_vain(&resources, 504, "upstream-timeout", "connection_timeout").await;
    drop((listener, queue));
    backend.come_back().await;
    write_at_once(&resources, seen).await;
}
