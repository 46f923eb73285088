//! Workers that share items by leases on each kind of store, while workers, proxies and engines are killed.

use std::env;

use tempfile::TempDir;

use crate::support::{
    backend::Backend,
    child::Child,
    engines::Engine,
    proxy::Proxy,
    wait::until,
    workers::{assert_exclusion, locks, start_worker},
};

const WORKERS: usize = 6;
/// How many are killed where `IFMATCH_KILLS` says nothing; in `make worker-locks` they are 60 for each store.
const KILLS: usize = 6;
/// The number of writes between two kills, and the number of items that is enough for them.
const WRITES_BETWEEN_KILLS: usize = 8;
const ITEMS_FOR_EACH_KILL: usize = 4;
/// A killed proxy may have a write on its way for so long.
const UPSTREAM: &str = "connect_timeout = \"100ms\"\ntimeout = \"500ms\"\nlate_write_window = \"500ms\"";

/// A lock service: its proxies, and the engine if they share one.
struct Service {
    proxies: Vec<Proxy>,
    engine: Option<Engine>,
    /// True if a lease survives a proxy that is killed.
    keeps_leases: bool,
    _disk: TempDir,
}

impl Service {
    async fn start(backend: &Backend, engine: Option<Engine>, kind: &str) -> Self {
        let disk = tempfile::tempdir().expect("a directory");
        let store = engine.as_ref().map_or_else(|| format!("kind = {kind:?}"), Engine::store);
        let path = if kind == "disk" { format!("\npath = \"{}/locks\"", disk.path().display()) } else { String::new() };
        let setup = locks(backend, &(store + &path), UPSTREAM);
        let mut proxies = vec![Proxy::start(&setup).await];
        if engine.is_some() {
            proxies.push(Proxy::start(&setup).await);
        }
        Self { proxies, engine, keeps_leases: kind != "memory", _disk: disk }
    }

    fn addresses(&self) -> String {
        self.proxies.iter().map(|proxy| proxy.addr().to_string()).collect::<Vec<_>>().join(",")
    }

    async fn kill_proxy(&mut self, nth: usize) {
        let nth = nth % self.proxies.len();
        self.proxies[nth].signal("KILL");
        self.proxies[nth].restart().await;
    }

    /// Kills the engine; without one, the proxy is all that can be killed.
    async fn kill_engine(&mut self, nth: usize) {
        let Some(engine) = &mut self.engine else { return self.kill_proxy(nth).await };
        engine.signal("KILL");
        engine.restart().await;
    }
}

fn kills() -> usize {
    env::var("IFMATCH_KILLS").map_or(KILLS, |text| text.parse().expect("IFMATCH_KILLS is a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_of_workers_proxies_and_engines_lose_no_exclusion() {
    let [etcd, postgres, redis] = Engine::all().await;
    tokio::join!(
        disturb(None, "memory"),
        disturb(None, "disk"),
        disturb(Some(etcd), "etcd"),
        disturb(Some(postgres), "postgres"),
        disturb(Some(redis), "redis"),
    );
}

async fn disturb(engine: Option<Engine>, kind: &str) {
    let backend = Backend::start().await;
    let mut service = Service::start(&backend, engine, kind).await;
    let directory = tempfile::tempdir().expect("a directory");
    let items: Vec<String> = (0..kills() * ITEMS_FOR_EACH_KILL).map(|nth| format!("/jobs/{nth}/resize")).collect();
    let addresses = service.addresses();
    let start = |nth: usize| start_worker(directory.path(), &addresses, &format!("{kind}-worker-{nth}"), &[], &items);
    let mut workers: Vec<Child> = (0..WORKERS).map(start).collect();
    for nth in 0..kills() {
        let before = backend.applied().len();
        let went_on = || backend.applied().len() >= before + WRITES_BETWEEN_KILLS;
        until(&format!("{kind}: writes after {nth} kills"), went_on).await;
        match nth % 3 {
            0 => {
                // Its lease ends on its own, and another worker takes the item over.
                let next = start(WORKERS + nth);
                std::mem::replace(&mut workers[nth % WORKERS], next).signal("KILL");
            }
            1 => service.kill_proxy(nth / 3).await,
            _ => service.kill_engine(nth / 3).await,
        }
    }
    let is_done = |item: &String| backend.content(item).is_some_and(|text| text.starts_with("done"));
    while !items.iter().all(is_done) {
        let before = backend.applied().len();
        until(&format!("{kind}: more writes"), || items.iter().all(is_done) || backend.applied().len() > before).await;
    }
    for worker in &mut workers {
        let status = worker.exit_status().await;
        assert!(status.success() && worker.log().ends_with("finished\n"), "{kind}, {status}: {}", worker.log());
        assert!(!worker.log().contains("unexpected"), "{kind}: {}", worker.log());
    }
    let applied: Vec<_> = backend.applied().into_iter().map(|(write, _)| write).collect();
    for item in &items {
        let writes: Vec<_> = applied.iter().filter(|write| write.target == *item).cloned().collect();
        assert_exclusion(&writes, service.keeps_leases);
    }
    println!("{kind}: {} kills, {} items, {} writes", kills(), items.len(), applied.len());
}
