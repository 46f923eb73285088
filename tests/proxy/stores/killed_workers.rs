//! Workers on a queue of jobs, through two proxies with one store, while workers and a proxy are killed.

use std::{
    env, fs,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::support::{proxy::Proxy, wait::until_left};

/// The number of jobs, and of workers on them. `make job-queue` and `make azure-queue` have more.
pub fn size() -> (usize, usize) {
    env::var("IFMATCH_JOBS").map_or((80, 8), |text| (text.parse().expect("IFMATCH_JOBS is a number"), 32))
}

/// The queue of one of the example files before this server, with this store.
pub fn configuration(file: &str, backend: SocketAddr, store: &str) -> String {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(file));
    let text = text.expect("the file").replace("listen = [\"127.0.0.1:8080\"]", "{listen}");
    // A killed proxy may have a write on its way for so long.
    let upstream = "connect_timeout = \"2s\"\ntimeout = \"2s\"\nlate_write_window = \"500ms\"";
    let servers = format!("servers = [\"{backend}\"]\n{upstream}");
    let text = text.replace("servers = [\"127.0.0.1:9000\"]", &servers);
    format!("{text}\n[store]\n{store}\ntimeout = \"10s\"\n")
}

/// Runs workers until the folder of the jobs is empty. `work` is one of them: it has a number, and works until it learns
/// that all is over. Twice the second proxy and a worker are killed, and others take their places.
pub async fn work_off<W>(
    (folder, jobs): (&Path, usize),
    proxies: &mut [Proxy; 2],
    worker_count: usize,
    work: impl Fn(usize, Arc<AtomicBool>) -> W,
) where
    W: Future<Output = ()> + Send + 'static,
{
    let is_over = Arc::new(AtomicBool::new(false));
    let start = |number| tokio::spawn(work(number, Arc::clone(&is_over)));
    let mut workers: Vec<_> = (0..worker_count).map(start).collect();
    let left = || fs::read_dir(folder).expect("a folder").count();
    for killed in 0..2 {
        until_left("some jobs", jobs - (killed + 1) * jobs / 4, left).await;
        proxies[1].signal("KILL");
        proxies[1].restart().await;
        workers[killed + 1].abort();
        workers[killed + 1] = start(worker_count + killed);
    }
    until_left("all jobs", 0, left).await;
    is_over.store(true, Ordering::Relaxed);
    for worker in workers {
        let _ = worker.await;
    }
}
