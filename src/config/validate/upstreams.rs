//! The `[upstreams.NAME]` tables.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    super::{
        Balance, HealthCheck, HealthProbe, Upstream,
        raw::Text,
        section::Layers,
        table::Section as _,
        upstream::{DEFAULT_PATH, DEFAULT_STATUS, HealthKeys, UpstreamKeys},
        upstream_servers::{address_of, is_secure},
        words::Word as _,
        written::Written,
    },
    addresses::ServerPlaces,
    check::Check,
};

/// All upstreams of the file, by name.
pub(super) type NamedUpstreams = BTreeMap<String, Arc<Upstream>>;

pub(super) fn upstreams(check: &mut Check<'_>, raw: &BTreeMap<Text, Written<UpstreamKeys>>) -> NamedUpstreams {
    if raw.is_empty() && !check.written.unreadable(&["upstreams"]) {
        const HINT: &str = "write [upstreams.NAME] and below it servers = [\"127.0.0.1:9000\"]";
        check.whole("there is no upstream", HINT);
    }
    let upstreams = raw.iter().map(|(name, raw)| (name.get_ref().clone(), Arc::new(upstream(check, name, raw))));
    let upstreams = upstreams.collect();
    refuse_shared_servers(check, raw, &upstreams);
    refuse_two_cases(check, raw, &upstreams);
    upstreams
}

fn upstream(check: &mut Check<'_>, name: &Text, spanned: &Written<UpstreamKeys>) -> Upstream {
    let keys = spanned.get_ref();
    check.name("the upstream's name", name);
    let secure = match &keys.servers {
        Some(servers) => servers.get_ref().iter().find(|server| is_secure(server)).map(Written::span),
        // It is not known whether they are reached over TLS, so all keys may be right.
        None => Some(spanned.span()),
    };
    let upstream = Upstream::read(check, "", Layers::only(keys), (name.get_ref().clone(), spanned.span(), secure));
    refuse_idle_hash(check, keys, &upstream);
    refuse_idle_checks(check, &keys.health, &upstream.health);
    upstream
}

/// Reports `hash_by` if no hash is used.
fn refuse_idle_hash(check: &mut Check<'_>, keys: &UpstreamKeys, upstream: &Upstream) {
    check.refuse(
        keys.hash_by.as_ref().filter(|text| text.get_ref() != "path"),
        upstream.balance == Balance::RoundRobin,
        "hash_by has no effect on servers that take turns",
        format!("write balance = {:?}, or leave hash_by out", Balance::ConsistentHash.word()),
    );
}

/// Reports keys of a health check that asks nothing.
fn refuse_idle_checks(check: &mut Check<'_>, keys: &HealthKeys, health: &HealthCheck) {
    for (key, text, default) in
        [("health.path", &keys.path, DEFAULT_PATH), ("health.status", &keys.status, DEFAULT_STATUS)]
    {
        let text = text.as_ref().filter(|text| text.get_ref() != default);
        let message = format!("{key} has no effect if health.check is {:?}", health.check.word());
        check.refuse(text, health.check != HealthProbe::Http, message, "write check = \"http\"");
    }
}

/// Reports two names for one server: they would give one resource two keys, and so two claims.
fn refuse_shared_servers(
    check: &mut Check<'_>,
    raw: &BTreeMap<Text, Written<UpstreamKeys>>,
    upstreams: &NamedUpstreams,
) {
    let addresses = ServerPlaces::of(upstreams.values().map(|upstream| &**upstream));
    let mut seen: Vec<(&str, &Upstream, usize)> = Vec::new();
    let mut in_file_order = raw.iter().collect::<Vec<_>>();
    in_file_order.sort_by_key(|(name, _)| name.span().start);
    for (name, table) in in_file_order {
        let Some(upstream) = upstreams.get(name.get_ref()) else { continue };
        for text in table.get_ref().servers.iter().flat_map(Written::get_ref) {
            let written = text.get_ref();
            let address =
                if written.starts_with("unix:") { written.clone() } else { address_of(written).to_ascii_lowercase() };
            let Some(server) = upstream.servers.iter().find(|server| **server == address) else { continue };
            let earlier = seen.iter().find(|(other, at, _)| {
                at.identity != upstream.identity && addresses.are_one((upstream, server), (at, other))
            });
            if let Some((written, other, line)) = earlier {
                let as_what = if written == server { String::new() } else { format!(", as {written:?}") };
                let message =
                    format!("server {server:?} is also one of upstream {:?} (line {line}{as_what})", other.name);
                let hint = format!(
                    "one server under two names would have two claims for one resource; give both upstreams the same \
                     identity, for example identity = {:?}",
                    other.identity
                );
                check.hinted(text.span(), message, hint);
            }
            seen.push((server, upstream, check.source.line(text.span().start)));
        }
    }
}

/// Reports upstreams of one identity of which one ignores letter case and another does not: one resource would have two
/// keys.
fn refuse_two_cases(check: &mut Check<'_>, raw: &BTreeMap<Text, Written<UpstreamKeys>>, upstreams: &NamedUpstreams) {
    let mut in_file_order =
        raw.keys().filter_map(|name| Some((name, upstreams.get(name.get_ref())?))).collect::<Vec<_>>();
    in_file_order.sort_by_key(|(name, _)| name.span().start);
    let mut first: BTreeMap<&str, &Upstream> = BTreeMap::new();
    for (name, upstream) in in_file_order {
        let other = *first.entry(&upstream.identity).or_insert(upstream);
        if other.ignore_case != upstream.ignore_case {
            let message = format!(
                "upstreams {:?} and {:?} have the identity {:?}, and differ in ignore_case",
                other.name, upstream.name, upstream.identity
            );
            let hint = "one resource would have two keys; give both the same ignore_case";
            check.hinted(name.span(), message, hint);
        }
    }
}
