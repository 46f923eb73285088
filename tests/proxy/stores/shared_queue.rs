//! Workers that take jobs through two proxies with one store, while workers and a proxy are killed.

use std::{
    collections::BTreeMap,
    fs, io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;

use super::killed_workers::{configuration, size, work_off};
use crate::{
    leases::next_member::{LISTING, job},
    support::{engines::Engine, leases::Grant, nginx::Nginx, proxy::Proxy, raw::Connection},
};

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
        let setup = configuration("job-queue.toml", nginx.addr(), &engine.store());
        let mut proxies = [Proxy::start(&setup).await, Proxy::start(&setup).await];
        let addrs = proxies.each_ref().map(Proxy::addr);
        let book = Arc::<Mutex<Book>>::default();
        let work = |number, is_over| work(number, addrs, Arc::clone(&book), is_over);
        work_off((&folder, jobs), &mut proxies, worker_count, work).await;
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
