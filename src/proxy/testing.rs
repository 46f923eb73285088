//! A configuration without a file and a proxy in a thread, for tests.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use http::{HeaderName, Method};
use tokio::sync::watch;

use super::Gateway;
use crate::{
    clock::BootClock,
    config::{self, Balance, Config, Forwarded, HashBy, HealthCheck, HostHeader, Listen, Queue, Route, Upstream},
    core::{
        http::{fields::Underscores, path_mapping::PathMapping, request_target::KeptInNames},
        policy::{
            Collections, Compare, Dialect, Guarantee, GuardRules, Idempotency, MethodOverride, OnWrite, Policy,
            ProbeAuth, ReadConsistency, Require, TagAfterWrite, TagSource,
        },
        resource::KeyTemplate,
        route::{HostPattern, PathPattern},
        time::StoreTime,
    },
    generation::{Live, Serving},
    guard::Guard,
    server::{self, Listeners, Stop},
    store::{
        Incarnation,
        memory::{MemoryStore, Room},
    },
    tls::{ClientAuth, ServerTls},
};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The longest time that a test waits for the other side.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Returns a guard with the documented defaults.
pub(crate) fn guard() -> GuardRules {
    GuardRules {
        etag: TagSource::Content,
        ignored_json: Vec::new(),
        unique_tags: false,
        etag_suffixes: Vec::new(),
        accept_weak_own: false,
        mirror_header: None,
        other_writers: true,
        compare: Compare::Strong,
        require: Require::Always,
        require_methods: vec![Method::PUT, Method::PATCH, Method::DELETE],
        allow_any: false,
        on_write: OnWrite::Probe,
        tag_after_write: TagAfterWrite::Verbatim,
        safe_methods: vec![Method::from_bytes(b"PROPFIND").expect("a token")],
        append_methods: vec![Method::POST],
        reads: ReadConsistency::Any,
        method_override: MethodOverride::Refuse,
        collections: Collections::Detect,
        websocket: false,
        guarantee: Guarantee::Store,
        observe: false,
        max_hash_size_bytes: 1 << 20,
        hash_wait: None,
        identity_cookies: Vec::new(),
        identity_query: Vec::new(),
        identity_headers: vec![HeaderName::from_static("authorization")],
        identity_ttl: Duration::from_secs(600),
        claim_max_wait: Duration::from_secs(30),
        claim_max_waiters: 64,
        probe_timeout: Duration::from_secs(5),
        probe_auth: ProbeAuth::Client,
        idempotency: Idempotency::Off,
        idempotency_ttl: Duration::ZERO,
        probe_region: Box::default(),
        metadata_suffix: None,
        dialect: Dialect::default(),
        quirks: Dialect::default().quirks(),
        also_changes: Vec::new(),
        lease: None,
    }
}

/// Returns a route of any host to the upstream `backend` at these servers.
pub(crate) fn route(path: &str, guard: Option<GuardRules>, servers: &[SocketAddr]) -> Route {
    Route {
        name: path.to_owned(),
        host: HostPattern::Any,
        path: PathPattern::parse(path).expect("a path pattern"),
        upstream: Arc::new(Upstream {
            name: "backend".to_owned(),
            identity: "backend".to_owned(),
            ignore_case: false,
            servers: servers.iter().map(SocketAddr::to_string).collect(),
            connect_timeout: Duration::from_secs(1),
            timeout: Duration::from_secs(5),
            late_write_window: Duration::from_secs(5),
            reuse_idle_writes: Duration::from_secs(1),
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
        }),
        policy: if guard.is_some() { Policy::Optimistic } else { Policy::LastWriterWins },
        guard: guard.map(Arc::new),
        mapping: PathMapping::default(),
        upstream_path: PathPattern::parse(path).expect("a path pattern"),
        key: KeyTemplate::parse("{path}", &[]).expect("a template"),
        writes_to: None,
        kept: KeptInNames::NOTHING,
        beside_guarded: false,
        reads_may_be_leased: false,
        deletes_may_be_pending: false,
        may_hold_members: false,
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
            underscores: Underscores::Keep,
            keepalive_timeout: Duration::from_secs(60),
            header_timeout: Duration::from_secs(15),
            max_header_bytes: 32 << 10,
            max_header_memory_bytes: 1 << 20,
            max_connections: 1000,
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

/// A proxy in its own thread.
///
/// It serves until the process ends. Pingora remembers a worker runtime by the number of its thread, and the threads
/// of a later proxy would find a runtime that is gone under theirs. Tests of a stop use whole processes.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
}

impl Proxy {
    /// Starts a proxy with these routes.
    pub(crate) fn start(routes: Vec<Route>) -> Self {
        let config = config(routes);
        let listeners = Listeners::bind(&config.server.listen).expect("a free port");
        let address = listeners.addresses().next().expect("one address").parse().expect("a socket address");
        let server = config.server.clone();
        let config = Arc::new(config);
        let store = MemoryStore::new(Arc::new(BootClock), Incarnation(7), Room { records: 1000, bytes: 1 << 30 }, DAY);
        let guards = Guard::new(&config, Arc::default(), Arc::new(store), 1, StoreTime::default());
        let serving = Serving::new(config, Arc::new(guards));
        let gateway = Gateway::new(Arc::new(Live::new(serving)));
        thread::spawn(move || {
            let (_never_asked, stop) = watch::channel(Stop::Not);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(server::run(listeners, &server, gateway, stop)).expect("a server");
        });
        Self { address }
    }

    /// Connects to the proxy.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the proxy listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }
}

/// Reads one HTTP/1.1 message: its head as text, and its body by Content-Length.
pub(crate) fn read_message(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    let mut octet = [0];
    while !head.ends_with(b"\r\n\r\n") {
        assert_eq!(stream.read(&mut octet).expect("a message"), 1, "it ends after {:?}", head.escape_ascii());
        head.extend(octet);
    }
    let head = String::from_utf8(head).expect("a head of ASCII");
    let mut body = vec![0; content_length(&head)];
    stream.read_exact(&mut body).expect("the whole body");
    (head, body)
}

fn content_length(head: &str) -> usize {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.parse().expect("a length"))
}

/// Starts a backend that passes each connection to a function. Its thread ends with the test.
pub(crate) fn backend(mut serve: impl FnMut(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.expect("a connection"));
        }
    });
    address
}

/// Answers one request with 200 and an empty body.
pub(crate) fn answer_ok(stream: &mut TcpStream) -> String {
    let (head, _) = read_message(stream);
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("the proxy reads");
    head
}
