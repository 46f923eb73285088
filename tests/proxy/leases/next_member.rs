//! A GET of a collection that takes the first member without a holder (`members`, `index`).

use std::{
    collections::BTreeSet,
    env, fs,
    net::SocketAddr,
    time::{Duration, Instant, SystemTime},
};

use crate::{
    operations::example_files::{start_changed, start_in_front_of},
    support::{
        backend::{Answer, Backend, Request},
        leases::{Grant, lease, view},
        nginx::Nginx,
        proxy::Proxy,
        raw::{Connection, get, put, send},
        response::Response,
        wsgidav::Wsgidav,
    },
};

/// A file server whose folders are lists in JSON.
pub const LISTING: &str = "etag off; if_modified_since off; autoindex on; autoindex_format json;";
const JSON_INDEX: &str = "index = \"json:/jobs\"";
const WORKERS: usize = 32;

/// A worker's request for the next job.
pub async fn take(addr: SocketAddr, fields: &[(&str, &str)]) -> Response {
    let fields: Vec<_> = [("Lease-Duration", "30")].into_iter().chain(fields.iter().copied()).collect();
    send(addr, "GET", "/jobs", &fields, "").await
}

/// The path of the job that a worker has got.
#[track_caller]
pub fn job(response: &Response) -> String {
    assert_eq!(response.status, 200, "{response:?}");
    response.header("content-location").expect("a path").to_owned()
}

async fn finish(addr: SocketAddr, response: &Response) -> u16 {
    send(addr, "DELETE", &job(response), &[("Lease-Id", &Grant::of(response).id)], "").await.status
}

/// The queue of `config/job-queue.toml` before nginx, with these jobs.
async fn queue(jobs: &[&str]) -> (Nginx, Proxy) {
    let nginx = Nginx::with(LISTING).await;
    fs::create_dir(nginx.root().join("jobs")).expect("a directory");
    for name in jobs {
        fs::write(nginx.root().join("jobs").join(name), format!("job {name}")).expect("a file");
    }
    let proxy = start_in_front_of(nginx.addr(), "job-queue.toml").await;
    (nginx, proxy)
}

/// The same before a backend that lists its jobs under `/jobs`.
async fn listing(index: &str) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put("/jobs", index);
    let text = |text: String| text.replace("index = \"nginx-json\"", JSON_INDEX);
    let proxy = start_changed(backend.addr(), "job-queue.toml", text).await;
    (backend, proxy)
}

#[tokio::test]
async fn workers_take_the_first_job_that_nobody_has() {
    let (nginx, proxy) = queue(&["2", "10", "1 ä"]).await;
    fs::create_dir(nginx.root().join("jobs/0")).expect("a folder is no job");
    let addr = proxy.addr();
    let before = SystemTime::now();
    let first = take(addr, &[]).await;
    assert_eq!((job(&first).as_str(), first.text()), ("/jobs/1%20%C3%A4", "job 1 ä"));
    assert_eq!((first.header("lease-duration"), first.header("preference-applied")), (Some("30"), None));
    assert_eq!(first.headers.all("cache-control"), ["no-store"]);
    let expires = httpdate::parse_http_date(first.header("lease-expires").expect("a date")).expect("a date");
    let latest = SystemTime::now() + Duration::from_secs(30);
    assert!(expires <= latest && expires + Duration::from_secs(1) >= before + Duration::from_secs(30));
    let second = take(addr, &[]).await;
    assert_eq!(job(&second), "/jobs/10");
    assert!(Grant::of(&second).fence > Grant::of(&first).fence);
    assert_eq!(job(&take(addr, &[]).await), "/jobs/2");
    let none = take(addr, &[]).await;
    assert_eq!((none.status, none.headers.all("cache-control")), (204, vec!["no-store"]));

    assert_eq!(finish(addr, &first).await, 204);
    assert_eq!(take(addr, &[]).await.status, 204);
    let receipt = Grant::of(&second).id;
    assert_eq!(lease(addr, "DELETE", "/jobs/10", &[("Lease-Id", &receipt)]).await.status, 204);
    assert_eq!(job(&take(addr, &[]).await), "/jobs/10", "what a worker gives up goes to another one");
    send(addr, "DELETE", "/jobs/10", &[("Lease-Id", &receipt)], "").await.refused(412, "lease-id-mismatch");
    assert_eq!(put(addr, "/jobs/1", &[("If-None-Match", "*")], "new").await.status, 201);
    assert_eq!(job(&take(addr, &[]).await), "/jobs/1", "a new job is there at once");
    let list = get(addr, "/jobs/").await;
    assert!(list.status == 200 && list.text().contains("\"10\""), "a plain GET is the list: {list:?}");
}

/// The number of jobs that the workers drain. `make job-queue` has more.
fn job_count() -> usize {
    env::var("IFMATCH_JOBS").map_or(300, |text| text.parse().expect("IFMATCH_JOBS is a number"))
}

/// Runs workers, each with its number, and returns what they have handled, and how many a second.
async fn run<F>(worker: impl Fn(usize) -> F) -> (Vec<String>, f64)
where
    F: Future<Output = Vec<String>> + Send + 'static,
{
    let started = Instant::now();
    let mut handled = Vec::new();
    for worker in (0..WORKERS).map(|number| tokio::spawn(worker(number))).collect::<Vec<_>>() {
        handled.extend(worker.await.expect("no panic"));
    }
    let count = u32::try_from(handled.len()).expect("few");
    (handled, f64::from(count) / started.elapsed().as_secs_f64())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_workers_each_gets_other_jobs() {
    let jobs = job_count();
    let names: Vec<String> = (0..jobs).map(|number| format!("{number:05}")).collect();
    let (nginx, proxy) = queue(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let addr = proxy.addr();
    let started = Instant::now();
    let (handled, taken) = run(|_| async move {
        let (mut connection, mut handled) = (Connection::open(addr).await, Vec::new());
        loop {
            let response = connection.exchange("GET", "/jobs", &[("Lease-Duration", "30")], "").await;
            if response.status == 204 {
                return handled;
            }
            let (path, receipt) = (job(&response), Grant::of(&response).id);
            let deleted = connection.exchange("DELETE", &path, &[("Lease-Id", &receipt)], "").await;
            assert_eq!(deleted.status, 204, "{deleted:?}");
            handled.push(path);
        }
    })
    .await;
    assert_eq!(handled.iter().collect::<BTreeSet<_>>().len(), jobs);
    assert_eq!(handled.len(), jobs, "no job is handled twice");
    let folder = nginx.root().join("jobs");
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0);
    let lists = nginx.access_lines().await.iter().filter(|line| line.starts_with("GET /jobs/ ")).count();
    // Once a second, once for each page, and for each worker at the end.
    let most = usize::try_from(started.elapsed().as_secs()).expect("few") + jobs / 1_000 + WORKERS + 2;
    assert!(lists <= most, "the index was read {lists} times");

    for name in &names {
        fs::write(folder.join(name), name).expect("a file");
    }
    let (_, by_name) = run(|number| {
        let own: Vec<String> = names.iter().skip(number).step_by(WORKERS).map(|name| format!("/jobs/{name}")).collect();
        async move {
            let mut connection = Connection::open(addr).await;
            for path in &own {
                assert_eq!(connection.exchange("GET", path, &[], "").await.status, 200);
                assert_eq!(connection.exchange("DELETE", path, &[], "").await.status, 204);
            }
            own
        }
    })
    .await;
    println!("{jobs} jobs, {WORKERS} workers: {taken:.0}/s taken and deleted, {by_name:.0}/s read and deleted by name");
}

/// Rule 16: clients that wait get their turns in the order of arrival.
#[tokio::test]
async fn a_worker_waits_for_a_job() {
    let (nginx, proxy) = queue(&[]).await;
    let addr = proxy.addr();
    let wait = || tokio::spawn(async move { take(addr, &[("Prefer", "wait=30")]).await });
    let first = wait();
    let lists = async || nginx.access_lines().await.iter().filter(|line| line.starts_with("GET /jobs/ ")).count();
    while lists().await == 0 {}
    let second = wait();
    assert_eq!(put(addr, "/jobs/a", &[], "one").await.status, 201);
    let got = first.await.expect("no panic");
    assert_eq!((job(&got).as_str(), got.header("preference-applied")), ("/jobs/a", Some("wait")));
    assert_eq!(put(addr, "/jobs/b", &[], "two").await.status, 201);
    assert_eq!(job(&second.await.expect("no panic")), "/jobs/b");
    let none = take(addr, &[("Prefer", "wait=1")]).await;
    assert_eq!((none.status, none.header("preference-applied")), (204, Some("wait")));
}

/// A job whose worker has died comes back, and wakes a client that waits for it.
#[tokio::test]
async fn a_job_is_free_again_when_its_lease_has_run_out() {
    let (_nginx, proxy) = queue(&["1"]).await;
    let addr = proxy.addr();
    let dead = send(addr, "GET", "/jobs", &[("Lease-Duration", "1")], "").await;
    let next = take(addr, &[("Prefer", "wait=30")]).await;
    assert_eq!(job(&next), job(&dead));
    assert!(Grant::of(&next).fence > Grant::of(&dead).fence);
}

#[tokio::test]
async fn what_is_not_there_or_not_allowed_is_passed_over() {
    let (backend, proxy) = listing(r#"{"jobs":["1","2","3","../secret","a/b","%2e%2e"]}"#).await;
    let addr = proxy.addr();
    backend.put("/jobs/2", "hidden");
    backend.put("/jobs/3", "three");
    backend.put("/secret", "secret");
    backend.always("GET", "/jobs/2", |_| Answer::status(403));
    assert_eq!(job(&take(addr, &[]).await), "/jobs/3");
    assert_eq!(take(addr, &[]).await.status, 204);
    backend.put("/jobs/1", "one");
    assert_eq!(view(addr, "/jobs/1").await["state"], "available", "its lease was taken back");
    assert_eq!(job(&take(addr, &[]).await), "/jobs/1");
    let targets: BTreeSet<String> = backend.requests().into_iter().map(|request| request.target).collect();
    assert!(targets.iter().all(|target| target.starts_with("/jobs") && !target.contains("secret")), "{targets:?}");
}

/// The backend decides who may see the index and the jobs. An answer for one client is shown to no other.
#[tokio::test]
async fn no_worker_learns_what_the_backend_has_shown_to_another() {
    let (backend, proxy) = listing(r#"{"jobs":["1","2"]}"#).await;
    let addr = proxy.addr();
    backend.put("/jobs/1", "one");
    backend.put("/jobs/2", "two");
    let knows = |request: &Request| request.header("authorization") == Some("Bearer ann");
    backend.always_where(move |request| !knows(request), |_| Answer::status(401).header("WWW-Authenticate", "Bearer"));
    assert_eq!(job(&take(addr, &[("Authorization", "Bearer ann")]).await), "/jobs/1");
    for fields in [&[][..], &[("Authorization", "Bearer bob")]] {
        let stranger = take(addr, fields).await;
        assert_eq!((stranger.status, stranger.header("www-authenticate")), (401, Some("Bearer")), "{stranger:?}");
        assert!(stranger.header("content-location").is_none() && stranger.header("lease-id").is_none());
    }
    assert_eq!(job(&take(addr, &[("Authorization", "Bearer ann")]).await), "/jobs/2");
}

#[tokio::test]
async fn what_the_backend_says_of_its_failure_is_told() {
    let (backend, proxy) = listing("[]").await;
    let addr = proxy.addr();
    take(addr, &[]).await.refused(502, "upstream-failed");
    backend.put("/jobs", r#"{"jobs":["1"]}"#);
    backend.once("GET", "/jobs", Answer::status(500));
    assert_eq!(take(addr, &[]).await.status, 500);
    backend.put("/jobs/1", "one");
    // The proxy has read the list of the first look before, and looks once more.
    for _ in 0..2 {
        backend.once("GET", "/jobs/1", Answer::status(503).header("Retry-After", "7"));
    }
    let failed = take(addr, &[]).await;
    assert_eq!((failed.status, failed.header("retry-after")), (503, Some("7")));
    assert_eq!((failed.header("content-location"), failed.header("lease-id")), (Some("/jobs/1"), None));
    assert_eq!(job(&take(addr, &[]).await), "/jobs/1");
}

/// A job that always fails keeps the others from no worker, and a backend that fails is not asked for all.
#[tokio::test]
async fn a_job_that_fails_is_passed_over() {
    let names: Vec<String> = (10..40).map(|number| format!("\"{number}\"")).collect();
    let (backend, proxy) = listing(&format!("{{\"jobs\":[{}]}}", names.join(","))).await;
    let addr = proxy.addr();
    for number in 10..40 {
        backend.put(&format!("/jobs/{number}"), "job");
    }
    backend.always("GET", "/jobs/10", |_| Answer::status(500));
    assert_eq!(job(&take(addr, &[]).await), "/jobs/11");
    assert_eq!(job(&take(addr, &[]).await), "/jobs/12");
    let is_job = |request: &Request| request.target.starts_with("/jobs/");
    backend.always_where(is_job, |_| Answer::status(500));
    let before = backend.requests().len();
    assert_eq!(take(addr, &[]).await.status, 500);
    assert_eq!(backend.requests().into_iter().skip(before).filter(is_job).count(), 8);
}

#[tokio::test]
async fn a_request_for_any_job_names_no_state_of_one() {
    let (backend, proxy) = listing(r#"{"jobs":["1"]}"#).await;
    let addr = proxy.addr();
    backend.put("/jobs/1", "one");
    for field in
        [("If-Match", "\"a\""), ("If-None-Match", "\"a\""), ("Lease-Id", "11111111-1111-4111-8111-111111111111")]
    {
        take(addr, &[field]).await.refused(400, "malformed-request");
    }
    for duration in ["soon", "0", "7200"] {
        let refused = send(addr, "GET", "/jobs", &[("Lease-Duration", duration)], "").await;
        refused.refused(400, "malformed-lease-header");
    }
    assert_eq!(backend.requests().len(), 0);
    let part = take(addr, &[("Range", "bytes=0-0")]).await;
    assert_eq!((job(&part).as_str(), part.text()), ("/jobs/1", "one"));
}

#[tokio::test]
async fn a_renewal_takes_the_duration_that_it_names() {
    let (_nginx, proxy) = queue(&["1"]).await;
    let addr = proxy.addr();
    let receipt = Grant::of(&take(addr, &[]).await).id;
    let renew = async |duration: &str| {
        lease(addr, "PUT", "/jobs/1", &[("Lease-Id", &receipt), ("Lease-Duration", duration)]).await
    };
    let renewed = renew("600").await;
    assert_eq!((renewed.status, renewed.header("lease-duration")), (200, Some("600")));
    let remaining = view(addr, "/jobs/1").await["remaining"].as_u64().expect("a number");
    assert!((300..=600).contains(&remaining), "{remaining}");
    renew("7200").await.refused(400, "malformed-lease-header");
    let again = lease(addr, "PUT", "/jobs/1", &[("Lease-Id", &receipt)]).await;
    assert_eq!(again.header("lease-duration"), Some("600"), "it stays until another one is named");
}

/// A worker that goes away while it waits takes nothing.
#[tokio::test]
async fn a_worker_that_has_gone_gets_nothing() {
    let (nginx, proxy) = queue(&[]).await;
    let addr = proxy.addr();
    let mut gone = Connection::open(addr).await;
    gone.request("GET", "/jobs", &[("Lease-Duration", "30"), ("Prefer", "wait=30")], "").await;
    let lists = async || nginx.access_lines().await.iter().filter(|line| line.starts_with("GET /jobs/ ")).count();
    while lists().await == 0 {}
    gone.reset();
    assert_eq!(put(addr, "/jobs/1", &[], "one").await.status, 201);
    assert_eq!(job(&take(addr, &[("Prefer", "wait=30")]).await), "/jobs/1");
}

#[tokio::test]
async fn a_webdav_server_lists_the_jobs() {
    let server = Wsgidav::start().await;
    fs::create_dir_all(server.root().join("jobs/folder")).expect("a directory");
    for name in ["b", "a b"] {
        fs::write(server.root().join("jobs").join(name), name).expect("a file");
    }
    let text = |text: String| text.replace("index = \"nginx-json\"", "index = \"webdav\"");
    let proxy = start_changed(server.addr(), "job-queue.toml", text).await;
    let addr = proxy.addr();
    let first = take(addr, &[]).await;
    assert_eq!((job(&first).as_str(), first.text()), ("/jobs/a%20b", "a b"));
    assert_eq!(job(&take(addr, &[]).await), "/jobs/b");
    assert_eq!(take(addr, &[]).await.status, 204);
    assert_eq!(finish(addr, &first).await, 204);
}
