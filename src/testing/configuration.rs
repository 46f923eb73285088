//! A configuration without a file.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use crate::{
    config::{self, Balance, Config, Forwarded, HashBy, HealthCheck, HostHeader, Listen, Queue, Route, Upstream},
    core::{
        http::{fields::Underscores, path_mapping::PathMapping, request_target::KeptInNames},
        policy::{GuardRules, Policy},
        resource::KeyTemplate,
        route::{HostPattern, PathPattern},
    },
    tls::{ClientAuth, ServerTls},
};

/// Returns the upstream `backend` at these servers, with the documented defaults but for short timeouts.
pub(crate) fn upstream(servers: Vec<String>) -> Upstream {
    Upstream {
        name: "backend".to_owned(),
        identity: "backend".to_owned(),
        ignore_case: false,
        servers,
        connect_timeout: Duration::from_secs(1),
        timeout: Duration::from_secs(5),
        late_write_window: Duration::from_secs(5),
        reuse_idle_writes: Duration::from_secs(20),
        weights: BTreeMap::new(),
        balance: Balance::default(),
        hash_by: HashBy::default(),
        read_timeout: Duration::from_secs(5),
        write_timeout: Duration::from_secs(5),
        idle_timeout: Duration::from_secs(55),
        max_connections: 1024,
        queue: Queue::default(),
        health: HealthCheck::default(),
        host_header: HostHeader::default(),
        forwarded: Forwarded::default(),
        tls: None,
        http2: false,
    }
}

/// Returns a route of any host to the upstream `backend` at these servers.
pub(crate) fn route(path: &str, guard: Option<GuardRules>, servers: &[SocketAddr]) -> Route {
    Route {
        name: path.to_owned(),
        host: HostPattern::Any,
        path: PathPattern::parse(path).expect("a path pattern"),
        upstream: Arc::new(upstream(servers.iter().map(SocketAddr::to_string).collect())),
        policy: if guard.is_some() { Policy::Optimistic } else { Policy::LastWriterWins },
        guard: guard.map(Arc::new),
        mapping: PathMapping::default(),
        upstream_path: PathPattern::parse(path).expect("a path pattern"),
        key: KeyTemplate::parse("{path}", &[]).expect("a template"),
        writes_to: None,
        members: None,
        kept: KeptInNames::NOTHING,
        beside_guarded: false,
        reads_may_be_leased: false,
        deletes_may_be_pending: false,
        may_hold_members: false,
        has_trees: false,
    }
}

/// Returns a configuration of these routes that listens on a free loopback port.
pub(crate) fn config(routes: Vec<Route>) -> Config {
    Config {
        telemetry: config::Telemetry::default(),
        admin: None,
        server: config::Server {
            listen: vec![Listen::Tcp("127.0.0.1:0".to_owned())],
            threads: 1,
            max_body_memory_bytes: 1 << 20,
            max_body_memory_total_bytes: 1 << 28,
            max_body_size_bytes: 1 << 30,
            max_spool_size_bytes: 1 << 33,
            body_timeout: Duration::from_secs(60),
            spool_dir: std::env::temp_dir(),
            max_staged_uploads: 256,
            max_staged_blocks: 10_000,
            staged_block_ttl: Duration::from_secs(3600),
            max_target_bytes: 8 << 10,
            max_claim_waiters: 10_000,
            trusted_proxies: config::TrustedProxies::default(),
            proxy_protocol: config::TrustedProxies::default(),
            underscores: Underscores::Keep,
            server_timing: false,
            keepalive_timeout: Duration::from_secs(60),
            header_timeout: Duration::from_secs(15),
            max_header_bytes: 32 << 10,
            max_header_memory_bytes: 1 << 20,
            max_connections: 1000,
            max_watches: 100,
            max_watches_per_client: 10,
            max_connections_per_client: 100,
            shutdown_timeout: Duration::from_secs(10),
            watch: false,
            control_socket: None,
            tls: ServerTls {
                certificates: Vec::new(),
                client_auth: ClientAuth::Off,
                client_ca: None,
                handshake_timeout: Duration::from_secs(10),
                reload_interval: Duration::from_secs(10),
            },
        },
        store: config::StoreSettings {
            kind: config::StoreKind::Memory,
            capacity: 1000,
            max_bytes: 1 << 30,
            idle_ttl: Duration::from_secs(60),
            timeout: Duration::from_secs(2),
            start_grace: Duration::ZERO,
        },
        routes: routes.into_iter().map(Arc::new).collect(),
    }
}
