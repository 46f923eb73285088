//! A PostgreSQL as its users run it.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use tempfile::TempDir;

use super::{
    super::{
        child::{Child, until_stopped},
        ports,
        wait::until,
    },
    PASSWORD, Server, certify, output,
};

/// The user that the tests log in as, and the name of the database.
pub const USER: &str = "ifmatch";

/// A running PostgreSQL with the settings that it has after its installation.
pub struct Postgres {
    server: Server,
}

impl Postgres {
    pub async fn start() -> Self {
        Self { server: Server::start(postgres).await }
    }

    /// One that speaks TLS and asks for [`PASSWORD`].
    pub async fn start_secured() -> Self {
        Self { server: Server::start(secured_postgres).await }
    }

    /// The certificate of a secured one.
    pub fn certificate(&self) -> PathBuf {
        self.server.directory.path().join("certificate")
    }

    pub fn addr(&self) -> SocketAddr {
        self.server.addrs[0]
    }

    pub fn url(&self) -> String {
        format!("postgres://{}/{USER}", self.addr())
    }

    /// Returns the output of `psql` for a statement: the rows, with `|` between the columns.
    pub fn sql(&self, statement: &str) -> String {
        sql(self.addr(), statement)
    }

    /// Sends all its processes a signal by its name: `"STOP"`, `"CONT"`, `"KILL"`. Each is a group of its own.
    pub fn signal(&self, name: &str) {
        let first = self.server.child.id();
        let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children")).expect("a process");
        // One of the children may have ended meanwhile.
        let kill = format!("kill -s {name} {first} && for child in {children}; do kill -s {name} $child; done; true");
        output("sh", Command::new("sh").args(["-c", &kill]));
        if name == "STOP" {
            until_stopped(first);
            children.split_whitespace().filter_map(|child| child.parse().ok()).for_each(until_stopped);
        }
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

/// The data of a new server, made once in a process, because that takes a second.
static NEW: LazyLock<TempDir> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (data, password) = (directory.path().join("data"), directory.path().join("password"));
    fs::write(&password, PASSWORD).expect("a file");
    own(directory.path());
    let mut command = as_user("initdb");
    command.args(["--username", USER, "--auth=trust", "--no-sync", "--pgdata"]);
    output("initdb", command.arg(&data).arg("--pwfile").arg(&password));
    let mut command = as_user("postgres");
    command.arg("--single").arg("-D").arg(&data).arg("postgres");
    let create = format!("echo 'CREATE DATABASE {USER}' | \"$0\" \"$@\"");
    output("sh", Command::new("sh").args(["-c", &create]).arg(command.get_program()).args(command.get_args()));
    directory
});

fn postgres(directory: &Path, clients: SocketAddr, _peers: SocketAddr) -> Command {
    let data = directory.join("data");
    if !data.exists() {
        output("cp", Command::new("cp").arg("-a").arg(NEW.path().join("data")).arg(&data));
        own(directory);
    }
    serving(directory, clients)
}

/// A standby of a [`Postgres`], which acknowledges a change only when this one has it.
pub struct Standby {
    addr: SocketAddr,
    _child: Child,
    _directory: TempDir,
}

impl Standby {
    pub async fn of(primary: &Postgres) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (data, addr) = (directory.path().join("data"), ports::free());
        own(directory.path());
        let from = primary.addr();
        let mut command = as_user("pg_basebackup");
        command.args(["--write-recovery-conf", "--username", USER, "--checkpoint=fast", "--no-sync", "--pgdata"]);
        command.arg(&data).args(["--host", &from.ip().to_string(), "--port", &from.port().to_string()]);
        output("pg_basebackup", &mut command);
        let mut command = serving(directory.path(), addr);
        let child = Child::spawn("postgres", &mut command, directory.path().join("log"));
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        primary.sql("SELECT pg_reload_conf()");
        let state = || primary.sql("SELECT sync_state FROM pg_stat_replication");
        until("the standby to be synchronous", || state().trim() == "sync").await;
        Self { addr, _child: child, _directory: directory }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Makes it the primary.
    pub fn promote(&self) {
        sql(self.addr, "SELECT pg_promote()");
    }
}

/// The server over the data in a directory.
fn serving(directory: &Path, clients: SocketAddr) -> Command {
    let mut command = as_user("postgres");
    command.arg("-D").arg(directory.join("data"));
    command.args(["-h", &clients.ip().to_string(), "-p", &clients.port().to_string()]).arg("-k").arg(directory);
    command
}

/// Returns the output of `psql` for a statement: the rows, with `|` between the columns.
fn sql(addr: SocketAddr, statement: &str) -> String {
    let mut command = Command::new("psql");
    command.args(["--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--command", statement]);
    output("psql", command.arg(format!("postgres://{USER}@{addr}/{USER}")))
}

fn secured_postgres(directory: &Path, clients: SocketAddr, peers: SocketAddr) -> Command {
    let (certificate, key) = certify(directory, clients);
    let mut command = postgres(directory, clients, peers);
    own(directory);
    let rules = "hostssl all all all scram-sha-256\n";
    fs::write(directory.join("data/pg_hba.conf"), rules).expect("a file");
    let file = |name: &str, path: PathBuf| format!("{name}={}", path.display());
    command.args(["-c", "ssl=on", "-c", &file("ssl_cert_file", certificate), "-c", &file("ssl_key_file", key)]);
    command
}

/// One of its programs. They refuse to run as root, so then another user runs them.
fn as_user(program: &str) -> Command {
    let found = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let path = found.map(|version| version.path().join("bin").join(program)).find(|path| path.exists());
    let path = path.unwrap_or_else(|| panic!("{program} is not installed: run `make setup-test`"));
    let Some((user, group)) = other_user() else { return Command::new(path) };
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={group}"), "--clear-groups".to_owned()]).arg(path);
    command
}

/// The user and group `postgres`, if this is root.
fn other_user() -> Option<(u32, u32)> {
    let id = |options: &[&str]| output("id", Command::new("id").args(options)).trim().parse().expect("a number");
    (id(&["-u"]) == 0).then(|| (id(&["-u", "postgres"]), id(&["-g", "postgres"])))
}

/// Gives the files in a directory to the user that runs the server.
fn own(directory: &Path) {
    let Some((user, group)) = other_user() else { return };
    let files = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    for path in files.filter(|path| path.is_file()).chain([directory.to_owned()]) {
        chown(&path, Some(user), Some(group)).expect("root gives files away");
    }
}
