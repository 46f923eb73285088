//! One proxy in front of one backend, with a route for each way of knowing tags, and resources on them.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{
    backend::Backend,
    proxy::{Proxy, Setup},
    raw::{get, put_if_match, send},
    response::Response,
    wait::DEADLINE,
};

/// Cases in flight at once: on a busy machine each request of more of them would wait for the others longer than a proxy,
/// or a client, waits for an answer.
const AT_ONCE: usize = 12;

/// How a route knows its tags. Its resources are below a folder of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `etag = "content"`, and others may write too: each write is judged by a probe.
    ContentShared,
    /// `etag = "content"`, and every writer comes through the proxy.
    ContentExclusive,
    /// `etag = "version"`, which needs the same.
    VersionExclusive,
}

impl Mode {
    pub const ALL: [Self; 3] = [Self::ContentShared, Self::ContentExclusive, Self::VersionExclusive];

    /// The lines of a route.
    pub fn lines(self) -> &'static str {
        match self {
            Self::ContentShared => "etag = \"content\"\nother_writers = true\n",
            Self::ContentExclusive => "etag = \"content\"\nother_writers = false\n",
            Self::VersionExclusive => "etag = \"version\"\nother_writers = false\n",
        }
    }

    /// The first segment of the paths of its resources.
    pub fn folder(self) -> &'static str {
        match self {
            Self::ContentShared => "shared",
            Self::ContentExclusive => "exclusive",
            Self::VersionExclusive => "version",
        }
    }
}

pub struct Scene {
    pub backend: Backend,
    pub proxy: Proxy,
}

impl Scene {
    /// A backend without validators, and a proxy with a route for each mode; `configure` adds what they have in common.
    pub async fn start(configure: impl FnOnce(Setup) -> Setup) -> Arc<Self> {
        Self::before(Backend::start().await, configure).await
    }

    /// The same in front of this backend.
    pub async fn before(backend: Backend, configure: impl FnOnce(Setup) -> Setup) -> Arc<Self> {
        let configuration = configure(Proxy::to(backend.addr())).configuration();
        let (tables, route) = configuration.split_once("[[routes]]").expect("a route");
        let routes = Mode::ALL.map(|mode| {
            let (name, path) = (format!("\"{}\"", mode.folder()), format!("\"/{}/{{*rest}}\"", mode.folder()));
            let route = route.replace("\"all\"", &name).replace("\"/{*rest}\"", &path);
            // How long a question may take is not what is looked at.
            format!("[[routes]]{route}\nprobe.timeout = \"60s\"\n{}", mode.lines())
        });
        let proxy = Proxy::start(&format!("{tables}{}", routes.join("\n"))).await;
        Arc::new(Self { backend, proxy })
    }
}

/// A resource that was created through the proxy with the content `one`, and read.
#[derive(Clone)]
pub struct Resource {
    pub scene: Arc<Scene>,
    pub mode: Mode,
    pub target: String,
    /// The tag of `one`.
    pub tag: String,
}

impl Resource {
    pub async fn create(scene: &Arc<Scene>, mode: Mode, name: &str) -> Self {
        let target = format!("/{}/{}", mode.folder(), name.replace(' ', "-"));
        let created = send(scene.proxy.addr(), "PUT", &target, &[("If-None-Match", "*")], "one").await;
        assert_eq!(created.status, 201, "{target}");
        let read = get(scene.proxy.addr(), &target).await;
        assert_eq!(read.text(), "one", "{target}");
        Self { scene: Arc::clone(scene), mode, target, tag: read.etag() }
    }

    pub async fn get(&self) -> Response {
        get(self.scene.proxy.addr(), &self.target).await
    }

    pub async fn put(&self, tag: &str, body: &str) -> Response {
        put_if_match(self.scene.proxy.addr(), &self.target, tag, body).await
    }

    /// Returns the content that the backend keeps of it.
    pub fn content(&self) -> Option<String> {
        self.scene.backend.content(&self.target)
    }

    /// How many requests on it have reached the backend.
    pub fn requests(&self) -> usize {
        self.scene.backend.count("*", &self.target)
    }

    /// How many of them were writes.
    pub fn writes(&self) -> usize {
        self.scene.backend.seen("*", &self.target).iter().filter(|request| !is_read(&request.method)).count()
    }

    /// Reads between the first `since` requests on it and the next write: the probes that the write was judged by.
    pub fn probes_since(&self, since: usize) -> usize {
        let seen = self.scene.backend.seen("*", &self.target);
        seen[since..].iter().take_while(|request| is_read(&request.method)).count()
    }

    /// Checks that each write on it was answered, or given up, before the next one came.
    #[track_caller]
    pub fn assert_one_write_at_a_time(&self) {
        let mut under_way = 0;
        for event in self.scene.backend.events() {
            let mut words = event.split(' ');
            let (method, target, what) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            if target != self.target || is_read(method) {
                continue;
            }
            match what {
                "arrived" => under_way += 1,
                "answered" | "closed" | "reset" => under_way -= 1,
                _ => {}
            }
            assert!(under_way <= 1, "two writes at once: {:?}", self.scene.backend.events());
        }
    }

    /// Sends a write until it is not held back any more. Each refusal must report that, and the remaining time.
    pub async fn put_when_free(&self, tag: &str, body: &str, held_back_seconds_max: u64) -> Response {
        let end = Instant::now() + DEADLINE;
        loop {
            let response = self.put(tag, body).await;
            if response.status != 409 {
                return response;
            }
            assert_held_back(&response, held_back_seconds_max);
            assert!(Instant::now() < end, "{} is held back for ever", self.target);
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Checks that a write was held back by another one, and for how long at the most.
#[track_caller]
pub fn assert_held_back(response: &Response, seconds_max: u64) {
    let problem = response.refused(409, "write-in-flight");
    let seconds = problem.retry_after_seconds.expect("when to come back");
    assert!((1..=seconds_max).contains(&seconds), "Retry-After is {seconds}, and at most {seconds_max}");
}

/// Runs all cases, many at once; each of them tells on its own what went wrong.
pub async fn all_at_once<F: Future<Output = ()> + Send + 'static>(cases: impl IntoIterator<Item = (String, F)>) {
    let mut tasks = JoinSet::new();
    let room = Arc::new(Semaphore::new(AT_ONCE));
    for (name, case) in cases {
        let room = Arc::clone(&room);
        tasks.spawn(async move {
            let _place = room.acquire_owned().await.expect("nobody closes it");
            tokio::spawn(case).await.is_err().then_some(name)
        });
    }
    let failed: Vec<String> = tasks.join_all().await.into_iter().flatten().collect();
    assert!(failed.is_empty(), "these cases failed (see above): {failed:?}");
}

fn is_read(method: &str) -> bool {
    matches!(method, "GET" | "HEAD")
}
