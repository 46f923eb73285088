//! A pool of worker processes that share work items by leases, one of which stalls for longer than its lease.

use crate::support::{
    backend::Backend,
    child::Child,
    proxy::Proxy,
    wait::{until, until_some},
    workers::{assert_exclusion, is_by, locks, start_worker},
};

const WORKERS: usize = 8;
const ITEMS: usize = 10;

#[tokio::test]
async fn a_stalled_worker_writes_nothing_after_it_was_overtaken() {
    let backend = Backend::start().await;
    let proxy = Proxy::start(&locks(&backend, "", "")).await;
    let addr = proxy.addr().to_string();
    let directory = tempfile::tempdir().expect("a directory");
    let items: Vec<String> = (0..ITEMS).map(|number| format!("/jobs/{number}/resize")).collect();
    let mut stalled = start_worker(directory.path(), &addr, "stalled", &["--stall"], &items);
    let item = until_some("a worker to stall", || {
        stalled.log().lines().find_map(|line| line.strip_prefix("stalls ").map(str::to_owned))
    })
    .await;
    let mut others: Vec<Child> = (1..WORKERS)
        .map(|number| start_worker(directory.path(), &addr, &format!("worker-{number}"), &[], &items))
        .collect();
    let taken = || backend.seen("PUT", &item).iter().any(|write| write.complete && !is_by(write, "stalled"));
    until("another worker to take the item", taken).await;
    let writes_before = backend.seen("PUT", &item).iter().filter(|write| is_by(write, "stalled")).count();
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
        assert_exclusion(&backend.seen("PUT", item), true);
    }
    let done = |child: &Child| child.log().lines().filter(|line| line.starts_with("did ")).count();
    assert_eq!(others.iter().chain([&stalled]).map(done).sum::<usize>(), ITEMS, "each item is done once");
}
