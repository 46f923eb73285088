//! ifmatch, nginx and haproxy before the same backend, with their defaults.

use std::{fs, net::SocketAddr, process::Command};

use tempfile::TempDir;
use tokio::net::TcpListener;

use super::writes::REFUSED;
use crate::{
    small_disk::SmallDisk,
    support::{
        backend::{Answer, Backend},
        child::Child,
        ports,
        proxy::Proxy,
        raw::get,
    },
    uploads::OPEN,
};

/// The backends behind a server: others for each flood of each server, so each flood has the same conditions.
pub(super) struct Ground {
    pub(super) backend: Backend,
    silent: SocketAddr,
    _silent: TcpListener,
    /// The place for the spool of bodies that are to find no room.
    disk: Option<SmallDisk>,
}

/// A server that floods are let loose on.
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) http1: SocketAddr,
    pub(super) http2: SocketAddr,
    pub(super) process: u32,
    _directory: Option<TempDir>,
    _running: Running,
}

#[allow(dead_code, reason = "they are kept so that they go on")]
enum Running {
    Ifmatch(Proxy),
    Other(Child),
}

impl Ground {
    pub(super) async fn new(disk: Option<SmallDisk>) -> Self {
        let backend = Backend::start().await;
        backend.put("/warm", "up");
        backend.put("/large", "x".repeat(512 << 10));
        backend.always_where(|request| request.target.starts_with(REFUSED), |_| Answer::status(403));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let silent = listener.local_addr().expect("its address");
        Self { backend, silent, _silent: listener, disk }
    }

    /// Starts one of the servers, if it is installed, and sends a first request. A disk for its spool is full from then
    /// on.
    pub(super) async fn start(&self, name: &str) -> Option<Server> {
        let server = match name {
            "nginx" => nginx(self).await?,
            "haproxy" => haproxy(self).await?,
            _ => ifmatch(self).await,
        };
        assert_eq!(get(server.http1, "/warm").await.status, 200);
        if let Some(disk) = &self.disk {
            disk.fill();
        }
        Some(server)
    }

    fn spool(&self) -> Option<String> {
        self.disk.as_ref().map(|disk| disk.path().display().to_string())
    }
}

async fn ifmatch(ground: &Ground) -> Server {
    let silent = ground.silent;
    let tables = format!(
        "[upstreams.silent]\nservers = [\"{silent}\"]\n[[routes]]\nname = \"silent\"\npath = \"/silent/{{*rest}}\"\n\
         upstream = \"silent\"\npolicy = \"optimistic\"\n{OPEN}"
    );
    let setup = Proxy::to(ground.backend.addr());
    let configuration = match ground.spool() {
        // By default bodies of 1 MiB stay in memory, and nginx takes no larger ones.
        Some(spool) => setup.server("max_body_memory = \"64KiB\"").configuration().replace("{spool}", &spool),
        None => setup.configuration(),
    };
    let proxy = Proxy::start_with(&(configuration + &tables), &[("RUST_LOG", "off")]).await;
    let (addr, process) = (proxy.addr(), proxy.id());
    let running = Running::Ifmatch(proxy);
    Server { name: "ifmatch", http1: addr, http2: addr, process, _directory: None, _running: running }
}

async fn nginx(ground: &Ground) -> Option<Server> {
    let (backend, silent) = (ground.backend.addr(), ground.silent);
    let (http1, http2) = (ports::free(), ports::free());
    let spool = |directory: &str| ground.spool().unwrap_or_else(|| directory.to_owned());
    other("nginx", &["-c"], http1, http2, |directory| {
        format!(
            "daemon off; master_process off; pid {directory}/pid; error_log stderr;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_temp_path {}/body; proxy_temp_path {directory}/proxy; fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;
  server {{
    listen {http1}; listen {http2} http2;
    location / {{ proxy_pass http://{backend}; }}
    location /silent/ {{ proxy_pass http://{silent}; }}
  }}
}}
",
            spool(directory)
        )
    })
    .await
}

async fn haproxy(ground: &Ground) -> Option<Server> {
    let (backend, silent) = (ground.backend.addr(), ground.silent);
    let (http1, http2) = (ports::free(), ports::free());
    // The timeouts are those of Debian's file; without one it waits without end.
    other("haproxy", &["-db", "-f"], http1, http2, |_directory| {
        format!(
            "defaults
  mode http
  timeout connect 5000
  timeout client 50000
  timeout server 50000
frontend all
  bind {http1}
  bind {http2} proto h2
  use_backend silent if {{ path_beg /silent/ }}
  default_backend main
backend main
  server main {backend}
backend silent
  server silent {silent}
"
        )
    })
    .await
}

/// Starts another server, if it is installed.
async fn other(
    name: &'static str,
    arguments: &[&str],
    http1: SocketAddr,
    http2: SocketAddr,
    configuration: impl FnOnce(&str) -> String,
) -> Option<Server> {
    let program = [name.to_owned(), format!("/usr/sbin/{name}")];
    let program = program.iter().find(|program| Command::new(program).arg("-v").output().is_ok())?;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("configuration");
    fs::write(&file, configuration(directory.path().to_str().expect("UTF-8"))).expect("a file");
    let mut command = Command::new(program);
    command.args(arguments).arg(&file);
    let mut child = Child::spawn(name, &mut command, directory.path().join("log"));
    child.accepts(http1).await.expect("it accepts");
    let process = child.id();
    Some(Server { name, http1, http2, process, _directory: Some(directory), _running: Running::Other(child) })
}
