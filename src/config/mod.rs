//! The configuration: turns a file or command-line options into one validated [`Config`] (DESIGN, section 9).
//!
//! The rest of the program sees only these types. `raw` holds the shape of the file, and `validate` holds every rule
//! that a file can break.

mod change;
mod environment;
mod file;
mod limits;
mod problem;
mod raw;
mod read;
#[cfg(test)]
mod reference;
mod schema;
mod section;
mod start;
mod telemetry;
mod units;
mod upstream;
mod validate;
mod words;
mod written;

use std::{env, path::PathBuf, sync::Arc, time::Duration};

pub use change::{ReloadPlan, plan};
use environment::Lookup;
pub use file::{load, load_again};
use problem::Source;
pub use problem::{Problem, Problems};
pub use schema::schema;
pub use start::from_upstream;
pub use telemetry::{LogForm, LogLevel, Otlp, OtlpProtocol, Signal, Telemetry};
pub use units::{show_duration, show_size};
pub use upstream::{
    Balance, ConnectionLimits, Forwarded, HashBy, HealthCheck, HealthProbe, HostHeader, TrustedProxies,
};
pub(crate) use validate::lease::DEFAULT_PREFIX as DEFAULT_LEASE_PREFIX;
pub use words::{Word, guard_words};

use crate::tls::ServerTls;

use crate::{
    core::{
        fields::Underscores,
        path_mapping::PathMapping,
        policy::{GuardRules, Policy},
        resource::KeyTemplate,
        route::{HostPattern, PathPattern, WritesTo},
        target::KeptInNames,
    },
    tls::UpstreamTls,
};

/// A valid configuration with its warnings.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Settings that are allowed but rarely meant, in the order of the text.
    pub warnings: Vec<Problem>,
}

/// Reads and checks a text, and reports its problems under `name`. The error holds every problem of the text. A value
/// can take variables from the environment of the process: `${NAME}`.
pub fn parse(name: &str, text: &str) -> Result<Loaded, Problems> {
    parse_with(name, text, &|variable| env::var(variable).ok())
}

fn parse_with(name: &str, text: &str, environment: Lookup<'_>) -> Result<Loaded, Problems> {
    let source = Source { name, text };
    let read::Reading { file, written, problems, replaced, of_variables } = read::read(source, environment);
    let checked = match file {
        Some(file) => validate::validate(source, &file, &written, problems),
        None => Err(Problems::new(problems)),
    };
    let shown = |problem: Problem| problem.hiding(source, &replaced);
    match checked {
        Ok(loaded) if of_variables.is_empty() => {
            Ok(Loaded { warnings: loaded.warnings.into_iter().filter_map(shown).collect(), ..loaded })
        }
        checked => {
            let others = checked.err().into_iter().flat_map(|problems| problems.0).filter_map(shown);
            Err(Problems::new(of_variables.into_iter().chain(others).collect()))
        }
    }
}

/// The checked content of a configuration file.
#[derive(Clone, Debug)]
pub struct Config {
    /// The `[server]` table.
    pub server: Server,
    /// The `[admin]` table, if there is an admin listener.
    pub admin: Option<Admin>,
    /// The `[store]` table.
    pub store: StoreSettings,
    /// The `[telemetry]` table.
    pub telemetry: Telemetry,
    /// The routes, each with its upstream, in the order of the file.
    pub routes: Vec<Arc<Route>>,
}

/// The `[server]` table: the listeners and the limits for all requests.
#[derive(Clone, Debug)]
pub struct Server {
    /// The addresses for clients.
    pub listen: Vec<Listen>,
    /// Worker threads; never 0.
    pub threads: usize,
    /// The bytes of one request body that are kept in memory; the rest is spooled.
    pub max_body_memory_bytes: usize,
    /// The bytes of all request bodies together that are kept in memory.
    pub max_body_memory_total_bytes: usize,
    /// The largest request body of a guarded write, in bytes.
    pub max_body_size_bytes: u64,
    /// The bytes of all spool files together.
    pub max_spool_size_bytes: u64,
    /// The time limit for receiving the body of a guarded write.
    pub body_timeout: Duration,
    /// The directory of the spool files.
    pub spool_dir: PathBuf,
    /// The largest number of uploads in blocks.
    pub max_staged_uploads: usize,
    /// The largest number of blocks in one upload.
    pub max_staged_blocks: usize,
    /// The time for which blocks of an upload wait for the list that joins them.
    pub staged_block_ttl: Duration,
    /// The longest request target, in bytes.
    pub max_target_bytes: usize,
    /// The largest number of writes that wait for a claim, over all resources.
    pub max_claim_waiters: usize,
    /// The proxies in front of this one that it trusts.
    pub trusted_proxies: TrustedProxies,
    /// The treatment of fields with an underscore in their name.
    pub underscores: Underscores,
    /// The time after which an idle client connection is closed.
    pub keepalive_timeout: Duration,
    /// The time limit for receiving a request head, from its first byte on.
    pub header_timeout: Duration,
    /// The largest request head, in bytes.
    pub max_header_bytes: usize,
    /// The bytes of all request heads together, counting only what a head has above 4 KiB.
    pub max_header_memory_bytes: usize,
    /// The largest number of connections of all clients together.
    pub max_connections: usize,
    /// The largest number of connections from one address.
    pub max_connections_per_client: usize,
    /// The time limit for requests in flight after SIGTERM, and for writes that a reload waits for.
    pub shutdown_timeout: Duration,
    /// The socket on which `ifmatch reload` requests a reload.
    pub control_socket: Option<PathBuf>,
    /// Whether the process loads its file again if the file changes.
    pub watch: bool,
    /// The TLS settings of the listeners that speak TLS.
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
    /// The address for operators.
    pub listen: Listen,
    /// Names of the listener beside those of this machine and its address, in lower case.
    pub hosts: Vec<String>,
    /// The source of the token that requests must carry, if one is required.
    pub token: Option<TokenSource>,
}

/// The source of a token, which is never in the configuration itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// A file.
    File(PathBuf),
    /// A variable of the environment.
    Environment(String),
}

/// The store that keeps the records (`kind`, with the settings of that kind).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// The memory of this process; records end with it.
    Memory,
    /// The memory of this process, with the leases also in a file.
    Disk {
        /// The path of the file.
        path: PathBuf,
    },
    /// An etcd cluster.
    Etcd(Etcd),
    /// A PostgreSQL server, or several of which one takes writes.
    Postgres(Postgres),
    /// A Redis server.
    Redis(Redis),
}

/// The connection to etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etcd {
    /// The URLs of the members; never empty.
    pub endpoints: Vec<String>,
    /// The prefix of all keys.
    pub prefix: String,
    /// The user to log in as.
    pub login: Option<Login>,
    /// The certificates of both sides, if the URLs are `https`.
    pub tls: Option<Tls>,
}

/// The user of PostgreSQL if the configuration names none.
pub const POSTGRES_USER: &str = "ifmatch";

/// The connection to PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Postgres {
    /// The URL, without a password.
    pub url: String,
    /// The hosts and ports in the URL; never empty.
    pub hosts: Vec<(String, u16)>,
    /// The name of the database.
    pub database: String,
    /// Whether connections use TLS.
    pub is_secure: bool,
    /// The schema of the tables, a plain identifier.
    pub schema: String,
    /// The user to log in as; [`POSTGRES_USER`] without a password if there is none.
    pub login: Option<Login>,
    /// The certificates of both sides, if connections use TLS.
    pub tls: Option<Tls>,
}

/// The connection to Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redis {
    /// The URL, without a password.
    pub url: String,
    /// The hash tag in all keys.
    pub prefix: String,
    /// The user to log in as.
    pub login: Option<Login>,
    /// The certificates of both sides, if the URL is `rediss`.
    pub tls: Option<Tls>,
}

/// A user of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The name of the user.
    pub user: String,
    /// The file that holds the password; if `None`, the password comes from the environment.
    pub password_file: Option<PathBuf>,
}

/// The PEM files with certificates for connections to a store or a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The authorities that may have issued the servers' certificates.
    pub ca: Option<PathBuf>,
    /// The certificate of this program and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// The `[store]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The store that keeps the records.
    pub kind: StoreKind,
    /// The largest number of records.
    pub capacity: usize,
    /// The most memory that records may take in this process, in bytes.
    pub max_bytes: u64,
    /// The time after which an idle record is forgotten.
    pub idle_ttl: Duration,
    /// The time limit of one store operation.
    pub timeout: Duration,
    /// The time for which guarded writes are held back after a start.
    pub start_grace: Duration,
}

/// One `[upstreams.NAME]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The name in the file.
    pub name: String,
    /// The beginning of the resource keys: `identity`, else the name.
    pub identity: String,
    /// Whether the servers read paths without regard to letter case.
    pub ignore_case: bool,
    /// The servers, `host:port` or `unix:/path`; never empty.
    pub servers: Vec<String>,
    /// The TLS settings for connections to the servers; `None` without TLS.
    pub tls: Option<Arc<UpstreamTls>>,
    /// Whether the proxy speaks HTTP/2: over TLS if the server chooses it, without TLS always.
    pub http2: bool,
    /// The time limit for making a connection.
    pub connect_timeout: Duration,
    /// The weight of each server, in the order of `servers`.
    pub weights: Vec<u32>,
    /// The distribution of unguarded requests over the servers.
    pub balance: Balance,
    /// The input of the hash under [`Balance::ConsistentHash`].
    pub hash_by: HashBy,
    /// The time limit of an exchange, from its first byte to the head of the response.
    pub timeout: Duration,
    /// The time limit of each wait for more of the response body.
    pub read_timeout: Duration,
    /// The time limit of each wait for room to send more of the request body.
    pub write_timeout: Duration,
    /// The connection limits of each server.
    pub connections: ConnectionLimits,
    /// The active health checks of the servers, if any.
    pub health: Option<HealthCheck>,
    /// The `Host` that the upstream receives.
    pub host_header: HostHeader,
    /// The fields that tell the upstream who the client is.
    pub forwarded: Forwarded,
    /// The time for which the upstream may still apply a write after the connection that carried it has ended.
    pub late_write_window: Duration,
    /// The longest idle time after which a pooled connection may still carry a write.
    pub reuse_idle_writes: Duration,
}

impl Upstream {
    /// The time limit of each wait for a server on an unguarded route.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.timeout.max(self.read_timeout)
    }
}

/// One `[[routes]]` table with `[defaults]` filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is another fact about the routes beside it")]
pub struct Route {
    /// The name in logs.
    pub name: String,
    /// The hosts that the route matches.
    pub host: HostPattern,
    /// The paths that the route matches.
    pub path: PathPattern,
    /// The upstream that receives the requests.
    pub upstream: Arc<Upstream>,
    /// The policy that the route enforces.
    pub policy: Policy,
    /// The rules of a guarded route; `None` under [`Policy::LastWriterWins`].
    pub guard: Option<Arc<GuardRules>>,
    /// The changes to paths on their way to the upstream.
    pub mapping: PathMapping,
    /// The paths that the upstream receives through this route.
    pub upstream_path: PathPattern,
    /// The template of the resource keys.
    pub key: KeyTemplate,
    /// The resource that the body of a write names (`writes_to`).
    pub writes_to: Option<WritesTo>,
    /// What the backend takes as ordinary parts of names (`path_params`, `encoded_slash`).
    pub kept: KeptInNames,
    /// Whether a guarded route (this one included) that does not only observe sends to the same upstream. A target with
    /// two readings could then reach the resources of that route through this one.
    pub beside_guarded: bool,
    /// Whether a route (this one included) that makes the same keys grants leases that keep readers away.
    pub reads_may_be_leased: bool,
    /// Whether a DELETE may wait on a route (this one included) that makes the same keys (`lease.delete_pending`).
    pub deletes_may_be_pending: bool,
    /// Whether a guarded route (this one included) of the same upstream has resources below those of this route.
    pub may_hold_members: bool,
}

impl Route {
    /// The rules that the route enforces; `None` if it has none, or only observes what they would refuse.
    pub fn enforced(&self) -> Option<&Arc<GuardRules>> {
        self.guard.as_ref().filter(|rules| !rules.observe)
    }

    /// Whether a request that takes this route could change a guarded resource.
    pub fn is_protected(&self) -> bool {
        self.beside_guarded || self.enforced().is_some()
    }
}
