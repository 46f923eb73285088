//! The configuration: a file or command-line options become one validated [`Config`] (DESIGN, section 9).
//!
//! The rest of the program sees these types alone. The shape of the file is a matter of `raw`, and every rule that a
//! file can break is a matter of `validate`.

mod change;
mod limits;
mod problem;
mod raw;
mod read;
#[cfg(test)]
mod reference;
mod section;
mod start;
mod telemetry;
mod units;
mod upstream;
mod validate;
mod words;

use std::{fs, io, path::Path, path::PathBuf, sync::Arc, time::Duration};

pub use change::{ReloadPlan, plan};
use problem::Source;
pub use problem::{Problem, Problems};
pub use start::from_upstream;
pub use telemetry::{LogForm, LogLevel, Otlp, OtlpProtocol, Signal, Telemetry};
pub use units::{show_duration, show_size};
pub use upstream::{
    Balance, ConnectionLimits, Forwarded, HashBy, HealthCheck, HealthProbe, HostHeader, TrustedProxies,
};
pub use words::{Word, guard_words};

use crate::tls::ServerTls;

use crate::{
    core::{
        fields::Underscores,
        path_mapping::PathMapping,
        policy::{GuardRules, Policy},
        resource::KeyTemplate,
        route::{HostPattern, PathPattern},
        target::PathParameters,
    },
    tls::UpstreamTls,
};

/// A configuration, and what is allowed in it but rarely meant.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What the program runs by.
    pub config: Config,
    /// What its author should know, in the order of the text.
    pub warnings: Vec<Problem>,
}

/// Reads and checks a file. The error holds every problem that it has.
pub fn load(path: &Path) -> Result<Loaded, Problems> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| {
        let problem = Problem::of_source(&name, format!("cannot be read: {error}"));
        let missing = error.kind() == io::ErrorKind::NotFound;
        if missing { problem.hint("`ifmatch run --upstream http://127.0.0.1:9000` needs no file") } else { problem }
    })?;
    parse(&name, &text)
}

/// Reads and checks a text; problems are reported under its `name`. The error holds every problem that it has.
pub fn parse(name: &str, text: &str) -> Result<Loaded, Problems> {
    let source = Source { name, text };
    let (file, written, problems) = read::read(source);
    match file {
        Some(file) => validate::validate(source, &file, &written, problems),
        None => Err(Problems::new(problems)),
    }
}

/// Everything that a file says, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The `[server]` table.
    pub server: Server,
    /// The `[admin]` table, where there is an admin listener.
    pub admin: Option<Admin>,
    /// The `[store]` table.
    pub store: StoreSettings,
    /// The `[telemetry]` table.
    pub telemetry: Telemetry,
    /// The routes, each with its upstream, in the order of the file.
    pub routes: Vec<Arc<Route>>,
}

/// The listeners and what requests may cost in all.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where clients connect.
    pub listen: Vec<Listen>,
    /// Worker threads; never 0.
    pub threads: usize,
    /// Bytes of one request body that are kept in memory; the rest is spooled.
    pub body_memory_bytes: usize,
    /// Bytes of all request bodies that are kept in memory.
    pub body_memory_total_bytes: usize,
    /// The largest request body of a guarded write, in bytes.
    pub body_max_bytes: u64,
    /// Bytes of all spool files.
    pub spool_total_bytes: u64,
    /// How long the body of a guarded write may take to arrive.
    pub body_timeout: Duration,
    /// Where spool files are made.
    pub spool_dir: PathBuf,
    /// The longest target of a request, in bytes.
    pub max_target_bytes: usize,
    /// Writes that wait for a claim, over all resources.
    pub claim_waiters_max: usize,
    /// Proxies in front of this one that are believed.
    pub trusted_proxies: TrustedProxies,
    /// What becomes of fields with an underscore in their name.
    pub underscores: Underscores,
    /// How long an idle client connection is kept.
    pub keepalive_timeout: Duration,
    /// How long a request head may take from its first byte on.
    pub header_timeout: Duration,
    /// The largest request head, in bytes.
    pub max_header_bytes: usize,
    /// Bytes of all request heads above 4 KiB.
    pub max_header_memory_bytes: usize,
    /// Connections of all clients together.
    pub max_connections: usize,
    /// Connections from one address.
    pub max_connections_per_client: usize,
    /// How long requests in flight may take after SIGTERM, and writes that a reload has to wait for.
    pub shutdown_timeout: Duration,
    /// Where `ifmatch reload` asks for a reload.
    pub control_socket: Option<PathBuf>,
    /// How the listeners shake hands that speak TLS.
    pub tls: ServerTls,
}

/// One listening address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// `host:port`.
    Tcp(String),
    /// `tls:host:port`.
    Tls(String),
    /// `unix:/path`.
    Unix(PathBuf),
}

/// The listener for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Where they connect.
    pub listen: Listen,
    /// The names that it is known by, beside those of this machine and its address; in lower case.
    pub hosts: Vec<String>,
    /// Where the token is that requests must carry, if they must carry one.
    pub token: Option<TokenSource>,
}

/// Where a token is that does not stand in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// In this file.
    File(PathBuf),
    /// In this variable of the environment.
    Environment(String),
}

/// Where records are kept (`kind`, with what that kind needs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// In this process, and gone with it.
    Memory,
    /// In this process, and leases in a file too.
    Disk {
        /// The file.
        path: PathBuf,
    },
    /// In etcd.
    Etcd(Etcd),
    /// In Redis.
    Redis(Redis),
}

/// Where an etcd is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etcd {
    /// URLs of its members; never empty.
    pub endpoints: Vec<String>,
    /// What all keys begin with.
    pub prefix: String,
    /// Who to log in as.
    pub login: Option<Login>,
    /// How its members are known, and how this program is known to them, where the URLs are of `https`.
    pub tls: Option<Tls>,
}

/// Where a Redis is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redis {
    /// Its URL, without a password.
    pub url: String,
    /// The hash tag in all keys.
    pub prefix: String,
    /// Who to log in as.
    pub login: Option<Login>,
    /// How it is known, and how this program is known to it, where the URL is of `rediss`.
    pub tls: Option<Tls>,
}

/// A user of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Its name.
    pub user: String,
    /// The file that holds its password; else the environment does.
    pub password_file: Option<PathBuf>,
}

/// Certificates for connections to a store or a collector, in files in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Whose certificates the servers may have.
    pub ca: Option<PathBuf>,
    /// The certificate of this program, and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// The `[store]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Where records are kept.
    pub kind: StoreKind,
    /// The largest number of records.
    pub capacity: usize,
    /// The most memory that records take in this process, in bytes.
    pub max_bytes: u64,
    /// How long an idle record is remembered.
    pub idle_ttl: Duration,
    /// How long an operation of the store may take.
    pub timeout: Duration,
    /// How long guarded writes are held back after a start.
    pub start_grace: Duration,
}

/// One `[upstreams.NAME]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Its name in the file.
    pub name: String,
    /// What resource keys begin with: `identity`, else the name.
    pub identity: String,
    /// Its servers, `host:port` or `unix:/path`; never empty.
    pub servers: Vec<String>,
    /// How connections to them are secured; `None` where they are not.
    pub tls: Option<Arc<UpstreamTls>>,
    /// Whether HTTP/2 is spoken: with TLS where a server chooses it, without TLS always.
    pub http2: bool,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How much of the load each server gets, in their order.
    pub weights: Vec<u32>,
    /// How unguarded requests are spread over the servers.
    pub balance: Balance,
    /// What the hash is made of under [`Balance::ConsistentHash`].
    pub hash_by: HashBy,
    /// How long an exchange may take from its first byte to the response's head.
    pub timeout: Duration,
    /// How long each wait for more of the response's body may take.
    pub read_timeout: Duration,
    /// How long each wait for room for more of the request's body may take.
    pub write_timeout: Duration,
    /// How many connections each server is given.
    pub connections: ConnectionLimits,
    /// How its servers are checked, if they are.
    pub health: Option<HealthCheck>,
    /// What it gets in `Host`.
    pub host_header: HostHeader,
    /// Which fields tell it who the client is.
    pub forwarded: Forwarded,
    /// How long after the end of a connection the upstream may still apply a write that came over it.
    pub late_max: Duration,
    /// How long a pooled connection may have been idle to carry a write.
    pub reuse_idle_writes: Duration,
}

/// One `[[routes]]` table with `[defaults]` filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its name in logs.
    pub name: String,
    /// The hosts that it matches.
    pub host: HostPattern,
    /// The paths that it matches.
    pub path: PathPattern,
    /// Where its requests go.
    pub upstream: Arc<Upstream>,
    /// What it enforces.
    pub policy: Policy,
    /// How, on a guarded route; `None` under [`Policy::LastWriterWins`].
    pub guard: Option<Arc<GuardRules>>,
    /// How paths are changed on their way to the upstream.
    pub mapping: PathMapping,
    /// The paths that the upstream gets through it.
    pub upstream_path: PathPattern,
    /// How its resource keys are made.
    pub key: KeyTemplate,
    /// What becomes of `;` in a path.
    pub path_params: PathParameters,
    /// Whether a guarded route (this one included) that does not only observe sends to the same upstream, so that a
    /// target with two readings could reach its resources through this route.
    pub beside_guarded: bool,
    /// Whether a route (this one included) that makes the same keys grants leases which keep readers away.
    pub reads_may_be_leased: bool,
}
