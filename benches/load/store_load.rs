//! The client of `make bench-stores`: pairs of swaps through a store, and the least that its engine can do for a pair,
//! asked for by the same client library.
//!
//! ```text
//! store_load marks CONFIG CLIENTS SECONDS    each pair puts the mark of a write into a record and takes it out again
//! store_load leases CONFIG CLIENTS SECONDS   each pair grants a lease and releases it
//! store_load etcd URL CLIENTS SECONDS        a put and a delete
//! store_load postgres URL CLIENTS SECONDS    two updates, each a transaction, and each client on a connection of its own
//! store_load redis URL CLIENTS SECONDS       `SET NX PX` and `DEL`
//! store_load file PATH CLIENTS SECONDS       two records written into a file of a fixed size, each together with those of
//!                                            all other clients, and `fdatasync`
//! ```
//!
//! CLIENTS pairs are under way at a time, each of another resource. All runs on one thread, as in a proxy with one
//! worker. The output is the pairs a second.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a benchmark stops at the first surprise, and its numbers are small"
)]

use std::{
    env,
    fs::File,
    io::{Seek as _, Write as _},
    path::Path,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use etcd_client::{Client, ConnectOptions, KvClient};
use ifmatch::{
    config,
    core::{
        lease::{Acquire, Action, Command, LeaseDuration, LeaseId, LeaseMode, TargetName, step},
        policy::LeaseRules,
        records::{
            record::{Mark, Record, Snapshot},
            steps::{Outcome, Settlement, claim, settle},
        },
        resource::ResourceKey,
    },
    store::{self, Store, Swapped},
};
use redis::aio::ConnectionManager;
use tokio::{sync::oneshot, task::JoinSet};
use tokio_postgres::{NoTls, Statement};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Resources in all: many, and few enough for them all to be there before the time begins.
const RESOURCES: usize = 1_024;

/// About as long as the record of a write in flight is as JSON.
const RECORD: [u8; 250] = [b'x'; 250];

/// Blocks of a file that are there already need no change of its metadata: the least that a sync can be.
const FILE_BYTES: usize = 16 * 1_024 * 1_024;

/// A table as light as that of the store: half of each page is free, so an update stays within its page.
const BARE_TABLE: &str =
    "CREATE TABLE IF NOT EXISTS bare (key text PRIMARY KEY, value bytea NOT NULL) WITH (fillfactor = 50)";

/// Clients are so close together that one which has not come after this long has ended.
const BATCH_WAIT: Duration = Duration::from_millis(2);

const HOUR: Duration = Duration::from_secs(3_600);

/// One kind of pair, which each client makes of resources of its own, in turn.
#[derive(Clone)]
enum Work {
    Marks(Arc<dyn Store>),
    Leases(Arc<dyn Store>, Arc<LeaseRules>),
    Etcd(Box<KvClient>),
    Postgres(Arc<[(tokio_postgres::Client, Statement)]>),
    Redis(ConnectionManager),
    File(Sender<oneshot::Sender<()>>),
}

/// A resource, and what a store has answered about it last.
struct Resource {
    key: ResourceKey,
    client: usize,
    last: Option<Snapshot>,
}

impl Work {
    async fn open(kind: &str, place: &str, clients: usize) -> Self {
        match kind {
            "etcd" => {
                let options = ConnectOptions::new().with_require_leader(true);
                let client = Client::connect([place], Some(options)).await.expect("etcd answers");
                Self::Etcd(Box::new(client.kv_client()))
            }
            "postgres" => {
                let mut connections = Vec::new();
                for _ in 0..clients {
                    connections.push(connected(place).await);
                }
                Self::Postgres(connections.into())
            }
            "redis" => {
                let client = redis::Client::open(place).expect("a URL");
                Self::Redis(ConnectionManager::new(client).await.expect("Redis answers"))
            }
            "file" => {
                let (jobs, queue) = channel();
                let mut file = File::create(place).expect("a file");
                file.write_all(&vec![0; FILE_BYTES]).expect("room on the disk");
                file.sync_all().expect("the disk has it");
                thread::spawn(move || write_all(file, &queue, clients));
                Self::File(jobs)
            }
            _ => {
                let config = config::load(Path::new(place)).expect("a configuration").config;
                let store = store::open(&config).await.expect("the store opens").store;
                if kind == "marks" {
                    return Self::Marks(store);
                }
                let mut guards = config.routes.iter().filter_map(|route| route.guard.as_ref());
                let rules = guards.find_map(|guard| guard.lease.clone()).expect("a route with leases");
                Self::Leases(store, Arc::new(rules))
            }
        }
    }

    /// Makes sure that a store has a record of the resource, so that what is measured is not its creation.
    async fn prepare(&mut self, resource: &mut Resource) {
        if let Self::Marks(store) | Self::Leases(store, _) = self {
            resource.last = Some(store.read(&resource.key).await.expect("an answer"));
            self.pair(resource).await;
        }
        if let Self::Postgres(connections) = self {
            let (client, _) = &connections[resource.client];
            let row = "INSERT INTO bare VALUES ($1, '') ON CONFLICT DO NOTHING";
            client.execute(row, &[&resource.key.as_str()]).await.expect("there is a row");
        }
    }

    async fn pair(&mut self, resource: &mut Resource) {
        match self {
            Self::Marks(store) => {
                let read = resource.last.take().expect("it was prepared");
                resource.last = Some(write(&**store, &resource.key, &read).await);
            }
            Self::Leases(store, rules) => {
                let read = resource.last.take().expect("it was prepared");
                resource.last = Some(lease(&**store, rules, &resource.key, &read).await);
            }
            Self::Etcd(kv) => {
                kv.put(resource.key.as_str(), RECORD, None).await.expect("it is put");
                let deleted = kv.delete(resource.key.as_str(), None).await.expect("it is deleted");
                assert_eq!(deleted.deleted(), 1);
            }
            Self::Postgres(connections) => {
                let (client, update) = &connections[resource.client];
                for _ in 0..2 {
                    let updated = client.execute(update, &[&resource.key.as_str(), &RECORD.as_slice()]).await;
                    assert_eq!(updated.expect("it is updated"), 1);
                }
            }
            Self::Redis(connection) => {
                let mut set = redis::cmd("SET");
                set.arg(resource.key.as_str()).arg(RECORD.as_slice()).arg("NX").arg("PX").arg(3_600_000);
                assert!(set.query_async::<Option<String>>(connection).await.expect("it is set").is_some());
                let mut delete = redis::cmd("DEL");
                delete.arg(resource.key.as_str());
                assert_eq!(delete.query_async::<u64>(connection).await.expect("it is deleted"), 1);
            }
            Self::File(jobs) => {
                for _ in 0..2 {
                    let (written, answer) = oneshot::channel();
                    jobs.send(written).expect("the writer lives");
                    answer.await.expect("it is written");
                }
            }
        }
    }
}

/// A connection to PostgreSQL, and the update of a row.
async fn connected(url: &str) -> (tokio_postgres::Client, Statement) {
    let config: tokio_postgres::Config = url.parse().expect("a URL");
    let (client, connection) = config.clone().user("ifmatch").connect(NoTls).await.expect("PostgreSQL answers");
    tokio::spawn(connection);
    client.batch_execute(BARE_TABLE).await.expect("the table is made");
    let update = client.prepare("UPDATE bare SET value = $2 WHERE key = $1").await;
    (client, update.expect("there is a table"))
}

/// Writes a record for each client, syncs once, and answers them.
fn write_all(mut file: File, queue: &Receiver<oneshot::Sender<()>>, clients: usize) {
    while let Ok(first) = queue.recv() {
        let others = std::iter::from_fn(|| queue.recv_timeout(BATCH_WAIT).ok());
        let waiting: Vec<_> = std::iter::once(first).chain(others.take(clients - 1)).collect();
        if file.stream_position().expect("a file") as usize + RECORD.len() * clients > FILE_BYTES {
            file.rewind().expect("a file");
        }
        file.write_all(&RECORD.repeat(waiting.len())).expect("room on the disk");
        file.sync_data().expect("the disk has it");
        for written in waiting {
            // A client that has gone needs no notice.
            let _ = written.send(());
        }
    }
}

/// The effect of a guarded write on its record: its mark goes in, and comes out when the write is applied.
async fn write(store: &dyn Store, key: &ResourceKey, read: &Snapshot) -> Snapshot {
    let mark = Mark { owner: 1, nonce: 1, deadline: read.now.plus(HOUR), late_write_window: HOUR, leaves_lease: false };
    let marked = swap(store, key, read, claim(read, mark).expect("the resource is free")).await;
    let settlement = Settlement {
        mark,
        marked_at: marked.revision,
        outcome: Outcome::Applied,
        leaves: None,
        learned: None,
        shown: None,
        end: None,
    };
    let next = settle(&marked, settlement).expect("the mark is ours");
    swap(store, key, &marked, next).await
}

/// The requests of a client that takes a lease and gives it back.
async fn lease(store: &dyn Store, rules: &LeaseRules, key: &ResourceKey, read: &Snapshot) -> Snapshot {
    let id = LeaseId::from_random(read.revision.0.to_be_bytes().repeat(2).try_into().expect("16 bytes"));
    let duration = LeaseDuration::Fixed(rules.max);
    let acquire = Action::Acquire(Acquire {
        proposed: None,
        fresh: id,
        mode: LeaseMode::Exclusive,
        duration,
        holder: None,
        note: None,
        keeper: None,
        takes_over: false,
    });
    let (granted, _) = step(
        read,
        Command { action: acquire, principal: None, target: TargetName::default(), has_signed: false },
        rules,
    )
    .expect("nobody holds it");
    let granted = swap(store, key, read, granted).await;
    let release =
        Command { action: Action::Release { id }, principal: None, target: TargetName::default(), has_signed: false };
    let (released, _) = step(&granted, release, rules).expect("we hold it");
    swap(store, key, &granted, released).await
}

async fn swap(store: &dyn Store, key: &ResourceKey, read: &Snapshot, next: Record) -> Snapshot {
    match store.swap(key, read.revision, next).await.expect("an answer") {
        Swapped::Done(done) => done,
        Swapped::Conflict(_) => panic!("nobody else writes"),
    }
}

/// One client's pairs until the end.
async fn pairs(mut work: Work, mut resources: Vec<Resource>, seconds: Duration) -> u64 {
    let end = Instant::now() + seconds;
    let (mut done, count) = (0, resources.len());
    for place in (0..count).cycle() {
        work.pair(&mut resources[place]).await;
        done += 1;
        if Instant::now() >= end {
            break;
        }
        // A store that never waits would keep the thread for one client.
        tokio::task::yield_now().await;
    }
    done
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |place: usize| -> usize { arguments[place].parse().expect("a number") };
    let (clients, seconds) = (number(2), Duration::from_secs(number(3) as u64));
    let mut work = Work::open(&arguments[0], &arguments[1], clients).await;
    let mut of_clients: Vec<Vec<Resource>> = Vec::new();
    of_clients.resize_with(clients, Vec::new);
    let mut preparing = JoinSet::new();
    for number in 0..RESOURCES {
        let mut work = work.clone();
        preparing.spawn(async move {
            let key = ResourceKey::from_text(&format!("docs:/documents/{number}"));
            let mut resource = Resource { key, client: number % clients, last: None };
            work.prepare(&mut resource).await;
            resource
        });
    }
    for resource in preparing.join_all().await {
        of_clients[resource.client].push(resource);
    }
    // The first one afterwards may find caches cold.
    work.pair(&mut of_clients[0][0]).await;
    let start = Instant::now();
    let mut working = JoinSet::new();
    for resources in of_clients {
        working.spawn(pairs(work.clone(), resources, seconds));
    }
    let done = working.join_all().await.iter().sum::<u64>();
    #[allow(clippy::cast_precision_loss, reason = "millions at most")]
    let rate = done as f64 / start.elapsed().as_secs_f64();
    println!("{rate:.0}");
}
