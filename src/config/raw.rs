//! The shape of the file, key by key, as written. The only rules here are which keys exist and which types their values
//! have. `validate` turns it into a [`Config`](super::Config).

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::section::{Section, Shape, clean};

/// A text and its position.
pub(super) type Text = Spanned<String>;
/// A whole number and its position.
pub(super) type Number = Spanned<i64>;
/// A number with a fraction and its position.
pub(super) type Ratio = Spanned<f64>;
/// True or false and its position.
pub(super) type Flag = Spanned<bool>;
/// A list of texts, each with its position.
pub(super) type Texts = Spanned<Vec<Text>>;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    pub(super) server: Server,
    pub(super) admin: Admin,
    pub(super) store: Store,
    pub(super) telemetry: Telemetry,
    pub(super) upstreams: BTreeMap<Text, Spanned<Upstream>>,
    pub(super) defaults: Route,
    pub(super) routes: Vec<Spanned<Route>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Server {
    pub(super) listen: Option<Texts>,
    pub(super) threads: Option<Number>,
    pub(super) max_body_memory: Option<Text>,
    pub(super) max_body_memory_total: Option<Text>,
    pub(super) max_body_size: Option<Text>,
    pub(super) max_spool_size: Option<Text>,
    pub(super) body_timeout: Option<Text>,
    pub(super) spool_dir: Option<Text>,
    pub(super) max_target_size: Option<Text>,
    pub(super) max_claim_waiters: Option<Number>,
    pub(super) trusted_proxies: Option<Texts>,
    pub(super) underscores: Option<Text>,
    pub(super) keepalive_timeout: Option<Text>,
    pub(super) header_timeout: Option<Text>,
    pub(super) max_header_size: Option<Text>,
    pub(super) max_header_memory_total: Option<Text>,
    pub(super) max_connections: Option<Number>,
    pub(super) max_connections_per_client: Option<Number>,
    pub(super) shutdown_timeout: Option<Text>,
    pub(super) control_socket: Option<Text>,
    pub(super) tls: ServerTls,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Admin {
    pub(super) listen: Option<Text>,
    pub(super) hosts: Option<Texts>,
    pub(super) token_file: Option<Text>,
    pub(super) token_env: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerTls {
    pub(super) certificates: Vec<Spanned<Certificate>>,
    pub(super) client_auth: Option<Text>,
    pub(super) client_ca: Option<Text>,
    pub(super) handshake_timeout: Option<Text>,
    pub(super) reload_interval: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Certificate {
    pub(super) cert: Option<Text>,
    pub(super) key: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Store {
    pub(super) kind: Option<Text>,
    pub(super) path: Option<Text>,
    pub(super) endpoints: Option<Texts>,
    pub(super) url: Option<Text>,
    pub(super) prefix: Option<Text>,
    pub(super) user: Option<Text>,
    pub(super) password_file: Option<Text>,
    pub(super) tls: Tls,
    pub(super) capacity: Option<Number>,
    pub(super) max_size: Option<Text>,
    pub(super) idle_ttl: Option<Text>,
    pub(super) timeout: Option<Text>,
    pub(super) start_grace: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tls {
    pub(super) ca: Option<Text>,
    pub(super) cert: Option<Text>,
    pub(super) key: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Telemetry {
    pub(super) log_format: Option<Text>,
    pub(super) level: Option<Text>,
    pub(super) access_log: Option<Flag>,
    pub(super) metrics: Option<Flag>,
    pub(super) service_name: Option<Text>,
    pub(super) resource: Option<Texts>,
    pub(super) sampling: Option<Ratio>,
    pub(super) otlp: Otlp,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Otlp {
    pub(super) endpoint: Option<Text>,
    pub(super) protocol: Option<Text>,
    pub(super) signals: Option<Texts>,
    pub(super) timeout: Option<Text>,
    pub(super) tls: Tls,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Upstream {
    pub(super) servers: Option<Texts>,
    pub(super) identity: Option<Text>,
    pub(super) weights: BTreeMap<Text, Number>,
    pub(super) balance: Option<Text>,
    pub(super) hash_by: Option<Text>,
    pub(super) connect_timeout: Option<Text>,
    pub(super) timeout: Option<Text>,
    pub(super) read_timeout: Option<Text>,
    pub(super) write_timeout: Option<Text>,
    pub(super) late_write_window: Option<Text>,
    pub(super) reuse_idle_writes: Option<Text>,
    pub(super) idle_timeout: Option<Text>,
    pub(super) max_connections: Option<Number>,
    pub(super) queue: Queue,
    pub(super) host_header: Option<Text>,
    pub(super) forwarded: Option<Text>,
    pub(super) health: Health,
    pub(super) http2: Option<Flag>,
    pub(super) tls: UpstreamTls,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Queue {
    pub(super) max_wait: Option<Text>,
    pub(super) max_waiters: Option<Number>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Health {
    pub(super) check: Option<Text>,
    pub(super) path: Option<Text>,
    pub(super) status: Option<Text>,
    pub(super) interval: Option<Text>,
    pub(super) timeout: Option<Text>,
    pub(super) healthy_after: Option<Number>,
    pub(super) unhealthy_after: Option<Number>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UpstreamTls {
    pub(super) server_name: Option<Text>,
    pub(super) ca: Option<Text>,
    pub(super) cert: Option<Text>,
    pub(super) key: Option<Text>,
}

/// A `[[routes]]` table, or `[defaults]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Route {
    pub(super) name: Option<Text>,
    pub(super) host: Option<Text>,
    pub(super) path: Option<Text>,
    pub(super) upstream: Option<Text>,
    pub(super) strip_prefix: Option<Text>,
    pub(super) add_prefix: Option<Text>,
    pub(super) policy: Option<Text>,
    pub(super) etag: Option<Text>,
    pub(super) ignore_json: Option<Texts>,
    pub(super) unique_tags: Option<Flag>,
    pub(super) etag_suffixes: Option<Texts>,
    pub(super) accept_weak_own: Option<Flag>,
    pub(super) mirror_header: Option<Text>,
    pub(super) compare: Option<Text>,
    pub(super) other_writers: Option<Flag>,
    pub(super) key: Option<Text>,
    pub(super) path_params: Option<Text>,
    pub(super) require: Option<Text>,
    pub(super) require_methods: Option<Texts>,
    pub(super) allow_any: Option<Flag>,
    pub(super) on_write: Option<Text>,
    pub(super) etag_after_write: Option<Text>,
    pub(super) safe_methods: Option<Texts>,
    pub(super) append_methods: Option<Texts>,
    pub(super) method_override: Option<Text>,
    pub(super) websocket: Option<Flag>,
    pub(super) guarantee: Option<Text>,
    pub(super) observe: Option<Flag>,
    pub(super) max_hash_size: Option<Text>,
    pub(super) hash_wait: Option<Text>,
    pub(super) identity_headers: Option<Texts>,
    pub(super) identity_ttl: Option<Text>,
    pub(super) claim: Claim,
    pub(super) probe: Probe,
    pub(super) probe_auth: Option<Text>,
    pub(super) probe_region: Option<Text>,
    pub(super) dialect: Option<Text>,
    pub(super) also_changes: Option<Texts>,
    pub(super) idempotency: Option<Text>,
    pub(super) idempotency_ttl: Option<Text>,
    pub(super) lease: Lease,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Claim {
    pub(super) max_wait: Option<Text>,
    pub(super) max_waiters: Option<Number>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Probe {
    pub(super) timeout: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Lease {
    pub(super) prefix: Option<Text>,
    pub(super) guards: Option<Texts>,
    pub(super) auth: Option<Text>,
    pub(super) bind: Option<Flag>,
    pub(super) acquire_on_read: Option<Flag>,
    pub(super) client_break: Option<Flag>,
    pub(super) absent: Option<Text>,
    pub(super) remember_time: Option<Text>,
    pub(super) max_per_principal: Option<Number>,
    pub(super) max_per_address: Option<Number>,
    pub(super) default: Option<Text>,
    pub(super) min: Option<Text>,
    pub(super) max: Option<Text>,
    pub(super) infinite: Option<Flag>,
    pub(super) required: Option<Flag>,
    pub(super) max_wait: Option<Text>,
    pub(super) max_waiters: Option<Number>,
    pub(super) max_hold_time: Option<Text>,
}

impl Section for File {
    fn shape(key: &str) -> Shape {
        match key {
            "server" => Shape::Table(clean::<Server>),
            "admin" => Shape::Table(clean::<Admin>),
            "store" => Shape::Table(clean::<Store>),
            "telemetry" => Shape::Table(clean::<Telemetry>),
            "defaults" => Shape::Table(clean::<Route>),
            "upstreams" => Shape::NamedTables(clean::<Upstream>),
            "routes" => Shape::ListOfTables(clean::<Route>),
            _ => Shape::Value,
        }
    }
}

impl Section for Server {
    fn shape(key: &str) -> Shape {
        match key {
            "tls" => Shape::Table(clean::<ServerTls>),
            _ => Shape::Value,
        }
    }
}

impl Section for ServerTls {
    fn shape(key: &str) -> Shape {
        match key {
            "certificates" => Shape::ListOfTables(clean::<Certificate>),
            _ => Shape::Value,
        }
    }
}

impl Section for Certificate {}

impl Section for Admin {}

impl Section for Store {
    fn shape(key: &str) -> Shape {
        match key {
            "tls" => Shape::Table(clean::<Tls>),
            _ => Shape::Value,
        }
    }
}

impl Section for Tls {}

impl Section for Telemetry {
    fn shape(key: &str) -> Shape {
        match key {
            "otlp" => Shape::Table(clean::<Otlp>),
            _ => Shape::Value,
        }
    }
}

impl Section for Otlp {
    fn shape(key: &str) -> Shape {
        match key {
            "tls" => Shape::Table(clean::<Tls>),
            _ => Shape::Value,
        }
    }
}

impl Section for Upstream {
    fn shape(key: &str) -> Shape {
        match key {
            "tls" => Shape::Table(clean::<UpstreamTls>),
            "queue" => Shape::Table(clean::<Queue>),
            "health" => Shape::Table(clean::<Health>),
            _ => Shape::Value,
        }
    }
}

impl Section for Queue {}

impl Section for Health {}

impl Section for UpstreamTls {}

impl Section for Route {
    fn shape(key: &str) -> Shape {
        match key {
            "claim" => Shape::Table(clean::<Claim>),
            "probe" => Shape::Table(clean::<Probe>),
            "lease" => Shape::Table(clean::<Lease>),
            _ => Shape::Value,
        }
    }
}

impl Section for Claim {}

impl Section for Probe {}

impl Section for Lease {}
