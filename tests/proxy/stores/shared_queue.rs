//! Workers that take jobs through two proxies with one store, while workers and a proxy are killed.

use std::{
    collections::BTreeMap,
    env, fs, io,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;

use crate::{
    leases::next_member::{LISTING, job},
    support::{engines::Engine, leases::Grant, nginx::Nginx, proxy::Proxy, raw::Connection, wait::until},
};

/// The number of jobs, and of workers on them. `make job-queue` has more.
fn size() -> (usize, usize) {
    env::var("IFMATCH_JOBS").map_or((80, 8), |text| (text.parse().expect("IFMATCH_JOBS is a number"), 32))
}

/// The queue of `config/job-queue.toml` before this server, with short leases in this store.
fn configuration(backend: SocketAddr, store: &str) -> String {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("config/job-queue.toml"));
    let text = text.expect("the file").replace("listen = [\"127.0.0.1:8080\"]", "{listen}");
    // A killed proxy may have a write on its way for so long.
    let upstream = "connect_timeout = \"100ms\"\ntimeout = \"500ms\"\nlate_write_window = \"500ms\"";
    let servers = format!("servers = [\"{backend}\"]\n{upstream}");
    let text = text.replace("servers = [\"127.0.0.1:9000\"]", &servers);
    format!("{text}\n[store]\n{store}\ntimeout = \"10s\"\n")
}

/// The results of the jobs: the number of times that each was finished, and the receipts of each.
#[derive(Default)]
struct Book {
    finished: BTreeMap<String, usize>,
    fences: BTreeMap<String, Vec<u64>>,
}

/// A worker that takes jobs until none is left, through one proxy or the other. Those of number 0 forget each third job, as
/// if they had died.
async fn work(number: usize, addrs: [SocketAddr; 2], book: Arc<Mutex<Book>>, is_over: Arc<AtomicBool>) {
    let mut taken = 0;
    while !is_over.load(Ordering::Relaxed) {
        for addr in addrs {
            let _ = through(addr, number, &mut taken, &book).await;
        }
    }
}

/// Takes jobs over one connection until the proxy breaks off, or has no job.
async fn through(addr: SocketAddr, number: usize, taken: &mut usize, book: &Mutex<Book>) -> io::Result<()> {
    let mut connection = Connection::try_open(addr).await?;
    loop {
        let taking = [("Lease-Duration", "1"), ("Prefer", "wait=1")];
        let response = connection.try_exchange("GET", "/jobs", &taking, "").await?;
        if response.status != 200 {
            return Ok(());
        }
        let (path, grant) = (job(&response), Grant::of(&response));
        book.lock().fences.entry(path.clone()).or_default().push(grant.fence);
        *taken += 1;
        if number == 0 && taken.is_multiple_of(3) {
            continue;
        }
        let deleted = connection.try_exchange("DELETE", &path, &[("Lease-Id", &grant.id)], "").await?;
        if deleted.status == 204 {
            *book.lock().finished.entry(path).or_default() += 1;
        }
    }
}

/// Each job is finished once, for any proxies and workers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_job_is_finished_once_through_two_proxies_one_of_which_is_killed() {
    let (jobs, worker_count) = size();
    for engine in Engine::all().await {
        let nginx = Nginx::with(LISTING).await;
        let folder = nginx.root().join("jobs");
        fs::create_dir(&folder).expect("a directory");
        for number in 0..jobs {
            fs::write(folder.join(format!("{number:05}")), number.to_string()).expect("a file");
        }
        let setup = configuration(nginx.addr(), &engine.store());
        let mut proxies = [Proxy::start(&setup).await, Proxy::start(&setup).await];
        let addrs = proxies.each_ref().map(Proxy::addr);
        let (book, is_over) = (Arc::<Mutex<Book>>::default(), Arc::new(AtomicBool::new(false)));
        let start = |number| tokio::spawn(work(number, addrs, Arc::clone(&book), Arc::clone(&is_over)));
        let mut workers: Vec<_> = (0..worker_count).map(start).collect();
        let left = || fs::read_dir(&folder).expect("a folder").count();
        for killed in 0..2 {
            until("some jobs", || left() <= jobs - (killed + 1) * jobs / 4).await;
            proxies[1].signal("KILL");
            proxies[1].restart().await;
            workers[killed + 1].abort();
            workers[killed + 1] = start(worker_count + killed);
        }
        until("all jobs", || left() == 0).await;
        is_over.store(true, Ordering::Relaxed);
        for worker in workers {
            let _ = worker.await;
        }
        let book = book.lock();
        assert!(book.finished.values().all(|times| *times == 1), "{:?}", book.finished);
        for (path, fences) in &book.fences {
            let mut sorted = fences.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), fences.len(), "{path} went to two workers by one fence");
        }
    }
}
