//! Engines of stores as their users run them: a child process each on free loopback ports, with its data in a temporary
//! directory. Included by more than one test binary, so it names its neighbours by their place in each.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
};

use tempfile::TempDir;

use super::{child::Child, ports, wait::until};

pub mod cluster;
pub mod postgres;

use postgres::Postgres;

/// The password of secured engines.
pub const PASSWORD: &str = "correct horse battery staple";

/// How often another process may take a port before us.
const ATTEMPTS: usize = 5;

/// A running etcd of one member.
pub struct Etcd {
    server: Server,
}

/// A running Redis, which puts every write on the disk before it answers.
pub struct Redis {
    server: Server,
}

/// The common part of both: a program that can be killed and started again in its place.
struct Server {
    child: Child,
    command: fn(&Path, SocketAddr, SocketAddr) -> Command,
    addrs: [SocketAddr; 2],
    directory: TempDir,
}

impl Etcd {
    pub async fn start() -> Self {
        Self { server: Server::start(etcd).await }
    }

    /// One that speaks TLS and lets only the user `root` in, whose password is [`PASSWORD`].
    pub async fn start_secured() -> Self {
        let etcd = Self { server: Server::start(secured_etcd).await };
        let certificate = etcd.certificate();
        for command in [["user", "add", &format!("root:{PASSWORD}")].as_slice(), &["auth", "enable"]] {
            let tls =
                [&format!("--endpoints=https://{}", etcd.addr()), "--cacert", certificate.to_str().expect("UTF-8")];
            output("etcdctl", Command::new("etcdctl").env("ETCDCTL_API", "3").args(tls).args(command));
        }
        etcd
    }

    /// The certificate of a secured one.
    pub fn certificate(&self) -> PathBuf {
        self.server.directory.path().join("certificate")
    }

    pub fn addr(&self) -> SocketAddr {
        self.server.addrs[0]
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.addr())
    }

    /// Returns the output of `etcdctl` for these arguments.
    pub fn ctl(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").arg(format!("--endpoints={}", self.endpoint())).args(arguments);
        output("etcdctl", &mut command)
    }

    /// Sends it a signal by its name: `"STOP"`, `"CONT"`, `"KILL"`.
    pub fn signal(&self, name: &str) {
        self.server.child.signal(name);
    }

    /// Starts it again, after it was killed, with the data and the address that it had.
    pub async fn restart(&mut self) {
        self.server.restart(true).await;
    }

    /// Starts it again, after it was killed, at the address that it had and without its data.
    pub async fn lose_everything(&mut self) {
        self.server.restart(false).await;
    }

    /// Makes a copy of its data, after it was killed.
    pub async fn back_up(&mut self) {
        self.server.back_up().await;
    }

    /// Starts it again, after it was killed, at the address that it had and with the copy of its data.
    pub async fn restore(&mut self) {
        self.server.restore().await;
    }
}

impl Redis {
    pub async fn start() -> Self {
        Self { server: Server::start(redis).await }
    }

    /// One that has every write of this one, as soon as it can.
    pub async fn replica(&self) -> Self {
        let replica = Self::start().await;
        replica.follow(self.addr());
        let is_up = || replica.cli(&["INFO", "replication"]).contains("master_link_status:up");
        until("the replica to have all writes", is_up).await;
        replica
    }

    /// Waits until this replica has all writes that the primary has now.
    pub async fn catches_up(&self, primary: &Self) {
        let offset = |server: &Self, name: &str| {
            let shown = server.cli(&["INFO", "replication"]);
            let line = shown.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.expect("an offset").trim().parse::<u64>().expect("a number")
        };
        let wanted = offset(primary, "master_repl_offset");
        until("the replica to catch up", || offset(self, "slave_repl_offset") >= wanted).await;
    }

    /// Makes it a replica of the server at this address.
    pub fn follow(&self, primary: SocketAddr) {
        self.cli(&["REPLICAOF", &primary.ip().to_string(), &primary.port().to_string()]);
    }

    /// Makes it a primary.
    pub fn promote(&self) {
        self.cli(&["REPLICAOF", "NO", "ONE"]);
    }

    /// One that speaks TLS and asks for [`PASSWORD`].
    pub async fn start_secured() -> Self {
        Self { server: Server::start(secured_redis).await }
    }

    /// The certificate of a secured one.
    pub fn certificate(&self) -> PathBuf {
        self.server.directory.path().join("certificate")
    }

    pub fn addr(&self) -> SocketAddr {
        self.server.addrs[0]
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.addr())
    }

    /// Returns the output of `redis-cli` for these arguments.
    pub fn cli(&self, arguments: &[&str]) -> String {
        let (host, port) = (self.addr().ip().to_string(), self.addr().port().to_string());
        let mut command = Command::new("redis-cli");
        command.args(["-h", &host, "-p", &port]).args(arguments);
        output("redis-cli", &mut command)
    }

    /// Sends it a signal by its name: `"STOP"`, `"CONT"`, `"KILL"`.
    pub fn signal(&self, name: &str) {
        self.server.child.signal(name);
    }

    /// Starts it again, after it was killed, with the data and the address that it had.
    pub async fn restart(&mut self) {
        self.server.restart(true).await;
    }

    /// Starts it again, after it was killed, at the address that it had and without its data.
    pub async fn lose_everything(&mut self) {
        self.server.restart(false).await;
    }

    /// Makes a copy of its data, after it was killed.
    pub async fn back_up(&mut self) {
        self.server.back_up().await;
    }

    /// Starts it again, after it was killed, at the address that it had and with the copy of its data.
    pub async fn restore(&mut self) {
        self.server.restore().await;
    }
}

impl Server {
    async fn start(command: fn(&Path, SocketAddr, SocketAddr) -> Command) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for attempt in 1..=ATTEMPTS {
            let addrs = [ports::free(), ports::free()];
            match spawn(command, directory.path(), addrs).await {
                Ok(child) => return Self { child, command, addrs, directory },
                Err(_) if attempt < ATTEMPTS => {}
                Err(status) => panic!("it ended before it accepted connections: {status}"),
            }
        }
        unreachable!("the last attempt returns or panics")
    }

    async fn back_up(&mut self) {
        self.child.exit_status().await;
        let directory = self.directory.path();
        output("cp", Command::new("cp").arg("-a").arg(directory.join("data")).arg(directory.join("copy")));
    }

    async fn restore(&mut self) {
        self.child.exit_status().await;
        let directory = self.directory.path();
        std::fs::remove_dir_all(directory.join("data")).expect("its data");
        std::fs::rename(directory.join("copy"), directory.join("data")).expect("a copy");
        self.restart(true).await;
    }

    async fn restart(&mut self, with_data: bool) {
        self.child.exit_status().await;
        if !with_data {
            std::fs::remove_dir_all(self.directory.path().join("data")).expect("its data");
        }
        for attempt in 1..=ATTEMPTS {
            match spawn(self.command, self.directory.path(), self.addrs).await {
                Ok(child) => {
                    self.child = child;
                    return;
                }
                // A process of the killed server may still hold what the new one needs.
                Err(_) if attempt < ATTEMPTS => {}
                Err(status) => panic!("it ended when it was started again: {status}"),
            }
        }
    }
}

async fn spawn(
    command: fn(&Path, SocketAddr, SocketAddr) -> Command,
    directory: &Path,
    addrs: [SocketAddr; 2],
) -> Result<Child, ExitStatus> {
    let mut command = command(directory, addrs[0], addrs[1]);
    let name = command.get_program().to_str().expect("UTF-8").to_owned();
    let found = Command::new("sh").args(["-c", &format!("command -v {name}")]).output().expect("there is a shell");
    assert!(found.status.success(), "{name} is not installed: run `make setup-test`");
    let mut child = Child::spawn(&name, &mut command, directory.join("log"));
    child.accepts(addrs[0]).await?;
    // Some accept connections before they can serve them.
    let readiness = [
        ("etcd", "serving client traffic"),
        ("postgres", "ready to accept connections"),
        ("redis-server", "Ready to accept connections"),
    ];
    if let Some((_, line)) = readiness.into_iter().find(|(server, _)| is_of(&command, server)) {
        until("the server to be ready", || child.log().contains(line)).await;
    }
    Ok(child)
}

/// True if a command starts this server, itself or as another user.
fn is_of(command: &Command, server: &str) -> bool {
    let mut words = std::iter::once(command.get_program()).chain(command.get_args());
    words.any(|word| Path::new(word).file_name().is_some_and(|name| name == server))
}

fn etcd(directory: &Path, clients: SocketAddr, peers: SocketAddr) -> Command {
    etcd_at(&format!("http://{clients}"), directory, peers)
}

fn secured_etcd(directory: &Path, clients: SocketAddr, peers: SocketAddr) -> Command {
    let (certificate, key) = certify(directory, clients);
    let mut command = etcd_at(&format!("https://{clients}"), directory, peers);
    command.arg("--cert-file").arg(certificate).arg("--key-file").arg(key);
    command
}

fn etcd_at(clients: &str, directory: &Path, peers: SocketAddr) -> Command {
    let mut command = Command::new("etcd");
    command.arg("--data-dir").arg(directory.join("data"));
    command.args(["--listen-client-urls", clients, "--advertise-client-urls", clients]);
    command.args(["--listen-peer-urls", &format!("http://{peers}")]);
    command.args(["--initial-advertise-peer-urls", &format!("http://{peers}")]);
    command.args(["--initial-cluster", &format!("default=http://{peers}")]);
    command.args(["--logger", "zap", "--log-outputs", "stderr"]);
    command
}

fn redis(directory: &Path, clients: SocketAddr, _peers: SocketAddr) -> Command {
    let mut command = Command::new("redis-server");
    command.args(["--bind", &clients.ip().to_string(), "--port", &clients.port().to_string()]);
    command.args(["--protected-mode", "no", "--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
    let data = directory.join("data");
    std::fs::create_dir_all(&data).expect("a directory");
    command.arg("--dir").arg(data);
    command
}

fn secured_redis(directory: &Path, clients: SocketAddr, peers: SocketAddr) -> Command {
    let (certificate, key) = certify(directory, clients);
    let mut command = redis(directory, clients, peers);
    // The last of two values for one option counts.
    command.args(["--port", "0", "--tls-port", &clients.port().to_string(), "--tls-auth-clients", "no"]);
    command.arg("--tls-cert-file").arg(&certificate).arg("--tls-key-file").arg(key);
    command.arg("--tls-ca-cert-file").arg(certificate).args(["--requirepass", PASSWORD]);
    command
}

/// Makes a self-signed certificate for this address, and its key.
fn certify(directory: &Path, addr: SocketAddr) -> (PathBuf, PathBuf) {
    let (certificate, key) = (directory.join("certificate"), directory.join("key"));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    command.args(["-subj", "/CN=test", "-addext", &format!("subjectAltName=IP:{}", addr.ip())]);
    command.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"]).arg(&key).arg("-out").arg(&certificate);
    output("openssl", &mut command);
    (certificate, key)
}

fn output(name: &str, command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// One of the engines that proxies share.
pub enum Engine {
    Etcd(Etcd),
    Postgres(Postgres),
    Redis(Redis),
}

impl Engine {
    /// One of each kind.
    pub async fn all() -> [Self; 3] {
        let (etcd, postgres) = (Etcd::start().await, Postgres::start().await);
        [Self::Etcd(etcd), Self::Postgres(postgres), Self::Redis(Redis::start().await)]
    }

    /// Its `kind` in `[store]`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Etcd(_) => "etcd",
            Self::Postgres(_) => "postgres",
            Self::Redis(_) => "redis",
        }
    }

    /// The lines of `[store]` that name it.
    pub fn store(&self) -> String {
        match self {
            Self::Etcd(etcd) => format!("kind = \"etcd\"\nendpoints = [\"{}\"]", etcd.endpoint()),
            Self::Postgres(postgres) => format!("kind = \"postgres\"\nurl = \"{}\"", postgres.url()),
            Self::Redis(redis) => format!("kind = \"redis\"\nurl = \"{}\"", redis.url()),
        }
    }

    /// Sends it a signal by its name: `"STOP"`, `"CONT"`, `"KILL"`.
    pub fn signal(&self, name: &str) {
        match self {
            Self::Etcd(etcd) => etcd.signal(name),
            Self::Postgres(postgres) => postgres.signal(name),
            Self::Redis(redis) => redis.signal(name),
        }
    }

    /// Starts it again, after it was killed, with the data and the address that it had.
    pub async fn restart(&mut self) {
        match self {
            Self::Etcd(etcd) => etcd.restart().await,
            Self::Postgres(postgres) => postgres.restart().await,
            Self::Redis(redis) => redis.restart().await,
        }
    }

    /// Makes a copy of its data, after it was killed.
    pub async fn back_up(&mut self) {
        match self {
            Self::Etcd(etcd) => etcd.back_up().await,
            Self::Postgres(postgres) => postgres.back_up().await,
            Self::Redis(redis) => redis.back_up().await,
        }
    }

    /// Starts it again, after it was killed, with the copy of its data.
    pub async fn restore(&mut self) {
        match self {
            Self::Etcd(etcd) => etcd.restore().await,
            Self::Postgres(postgres) => postgres.restore().await,
            Self::Redis(redis) => redis.restore().await,
        }
    }
}
