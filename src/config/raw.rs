//! The shape of the file, key by key, as written. The only rules here are which keys exist and which types their values
//! have. `validate` turns it into a [`Config`](super::Config).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Balance, Forwarded, HashBy, LogForm, LogLevel, OtlpProtocol, Signal,
    section::{
        Section,
        Shape::{ListOfTables, NamedTables, Table},
        Tables, clean,
    },
    words::{CheckWord, StoreWord},
    written::{DurationForm, SizeForm, WordForm},
};
use crate::{
    core::{
        fields::Underscores,
        policy::{
            AbsentLease, Collections, Compare, Dialect, Guarantee, Idempotency, LeaseAuth, MethodOverride, OnWrite,
            Policy, ProbeAuth, ReadConsistency, Require, TagAfterWrite, TagSource,
        },
        target::{EncodedSlash, PathParameters},
    },
    tls::ClientAuth,
};

pub(super) use super::written::{Flag, Number, Ratio, Text, Texts, Written};

/// A duration as the file spells it.
pub(super) type Time = Written<String, DurationForm>;
/// A size as the file spells it.
pub(super) type Size = Written<String, SizeForm>;
/// A word for a value.
pub(super) type Choice<T> = Written<String, WordForm<T>>;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    pub(super) server: Server,
    pub(super) admin: Admin,
    pub(super) store: Store,
    pub(super) telemetry: Telemetry,
    pub(super) upstreams: BTreeMap<Text, Written<Upstream>>,
    pub(super) defaults: Route,
    pub(super) routes: Vec<Written<Route>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Server {
    pub(super) listen: Option<Texts>,
    pub(super) threads: Option<Number>,
    pub(super) max_body_memory: Option<Size>,
    pub(super) max_body_memory_total: Option<Size>,
    pub(super) max_body_size: Option<Size>,
    pub(super) max_spool_size: Option<Size>,
    pub(super) body_timeout: Option<Time>,
    pub(super) spool_dir: Option<Text>,
    pub(super) max_staged_uploads: Option<Number>,
    pub(super) max_staged_blocks: Option<Number>,
    pub(super) staged_block_ttl: Option<Time>,
    pub(super) max_target_size: Option<Size>,
    pub(super) max_claim_waiters: Option<Number>,
    pub(super) trusted_proxies: Option<Texts>,
    pub(super) underscores: Option<Choice<Underscores>>,
    pub(super) keepalive_timeout: Option<Time>,
    pub(super) header_timeout: Option<Time>,
    pub(super) max_header_size: Option<Size>,
    pub(super) max_header_memory_total: Option<Size>,
    pub(super) max_connections: Option<Number>,
    pub(super) max_connections_per_client: Option<Number>,
    pub(super) shutdown_timeout: Option<Time>,
    pub(super) control_socket: Option<Text>,
    pub(super) watch: Option<Flag>,
    pub(super) tls: ServerTls,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Admin {
    pub(super) listen: Option<Text>,
    pub(super) hosts: Option<Texts>,
    pub(super) token_file: Option<Text>,
    pub(super) token_env: Option<Text>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerTls {
    pub(super) certificates: Vec<Written<Certificate>>,
    pub(super) client_auth: Option<Choice<ClientAuth>>,
    pub(super) client_ca: Option<Text>,
    pub(super) handshake_timeout: Option<Time>,
    pub(super) reload_interval: Option<Time>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Certificate {
    pub(super) cert: Option<Text>,
    pub(super) key: Option<Text>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Store {
    pub(super) kind: Option<Choice<StoreWord>>,
    pub(super) path: Option<Text>,
    pub(super) endpoints: Option<Texts>,
    pub(super) url: Option<Text>,
    pub(super) prefix: Option<Text>,
    pub(super) schema: Option<Text>,
    pub(super) user: Option<Text>,
    pub(super) password_file: Option<Text>,
    pub(super) tls: Tls,
    pub(super) capacity: Option<Number>,
    pub(super) max_size: Option<Size>,
    pub(super) idle_ttl: Option<Time>,
    pub(super) timeout: Option<Time>,
    pub(super) start_grace: Option<Time>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tls {
    pub(super) ca: Option<Text>,
    pub(super) cert: Option<Text>,
    pub(super) key: Option<Text>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Telemetry {
    pub(super) log_format: Option<Choice<LogForm>>,
    pub(super) level: Option<Choice<LogLevel>>,
    pub(super) access_log: Option<Flag>,
    pub(super) metrics: Option<Flag>,
    pub(super) service_name: Option<Text>,
    pub(super) resource: Option<Texts>,
    pub(super) sampling: Option<Ratio>,
    pub(super) otlp: Otlp,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Otlp {
    pub(super) endpoint: Option<Text>,
    pub(super) protocol: Option<Choice<OtlpProtocol>>,
    pub(super) signals: Option<Written<Vec<Choice<Signal>>>>,
    pub(super) timeout: Option<Time>,
    pub(super) tls: Tls,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Upstream {
    pub(super) servers: Option<Texts>,
    pub(super) identity: Option<Text>,
    pub(super) ignore_case: Option<Flag>,
    pub(super) weights: BTreeMap<Text, Number>,
    pub(super) balance: Option<Choice<Balance>>,
    pub(super) hash_by: Option<Choice<HashBy>>,
    pub(super) connect_timeout: Option<Time>,
    pub(super) timeout: Option<Time>,
    pub(super) read_timeout: Option<Time>,
    pub(super) write_timeout: Option<Time>,
    pub(super) late_write_window: Option<Time>,
    pub(super) reuse_idle_writes: Option<Time>,
    pub(super) idle_timeout: Option<Time>,
    pub(super) max_connections: Option<Number>,
    pub(super) queue: Queue,
    pub(super) host_header: Option<Text>,
    pub(super) forwarded: Option<Choice<Forwarded>>,
    pub(super) health: Health,
    pub(super) http2: Option<Flag>,
    pub(super) tls: UpstreamTls,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Queue {
    pub(super) max_wait: Option<Time>,
    pub(super) max_waiters: Option<Number>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Health {
    pub(super) check: Option<Choice<CheckWord>>,
    pub(super) path: Option<Text>,
    pub(super) status: Option<Text>,
    pub(super) interval: Option<Time>,
    pub(super) timeout: Option<Time>,
    pub(super) healthy_after: Option<Number>,
    pub(super) unhealthy_after: Option<Number>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UpstreamTls {
    pub(super) server_name: Option<Text>,
    pub(super) ca: Option<Text>,
    pub(super) cert: Option<Text>,
    pub(super) key: Option<Text>,
}

/// A `[[routes]]` table, or `[defaults]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Route {
    pub(super) name: Option<Text>,
    pub(super) host: Option<Text>,
    pub(super) path: Option<Text>,
    pub(super) upstream: Option<Text>,
    pub(super) strip_prefix: Option<Text>,
    pub(super) add_prefix: Option<Text>,
    pub(super) policy: Option<Choice<Policy>>,
    pub(super) etag: Option<Choice<TagSource>>,
    pub(super) ignore_json: Option<Texts>,
    pub(super) unique_tags: Option<Flag>,
    pub(super) etag_suffixes: Option<Texts>,
    pub(super) accept_weak_own: Option<Flag>,
    pub(super) mirror_header: Option<Text>,
    pub(super) compare: Option<Choice<Compare>>,
    pub(super) other_writers: Option<Flag>,
    pub(super) key: Option<Text>,
    pub(super) path_params: Option<Choice<PathParameters>>,
    pub(super) encoded_slash: Option<Choice<EncodedSlash>>,
    pub(super) require: Option<Choice<Require>>,
    pub(super) require_methods: Option<Texts>,
    pub(super) allow_any: Option<Flag>,
    pub(super) on_write: Option<Choice<OnWrite>>,
    pub(super) etag_after_write: Option<Choice<TagAfterWrite>>,
    pub(super) safe_methods: Option<Texts>,
    pub(super) append_methods: Option<Texts>,
    pub(super) reads: Option<Choice<ReadConsistency>>,
    pub(super) method_override: Option<Choice<MethodOverride>>,
    pub(super) collections: Option<Choice<Collections>>,
    pub(super) websocket: Option<Flag>,
    pub(super) guarantee: Option<Choice<Guarantee>>,
    pub(super) observe: Option<Flag>,
    pub(super) max_hash_size: Option<Size>,
    pub(super) hash_wait: Option<Time>,
    pub(super) identity_headers: Option<Texts>,
    pub(super) identity_cookies: Option<Texts>,
    pub(super) identity_query: Option<Texts>,
    pub(super) identity_ttl: Option<Time>,
    pub(super) claim: Claim,
    pub(super) probe: Probe,
    pub(super) probe_auth: Option<Choice<ProbeAuth>>,
    pub(super) probe_region: Option<Text>,
    pub(super) dialect: Option<Choice<Dialect>>,
    pub(super) metadata_suffix: Option<Text>,
    pub(super) also_changes: Option<Texts>,
    pub(super) writes_to: Option<Text>,
    pub(super) idempotency: Option<Choice<Idempotency>>,
    pub(super) idempotency_ttl: Option<Time>,
    pub(super) lease: Lease,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Claim {
    pub(super) max_wait: Option<Time>,
    pub(super) max_waiters: Option<Number>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Probe {
    pub(super) timeout: Option<Time>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Lease {
    pub(super) prefix: Option<Text>,
    pub(super) guards: Option<Texts>,
    pub(super) auth: Option<Choice<LeaseAuth>>,
    pub(super) bind: Option<Flag>,
    pub(super) shared: Option<Flag>,
    pub(super) delete_pending: Option<Flag>,
    pub(super) acquire_on_read: Option<Flag>,
    pub(super) client_break: Option<Flag>,
    pub(super) absent: Option<Choice<AbsentLease>>,
    pub(super) remember_time: Option<Time>,
    pub(super) max_per_principal: Option<Number>,
    pub(super) max_per_address: Option<Number>,
    pub(super) default: Option<Time>,
    pub(super) min: Option<Time>,
    pub(super) max: Option<Time>,
    pub(super) infinite: Option<Flag>,
    pub(super) required: Option<Flag>,
    pub(super) max_wait: Option<Time>,
    pub(super) max_waiters: Option<Number>,
    pub(super) max_hold_time: Option<Time>,
}

impl Section for File {
    const TABLES: Tables = &[
        ("server", Table(clean::<Server>)),
        ("admin", Table(clean::<Admin>)),
        ("store", Table(clean::<Store>)),
        ("telemetry", Table(clean::<Telemetry>)),
        ("defaults", Table(clean::<Route>)),
        ("upstreams", NamedTables(clean::<Upstream>)),
        ("routes", ListOfTables(clean::<Route>)),
    ];
}

impl Section for Server {
    const TABLES: Tables = &[("tls", Table(clean::<ServerTls>))];
}

impl Section for ServerTls {
    const TABLES: Tables = &[("certificates", ListOfTables(clean::<Certificate>))];
}

impl Section for Certificate {}

impl Section for Admin {}

impl Section for Store {
    const TABLES: Tables = &[("tls", Table(clean::<Tls>))];
}

impl Section for Tls {}

impl Section for Telemetry {
    const TABLES: Tables = &[("otlp", Table(clean::<Otlp>))];
}

impl Section for Otlp {
    const TABLES: Tables = &[("tls", Table(clean::<Tls>))];
}

impl Section for Upstream {
    const TABLES: Tables =
        &[("tls", Table(clean::<UpstreamTls>)), ("queue", Table(clean::<Queue>)), ("health", Table(clean::<Health>))];
}

impl Section for Queue {}

impl Section for Health {}

impl Section for UpstreamTls {}

impl Section for Route {
    const TABLES: Tables =
        &[("claim", Table(clean::<Claim>)), ("probe", Table(clean::<Probe>)), ("lease", Table(clean::<Lease>))];
}

impl Section for Claim {}

impl Section for Probe {}

impl Section for Lease {}
