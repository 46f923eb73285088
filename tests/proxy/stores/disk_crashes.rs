//! Leases on disk, and a process that is killed at any moment: the answers that clients got stay true.

use std::{
    fmt::Write,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::support::{
    backend::Backend,
    leases::{Grant, lease, view},
    proxy::{Proxy, Setup},
    random::Random,
    raw::{Connection, send},
    response::Response,
    wait::{DEADLINE, until},
};

/// The default of `IFMATCH_CRASHES`; in `make crash` they are 200.
const CRASHES: usize = 12;
const CLIENTS: usize = 8;
const ITEMS_OF_EACH: usize = 4;

/// The knowledge of a client about a lease.
#[derive(Debug)]
enum Told {
    Free,
    Held(Grant),
    /// It asked for a change, and was not answered.
    Nothing,
}

struct Item {
    target: String,
    told: Told,
}

pub fn setup(backend: &Backend, file: &Path, late_write_window: &str) -> Setup {
    let mut leases = String::from("policy = \"pessimistic\"\netag = \"version\"\nother_writers = false\n");
    leases.push_str("[routes.lease]\nauth = \"none\"\nabsent = \"allow\"\ninfinite = true\nmax_per_principal = 1000\n");
    let mut store = String::from("kind = \"disk\"\n");
    writeln!(store, "path = {:?}", file.to_str().expect("UTF-8")).expect("a String takes all");
    Proxy::to(backend.addr())
        .store(&store)
        .upstream(&format!("late_write_window = {late_write_window:?}"))
        .route(&leases)
}

pub async fn start(backend: &Backend, file: &Path, late_write_window: &str) -> Proxy {
    setup(backend, file, late_write_window).start().await
}

/// One operation after another until the process is gone; the items as their client knows them then.
async fn work(
    mut connection: Connection,
    mut items: Vec<Item>,
    mut random: Random,
    answered: Arc<AtomicUsize>,
) -> Vec<Item> {
    loop {
        let item = &mut items[random.below(ITEMS_OF_EACH)];
        let target = format!("/.leases{}", item.target);
        let told = std::mem::replace(&mut item.told, Told::Nothing);
        let (method, fields) = match &told {
            Told::Held(grant) => ("DELETE", [("Lease-Id", grant.id.as_str())]),
            Told::Free | Told::Nothing => ("POST", [("Lease-Duration", "infinite")]),
        };
        let Ok(response) = connection.try_exchange(method, &target, &fields, "").await else { return items };
        item.told = told_by(&response);
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

#[track_caller]
fn told_by(response: &Response) -> Told {
    match response.status {
        201 => Told::Held(Grant::of(response)),
        204 => Told::Free,
        _ => panic!("each lease has one client, so it gets what it asks for: {response:?}"),
    }
}

/// Checks that everything is as the clients know it. They learn the facts that they did not know.
async fn check(addr: SocketAddr, items: &mut [Item], round: usize) {
    for item in items {
        let now = view(addr, &item.target).await;
        match &item.told {
            Told::Free => assert_eq!(now["state"], "available", "round {round}: {} was released", item.target),
            Told::Held(grant) => {
                assert_eq!((&now["state"], &now["fence"]), (&"leased".into(), &grant.fence.into()), "round {round}");
                let renewed = lease(addr, "PUT", &item.target, &[("Lease-Id", &grant.id)]).await;
                assert_eq!(renewed.status, 200, "round {round}: its id is still its proof: {renewed:?}");
            }
            // An unanswered grant has no holder, and no client knows its id: another item takes its place.
            Told::Nothing if now["state"] == "leased" => {
                item.target.push_str("-again");
                item.told = Told::Free;
            }
            Told::Nothing => item.told = Told::Free,
        }
    }
}

async fn crash(crashes: usize) {
    let mut random = Random::new("crashes");
    let (backend, directory) = (Backend::start().await, tempfile::tempdir().expect("a directory"));
    let file = directory.path().join("leases");
    let item = |number: usize| Item { target: format!("/item/{number}"), told: Told::Free };
    let mut items: Vec<Item> = (0..CLIENTS * ITEMS_OF_EACH).map(item).collect();
    let mut greatest_fence = 0;
    for round in 1..=crashes {
        let mut proxy = start(&backend, &file, "0s").await;
        check(proxy.addr(), &mut items, round).await;
        let answered = Arc::new(AtomicUsize::new(0));
        let mut clients = JoinSet::new();
        while !items.is_empty() {
            let own = items.split_off(items.len() - ITEMS_OF_EACH);
            clients.spawn(work(Connection::open(proxy.addr()).await, own, random.fork(), Arc::clone(&answered)));
        }
        // At least one: a grant that no client knows of cannot be lost.
        let enough = 1 + random.below(100);
        until("the clients to work", || answered.load(Ordering::Relaxed) >= enough).await;
        proxy.signal("KILL");
        items = clients.join_all().await.into_iter().flatten().collect();
        proxy.exit_status().await;
        let fences = items.iter().filter_map(|item| match &item.told {
            Told::Held(grant) => Some(grant.fence),
            Told::Free | Told::Nothing => None,
        });
        let mut fences: Vec<u64> = fences.collect();
        fences.sort_unstable();
        assert!(fences.windows(2).all(|pair| pair[0] < pair[1]), "round {round}: a fence was given twice: {fences:?}");
        greatest_fence = greatest_fence.max(fences.last().copied().unwrap_or_default());
    }
    let proxy = start(&backend, &file, "0s").await;
    check(proxy.addr(), &mut items, crashes + 1).await;
    let last = Grant::of(&lease(proxy.addr(), "POST", "/last", &[("Lease-Duration", "infinite")]).await);
    assert!(last.fence > greatest_fence, "fences only grow");
}

/// A write that the process before had sent may still be applied: nothing is in the file about it.
#[tokio::test]
async fn after_a_crash_writes_and_grants_are_held_back_for_as_long_as_a_write_may_come_late() {
    let (backend, directory) = (Backend::start().await, tempfile::tempdir().expect("a directory"));
    let file = directory.path().join("leases");
    let mut crashed = start(&backend, &file, "1s").await;
    // It takes connections before it has its store.
    view(crashed.addr(), "/doc").await;
    crashed.signal("KILL");
    crashed.exit_status().await;
    let mut proxy = start(&backend, &file, "1s").await;
    let asks = [("PUT", "/doc", "a write"), ("POST", "/.leases/doc", "a grant")];
    for (method, target, what) in asks {
        let refused = send(proxy.addr(), method, target, &[], "").await;
        refused.refused(409, "write-in-flight");
        assert_eq!(refused.header("retry-after"), Some("1"), "{what}");
    }
    assert_eq!(backend.seen("PUT", "/doc").len(), 0);
    let end = Instant::now() + DEADLINE;
    while send(proxy.addr(), "PUT", "/doc", &[], "one").await.status != 201 {
        assert!(Instant::now() < end, "it is held back for ever");
        sleep(Duration::from_millis(20)).await;
    }
    proxy.signal("TERM");
    assert!(proxy.exit_status().await.success());

    let proxy = start(&backend, &file, "1h").await;
    assert_eq!(send(proxy.addr(), "PUT", "/doc", &[], "two").await.status, 204, "the last one ended in good order");
}

/// DESIGN, section 3, rule 10: a write beside a lease ends no lease that is held, with any fate of the process.
#[tokio::test]
async fn a_lease_survives_a_crash_in_the_middle_of_a_write_that_touches_its_resource() {
    const PROJECT: &str = "/projects/1";
    let (backend, directory) = (Backend::start().await, tempfile::tempdir().expect("a directory"));
    let file = directory.path().join("leases");
    let configuration = setup(&backend, &file, "0s").configuration();
    let (tables, route) = configuration.split_once("[[routes]]").expect("a route");
    let items = route.replace("\"all\"", "\"items\"").replace("\"/{*rest}\"", "\"/projects/{project}/items/{item}\"");
    let items = items.replace("[routes.lease]", "also_changes = [\"/projects/{project}\"]\n[routes.lease]");
    let configuration = format!("{tables}[[routes]]{route}\n[[routes]]{items}");
    let mut crashed = Proxy::start(&configuration).await;
    let grant = Grant::of(&lease(crashed.addr(), "POST", PROJECT, &[("Lease-Duration", "infinite")]).await);
    let held = backend.hold("PUT", "/projects/1/items/2");
    let addr = crashed.addr();
    let writer =
        tokio::spawn(
            async move { Connection::open(addr).await.try_exchange("PUT", "/projects/1/items/2", &[], "x").await },
        );
    let write = held.arrived().await;
    crashed.signal("KILL");
    crashed.exit_status().await;
    drop(write);
    assert!(writer.await.unwrap().is_err(), "nobody was left to answer it");

    let proxy = Proxy::start(&configuration).await;
    let now = view(proxy.addr(), PROJECT).await;
    assert_eq!((&now["state"], &now["fence"]), (&"leased".into(), &grant.fence.into()));
    send(proxy.addr(), "PUT", PROJECT, &[], "stolen").await.refused(412, "lease-id-missing");
    lease(proxy.addr(), "POST", PROJECT, &[("Lease-Duration", "infinite")]).await.refused(409, "lease-held");
    let held = send(proxy.addr(), "PUT", PROJECT, &[("Lease-Id", &grant.id)], "mine").await;
    assert_eq!(held.status, 201, "{held:?}");
}

#[tokio::test]
async fn what_clients_were_told_of_leases_survives_any_crash() {
    let crashes = std::env::var("IFMATCH_CRASHES").map_or(CRASHES, |crashes| crashes.parse().expect("a number"));
    crash(crashes).await;
}
