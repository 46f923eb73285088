//! Clients of S3 in front of S3 servers that ignore their conditions (`errors = "s3"`).

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::support::{
    admin,
    backend::{Answer, Backend, Validators},
    child::Child,
    clients, ports,
    proxy::Proxy,
    raw::{put, send},
    response::Response,
};

/// The credentials that s3rver takes.
const CREDENTIALS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "S3RVER"), ("AWS_SECRET_ACCESS_KEY", "S3RVER")];
pub(super) const ROUTE: &str = "etag = \"upstream\"\ndialect = \"s3\"\nrequire = \"never\"\nprobe_auth = \"none\"";
const SIGNED: &str =
    "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu/s3/aws4_request, SignedHeaders=host;if-match;range, Signature=0";

/// An s3rver with a bucket; it checks signatures and no conditions.
pub(super) struct S3rver {
    _server: Child,
    _directory: TempDir,
    pub(super) addr: SocketAddr,
}

impl S3rver {
    pub(super) async fn start() -> Self {
        let (directory, addr) = (tempfile::tempdir().expect("a directory"), ports::free());
        let mut command = Command::new("node");
        command.arg(clients::node_package("s3rver").join("bin/s3rver.js")).arg("--directory").arg(directory.path());
        let (ip, port) = (addr.ip().to_string(), addr.port().to_string());
        command.args(["--address", &ip, "--port", &port, "--no-vhost-buckets"]);
        let mut server = Child::spawn("s3rver", &mut command, directory.path().join("log"));
        server.accepts(addr).await.expect("it runs");
        boto3(addr, "prepare").await;
        Self { _server: server, _directory: directory, addr }
    }
}

/// A server of this address that looks at signatures, which s3rver does not: a request passes if its own holds.
struct Verifier {
    _process: Child,
    _directory: TempDir,
    addr: SocketAddr,
}

impl Verifier {
    async fn before(server: SocketAddr) -> Self {
        let (directory, addr) = (tempfile::tempdir().expect("a directory"), ports::free());
        let mut command = clients::python();
        command.arg(script("verifier.py")).args([addr.to_string(), server.to_string()]);
        let mut process = Child::spawn("the verifier", &mut command, directory.path().join("log"));
        process.accepts(addr).await.expect("it runs");
        Self { _process: process, _directory: directory, addr }
    }
}

pub(super) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/s3").join(name)
}

/// Returns the results of boto3, as its script in `tests/s3` reports them.
pub(super) async fn boto3(addr: SocketAddr, what: &str) -> Value {
    boto3_of(clients::python(), addr, what).await
}

/// The same with the boto3 of this Python.
pub(super) async fn boto3_of(mut command: Command, addr: SocketAddr, what: &str) -> Value {
    command.arg(script("client.py")).args([&format!("http://{addr}"), what]);
    let output = spawn_blocking(move || command.output()).await.expect("no panic").expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    if output.stdout.is_empty() { Value::Null } else { serde_json::from_slice(&output.stdout).expect("JSON") }
}

/// The proxy that `config/s3.toml` describes.
pub(super) async fn proxy_before(server: SocketAddr) -> Proxy {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/s3.toml");
    let text = std::fs::read_to_string(file).expect("the file");
    let text = text.replace("listen = [\"127.0.0.1:8080\"]", "{listen}").replace("127.0.0.1:9000", &server.to_string());
    Proxy::start_with(&text, &CREDENTIALS).await
}

/// P32: each request that reaches the server has a signature that holds, the client's own or, on a probe, the proxy's.
#[tokio::test]
async fn boto3_gets_from_s3rver_what_s3_would_answer() {
    let server = S3rver::start().await;
    let verifier = Verifier::before(server.addr).await;
    let proxy = proxy_before(verifier.addr).await;
    let expected = json!({
        "create": [200, null],
        "dates within the second of a write": 5,
        "create again": [412, "PreconditionFailed"],
        "read a current copy": [304, true],
        "change": [200, null],
        "change by a stale tag": [412, "PreconditionFailed"],
        "change by a bare tag": [200, null],
        "read by a stale tag": [412, "PreconditionFailed"],
        "read by the tag": [200, null],
        "change with a wrong signature": [403, "SignatureDoesNotMatch"],
        "delete by a stale tag": [412, "PreconditionFailed"],
        "delete several": [200, null],
        "complete an upload by a stale tag": [412, "PreconditionFailed"],
        "content": "three",
        "complete an upload": [200, null],
        "delete": [204, null],
        "read what is not there": [404, "NoSuchKey"],
        "look for what is not there": [404, "404"],
        "change what is not there": [404, "NoSuchKey"],
        "delete what is not there": [404, "NoSuchKey"],
    });
    assert_eq!(boto3(proxy.addr(), "cycle").await, expected);
    let log = proxy.log();
    assert!(!log.contains("Signature=") && !log.contains("AWS4"), "nobody's credentials are logged: {log}");
}

/// The `s3` backend of Terraform with `use_lockfile` has its lock from a condition that the server itself does not check.
#[tokio::test]
async fn terraform_locks_a_state_by_a_file() {
    let server = S3rver::start().await;
    let proxy = proxy_before(server.addr).await;
    let expected = json!({
        "lock": [200, null],
        "lock again": [412, "PreconditionFailed"],
        "holder": "ann",
        "state": [200, null],
        "state again": [200, null],
        "unlock": [204, null],
        "lock after that": [200, null],
    });
    assert_eq!(boto3(proxy.addr(), "lock_file").await, expected);
    assert_eq!(boto3(server.addr, "lock_file").await["lock again"], json!([200, null]), "without the proxy");
}

/// Twenty writers begin with one tag. Without the proxy all of them get a success.
#[tokio::test]
async fn of_twenty_writers_with_one_tag_one_succeeds_and_without_the_proxy_all_do() {
    let server = S3rver::start().await;
    let proxy = proxy_before(server.addr).await;
    let succeeded = |race: &Value| {
        let outcomes = race["outcomes"].as_array().expect("a list").iter().enumerate();
        outcomes.filter(|(_, outcome)| **outcome == json!([200, null])).map(|(number, _)| number).collect::<Vec<_>>()
    };
    let without = boto3(server.addr, "race").await;
    assert_eq!(succeeded(&without).len(), 20, "{without}");
    let with = boto3(proxy.addr(), "race").await;
    let refused = with["outcomes"].as_array().expect("a list").iter();
    let refused = refused.filter(|outcome| **outcome == json!([412, "PreconditionFailed"])).count();
    let succeeded = succeeded(&with);
    assert_eq!((succeeded.len(), refused), (1, 19), "{with}");
    assert_eq!(with["content"], succeeded[0].to_string());
}

/// `ifmatch why` knows each refusal by the id that the library shows.
#[tokio::test]
async fn boto3_shows_the_id_that_a_refusal_is_kept_by() {
    let backend = Backend::with(Validators::Tags).await;
    backend.put("/bucket/object", "one");
    let (proxy, admin) = admin::start(&Proxy::to(backend.addr()).route(ROUTE)).await;
    let ids = boto3(proxy.addr(), "ids").await;
    for method in ["PUT", "HEAD"] {
        let id = ids[method].as_str().expect("an id");
        let kept = admin::ask(admin, &format!("/refusals/{id}")).await;
        assert_eq!((&kept["method"], &kept["code"]), (&method.into(), &"precondition-failed".into()), "{kept}");
    }
}

#[track_caller]
fn assert_error(response: &Response, status: u16, code: &str) {
    assert_eq!(response.status, status, "{response:?}");
    assert_eq!(response.headers.all("content-type"), ["application/xml"]);
    assert_eq!(response.headers.all("cache-control"), ["no-store"]);
    assert!(response.text().contains(&format!("<Error><Code>{code}</Code><Message>")), "{response:?}");
}

/// A backend with an object, and a proxy in front of it that speaks S3.
async fn scene(lines: &str) -> (Backend, Proxy, String) {
    let backend = Backend::with(Validators::Tags).await;
    backend.put("/bucket/object", "one");
    let proxy = Proxy::to(backend.addr()).route(ROUTE).route(lines).start().await;
    let tag = send(backend.addr(), "HEAD", "/bucket/object", &[], "").await.etag();
    (backend, proxy, tag)
}

/// DESIGN, section 3, rule 4, in the shape that clients of S3 read.
#[tokio::test]
async fn refusals_are_errors_of_s3_and_what_is_refused_is_not_sent() {
    let (backend, proxy, tag) = scene("claim = { max_waiters = 0 }\nidempotency = \"accept\"").await;
    let (addr, object) = (proxy.addr(), "/bucket/object");
    let refused = put(addr, object, &[("If-Match", "\"stale\"")], "two").await;
    assert_error(&refused, 412, "PreconditionFailed");
    assert_error(&put(addr, object, &[("If-Match", "\"a\" \"b\"")], "two").await, 400, "InvalidArgument");
    assert_error(&put(addr, "/bucket/none", &[("If-Match", &tag)], "two").await, 404, "NoSuchKey");
    assert_error(&send(addr, "POST", "/bucket?delete", &[], "<Delete/>").await, 400, "MalformedXML");
    assert_error(&send(addr, "POST", "/bucket?Delete", &[], "<Delete/>").await, 501, "NotImplemented");
    assert_error(&put(addr, "/bucket/a%2Fb", &[], "two").await, 400, "InvalidURI");
    let bodiless = send(addr, "HEAD", object, &[("If-Match", "\"stale\"")], "").await;
    assert_eq!((bodiless.status, bodiless.text()), (412, ""));
    assert_eq!(backend.count("PUT", "*") + backend.count("POST", "*"), 0);

    let held = backend.hold("PUT", object);
    let writer = tokio::spawn(async move { put(addr, object, &[("If-Match", &tag)], "two").await });
    let held = held.arrived().await;
    assert_error(&put(addr, object, &[], "three").await, 409, "ConditionalRequestConflict");
    held.answer(Answer::stored()).await;
    assert_eq!(writer.await.unwrap().status, 204);
    assert_eq!(backend.content(object).as_deref(), Some("two"));
}

/// A part of an upload has a tag too, perhaps the one that the object had once. It is no tag of the object.
#[tokio::test]
async fn the_tag_of_an_uploaded_part_lets_no_write_pass() {
    let (backend, proxy, stale) = scene("other_writers = false").await;
    let (addr, object, part) = (proxy.addr(), "/bucket/object", "/bucket/object?partNumber=1&uploadId=a");
    assert_eq!(put(addr, object, &[("If-Match", &stale)], "two").await.status, 204);
    backend.once("PUT", part, Answer::status(200).header("ETag", &stale));
    assert_eq!(put(addr, part, &[], "a part").await.etag(), stale, "the client needs it to complete the upload");
    assert_error(&put(addr, object, &[("If-Match", &stale)], "three").await, 412, "PreconditionFailed");
    assert_eq!(backend.content(object).as_deref(), Some("two"));
}

/// P5: the SDKs of AWS give all attempts of an operation one name. Each attempt is signed anew, and whether a signature
/// holds is the server's to tell: only the attempt whose signature was taken is replayed to, and no other one is sent.
#[tokio::test]
async fn p5_an_attempt_that_is_signed_anew_is_refused_and_the_same_one_gets_its_answer() {
    let (backend, proxy, tag) = scene("idempotency = \"accept\"").await;
    let attempt = async |signature: &str, key: &str| {
        let credentials = format!("AWS4-HMAC-SHA256 Credential={key}/20260101/eu/s3/aws4_request, {signature}");
        let fields =
            [("Authorization", credentials.as_str()), ("amz-sdk-invocation-id", "8e03978e"), ("If-Match", &tag)];
        put(proxy.addr(), "/bucket/object", &fields, "two").await
    };
    let first = attempt("SignedHeaders=host, Signature=1", "AKID").await;
    let retry = attempt("SignedHeaders=host, Signature=1", "AKID").await;
    assert_eq!((retry.status, retry.header("etag")), (first.status, first.header("etag")));
    assert_eq!(retry.header("idempotent-replayed"), Some("true"));
    assert_error(&attempt("SignedHeaders=host, Signature=2", "AKID").await, 409, "OperationAborted");
    assert_error(&attempt("SignedHeaders=host, Signature=3", "OTHER").await, 409, "OperationAborted");
    assert_eq!(backend.count("PUT", "*"), 1);
}

/// RFC 9110 section 8.8.2.2: a date of this second may stand for two states. Clients of S3 cannot do without one, and are
/// told the second before.
#[tokio::test]
async fn a_date_that_two_states_may_share_is_told_as_the_second_before() {
    let (backend, proxy, _) = scene("").await;
    let at = |second: u32| format!("Sun, 06 Nov 1994 08:49:{second} GMT");
    let dated = move |sent| Answer::status(200).header("Last-Modified", &at(37)).header("Date", &at(sent));
    for method in ["GET", "HEAD", "PUT"] {
        for (sent, told) in [(37, "Sun, 06 Nov 1994 08:49:36 GMT"), (38, "Sun, 06 Nov 1994 08:49:37 GMT")] {
            backend.once(method, "/bucket/object", dated(sent));
            let response = send(proxy.addr(), method, "/bucket/object", &[], "").await;
            assert_eq!(response.headers.all("last-modified"), [told], "{method}");
        }
    }
    backend.always("GET", "/bucket/object", move |_| dated(37));
    let early = [("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:36 GMT")];
    assert_error(&put(proxy.addr(), "/bucket/object", &early, "two").await, 412, "PreconditionFailed");
}

/// Conditions on facts that only the server can see: a server that ignores them would write in any case.
#[tokio::test]
async fn conditions_that_nobody_would_judge_are_refused() {
    let (backend, proxy, tag) = scene("").await;
    for (method, fields) in [
        ("DELETE", &[("x-amz-if-match-size", "3")][..]),
        ("DELETE", &[("If-Match", tag.as_str()), ("x-amz-if-match-last-modified-time", "1")]),
        ("DELETE", &[("x-amz-if-match-initiated-time", "1")]),
        ("PUT", &[("x-amz-rename-source", "other")]),
    ] {
        let refused = send(proxy.addr(), method, "/bucket/object", fields, "").await;
        assert_error(&refused, 501, "NotImplemented");
    }
    assert_eq!(backend.count("PUT", "*") + backend.count("DELETE", "*"), 0);
}

/// A server may ignore the conditions on the source of a copy, so that the proxy judges them before. The copy arrives as it
/// was sent, and the part of an upload is one too.
#[tokio::test]
async fn the_source_of_a_copy_has_its_conditions() {
    let (backend, proxy, tag) = scene("").await;
    let source = "\"source\"";
    for method in ["HEAD", "GET"] {
        let dated = Answer::status(200).header("ETag", source).header("Last-Modified", "Sun, 06 Nov 2005 08:49:37 GMT");
        backend.always(method, "/bucket/other", move |_| dated.clone());
    }
    let bare = source.trim_matches('"');
    let (past, future) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 2044 08:49:37 GMT");
    let named = |condition: &str| format!("x-amz-copy-source-{condition}");
    let (matches, differs, since, until) =
        (named("if-match"), named("if-none-match"), named("if-modified-since"), named("if-unmodified-since"));
    let (object, piece) = ("/bucket/object", "/bucket/object?partNumber=1&uploadId=a");
    backend.always("PUT", object, |_| Answer::status(200));
    backend.always("PUT", piece, |_| Answer::status(200));
    for target in [object, piece] {
        for (condition, value, status) in [
            (&matches, source, 200),
            (&matches, bare, 200),
            (&matches, "\"stale\"", 412),
            (&differs, source, 412),
            (&differs, "\"stale\"", 200),
            (&since, future, 412),
            (&until, past, 412),
        ] {
            let puts = backend.count("PUT", target);
            let fields = [("x-amz-copy-source", "bucket/other"), (condition.as_str(), value)];
            let copied = put(proxy.addr(), target, &fields, "").await;
            assert_eq!(copied.status, status, "{target} {fields:?}");
            assert_eq!(backend.count("PUT", target) - puts, usize::from(status == 200), "{target} {fields:?}");
        }
    }
    let sent = backend.seen("PUT", object).remove(0);
    assert_eq!(
        (sent.headers.all("x-amz-copy-source"), sent.headers.all(&matches)),
        (vec!["bucket/other"], vec![source])
    );
    let stale = [("x-amz-copy-source", "/bucket/other"), ("If-Match", "\"stale\"")];
    assert_error(&put(proxy.addr(), object, &stale, "").await, 412, "PreconditionFailed");
    let current = [("x-amz-copy-source", "/bucket/other"), (matches.as_str(), source), ("If-Match", &tag)];
    assert_eq!(put(proxy.addr(), object, &current, "").await.status, 200, "both sides hold");

    let judging = Proxy::to(backend.addr()).route(&ROUTE.replace("upstream", "delegate")).start().await;
    let fields = [("x-amz-copy-source", "/bucket/other"), (matches.as_str(), "\"a\"")];
    assert_eq!(put(judging.addr(), object, &fields, "").await.status, 200, "that server judges them");
}

/// A source that no guarded route leads to may be copied, since it is only read. Nothing would judge a condition on it.
#[tokio::test]
async fn a_source_without_a_guarded_route_has_no_conditions() {
    let open = "policy = \"optimistic\"\n[[routes]]\nname = \"open\"\npath = \"/open/{*rest}\"\nupstream = \"backend\"\n\
                policy = \"last-writer-wins\"";
    let (backend, proxy, _) = scene(open).await;
    let source = ("x-amz-copy-source", "/open/object");
    let conditional = [source, ("x-amz-copy-source-if-match", "\"a\"")];
    assert_error(&put(proxy.addr(), "/bucket/object", &conditional, "").await, 501, "NotImplemented");
    assert_eq!(backend.count("PUT", "*"), 0);
    assert_eq!(put(proxy.addr(), "/bucket/object", &[source], "").await.status, 204);
}

/// A lease that guards reads guards the source of a copy, and a copy waits for the write of its source.
#[tokio::test]
async fn a_source_is_looked_at_once_it_is_settled_and_by_its_lease() {
    let (backend, proxy, _) =
        scene("policy = \"pessimistic\"\nlease = { guards = [\"read\", \"write\"], auth = \"none\" }").await;
    let addr = proxy.addr();
    let copied = [("x-amz-copy-source", "/bucket/object")];
    let write = backend.hold("PUT", "/bucket/object");
    let writing = tokio::spawn(async move { put(addr, "/bucket/object", &[], "two").await });
    let held = write.arrived().await;
    let copying = tokio::spawn(async move { put(addr, "/bucket/copy", &copied, "").await });
    held.answer(Answer::stored()).await;
    assert_eq!((writing.await.unwrap().status, copying.await.unwrap().status), (204, 201));
    let order: Vec<_> = backend.applied().into_iter().map(|(request, _)| request.target).collect();
    assert_eq!(order, ["/bucket/object", "/bucket/copy"]);
    let lease = send(addr, "POST", "/.leases/bucket/object", &[("Lease-Duration", "30")], "").await;
    assert_eq!(lease.status, 201, "{lease:?}");
    assert_error(&put(addr, "/bucket/copy", &copied, "").await, 412, "PreconditionFailed");
    assert_eq!(backend.count("PUT", "/bucket/copy"), 1);
}

/// P32: what a client has signed arrives as it was sent. What it has not signed may be made exact.
#[tokio::test]
async fn p32_signed_fields_arrive_as_they_were_sent() {
    let (backend, proxy, tag) = scene("").await;
    let list = format!("\"other\", {tag}");
    let fields = [("Authorization", SIGNED), ("If-Match", &list), ("x-amz-meta-a", "1")];
    assert_eq!(put(proxy.addr(), "/bucket/object", &fields, "two").await.status, 204);
    let any = [("Authorization", SIGNED), ("If-Match", "*"), ("Host", "objects.test")];
    assert_eq!(put(proxy.addr(), "/bucket/object", &any, "three").await.status, 204);
    let seen = backend.seen("PUT", "/bucket/object");
    assert_eq!(seen[0].headers.all("if-match"), [list.as_str()]);
    assert_eq!((seen[0].headers.all("x-amz-meta-a"), seen[1].headers.all("host")), (vec!["1"], vec!["objects.test"]));
    assert_eq!(seen[1].headers.all("if-match"), ["*"]);
    let bare = send(proxy.addr(), "HEAD", "/bucket/object", &[], "").await.etag();
    assert_eq!(put(proxy.addr(), "/bucket/object", &[("If-Match", "*")], "four").await.status, 204);
    assert_eq!(backend.seen("PUT", "/bucket/object")[2].headers.all("if-match"), [bare.as_str()], "it is not signed");
    let read = [("Authorization", SIGNED), ("Range", "bytes=0-1"), ("Accept-Encoding", "identity;q=0.5")];
    let _part = send(proxy.addr(), "GET", "/bucket/object", &read, "").await;
    let read = backend.seen("GET", "/bucket/object").pop().expect("a read").headers;
    assert_eq!((read.all("range"), read.all("accept-encoding")), (vec!["bytes=0-1"], vec!["identity;q=0.5"]));
}

/// P32: a signature holds for one request. A probe has none, or the proxy's own.
#[tokio::test]
async fn p32_a_clients_signature_is_lent_to_no_probe() {
    let presigned = "/bucket/object?X-Amz-Signature=0&X-Amz-SignedHeaders=host&versionId=1";
    let backend = Backend::with(Validators::Tags).await;
    backend.put("/bucket/object", "one");
    let client = Proxy::to(backend.addr()).route("etag = \"upstream\"").start().await;
    for (target, fields) in [("/bucket/object", vec![("Authorization", SIGNED)]), (presigned, Vec::new())] {
        let fields = [&fields[..], &[("If-Match", "\"a\"")]].concat();
        let problem = put(client.addr(), target, &fields, "two").await.refused(502, "validator-unavailable");
        assert!(problem.detail.contains("probe_auth = \"sigv4\""), "{problem:?}");
    }
    assert_eq!(backend.requests().len(), 0);

    let signing =
        format!("[server]\n{{listen}}\n[upstreams.backend]\nservers = [\"{}\"]\n[[routes]]\n", backend.addr());
    let signing =
        signing + "path = \"/{*rest}\"\nupstream = \"backend\"\npolicy = \"optimistic\"\netag = \"upstream\"\n";
    let signing = signing + "probe_auth = \"sigv4\"\nprobe_region = \"eu-west-1\"\n";
    let logged = [("AWS_SESSION_TOKEN", "session-token"), ("RUST_LOG", "trace")];
    let proxy = Proxy::start_with(&signing, &[&CREDENTIALS[..], &logged].concat()).await;
    let fields = [("Authorization", SIGNED), ("If-Match", "\"a\""), ("x-amz-acl", "private"), ("Cookie", "a=b")];
    put(proxy.addr(), presigned, &fields, "two").await.refused(412, "precondition-failed");
    let probe = &backend.requests()[0];
    assert_eq!((probe.method.as_str(), probe.target.as_str()), ("HEAD", "/bucket/object?versionId=1"));
    let credentials = probe.headers.all("authorization");
    assert!(
        credentials[0].contains("Credential=S3RVER/") && credentials[0].contains("/eu-west-1/s3/"),
        "{credentials:?}"
    );
    assert_eq!((credentials.len(), probe.headers.all("x-amz-security-token")), (1, vec!["session-token"]));
    assert!(!proxy.log().contains("session-token"), "it is logged at no level");
    assert_eq!((probe.headers.get("x-amz-acl"), probe.headers.get("cookie")), (None, None));
    assert_eq!(backend.count("PUT", "*"), 0);
}
