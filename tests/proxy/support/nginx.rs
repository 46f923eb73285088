//! The real nginx with its dav module: the plainest backend that a user could have.

use std::{
    io::ErrorKind,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
};

use tempfile::TempDir;

use super::{child::Child, raw::get, wait::until};

/// Debian puts it where an ordinary user's PATH does not look.
const PROGRAMS: [&str; 3] = ["nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"];

/// Requests with this prefix are our own, see [`Nginx::access_lines`].
const MARK: &str = "/.mark-";

/// A running nginx that keeps what is PUT to it in files; killed on drop.
pub struct Nginx {
    child: Child,
    addr: SocketAddr,
    directory: TempDir,
    marks: AtomicUsize,
}

impl Nginx {
    /// Without entity-tags, and deaf to If-Modified-Since: it knows nothing of versions.
    pub async fn start() -> Self {
        Self::with("etag off; if_modified_since off;").await
    }

    /// With its own entity-tags.
    pub async fn with_etags() -> Self {
        Self::with("etag on;").await
    }

    /// With these directives in its server block.
    pub async fn with(directives: &str) -> Self {
        Self::configured(directives, "").await
    }

    /// With other servers beside its own.
    pub async fn beside(servers: &str) -> Self {
        Self::configured("", servers).await
    }

    async fn configured(directives: &str, others: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(directory.path().join("root")).expect("a directory");
        let (addr, child) = Child::on_free_port("nginx", &directory.path().join("log"), |addr| {
            let file = directory.path().join("nginx.conf");
            std::fs::write(&file, configuration(directory.path(), addr, directives, others)).expect("a file");
            command(directory.path(), &file)
        })
        .await;
        Self { child, addr, directory, marks: AtomicUsize::new(0) }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The directory of the files that it serves.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    /// `"METHOD /path STATUS"` of each request whose response was sent before this call, oldest first.
    pub async fn access_lines(&self) -> Vec<String> {
        // One process serves all in turn, so what it logs for this request comes after all that it answered before.
        let mark = format!("{MARK}{}", self.marks.fetch_add(1, Ordering::Relaxed));
        get(self.addr, &mark).await;
        let log = self.directory.path().join("access.log");
        let read = || std::fs::read_to_string(&log).expect("the access log");
        let end = format!("GET {mark} 404\n");
        until("the access log to be written", || read().contains(&end)).await;
        read().lines().filter(|line| !line.contains(MARK)).map(str::to_owned).collect()
    }
}

fn command(directory: &Path, file: &Path) -> Command {
    let exists = |program: &&&str| match Command::new(program).arg("-v").output() {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => panic!("{program} cannot be run: {error}"),
    };
    let program = PROGRAMS.iter().find(exists).expect("nginx is missing: `make test` installs it");
    let mut command = Command::new(program);
    command.arg("-p").arg(directory).arg("-c").arg(file).args(["-e", "stderr"]);
    command
}

fn configuration(directory: &Path, addr: SocketAddr, directives: &str, others: &str) -> String {
    let directory = directory.to_str().expect("UTF-8");
    // One process, so that to kill it is to kill all of it, and the access log has one order.
    format!(
        "daemon off; master_process off; pid {directory}/pid;
events {{ worker_connections 512; }}
http {{
  log_format line '$request_method $uri $status';
  access_log {directory}/access.log line;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  proxy_cache_path {directory}/cache keys_zone=answers:1m;
  client_max_body_size 0;
  keepalive_requests 100000;
  server {{
    listen {addr};
    root {directory}/root;
    dav_methods PUT DELETE MKCOL COPY MOVE;
    create_full_put_path on;
    {directives}
  }}
{others}
}}
"
    )
}
