//! nginx with counters in files, the proxy before it, and the two files between which reloads change.

use std::{
    fs,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use crate::{
    clients::{KEYS, Tally},
    process::Process,
    support::{nginx::Nginx, proxy::Proxy, raw::get, wait::until},
};

/// Requests before the load.
const FIRST_LOOKS: usize = 1;
/// How often the file changes.
const RELOAD_EVERY: Duration = Duration::from_secs(1);

/// The scene of a load.
pub struct Stage {
    nginx: Nginx,
    proxy: Proxy,
    /// The connections of the proxy before the load.
    connections: usize,
    reloads: usize,
    last: Instant,
}

impl Stage {
    /// Starts all of it; the proxy logs from this level on.
    pub async fn start(level: &str) -> Self {
        // It closes what is idle, so that a connection that the proxy has left open shows; and so late that no write
        // meets a connection that is being closed.
        let nginx = Nginx::with("etag off; if_modified_since off; keepalive_timeout 4s;").await;
        for directory in ["docs", "jobs", "open"] {
            fs::create_dir(nginx.root().join(directory)).expect("a directory");
        }
        for key in 0..KEYS {
            fs::write(nginx.root().join(format!("docs/{key}")), "0").expect("a file");
            fs::write(nginx.root().join(format!("jobs/{key}")), "0").expect("a file");
        }
        fs::write(nginx.root().join("open/page"), "page").expect("a file");
        let proxy = Proxy::start_with(&configuration(nginx.addr(), false), &[("RUST_LOG", level)]).await;
        assert_eq!(get(proxy.addr(), "/open/page").await.status, 200);
        let stage = Self { nginx, proxy, connections: 0, reloads: 0, last: Instant::now() };
        stage.no_connection_is_left().await;
        stage
    }

    pub fn addr(&self) -> SocketAddr {
        self.proxy.addr()
    }

    pub fn process(&self) -> Process {
        Process(self.proxy.id())
    }

    /// The place where nginx keeps its files.
    pub fn file(&self, name: &str) -> std::path::PathBuf {
        self.nginx.root().join(name)
    }

    /// Changes the file when its time has come, and waits until it is served.
    pub async fn reload(&mut self) {
        tokio::time::sleep(RELOAD_EVERY.saturating_sub(self.last.elapsed())).await;
        self.last = Instant::now();
        self.reloads += 1;
        let other = self.reloads % 2 == 1;
        self.proxy.rewrite(&configuration(self.nginx.addr(), other));
        let reload = self.proxy.reload(&[]).await;
        assert_eq!(reload.code, Some(0), "{reload:?}");
        let changed = if other {
            "routes added: more; routes changed: docs"
        } else {
            "routes removed: more; routes changed: docs"
        };
        assert!(reload.said.starts_with(changed), "{reload:?}");
    }

    /// Tells the process to end, and waits until it has.
    pub async fn end(&mut self) {
        self.proxy.signal("TERM");
        assert_eq!(self.proxy.exit_status().await.code(), Some(0));
    }

    /// A client that got a success for a write finds the write done, once.
    #[track_caller]
    pub fn assert_counts(&self, tally: &Tally) {
        for (directory, counts) in [("docs", &tally.counted), ("jobs", &tally.held)] {
            let confirmed: Vec<usize> = counts.iter().map(|count: &AtomicUsize| count.load(Ordering::SeqCst)).collect();
            let read = |key| fs::read_to_string(self.file(&format!("{directory}/{key}"))).expect("a counter");
            let kept: Vec<usize> = (0..KEYS).map(|key| read(key).trim().parse().expect("a number")).collect();
            assert_eq!(kept, confirmed, "{directory}");
        }
    }

    /// All clients have gone, and nginx closes what is idle: the proxy must let go of all of it.
    pub async fn no_connection_is_left(&self) {
        let connections = || self.process().sockets().connections();
        until("all connections to be closed", || connections() <= self.connections).await;
    }

    /// How many requests the proxy has logged.
    pub fn requests_logged(&self) -> usize {
        self.proxy.log().matches(" ifmatch::access: ").count() - FIRST_LOOKS
    }
}

/// One of two files, which differ in a key, in limits, and by a route.
fn configuration(upstream: SocketAddr, other: bool) -> String {
    let (key, limits) = if other {
        ("{id}", "max_hash_size = \"2MiB\"\nclaim.max_wait = \"20s\"")
    } else {
        ("{path}", "max_hash_size = \"1MiB\"")
    };
    let route = |name: &str, path: &str, lines: &str| {
        format!("\n[[routes]]\nname = \"{name}\"\npath = \"{path}\"\nupstream = \"backend\"\n{lines}\n")
    };
    let more = if other { route("more", "/more/{*rest}", "policy = \"optimistic\"") } else { String::new() };
    // A busy machine must not cost a response its tag, nor a write its connection or a reload its time.
    let docs = format!("policy = \"optimistic\"\nhash_wait = \"10s\"\nkey = \"{key}\"\n{limits}");
    format!(
        "[server]\n{{listen}}\nspool_dir = \"{{spool}}\"\nthreads = 2\ncontrol_socket = \"{{control}}\"\nshutdown_timeout = \"20s\"\n\
         [upstreams.backend]\nservers = [\"{upstream}\"]\nreuse_idle_writes = \"500ms\"\nconnect_timeout = \"20s\"\n{}{}{}{more}",
        route("docs", "/docs/{id}", &docs),
        route("jobs", "/jobs/{id}", "policy = \"pessimistic\"\nlease.required = true"),
        route("open", "/open/{*rest}", "policy = \"last-writer-wins\""),
    )
}
