//! Every cell of Azure's tables of leases, asked over the wire: operations and uses in each state, of blobs and of
//! containers. What the state is afterwards is shown where the machine itself is tested.

use std::{net::SocketAddr, time::Duration};

use tokio::time::{Instant, sleep};

use crate::support::{
    azure::{BLOBS, BLOCK, CONTAINERS, acquire, assert_common, assert_done, assert_error, blobs, lease, lease_of},
    backend::{Answer, Backend, Validators},
    leases::IDS,
    proxy::{Proxy, Setup},
    raw::{get, send},
    response::Response,
};

/// The lease is always that of A.
const OPERATIONS: &str = "
operation  | Available                             | Leased                                | Breaking                               | Broken                                | Expired
acquire    | 201                                   | 409 LeaseAlreadyPresent               | 409 LeaseAlreadyPresent                | 201                                   | 201
acquire A  | 201                                   | 201                                   | 409 LeaseIsBreakingAndCannotBeAcquired | 201                                   | 201
acquire B  | 201                                   | 409 LeaseAlreadyPresent               | 409 LeaseAlreadyPresent                | 201                                   | 201
renew A    | 409 LeaseIdMismatchWithLeaseOperation | 200                                   | 409 LeaseIsBrokenAndCannotBeRenewed    | 409 LeaseIsBrokenAndCannotBeRenewed   | 200
renew B    | 409 LeaseIdMismatchWithLeaseOperation | 409 LeaseIdMismatchWithLeaseOperation | 409 LeaseIdMismatchWithLeaseOperation  | 409 LeaseIdMismatchWithLeaseOperation | 409 LeaseIdMismatchWithLeaseOperation
change A B | 409 LeaseNotPresentWithLeaseOperation | 200                                   | 409 LeaseIsBreakingAndCannotBeChanged  | 409 LeaseNotPresentWithLeaseOperation | 409 LeaseNotPresentWithLeaseOperation
change B A | 409 LeaseNotPresentWithLeaseOperation | 200                                   | 409 LeaseIdMismatchWithLeaseOperation  | 409 LeaseNotPresentWithLeaseOperation | 409 LeaseNotPresentWithLeaseOperation
change B C | 409 LeaseNotPresentWithLeaseOperation | 409 LeaseIdMismatchWithLeaseOperation | 409 LeaseIdMismatchWithLeaseOperation  | 409 LeaseNotPresentWithLeaseOperation | 409 LeaseNotPresentWithLeaseOperation
release A  | 409 LeaseIdMismatchWithLeaseOperation | 200                                   | 200                                    | 200                                   | 200
release B  | 409 LeaseIdMismatchWithLeaseOperation | 409 LeaseIdMismatchWithLeaseOperation | 409 LeaseIdMismatchWithLeaseOperation  | 409 LeaseIdMismatchWithLeaseOperation | 409 LeaseIdMismatchWithLeaseOperation
break      | 409 LeaseNotPresentWithLeaseOperation | 202                                   | 202                                    | 202 0                                 | 202 0
break 0    | 409 LeaseNotPresentWithLeaseOperation | 202 0                                 | 202 0                                  | 202 0                                 | 202 0
break 10   | 409 LeaseNotPresentWithLeaseOperation | 202 10                                | 202 10                                 | 202 0                                 | 202 0
";

const USES_OF_BLOBS: &str = "
use      | Available                            | Leased                               | Breaking                             | Broken                               | Expired
write    | 201                                  | 412 LeaseIdMissing                   | 412 LeaseIdMissing                   | 201                                  | 201
write A  | 412 LeaseNotPresentWithBlobOperation | 201                                  | 201                                  | 412 LeaseLost                        | 412 LeaseLost
write B  | 412 LeaseNotPresentWithBlobOperation | 412 LeaseIdMismatchWithBlobOperation | 412 LeaseIdMismatchWithBlobOperation | 412 LeaseNotPresentWithBlobOperation | 412 LeaseNotPresentWithBlobOperation
delete   | 202                                  | 412 LeaseIdMissing                   | 412 LeaseIdMissing                   | 202                                  | 202
delete A | 412 LeaseNotPresentWithBlobOperation | 202                                  | 202                                  | 412 LeaseLost                        | 412 LeaseLost
delete B | 412 LeaseNotPresentWithBlobOperation | 412 LeaseIdMismatchWithBlobOperation | 412 LeaseIdMismatchWithBlobOperation | 412 LeaseNotPresentWithBlobOperation | 412 LeaseNotPresentWithBlobOperation
read     | 200                                  | 200                                  | 200                                  | 200                                  | 200
read A   | 412 LeaseNotPresentWithBlobOperation | 200                                  | 200                                  | 412 LeaseLost                        | 412 LeaseLost
read B   | 412 LeaseNotPresentWithBlobOperation | 412 LeaseIdMismatchWithBlobOperation | 412 LeaseIdMismatchWithBlobOperation | 412 LeaseNotPresentWithBlobOperation | 412 LeaseNotPresentWithBlobOperation
";

const USES_OF_CONTAINERS: &str = "
use      | Available                                 | Leased                                    | Breaking                                  | Broken                                    | Expired
delete   | 202                                       | 412 LeaseIdMissing                        | 412 LeaseIdMissing                        | 202                                       | 202
delete A | 412 LeaseNotPresentWithContainerOperation | 202                                       | 202                                       | 412 LeaseNotPresentWithContainerOperation | 412 LeaseNotPresentWithContainerOperation
delete B | 412 LeaseNotPresentWithContainerOperation | 412 LeaseIdMismatchWithContainerOperation | 412 LeaseIdMismatchWithContainerOperation | 412 LeaseNotPresentWithContainerOperation | 412 LeaseNotPresentWithContainerOperation
read     | 200                                       | 200                                       | 200                                       | 200                                       | 200
read A   | 412 LeaseNotPresentWithContainerOperation | 200                                       | 200                                       | 412 LeaseNotPresentWithContainerOperation | 412 LeaseNotPresentWithContainerOperation
read B   | 412 LeaseNotPresentWithContainerOperation | 412 LeaseIdMismatchWithContainerOperation | 412 LeaseIdMismatchWithContainerOperation | 412 LeaseNotPresentWithContainerOperation | 412 LeaseNotPresentWithContainerOperation
";

/// One cell: what is done in which state to a resource of its own, and what comes of it.
struct Cell {
    words: Vec<&'static str>,
    state: &'static str,
    expected: &'static str,
    path: String,
    is_container: bool,
}

fn cells(table: &'static str, is_container: bool, name: &str) -> Vec<Cell> {
    let mut lines = table.trim().lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let states = lines.next().expect("a head");
    let folder = if is_container { "containers" } else { "blobs" };
    let rows = lines.enumerate().flat_map(|(number, row)| {
        assert_eq!(row.len(), states.len(), "{row:?}");
        let words: Vec<&'static str> = row[0].split_whitespace().collect();
        let cell = |place: usize| Cell {
            words: words.clone(),
            state: states[place],
            expected: row[place],
            path: format!("/{folder}/{name}-{number}-{place}"),
            is_container,
        };
        (1..row.len()).map(cell).collect::<Vec<_>>()
    });
    rows.collect()
}

fn id(word: &str) -> &'static str {
    match word {
        "A" => IDS[0],
        "B" => IDS[1],
        "C" => IDS[2],
        _ => panic!("{word} is no id"),
    }
}

impl Cell {
    fn target(&self, query: &str) -> String {
        let restype = if self.is_container { "restype=container" } else { "" };
        format!("{}?{}", self.path, [restype, query].join("&").trim_matches('&'))
    }

    /// Does something to the lease.
    async fn lease(&self, addr: SocketAddr, words: &[&str]) -> Response {
        let (action, given) = words.split_first().expect("an action");
        let mut fields = vec![("x-ms-lease-action", *action)];
        match (*action, given) {
            ("acquire", given) => {
                fields.push(("x-ms-lease-duration", "60"));
                fields.extend(given.iter().map(|word| ("x-ms-proposed-lease-id", id(word))));
            }
            ("change", [from, to]) => {
                fields.extend([("x-ms-lease-id", id(from)), ("x-ms-proposed-lease-id", id(to))]);
            }
            ("break", given) => fields.extend(given.iter().map(|period| ("x-ms-lease-break-period", *period))),
            (_, given) => fields.extend(given.iter().map(|word| ("x-ms-lease-id", id(word)))),
        }
        send(addr, "PUT", &self.target("comp=lease"), &fields, "").await
    }

    /// Creates the resource, and brings it into its state; one that is to be expired will be.
    async fn prepare(&self, backend: &Backend, addr: SocketAddr) {
        backend.put(&format!("{}{}", self.path, if self.is_container { "/" } else { "" }), "one");
        let steps: &[&[&str]] = match self.state {
            "Available" => &[],
            "Leased" => &[&["acquire", "A"]],
            "Breaking" => &[&["acquire", "A"], &["break", "60"]],
            "Broken" => &[&["acquire", "A"], &["break", "0"]],
            "Expired" => {
                let fields = [
                    ("x-ms-lease-action", "acquire"),
                    ("x-ms-proposed-lease-id", IDS[0]),
                    ("x-ms-lease-duration", "15"),
                ];
                let acquired = send(addr, "PUT", &self.target("comp=lease"), &fields, "").await;
                assert_eq!(acquired.status, 201, "{acquired:?}");
                return;
            }
            state => panic!("{state} is no state"),
        };
        for step in steps {
            let done = self.lease(addr, step).await;
            assert!((200..300).contains(&done.status), "{step:?}: {done:?}");
        }
    }

    /// Does what it says.
    async fn act(&self, addr: SocketAddr) -> Response {
        let (method, fields): (_, &[_]) = match self.words[0] {
            "write" => ("PUT", &[BLOCK]),
            "delete" => ("DELETE", &[]),
            "read" => ("GET", &[]),
            _ => return self.lease(addr, &self.words).await,
        };
        let presented: Vec<_> = self.words[1..].iter().map(|word| ("x-ms-lease-id", id(word))).collect();
        send(addr, method, &self.target(""), &[fields, &presented].concat(), "").await
    }

    async fn check(&self, addr: SocketAddr) {
        let state = lease_of(&send(addr, "GET", &self.target(""), &[], "").await).0.to_owned();
        assert_eq!(state, self.state.to_lowercase(), "{}", self.path);
        let answer = self.act(addr).await;
        let named = format!("{:?} of {} in {}", self.words, self.path, self.state);
        match self.expected.split_once(' ') {
            Some((status, code)) if code.starts_with("Lease") => {
                let told = (answer.status.to_string(), answer.header("x-ms-error-code"));
                assert_eq!(told, (status.to_owned(), Some(code)), "{named}");
                assert_error(&answer, answer.status, code);
            }
            Some((status, time)) => {
                let told = (answer.status.to_string(), answer.header("x-ms-lease-time"));
                assert_eq!(told, (status.to_owned(), Some(time)), "{named}");
            }
            None => assert_eq!(answer.status.to_string(), self.expected, "{named}: {answer:?}"),
        }
        assert_common(&answer);
    }
}

/// Routes for blobs and for containers.
fn both(backend: &Backend) -> Setup {
    let containers = "[[routes]]\nname = \"containers\"\npath = \"/containers/{name}\"\nupstream = \"backend\"";
    let many = "lease.max_per_principal = 10_000";
    blobs(backend).route(many).route(containers).route(BLOBS).route(CONTAINERS).route(many)
}

/// The shortest lease of Azure is one of 15 seconds, which this scenario waits for once.
#[tokio::test]
async fn every_cell_of_the_tables_is_answered_with_its_code() {
    let backend = Backend::with(Validators::Dates).await;
    let proxy = both(&backend).start().await;
    let addr = proxy.addr();
    let all = [
        cells(OPERATIONS, false, "operation"),
        cells(OPERATIONS, true, "operation"),
        cells(USES_OF_BLOBS, false, "use"),
        cells(USES_OF_CONTAINERS, true, "use"),
    ];
    let (expired, others): (Vec<_>, Vec<_>) = all.into_iter().flatten().partition(|cell| cell.state == "Expired");
    assert_eq!((expired.len(), others.len()), (13 + 13 + 9 + 6, 4 * (13 + 13 + 9 + 6)));
    for cell in &expired {
        cell.prepare(&backend, addr).await;
    }
    let end = Instant::now() + Duration::from_secs(15);
    for cell in &others {
        cell.prepare(&backend, addr).await;
        cell.check(addr).await;
    }
    sleep(end.saturating_duration_since(Instant::now()) + Duration::from_millis(20)).await;
    for cell in &expired {
        cell.check(addr).await;
    }
}

#[tokio::test]
async fn a_lease_operation_reaches_no_backend_but_by_a_look_at_the_blob() {
    let backend = Backend::with(Validators::Dates).await;
    let proxy = blobs(&backend).start().await;
    let (addr, [id, ..]) = (proxy.addr(), IDS);
    backend.put("/blob", "one");
    acquire(addr, "/blob", id, "15").await;
    assert_done(&lease(addr, "/blob", "renew", &[("x-ms-lease-id", id)]).await, 200);
    assert_done(&lease(addr, "/blob", "release", &[("x-ms-lease-id", id)]).await, 200);
    let seen: Vec<_> = backend.requests().into_iter().map(|seen| format!("{} {}", seen.method, seen.target)).collect();
    assert_eq!(seen, ["HEAD /blob"; 3]);
    for request in backend.requests() {
        assert!(request.headers.0.iter().all(|(name, _)| !name.to_lowercase().starts_with("x-ms-")), "{request:?}");
    }
}

/// A write that meets another one gets an error that its client answers by a repetition.
#[tokio::test]
async fn a_write_that_meets_another_one_is_to_be_repeated() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).route("claim.max_wait = \"100ms\"").start().await;
    let addr = proxy.addr();
    let held = backend.hold("PUT", "/blob");
    let first = tokio::spawn(async move { send(addr, "PUT", "/blob", &[BLOCK], "one").await });
    let mut write = held.arrived().await;
    backend.put("/blob", "zero");
    let second = send(addr, "PUT", "/blob", &[BLOCK], "two").await;
    assert_error(&second, 503, "ServerBusy");
    assert_eq!(second.headers.all("retry-after"), ["1"]);
    let grant = lease(addr, "/blob", "acquire", &[("x-ms-lease-duration", "15")]).await;
    assert_error(&grant, 503, "ServerBusy");
    write.apply().await;
    write.answer(Answer::status(204)).await;
    assert_eq!(first.await.expect("an answer").status, 201);
    assert_eq!(get(addr, "/blob").await.text(), "one");
}

/// Every operation needs its blob, and the proxy reports a refused parameter before it asks the backend.
#[tokio::test]
async fn a_lease_of_nothing_is_none() {
    let backend = Backend::start().await;
    let proxy: Proxy = blobs(&backend).start().await;
    let (addr, [id, ..]) = (proxy.addr(), IDS);
    for (action, fields) in [
        ("acquire", &[("x-ms-lease-duration", "15")][..]),
        ("renew", &[("x-ms-lease-id", id)]),
        ("release", &[("x-ms-lease-id", id)]),
        ("break", &[]),
    ] {
        assert_error(&lease(addr, "/blob", action, fields).await, 404, "BlobNotFound");
        let matching = [fields, &[("If-Match", "\"a\"")]].concat();
        assert_error(&lease(addr, "/blob", action, &matching).await, 412, "ConditionNotMet");
    }
    let asked = backend.requests().len();
    for duration in ["0", "1", "14", "61", "-2"] {
        let fields = [("x-ms-lease-duration", duration)];
        assert_error(&lease(addr, "/blob", "acquire", &fields).await, 400, "InvalidHeaderValue");
    }
    assert_error(&lease(addr, "/blob", "acquire", &[]).await, 400, "MissingRequiredHeader");
    assert_eq!(backend.requests().len(), asked);
}
