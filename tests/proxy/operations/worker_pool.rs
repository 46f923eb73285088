//! A pool of worker processes that share work items by leases, one of which stalls for longer than its lease.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use crate::support::{
    backend::{Backend, Request},
    child::Child,
    proxy::Proxy,
    wait::{until, until_some},
};

const WORKERS: usize = 8;
const ITEMS: usize = 10;

/// The lock service of `config/worker-locks.toml`, with shorter leases.
async fn start_locks(backend: &Backend) -> Proxy {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("config/worker-locks.toml"));
    let text = text.expect("the file").replace("listen = [\"127.0.0.1:8080\"]", "{listen}");
    let text = text.replace("127.0.0.1:9000", &backend.addr().to_string());
    Proxy::start(&text.replace("min = \"5s\"", "min = \"1s\"")).await
}

fn start_worker(directory: &Path, proxy: &Proxy, name: &str, options: &[&str], items: &[String]) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers/worker.py");
    let mut command = Command::new("python3");
    command.arg(script).args([&proxy.addr().to_string(), name]).args(options).args(items);
    Child::spawn(name, &mut command, directory.join(name))
}

fn fence(write: &Request) -> u64 {
    write.header("fencing-token").expect("each write carries a fence").parse().expect("a number")
}

/// Who sent a write, by its body.
fn author(write: &Request) -> String {
    let text = String::from_utf8(write.body.clone()).expect("text");
    text.split(" by ").nth(1).expect("an author").to_owned()
}

/// Each item is written by one holder at a time: fences never go down, and each has one author.
fn check_writes(backend: &Backend, item: &str) {
    let writes = backend.seen("PUT", item);
    let fences: Vec<u64> = writes.iter().map(fence).collect();
    assert!(fences.is_sorted(), "{item}: {fences:?}");
    let mut authors = BTreeMap::new();
    for write in &writes {
        let first = authors.entry(fence(write)).or_insert_with(|| author(write));
        assert_eq!(*first, author(write), "{item} was written by two holders for one fence");
    }
}

#[tokio::test]
async fn a_stalled_worker_writes_nothing_after_it_was_overtaken() {
    let backend = Backend::start().await;
    let proxy = start_locks(&backend).await;
    let directory = tempfile::tempdir().expect("a directory");
    let items: Vec<String> = (0..ITEMS).map(|number| format!("/jobs/{number}/resize")).collect();
    let mut stalled = start_worker(directory.path(), &proxy, "stalled", &["--stall"], &items);
    let item = until_some("a worker to stall", || {
        stalled.log().lines().find_map(|line| line.strip_prefix("stalls ").map(str::to_owned))
    })
    .await;
    let mut others: Vec<Child> = (1..WORKERS)
        .map(|number| start_worker(directory.path(), &proxy, &format!("worker-{number}"), &[], &items))
        .collect();
    let taken = || backend.seen("PUT", &item).iter().any(|write| write.complete && author(write) != "stalled");
    until("another worker to take the item", taken).await;
    let writes_before = backend.seen("PUT", &item).iter().filter(|write| author(write) == "stalled").count();
    assert_eq!(writes_before, 1);

    stalled.signal("CONT");
    until("the stalled worker to be refused", || stalled.log().contains(&format!("refused {item}"))).await;
    for worker in others.iter_mut().chain([&mut stalled]) {
        let status = worker.exit_status().await;
        assert!(status.success() && worker.log().ends_with("finished\n"), "{status}: {}", worker.log());
        assert!(!worker.log().contains("unexpected"), "{}", worker.log());
    }
    for item in &items {
        assert!(backend.content(item).is_some_and(|text| text.starts_with("done")), "{item} is not done");
        check_writes(&backend, item);
    }
    let done = |child: &Child| child.log().lines().filter(|line| line.starts_with("did ")).count();
    assert_eq!(others.iter().chain([&stalled]).map(done).sum::<usize>(), ITEMS, "each item is done once");
}
