//! The configuration that is served, with every default, in the words of the file. It contains no secret: passwords and
//! tokens are in files or in the environment, and the view shows only their names.

use axum::{Json, extract::State, response::IntoResponse as _};
use serde_json::{Map, Value, json};

use super::{AdminAnswer, AdminState, answer::joined, health::kind};
use crate::{
    config::{
        Admin, Config, Listen, Login, Route, Server, StoreKind, StoreSettings, Telemetry, Tls, TokenSource, Word,
        guard_words, show_duration, show_size,
    },
    core::policy::{GuardRules, LeaseRules},
    tls::ServerTls,
};

use upstream::upstream;

/// Shows the whole configuration.
pub(super) async fn config(State(admin): AdminState) -> AdminAnswer {
    Ok(Json(whole(&admin.config())).into_response())
}

/// Shows only the routes, in the order of the file.
pub(super) async fn routes(State(admin): AdminState) -> AdminAnswer {
    let config = admin.config();
    let routes = config.routes.iter().map(|route| self::route(route)).collect::<Vec<_>>();
    Ok(Json(json!({ "routes": routes })).into_response())
}

fn whole(config: &Config) -> Value {
    let mut upstreams = Map::new();
    for route in &config.routes {
        upstreams.entry(route.upstream.name.clone()).or_insert_with(|| upstream(&route.upstream));
    }
    json!({
        "server": server(&config.server),
        "admin": config.admin.as_ref().map(admin),
        "store": store(&config.store),
        "telemetry": telemetry(&config.telemetry),
        "upstreams": upstreams,
        "routes": config.routes.iter().map(|one| route(one)).collect::<Vec<_>>(),
    })
}

fn server(server: &Server) -> Value {
    json!({
        "listen": server.listen.iter().map(address).collect::<Vec<_>>(),
        "threads": server.threads,
        "max_body_memory": show_size(server.max_body_memory_bytes as u64),
        "max_body_memory_total": show_size(server.max_body_memory_total_bytes as u64),
        "max_body_size": show_size(server.max_body_size_bytes),
        "max_spool_size": show_size(server.max_spool_size_bytes),
        "body_timeout": show_duration(server.body_timeout),
        "spool_dir": server.spool_dir,
        "max_staged_uploads": server.max_staged_uploads,
        "max_staged_blocks": server.max_staged_blocks,
        "staged_block_ttl": show_duration(server.staged_block_ttl),
        "max_target_size": show_size(server.max_target_bytes as u64),
        "max_claim_waiters": server.max_claim_waiters,
        "keepalive_timeout": show_duration(server.keepalive_timeout),
        "header_timeout": show_duration(server.header_timeout),
        "max_header_size": show_size(server.max_header_bytes as u64),
        "max_header_memory_total": show_size(server.max_header_memory_bytes as u64),
        "max_connections": server.max_connections,
        "max_connections_per_client": server.max_connections_per_client,
        "shutdown_timeout": show_duration(server.shutdown_timeout),
        "trusted_proxies": server.trusted_proxies.networks.iter().map(ToString::to_string)
            .chain(server.trusted_proxies.over_unix.then(|| "unix".to_owned())).collect::<Vec<_>>(),
        "underscores": server.underscores.word(),
        "control_socket": server.control_socket,
        "watch": server.watch,
        "tls": handshakes(&server.tls),
    })
}

fn handshakes(tls: &ServerTls) -> Value {
    let files = tls.certificates.iter().map(|files| json!({ "cert": files.certificate, "key": files.key }));
    json!({
        "certificates": files.collect::<Vec<_>>(),
        "client_auth": tls.client_auth.word(),
        "client_ca": tls.client_ca,
        "handshake_timeout": show_duration(tls.handshake_timeout),
        "reload_interval": show_duration(tls.reload_interval),
    })
}

fn address(listen: &Listen) -> String {
    match listen {
        Listen::Tcp(address) => address.clone(),
        Listen::Tls(address) => format!("tls:{address}"),
        Listen::Unix(path) => format!("unix:{}", path.display()),
    }
}

fn admin(admin: &Admin) -> Value {
    let (file, variable) = match &admin.token {
        Some(TokenSource::File(path)) => (Some(path), None),
        Some(TokenSource::Environment(name)) => (None, Some(name)),
        None => (None, None),
    };
    json!({ "listen": address(&admin.listen), "hosts": admin.hosts, "token_file": file, "token_env": variable })
}

fn store(store: &StoreSettings) -> Value {
    let common = json!({
        "kind": kind(&store.kind),
        "capacity": store.capacity,
        "max_size": show_size(store.max_bytes),
        "idle_ttl": show_duration(store.idle_ttl),
        "timeout": show_duration(store.timeout),
        "start_grace": show_duration(store.start_grace),
    });
    let user = |login: &Option<Login>| {
        let login = login.as_ref();
        json!({
            "user": login.map(|login| &login.user),
            "password_file": login.and_then(|login| login.password_file.as_ref()),
        })
    };
    let own = match &store.kind {
        StoreKind::Memory => json!({}),
        StoreKind::Disk { path } => json!({ "path": path }),
        StoreKind::Etcd(etcd) => joined(
            json!({ "endpoints": etcd.endpoints, "prefix": etcd.prefix, "tls": etcd.tls.as_ref().map(tls) }),
            user(&etcd.login),
        ),
        StoreKind::Postgres(postgres) => joined(
            json!({ "url": postgres.url, "schema": postgres.schema, "tls": postgres.tls.as_ref().map(tls) }),
            user(&postgres.login),
        ),
        StoreKind::Redis(redis) => joined(
            json!({ "url": redis.url, "prefix": redis.prefix, "tls": redis.tls.as_ref().map(tls) }),
            user(&redis.login),
        ),
    };
    joined(common, own)
}

fn tls(tls: &Tls) -> Value {
    let (certificate, key) = tls.identity.as_ref().map(|(certificate, key)| (certificate, key)).unzip();
    json!({ "ca": tls.ca, "cert": certificate, "key": key })
}

fn telemetry(telemetry: &Telemetry) -> Value {
    let otlp = &telemetry.otlp;
    // The URL of a collector may contain a password.
    let endpoint = otlp.endpoint.as_deref().map(|url| match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://{place}"),
        _ => url.to_owned(),
    });
    json!({
        "log_format": telemetry.log_format.word(),
        "level": telemetry.level.word(),
        "access_log": telemetry.access_log,
        "metrics": telemetry.metrics,
        "service_name": telemetry.service_name,
        "resource": telemetry.resource.iter().cloned().map(|(name, value)| (name, json!(value))).collect::<Map<_, _>>(),
        "sampling": telemetry.sampling,
        "otlp": {
            "endpoint": endpoint,
            "protocol": otlp.protocol.word(),
            "signals": otlp.signals.iter().map(Word::word).collect::<Vec<_>>(),
            "timeout": show_duration(otlp.timeout),
            "tls": otlp.tls.as_ref().map(tls),
        },
    })
}

fn route(route: &Route) -> Value {
    let shown = json!({
        "name": route.name,
        "host": route.host.to_string(),
        "path": route.path.to_string(),
        "upstream": route.upstream.name,
        "strip_prefix": route.mapping.strip(),
        "add_prefix": route.mapping.add(),
        "policy": route.policy.word(),
        "key": route.key.to_string(),
        "writes_to": route.writes_to.as_ref().map(ToString::to_string),
        "path_params": route.kept.path_params.word(),
        "encoded_slash": route.kept.encoded_slash.word(),
    });
    joined(shown, route.guard.as_deref().map_or(Value::Null, guard))
}

/// The keys of a guarded route.
fn guard(guard: &GuardRules) -> Value {
    let names = |names: &[http::HeaderName]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let methods = |methods: &[http::Method]| methods.iter().map(ToString::to_string).collect::<Vec<_>>();
    let texts = |texts: &mut dyn Iterator<Item = String>| texts.collect::<Vec<_>>();
    json!({
        "etag": guard.etag.spelled(),
        "ignore_json": texts(&mut guard.ignored_json.iter().map(ToString::to_string)),
        "unique_tags": guard.unique_tags,
        "etag_suffixes": guard.intermediaries.suffixes,
        "accept_weak_own": guard.intermediaries.weakens,
        "mirror_header": guard.intermediaries.mirror.as_ref().map(ToString::to_string),
        "compare": guard.compare.word(),
        "other_writers": guard.other_writers,
        "require": guard.require.word(),
        "require_methods": methods(&guard.require_methods),
        "allow_any": guard.allow_any,
        "on_write": guard.on_write.word(),
        "etag_after_write": guard.tag_after_write.word(),
        "safe_methods": methods(&guard.safe_methods),
        "append_methods": methods(&guard.append_methods),
        "websocket": guard.websocket,
        "reads": guard.reads.word(),
        "method_override": guard.method_override.word(),
        "collections": guard.collections.word(),
        "guarantee": guard.guarantee.word(),
        "observe": guard.observe,
        "max_hash_size": show_size(guard.max_hash_size_bytes as u64),
        "hash_wait": guard.hash_wait.map(show_duration),
        "identity_cookies": guard.identity_cookies,
        "identity_headers": names(&guard.identity_headers),
        "identity_query": guard.identity_query,
        "identity_ttl": show_duration(guard.identity_ttl),
        "claim": { "max_wait": show_duration(guard.claim_max_wait), "max_waiters": guard.claim_max_waiters },
        "probe": { "timeout": show_duration(guard.probe_timeout) },
        "probe_auth": guard.probe_auth.word(),
        "probe_region": guard.probe_region,
        "idempotency": guard.idempotency.word(),
        "idempotency_ttl": show_duration(guard.idempotency_ttl),
        "dialect": guard.dialect.word(),
        "metadata_suffix": guard.metadata_suffix,
        "also_changes": texts(&mut guard.also_changes.iter().map(|template| template.pattern().to_string())),
        "lease": guard.lease.as_ref().map(leases),
    })
}

fn leases(rules: &LeaseRules) -> Value {
    json!({
        "prefix": rules.prefix,
        "guards": guard_words(rules.guards),
        "auth": rules.auth.word(),
        "bind": rules.bind,
        "shared": rules.shared,
        "delete_pending": rules.delete_pending,
        "acquire_on_read": rules.acquire_on_read,
        "client_break": rules.client_break,
        "absent": rules.absent.word(),
        "remember_time": show_duration(rules.remember_time),
        "max_per_principal": rules.max_per_principal,
        "max_per_address": rules.max_per_address,
        "default": show_duration(rules.default),
        "min": show_duration(rules.min),
        "max": show_duration(rules.max),
        "infinite": rules.infinite,
        "required": rules.required,
        "max_wait": show_duration(rules.max_wait),
        "max_waiters": rules.max_waiters,
        "max_hold_time": show_duration(rules.max_hold_time),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_key_of_the_file_is_shown() {
        let reference = include_str!("../../../config/ifmatch.toml");
        let text = reference.replace("policy = \"optimistic\"", "policy = \"pessimistic\"");
        let loaded = crate::config::parse("config/ifmatch.toml", &text).unwrap_or_else(|problems| panic!("{problems}"));
        let mut config = loaded.config;
        config.admin = Some(Admin { listen: Listen::Tcp(String::new()), hosts: Vec::new(), token: None });
        let mut shown = BTreeSet::new();
        names(&whole(&config), &mut shown);
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|each| each.is_ascii_lowercase() || each == '_');
        let keys = reference.lines().filter_map(|line| line.trim_start_matches('#').split_once(" = "));
        let keys = keys.map(|(key, _)| key).filter(|key| is_name(key)).collect::<BTreeSet<_>>();
        assert!(keys.len() > 60, "the reference is read: {keys:?}");
        // Keys of other kinds of store, and of health checks that are off.
        let elsewhere = ["endpoints", "url", "schema", "user", "password_file"];
        let elsewhere = [&elsewhere[..], &["interval", "status", "healthy_after", "unhealthy_after"]].concat();
        let missing = keys.into_iter().filter(|key| !shown.contains(*key) && !elsewhere.contains(key));
        assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
    }

    fn names(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    found.insert(name.clone());
                    names(value, found);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| names(value, found)),
            _ => {}
        }
    }
}

mod upstream;
