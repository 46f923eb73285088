//! An upstream in the words of the file.

use serde_json::{Map, Value, json};

use crate::{
    admin::answer::joined,
    config::{HealthCheck, HealthProbe, HostHeader, Upstream, Word as _, show_duration},
};

/// Shows all keys of an upstream. Of `tls` it shows only the name that servers are known by: the rest are files, which
/// were read at the start.
pub(super) fn upstream(upstream: &Upstream) -> Value {
    let weights = upstream.servers.iter().zip(&upstream.weights);
    json!({
        "servers": upstream.servers,
        "identity": upstream.identity,
        "ignore_case": upstream.ignore_case,
        "weights": weights.map(|(server, weight)| (server.clone(), json!(weight))).collect::<Map<_, _>>(),
        "balance": upstream.balance.word(),
        "hash_by": upstream.hash_by.spelled(),
        "connect_timeout": show_duration(upstream.connect_timeout),
        "timeout": show_duration(upstream.timeout),
        "read_timeout": show_duration(upstream.read_timeout),
        "write_timeout": show_duration(upstream.write_timeout),
        "late_write_window": show_duration(upstream.late_write_window),
        "reuse_idle_writes": show_duration(upstream.reuse_idle_writes),
        "http2": upstream.http2,
        "tls": upstream.tls.as_ref().map(|tls| json!({ "server_name": tls.server_name() })),
        "max_connections": upstream.connections.max,
        "idle_timeout": show_duration(upstream.connections.idle_timeout),
        "queue": {
            "max_wait": show_duration(upstream.connections.queue_max_wait),
            "max_waiters": upstream.connections.queue_max_waiters,
        },
        "host_header": match &upstream.host_header {
            HostHeader::Preserve => "preserve",
            HostHeader::Upstream => "upstream",
            HostHeader::Named(name) => name,
        },
        "forwarded": upstream.forwarded.word(),
        "health": health(upstream.health.as_ref()),
    })
}

fn health(health: Option<&HealthCheck>) -> Value {
    let Some(health) = health else { return json!({ "check": "off" }) };
    let question = match &health.question {
        HealthProbe::Connect => json!({ "check": "connect" }),
        HealthProbe::Http { path, status } => {
            json!({ "check": "http", "path": path, "status": format!("{}-{}", status.start(), status.end()) })
        }
    };
    let rest = json!({
        "interval": show_duration(health.interval),
        "timeout": show_duration(health.timeout),
        "healthy_after": health.healthy_after,
        "unhealthy_after": health.unhealthy_after,
    });
    joined(question, rest)
}
