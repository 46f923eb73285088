//! From start to end: the listeners, the lines about each request, and the time that an end takes.
//!
//! The exit codes of a busy port and of idle processes, and a second signal, are tested without clients in `stop.rs`.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::{
        fs::{FileTypeExt as _, PermissionsExt as _},
        net::UnixStream,
    },
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use crate::support::{
    backend::{Answer, Backend},
    child::Child,
    gate::Gate,
    h2c,
    proxy::Proxy,
    raw::{Connection, get, put, send},
    wait::{DEADLINE, until},
};

/// More than anything here waits for: a process that has ended in time has not ended by this.
const LATER: &str = "shutdown_timeout = \"60s\"";

/// SIGTERM and SIGINT: nothing is accepted any more, what is in flight is answered, and idle connections hold nothing up.
#[tokio::test]
async fn requests_in_flight_are_answered_before_the_end() {
    for signal in ["TERM", "INT"] {
        let backend = Backend::start().await;
        let gate = Gate::closed();
        let answer = Answer::status(201).applied().after(&gate);
        backend.always("PUT", "*", move |_| answer.clone());
        let mut proxy = Proxy::to(backend.addr()).server(LATER).start().await;
        let addr = proxy.addr();
        let mut idle = Connection::open(addr).await;
        assert_eq!(idle.exchange("GET", "/none", &[], "").await.status, 404);
        let mut idle_h2 = h2c::Connection::open(addr).await;
        assert_eq!(idle_h2.exchange("GET", "/none", &[], "").await.status, 404);
        let over_http11 = tokio::spawn(async move { put(addr, "/1", &[("If-None-Match", "*")], "one").await });
        let over_h2c = tokio::spawn(async move {
            h2c::Connection::open(addr).await.exchange("PUT", "/2", &[("if-none-match", "*")], "two").await
        });
        backend.reached("PUT", "*", 2).await;
        proxy.signal(signal);
        until("the listener to close", || std::net::TcpStream::connect(addr).is_err()).await;
        gate.open();
        assert_eq!(over_http11.await.unwrap().status, 201);
        assert_eq!(over_h2c.await.unwrap().status, 201);
        assert_eq!(proxy.exit_status().await.code(), Some(0));
        assert_eq!((backend.content("/1").as_deref(), backend.content("/2").as_deref()), (Some("one"), Some("two")));
    }
}

#[tokio::test]
async fn the_shutdown_timeout_ends_a_process_with_requests_in_flight() {
    let backend = Backend::start().await;
    backend.always("GET", "/never", |_| Answer::never());
    let mut proxy = Proxy::to(backend.addr()).server("shutdown_timeout = \"1s\"").start().await;
    let mut client = Connection::open(proxy.addr()).await;
    client.request("GET", "/never", &[], "").await;
    backend.reached("GET", "/never", 1).await;
    let begin = Instant::now();
    proxy.signal("TERM");
    assert_eq!(proxy.exit_status().await.code(), Some(0));
    assert!(begin.elapsed() >= Duration::from_millis(900), "{:?}", begin.elapsed());
    assert_eq!(client.closed().await, b"");
}

/// A client that is still sending an unwanted body is no request in flight.
#[tokio::test]
async fn a_refused_upload_does_not_hold_up_the_end() {
    let backend = Backend::start().await;
    let mut proxy = Proxy::to(backend.addr()).server(LATER).start().await;
    let mut client = Connection::open(proxy.addr()).await;
    client.send_bytes("PUT /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\nhalf").await;
    assert_eq!(client.read_response().await.status, 428);
    let slow = tokio::spawn(async move {
        while client.try_send_bytes("x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    proxy.signal("TERM");
    assert_eq!(proxy.exit_status().await.code(), Some(0));
    slow.await.expect("its connection is closed");
}

fn run(directory: &Path, file: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ifmatch"));
    command.arg("run").arg(file).env("RUST_LOG", "info");
    Child::spawn("ifmatch", &mut command, directory.join("log"))
}

/// The socket is for owner and group; what a killed process left behind is replaced; a living one is not.
#[tokio::test]
async fn it_listens_on_a_unix_socket() {
    let directory = tempfile::tempdir().unwrap();
    let (socket, file) = (directory.path().join("socket"), directory.path().join("ifmatch.toml"));
    let backend = Backend::start().await;
    backend.put("/doc", "current");
    let listen = format!("listen = [\"unix:{}\"]", socket.display());
    let configuration = Proxy::to(backend.addr()).configuration().replace("{listen}", &listen);
    fs::write(&file, configuration.replace("{spool}", "/var/tmp")).unwrap();

    let mut processes = Vec::new();
    for _ in 0..2 {
        let process = run(directory.path(), &file);
        until("the socket to accept connections", || UnixStream::connect(&socket).is_ok()).await;
        let metadata = fs::metadata(&socket).unwrap();
        assert!(metadata.file_type().is_socket());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o660);
        let path = socket.clone();
        let answer = tokio::task::spawn_blocking(move || {
            let mut stream = UnixStream::connect(path).unwrap();
            stream.write_all(b"GET /doc HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        let answer = answer.await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\ncurrent"), "{answer}");

        let second = tempfile::tempdir().unwrap();
        let mut second = run(second.path(), &file);
        assert_eq!(second.exit_status().await.code(), Some(69), "{}", second.log());
        process.signal("KILL");
        processes.push(process);
        until("the socket to be dead", || UnixStream::connect(&socket).is_err()).await;
        assert!(socket.exists(), "the next process finds it");
    }
}

/// `ifmatch run` with a file that is wrong or missing, and without knowing what is meant: 78, 78, 64.
#[tokio::test]
async fn what_cannot_run_says_why_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ifmatch.toml");
    fs::write(&file, "[server]\nlissen = []\n").unwrap();
    for (arguments, code, word) in [
        (vec!["run", "ifmatch.toml"], 78, "lissen"),
        (vec!["run", "missing.toml"], 78, "missing.toml"),
        (vec!["run", "--nonsense"], 64, "--nonsense"),
        (vec!["walk"], 64, "walk"),
        (vec!["run", "--upstream", "ftp://a"], 78, "ftp"),
    ] {
        let begin = Instant::now();
        let output =
            Command::new(env!("CARGO_BIN_EXE_ifmatch")).args(&arguments).current_dir(&directory).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.contains(word)), (Some(code), true), "{arguments:?}: {said}");
        assert!(begin.elapsed() < DEADLINE, "{arguments:?}: {:?}", begin.elapsed());
    }
}

/// DESIGN, section 3, rule 11, and common decency: one line a request, and in it no secret of its sender.
#[tokio::test]
async fn each_request_is_one_line_without_secrets() {
    let backend = Backend::start().await;
    let file = Proxy::to(backend.addr()).configuration().replace("/{*rest}", "/docs/{id}");
    let open = "\n[[routes]]\nname = \"open\"\npath = \"/open/{*rest}\"\nupstream = \"backend\"\npolicy = \"last-writer-wins\"\n";
    let proxy = Proxy::start(&(file + open)).await;
    let secret = [
        ("Authorization", "Bearer hunter2"),
        ("Cookie", "session=hunter2"),
        ("X-Api-Key", "hunter2"),
        ("If-Match", "\"hunter2\""),
        ("Referer", "http://a/?hunter2"),
        ("Lease-Id", "hunter2"),
    ];
    let requests = [
        ("GET", "/docs/1", "route=\"all\" policy=\"optimistic\" key=\"backend:/docs/1\" status=404"),
        ("PUT", "/docs/1", "status=412 verdict=\"precondition-failed\""),
        ("PUT", "/docs/2", "status=400 verdict=\"malformed-lease-header\""),
        ("PUT", "/docs/a%2f", "route=\"all\" policy=\"optimistic\" status=400 verdict=\"ambiguous-target\""),
        ("PUT", "/open/1", "route=\"open\" policy=\"last-writer-wins\" status=201 verdict=\"passed\""),
        ("GET", "/none", "status=404 verdict=\"no-route\""),
    ];
    for (method, target, _) in requests {
        // A guarded route refuses a value that is no lease id, in any case.
        let fields = if target == "/docs/1" { &secret[..secret.len() - 1] } else { &secret[..] };
        send(proxy.addr(), method, &format!("{target}?sig=hunter2"), fields, "hunter2").await;
    }
    let lines = || {
        proxy.log().lines().filter(|line| line.contains(" ifmatch::access: ")).map(str::to_owned).collect::<Vec<_>>()
    };
    until("all lines to be written", || lines().len() >= requests.len()).await;
    assert_eq!(get(proxy.addr(), "/open/1?sig=hunter2").await.text(), "hunter2");
    until("one more line", || lines().len() > requests.len()).await;
    // A line is written behind its answer, so those of two connections come in any order.
    for (method, target, rest) in requests {
        let begin = format!("method=\"{method}\" path={target} ");
        let found: Vec<_> = lines().into_iter().filter(|line| line.contains(&begin)).collect();
        assert!(found.len() == 1 && found[0].contains(rest), "{begin}: {found:?}");
    }
    assert_eq!(lines().len(), requests.len() + 1, "{:?}", lines());
    assert!(!proxy.log().contains("hunter2"), "{}", proxy.log());
}

/// Records of pingora's, which see the request as it is, are under the same rule.
#[tokio::test]
async fn failed_exchanges_and_malformed_requests_leave_no_secrets_in_the_log() {
    let backend = Backend::start().await;
    backend.always("*", "*", |_| Answer::raw("HTTP/1.1 200 OK\r\nSet-Cookie: hunter2\r\nX Y: hunter2\r\n\r\n"));
    for policy in ["last-writer-wins", "optimistic"] {
        let proxy = Proxy::to(backend.addr()).route(&format!("policy = \"{policy}\"")).start().await;
        let secret = [("Authorization", "hunter2"), ("If-None-Match", "*")];
        for method in ["GET", "PUT", "POST"] {
            assert_eq!(
                send(proxy.addr(), method, "/a?hunter2", &secret, "hunter2").await.status,
                502,
                "{policy} {method}"
            );
        }
        let mut connection = Connection::open(proxy.addr()).await;
        connection.send_bytes("GET /a HTTP/1.1\r\nAuthorization: hunter2\r\nX Y: hunter2\r\n\r\n").await;
        assert_eq!(connection.read_response().await.status, 400);
        let mut connection = Connection::open(proxy.addr()).await;
        connection
            .send_bytes("PUT /a?hunter2 HTTP/1.1\r\nHost: a\r\nAuthorization: hunter2\r\nContent-Length: 9\r\n\r\nhun")
            .await;
        connection.reset();
        until("a line for each request", || proxy.log().matches("ifmatch::access").count() >= 4).await;
        assert!(!proxy.log().contains("hunter2"), "{}", proxy.log());
    }
}
