//! Under a supervisor: the messages that it gets from the process (`NOTIFY_SOCKET`), and sockets that it hands over
//! (`LISTEN_FDS`).

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    os::{
        fd::OwnedFd,
        unix::net::{UnixDatagram, UnixListener},
    },
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::support::{
    backend::Backend,
    child::Child,
    engines::Redis,
    nginx::Nginx,
    proxy::Proxy,
    raw::{get, send},
    wait::{until, until_some},
};

/// The messages that the supervisor gets.
struct Supervisor {
    socket: UnixDatagram,
    directory: TempDir,
}

impl Supervisor {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(directory.path().join("notify")).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { socket, directory }
    }

    fn address(&self) -> String {
        self.directory.path().join("notify").to_str().unwrap().to_owned()
    }

    /// The lines of the next message.
    async fn hears(&self) -> Vec<String> {
        let message = until_some("a message to the supervisor", || {
            let mut bytes = [0; 4096];
            let length = self.socket.recv(&mut bytes).ok()?;
            Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
        });
        message.await.lines().map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn a_supervisor_hears_when_the_process_serves_reloads_and_ends() {
    let (backend, supervisor) = (Backend::start().await, Supervisor::new());
    let file = Proxy::to(backend.addr()).configuration();
    let mut proxy = Proxy::start_with(&file, &[("NOTIFY_SOCKET", &supervisor.address())]).await;
    assert_eq!(supervisor.hears().await, ["READY=1", "STATUS=serving 1 routes, 1 of them guarded"]);

    proxy.rewrite(&(file.clone() + "require = \"never\"\n"));
    proxy.signal("HUP");
    let reloading = supervisor.hears().await;
    let moment = reloading[1].strip_prefix("MONOTONIC_USEC=").expect("the moment is told");
    assert!(reloading[0] == "RELOADING=1" && moment.parse::<u64>().is_ok(), "{reloading:?}");
    assert_eq!(supervisor.hears().await, ["READY=1", "STATUS=serving 1 routes, 1 of them guarded"]);

    proxy.rewrite("[server]\n");
    proxy.signal("HUP");
    assert_eq!(supervisor.hears().await[0], "RELOADING=1");
    let refused = supervisor.hears().await;
    let expected = "STATUS=serving 1 routes, 1 of them guarded; the last reload was refused: the file has problems:";
    assert!(refused[0] == "READY=1" && refused[1].starts_with(expected), "{refused:?}");

    proxy.signal("TERM");
    assert_eq!(supervisor.hears().await[0], "STOPPING=1");
    assert_eq!(proxy.exit_status().await.code(), Some(0));
}

#[tokio::test]
async fn a_watchdog_is_fed_twice_in_its_time() {
    const TIME: Duration = Duration::from_secs(3);
    let (backend, supervisor) = (Backend::start().await, Supervisor::new());
    let variables = [("NOTIFY_SOCKET", supervisor.address()), ("WATCHDOG_USEC", TIME.as_micros().to_string())];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let _proxy = Proxy::start_with(&Proxy::to(backend.addr()).configuration(), &variables).await;
    assert_eq!(supervisor.hears().await[0], "READY=1");
    assert_eq!(supervisor.hears().await, ["WATCHDOG=1"]);
    let begin = Instant::now();
    for _ in 0..3 {
        assert_eq!(supervisor.hears().await, ["WATCHDOG=1"]);
    }
    let took = begin.elapsed();
    assert!((TIME..TIME * 3).contains(&took), "3 in {took:?}, where each has {TIME:?}");
}

/// Starts `ifmatch run` as a supervisor does, with a listening socket as its file descriptor 3.
fn start_on(socket: impl Into<OwnedFd>, directory: &Path, file: &Path) -> Child {
    let script = "exec 3<&0 0</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" run \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_ifmatch")]).arg(file).env("RUST_LOG", "info");
    Child::spawn_with("ifmatch", &mut command, directory.join("log"), socket.into().into())
}

/// Clients that add one to a counter, each exchange over a connection of its own, until they are to stop.
async fn count_until(addr: SocketAddr, stop: Arc<AtomicBool>, counted: Arc<AtomicUsize>) {
    while !stop.load(Ordering::SeqCst) {
        let read = get(addr, "/counter").await;
        assert_eq!(read.status, 200, "{read:?}");
        let Some(tag) = read.header("etag") else { continue };
        let next = (read.text().parse::<usize>().unwrap() + 1).to_string();
        let written = send(addr, "PUT", "/counter", &[("If-Match", tag)], next).await;
        assert!([204, 409, 412].contains(&written.status), "{written:?}");
        if written.status == 204 {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// The socket outlives each process, so that no connection is refused or reset; the store is shared, so that two
/// processes at once are one guard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_process_takes_over_from_one_that_drains_under_load() {
    let (nginx, redis) = (Nginx::start().await, Redis::start().await);
    fs::write(nginx.root().join("counter"), "0").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let store = format!("kind = \"redis\"\nurl = \"{}\"\ntimeout = \"10s\"", redis.url());
    let configuration = Proxy::to(nginx.addr()).store(&store).route("hash_wait = \"10s\"").configuration();
    let listen = format!("listen = [\"{addr}\"]");
    let file = directory.path().join("ifmatch.toml");
    fs::write(&file, configuration.replace("{listen}", &listen).replace("{spool}", "/var/tmp")).unwrap();
    let start = |number: usize| {
        let own = directory.path().join(number.to_string());
        fs::create_dir(&own).unwrap();
        start_on(listener.try_clone().unwrap(), &own, &file)
    };

    let mut old = start(0);
    until("the first process to run", || old.log().contains("listen=")).await;
    let (stop, counted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> =
        (0..4).map(|_| tokio::spawn(count_until(addr, Arc::clone(&stop), Arc::clone(&counted)))).collect();
    for number in 1..=3 {
        let before = counted.load(Ordering::SeqCst);
        let new = start(number);
        until("the new process to serve", || new.log().contains("ifmatch::access")).await;
        old.signal("TERM");
        assert_eq!(old.exit_status().await.code(), Some(0));
        until("the counter to go on", || counted.load(Ordering::SeqCst) > before + 5).await;
        old = new;
    }
    stop.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.expect("no request fails");
    }
    let kept = fs::read_to_string(nginx.root().join("counter")).unwrap();
    assert_eq!(kept, counted.load(Ordering::SeqCst).to_string());
}

#[tokio::test]
async fn a_unix_socket_is_handed_over_too_and_one_that_is_not_named_is_refused() {
    let backend = Backend::start().await;
    let directory = tempfile::tempdir().unwrap();
    let (path, file) = (directory.path().join("socket"), directory.path().join("ifmatch.toml"));
    let listener = UnixListener::bind(&path).unwrap();
    let configuration = Proxy::to(backend.addr()).configuration().replace("{spool}", "/var/tmp");
    let listen = |address: &str| configuration.replace("{listen}", &format!("listen = [\"{address}\"]"));
    fs::write(&file, listen(&format!("unix:{}", path.display()))).unwrap();
    let child = start_on(listener.try_clone().unwrap(), directory.path(), &file);
    until("it to warn", || child.log().contains("no other process may serve")).await;
    assert!(child.log().contains("store=\"memory"), "{}", child.log());
    drop(child);

    fs::write(&file, listen("127.0.0.1:0")).unwrap();
    let mut child = start_on(listener, directory.path(), &file);
    assert_eq!(child.exit_status().await.code(), Some(69));
    assert!(child.log().contains("which server.listen does not name"), "{}", child.log());
}
