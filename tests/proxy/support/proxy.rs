//! `ifmatch` as its users run it: a child process with a configuration file.

use std::{
    fmt::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
};

use tempfile::TempDir;

use super::{child::Child, ports, wait::until_some};

/// The exit code for an address that cannot be bound.
const CANNOT_BIND: i32 = 69;

/// How often another process may take the port before us.
const ATTEMPTS: usize = 5;

/// A running `ifmatch`; killed on drop, and its log is printed when the test fails.
pub struct Proxy {
    child: Child,
    addr: SocketAddr,
    directory: TempDir,
}

impl Proxy {
    /// Runs `ifmatch run` on this configuration. In it, `{listen}` stands for the line `listen = ["..."]` with a free
    /// address, `{addr}` for that address, and `{spool}` and `{control}` for a directory and a socket in a temporary
    /// directory.
    pub async fn start(configuration: &str) -> Self {
        Self::start_with(configuration, &[]).await
    }

    /// The same with these variables in its environment.
    pub async fn start_with(configuration: &str, variables: &[(&str, &str)]) -> Self {
        Self::start_under(configuration, variables, &[]).await
    }

    /// The same by a command that executes the command after it in its own place, such as `setpriv`.
    pub async fn start_under(configuration: &str, variables: &[(&str, &str)], wrapper: &[String]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let spool = directory.path().join("spool");
        std::fs::create_dir(&spool).expect("a directory");
        let configuration = in_directory(configuration, directory.path());
        for attempt in 1..=ATTEMPTS {
            let addr = ports::free();
            let file = directory.path().join("ifmatch.toml");
            let text = configuration.replace("{listen}", &format!("listen = [\"{addr}\"]"));
            std::fs::write(&file, text.replace("{addr}", &addr.to_string())).expect("a file");
            let mut child = spawn(directory.path(), &["run".as_ref(), file.as_ref()], variables, wrapper);
            match child.accepts(addr).await {
                Ok(()) => return Self { child, addr, directory },
                Err(status) if status.code() == Some(CANNOT_BIND) && attempt < ATTEMPTS => {}
                Err(status) => panic!("ifmatch ended before it accepted connections: {status}"),
            }
        }
        unreachable!("the last attempt returns or panics")
    }

    /// Begins the configuration of a proxy with one optimistic route for every path to this upstream.
    pub fn to(upstream: SocketAddr) -> Setup {
        Setup {
            upstream,
            threads: 2,
            server: String::new(),
            store: String::new(),
            options: String::new(),
            route: String::new(),
        }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Everything that it has logged so far.
    pub fn log(&self) -> String {
        self.child.log()
    }

    /// Waits until a line with all these texts is in the log, which another thread of the proxy writes. Returns all such
    /// lines.
    pub async fn logged(&self, texts: &[&str]) -> Vec<String> {
        let has_all = |line: &&str| texts.iter().all(|text| line.contains(text));
        let lines = || self.log().lines().filter(has_all).map(str::to_owned).collect::<Vec<_>>();
        until_some(&format!("a line with {texts:?}"), || Some(lines()).filter(|lines| !lines.is_empty())).await
    }

    /// Returns the place where the bodies of large requests are spooled.
    pub fn spool(&self) -> PathBuf {
        self.directory.path().join("spool")
    }

    /// The most memory that it has held at once.
    pub fn peak_memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a running process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak is told");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Sends a signal by its name: `"TERM"`, `"INT"`, `"KILL"`.
    pub fn signal(&self, name: &str) {
        self.child.signal(name);
    }

    /// Puts another configuration in the place of its file, with the same address and directories.
    pub fn rewrite(&self, configuration: &str) {
        let configuration = in_directory(configuration, self.directory.path());
        let configuration = configuration.replace("{listen}", &format!("listen = [\"{}\"]", self.addr));
        let configuration = configuration.replace("{addr}", &self.addr.to_string());
        std::fs::write(self.directory.path().join("ifmatch.toml"), configuration).expect("a file");
    }

    /// The path of its file.
    pub fn file(&self) -> PathBuf {
        self.directory.path().join("ifmatch.toml")
    }

    /// Runs `ifmatch reload` against its control socket, which its configuration names as `{control}`.
    pub async fn reload(&self, arguments: &[&str]) -> Reload {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ifmatch"));
        let socket = self.directory.path().join("control");
        command.arg("reload").arg("--socket").arg(socket).args(arguments).env_remove("RUST_LOG");
        let output = tokio::task::spawn_blocking(move || command.output().expect("the program starts"));
        let output = output.await.expect("it ends");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Reload { code: output.status.code(), said: text(output.stdout) + &text(output.stderr) }
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Starts it again, after it was killed, with the file and the address that it had, and no variables.
    pub async fn restart(&mut self) {
        self.child.exit_status().await;
        let file = self.file();
        self.child = spawn(self.directory.path(), &["run".as_ref(), file.as_ref()], &[], &[]);
        self.child.accepts(self.addr).await.expect("it starts as before");
    }

    /// Waits until it ends on its own.
    pub async fn exit_status(&mut self) -> ExitStatus {
        self.child.exit_status().await
    }
}

/// The result of `ifmatch reload`.
#[derive(Debug)]
pub struct Reload {
    pub code: Option<i32>,
    pub said: String,
}

fn in_directory(configuration: &str, directory: &Path) -> String {
    let path = |name| directory.join(name).to_str().expect("UTF-8").to_owned();
    configuration.replace("{spool}", &path("spool")).replace("{control}", &path("control"))
}

fn spawn(directory: &Path, arguments: &[&Path], variables: &[(&str, &str)], wrapper: &[String]) -> Child {
    let program = env!("CARGO_BIN_EXE_ifmatch");
    let mut command = match wrapper.split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.args(arguments).env("RUST_LOG", "info").envs(variables.iter().copied()).current_dir(directory);
    Child::spawn("ifmatch", &mut command, directory.join("log"))
}

/// A configuration under construction: lines of TOML for each of its tables.
#[derive(Clone, Debug)]
pub struct Setup {
    upstream: SocketAddr,
    threads: usize,
    server: String,
    store: String,
    options: String,
    route: String,
}

impl Setup {
    /// Serves all requests on one thread, which takes them in the order of their coming.
    #[must_use]
    pub fn on_one_thread(self) -> Self {
        Self { threads: 1, ..self }
    }

    /// Adds lines to `[server]`.
    #[must_use]
    pub fn server(mut self, lines: &str) -> Self {
        self.server.push_str(lines);
        self.server.push('\n');
        self
    }

    /// Adds lines to `[store]`.
    #[must_use]
    pub fn store(mut self, lines: &str) -> Self {
        self.store.push_str(lines);
        self.store.push('\n');
        self
    }

    /// Adds lines to the `[upstreams]` table.
    #[must_use]
    pub fn upstream(mut self, lines: &str) -> Self {
        self.options.push_str(lines);
        self.options.push('\n');
        self
    }

    /// Adds lines to the route. A `policy` among them replaces `"optimistic"`.
    #[must_use]
    pub fn route(mut self, lines: &str) -> Self {
        self.route.push_str(lines);
        self.route.push('\n');
        self
    }

    /// The whole file, with the places that [`Proxy::start`] fills in.
    pub fn configuration(&self) -> String {
        let Self { upstream, threads, server, store, options, route } = self;
        let mut file = format!("[server]\n{{listen}}\nspool_dir = \"{{spool}}\"\nthreads = {threads}\n{server}");
        let mut table = |head: &str, lines: &str| write!(file, "\n{head}\n{lines}").expect("a String takes all");
        if !store.is_empty() {
            table("[store]", store);
        }
        table("[upstreams.backend]", &format!("servers = [\"{upstream}\"]\n{options}"));
        table("[[routes]]", "name = \"all\"\npath = \"/{*rest}\"\nupstream = \"backend\"\n");
        if !route.lines().any(|line| line.trim_start().starts_with("policy")) {
            file.push_str("policy = \"optimistic\"\n");
        }
        // Most backends of these tests keep no collections, and are asked no questions about them.
        if !route.contains("last-writer-wins") && !route.contains("collections =") {
            file.push_str("collections = \"none\"\n");
        }
        file + route
    }

    pub async fn start(self) -> Proxy {
        Proxy::start(&self.configuration()).await
    }
}
