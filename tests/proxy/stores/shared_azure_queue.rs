//! Workers with messages of an Azure queue: alone, and through two proxies while workers and a proxy are killed.

use std::{
    collections::BTreeMap,
    fs, io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use parking_lot::Mutex;

use super::killed_workers::{configuration, size, work_off};
use crate::{
    leases::next_member::LISTING,
    operations::example_files::start_in_front_of,
    support::{
        engines::Engine,
        nginx::Nginx,
        proxy::Proxy,
        queues::{Taken, body_of, create, take, try_take},
        raw::Connection,
    },
};

/// The number of workers on a queue that nobody is killed at.
const WORKERS: usize = 32;

/// Puts messages whose texts are their numbers, over several connections.
async fn fill(addr: SocketAddr, count: usize) {
    create(addr, "jobs").await;
    let senders = (0..8).map(|sender| {
        tokio::spawn(async move {
            let mut connection = Connection::open(addr).await;
            for number in (sender..count).step_by(8) {
                let put = connection.exchange("POST", "/jobs/messages", &[], body_of(&number.to_string())).await;
                assert_eq!(put.status, 201, "{put:?}");
            }
        })
    });
    for sender in senders.collect::<Vec<_>>() {
        sender.await.expect("no panic");
    }
}

/// How often each message was finished.
type Finished = Mutex<BTreeMap<String, usize>>;

/// A worker that takes messages until none is left, through one proxy or the other. Those of number 0 forget each third
/// message, as if they had died.
async fn work(number: usize, addrs: [SocketAddr; 2], finished: Arc<Finished>, is_over: Arc<AtomicBool>) {
    let mut taken = 0;
    while !is_over.load(Ordering::Relaxed) {
        for addr in addrs {
            let _ = through(addr, number, &mut taken, &finished).await;
        }
    }
}

/// Takes messages over one connection until the proxy breaks off, or has no message.
async fn through(addr: SocketAddr, number: usize, taken: &mut usize, finished: &Finished) -> io::Result<()> {
    let mut connection = Connection::try_open(addr).await?;
    while let Some(message) = try_take(&mut connection, "jobs", 2).await? {
        *taken += 1;
        if number == 0 && taken.is_multiple_of(3) {
            continue;
        }
        let deleted = connection.try_exchange("DELETE", &message.target("jobs"), &[], "").await?;
        if deleted.status == 204 {
            *finished.lock().entry(message.text).or_default() += 1;
        }
    }
    Ok(())
}

/// Each message is finished once, for any proxies and workers. None is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_message_is_finished_once_through_two_proxies_one_of_which_is_killed() {
    let (messages, worker_count) = size();
    for engine in Engine::all().await {
        let nginx = Nginx::with(LISTING).await;
        let setup = configuration("azure-queue.toml", nginx.addr(), &engine.store());
        let mut proxies = [Proxy::start(&setup).await, Proxy::start(&setup).await];
        let addrs = proxies.each_ref().map(Proxy::addr);
        fill(addrs[0], messages).await;
        let folder = nginx.root().join("jobs");
        let finished = Arc::<Finished>::default();
        let work = |number, is_over| work(number, addrs, Arc::clone(&finished), is_over);
        work_off((&folder, messages), &mut proxies, worker_count, work).await;
        let finished = finished.lock();
        assert!(finished.values().all(|times| *times == 1), "{finished:?}");
        // The answers to some deletions are lost with a proxy or a worker: each has one request at a time.
        let unknown = messages - finished.len();
        assert!(unknown <= 2 * (worker_count + 1), "{unknown} of {messages} messages are gone untold");
    }
}

/// A message costs a read, a write and a deletion, and two workers never have one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_workers_on_a_queue_each_gets_other_messages() {
    let (messages, _) = size();
    let nginx = Nginx::with(LISTING).await;
    let proxy = start_in_front_of(nginx.addr(), "azure-queue.toml").await;
    let addr = proxy.addr();
    fill(addr, messages).await;
    let started = Instant::now();
    let workers = (0..WORKERS).map(|_| {
        tokio::spawn(async move {
            let (mut connection, mut handled) = (Connection::open(addr).await, Vec::new());
            while let Some(message) = try_take(&mut connection, "jobs", 60).await.expect("an answer") {
                let deleted = connection.exchange("DELETE", &message.target("jobs"), &[], "").await;
                assert_eq!((deleted.status, message.count), (204, 1), "{deleted:?}");
                handled.push(message.text);
            }
            handled
        })
    });
    let mut handled = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        handled.extend(worker.await.expect("no panic"));
    }
    let taken = rate(messages, started);
    handled.sort_unstable();
    handled.dedup();
    assert_eq!(handled.len(), messages);
    assert_eq!(take(addr, "jobs", (1, 1)).await, Vec::<Taken>::new());

    // The same number of files, each read and deleted by its name through the proxy of a plain queue.
    let plain = start_in_front_of(nginx.addr(), "job-queue.toml").await;
    let names: Vec<String> = (0..messages).map(|number| format!("{number:05}")).collect();
    for name in &names {
        fs::write(nginx.root().join("jobs").join(name), name).expect("a file");
    }
    let started = Instant::now();
    let workers = (0..WORKERS).map(|number| {
        let own: Vec<String> = names.iter().skip(number).step_by(WORKERS).map(|name| format!("/jobs/{name}")).collect();
        let addr = plain.addr();
        tokio::spawn(async move {
            let mut connection = Connection::open(addr).await;
            for path in &own {
                assert_eq!(connection.exchange("GET", path, &[], "").await.status, 200);
                assert_eq!(connection.exchange("DELETE", path, &[], "").await.status, 204);
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.expect("no panic");
    }
    let by_name = rate(messages, started);
    println!(
        "{messages} messages, {WORKERS} workers: {taken:.0}/s taken and deleted, {by_name:.0}/s read and deleted by name"
    );
}

fn rate(count: usize, started: Instant) -> f64 {
    f64::from(u32::try_from(count).expect("few")) / started.elapsed().as_secs_f64()
}
