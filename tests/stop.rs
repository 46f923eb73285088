//! How the program begins and ends: a busy port, signals, requests in flight, the demo. Each test is a process of its own.

#![allow(clippy::expect_used, reason = "a test stops at the first surprise")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// No test waits longer; a third of the `shutdown_timeout`, so that an end by that is no success.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running `ifmatch`, killed when it is dropped.
struct Proxy {
    child: Child,
    _directory: TempDir,
    address: SocketAddr,
    log: Option<BufReader<ChildStderr>>,
}

impl Proxy {
    fn start(upstream: SocketAddr) -> Self {
        let (mut command, directory) = command(upstream, "127.0.0.1:0");
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let log = BufReader::new(child.stderr.take().expect("its log"));
        let mut proxy = Self { child, _directory: directory, address: nobody(), log: Some(log) };
        let line = proxy.wait_for_log("listen=");
        let address = line.split("listen=").nth(1).and_then(|rest| rest.split_whitespace().next());
        proxy.address = address.expect("an address").parse().expect("a socket address");
        proxy
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the proxy listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    fn signal(&self, name: &str) {
        let kill = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.child.id())]).status();
        assert!(kill.expect("a shell").success());
    }

    /// Reads the log up to a line that holds this.
    fn wait_for_log(&mut self, text: &str) -> String {
        let log = self.log.as_mut().expect("a log that is open");
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(log.read_line(&mut line).expect("a log of text"), 0, "the log ends before {text:?}");
        }
        line
    }

    /// Waits until it has ended.
    fn end(&mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(begin.elapsed() < PATIENCE, "the program goes on");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program with one route, and the directory of its file.
fn command(upstream: SocketAddr, listen: &str) -> (Command, TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("ifmatch.toml");
    let configuration = format!(
        "[server]\nlisten = [\"{listen}\"]\nshutdown_timeout = \"60s\"\n[upstreams.backend]\nservers = [\"{upstream}\"]\n\
         [[routes]]\npath = \"/{{*rest}}\"\nupstream = \"backend\"\npolicy = \"last-writer-wins\"\n"
    );
    fs::write(&file, configuration).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ifmatch"));
    command.arg("run").arg(file).env_remove("RUST_LOG");
    (command, directory)
}

/// A backend that reports each request, and answers it on demand.
fn slow_backend() -> (SocketAddr, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let (arrived, arrival) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        assert_ne!(stream.read(&mut [0; 4096]).expect("a request"), 0);
        arrived.send(()).expect("the test waits");
        answers.recv().expect("the test answers");
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone").expect("the proxy waits");
    });
    (address, arrival, answer)
}

fn nobody() -> SocketAddr {
    "127.0.0.1:9".parse().expect("an address")
}

#[test]
fn a_busy_port_is_exit_69_at_once() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("its address").to_string();
    let (mut command, _directory) = command(nobody(), &address);
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(69));
    let complaint = String::from_utf8(output.stderr).expect("text");
    let expected = format!("ifmatch: cannot listen on {address}: Address already in use");
    assert!(complaint.contains(&expected), "{complaint}");
}

#[test]
fn an_idle_process_ends_at_once_on_each_signal() {
    for signal in ["TERM", "INT", "QUIT"] {
        let mut proxy = Proxy::start(nobody());
        // A connection between two requests is idle, too.
        let mut idle = proxy.connect();
        idle.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is read");
        assert_ne!(idle.read(&mut [0; 4096]).expect("an answer"), 0);
        proxy.signal(signal);
        assert_eq!(proxy.end().code(), Some(0), "{signal}");
    }
}

#[test]
fn a_request_in_flight_is_answered_before_the_end() {
    let (backend, arrival, answer) = slow_backend();
    let mut proxy = Proxy::start(backend);
    let mut stream = proxy.connect();
    stream.write_all(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is read");
    arrival.recv_timeout(PATIENCE).expect("the request arrives");
    proxy.signal("TERM");
    proxy.wait_for_log("asked to stop");
    let begin = Instant::now();
    while TcpStream::connect(proxy.address).is_ok() {
        assert!(begin.elapsed() < PATIENCE, "it still listens");
    }
    // That something does not happen has no condition to wait for; without waiting it would end within this time.
    thread::sleep(Duration::from_millis(200));
    assert!(proxy.child.try_wait().expect("a child").is_none(), "it ended with a request in flight");
    answer.send(()).expect("the backend waits");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("an answer, then an orderly end");
    assert!(response.starts_with("HTTP/1.1 200 ") && response.ends_with("done"), "{response}");
    assert_eq!(proxy.end().code(), Some(0));
}

#[test]
fn a_second_signal_ends_a_process_with_requests_in_flight() {
    let (backend, arrival, _answer) = slow_backend();
    let mut proxy = Proxy::start(backend);
    let mut stream = proxy.connect();
    stream.write_all(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is read");
    arrival.recv_timeout(PATIENCE).expect("the request arrives");
    proxy.signal("TERM");
    proxy.wait_for_log("asked to stop");
    proxy.signal("INT");
    assert_eq!(proxy.end().code(), Some(0));
}

#[test]
fn a_process_whose_log_is_closed_serves_and_ends() {
    let mut proxy = Proxy::start(nobody());
    proxy.log = None;
    let mut stream = proxy.connect();
    for _ in 0..2 {
        stream.write_all(b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n").expect("it is read");
        assert_ne!(stream.read(&mut [0; 4096]).expect("an answer"), 0);
    }
    proxy.signal("TERM");
    assert_eq!(proxy.end().code(), Some(0));
}

#[test]
fn the_demo_walks_to_its_end() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_ifmatch"));
    let output = demo.args(["demo", "--once"]).env_remove("RUST_LOG").output().expect("it starts");
    let (walk, complaint) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    let (walk, complaint) = (walk.expect("text"), complaint.expect("text"));
    assert_eq!((output.status.code(), complaint.as_str()), (Some(0), ""), "{walk}");
    let statuses: Vec<&str> = walk.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)).collect();
    assert_eq!(statuses, ["201", "412", "200", "204", "412", "428", "200"]);
}

/// Either this test holds port 8080 while the demo starts, or another process does.
#[test]
fn the_demo_names_another_port_if_its_own_is_in_use() {
    let _taken = TcpListener::bind("127.0.0.1:8080");
    let output = Command::new(env!("CARGO_BIN_EXE_ifmatch")).args(["demo", "--once"]).output().expect("it starts");
    let walk = String::from_utf8(output.stdout).expect("text");
    assert!(walk.contains("Port 8080 cannot be used: this demo listens on port "), "{walk}");
    assert!(!walk.contains("http://127.0.0.1:8080"), "{walk}");
}
