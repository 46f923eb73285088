//! The `[upstreams.NAME]` tables.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::uri::Authority;

use super::{
    super::{
        Upstream,
        limits::{self, Limit},
        raw,
        raw::Text,
    },
    addresses::ServerPlaces,
    balancing,
    check::Check,
    tls,
};

/// All upstreams of the file, by name.
pub(super) type NamedUpstreams = BTreeMap<String, Arc<Upstream>>;

pub(super) fn upstreams(check: &mut Check<'_>, raw: &BTreeMap<Text, raw::Written<raw::Upstream>>) -> NamedUpstreams {
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

fn upstream(check: &mut Check<'_>, name: &Text, spanned: &raw::Written<raw::Upstream>) -> Upstream {
    let raw = spanned.get_ref();
    check.name("the upstream's name", name);
    if let Some(identity) = &raw.identity {
        check.name("identity", identity);
    }
    let servers = servers(check, name, spanned);
    let (balance, hash_by) = balancing::balance(check, raw);
    let timeout = check.duration(raw.timeout.as_ref(), limits::UPSTREAM_TIMEOUT);
    let or_timeout = |limit: Limit<Duration>| Limit { default: timeout, ..limit };
    Upstream {
        name: name.get_ref().clone(),
        identity: raw.identity.as_ref().map_or(name, |identity| identity).get_ref().clone(),
        ignore_case: raw.ignore_case.as_ref().is_some_and(|flag| *flag.get_ref()),
        weights: balancing::weights(check, raw, &servers),
        servers,
        balance,
        hash_by,
        tls: tls::upstream(check, raw),
        http2: raw.http2.as_ref().is_some_and(|flag| *flag.get_ref()),
        connect_timeout: check.duration(raw.connect_timeout.as_ref(), limits::CONNECT_TIMEOUT),
        timeout,
        read_timeout: check.duration(raw.read_timeout.as_ref(), or_timeout(limits::READ_TIMEOUT)),
        write_timeout: check.duration(raw.write_timeout.as_ref(), or_timeout(limits::WRITE_TIMEOUT)),
        late_write_window: check.duration(raw.late_write_window.as_ref(), or_timeout(limits::LATE_WRITE_WINDOW)),
        reuse_idle_writes: check.duration(raw.reuse_idle_writes.as_ref(), limits::REUSE_IDLE_WRITES),
        connections: balancing::connections(check, raw),
        health: balancing::health(check, &raw.health),
        host_header: balancing::host_header(check, raw.host_header.as_ref()),
        forwarded: check.word("forwarded", raw.forwarded.as_ref()).unwrap_or_default(),
    }
}

fn servers(check: &mut Check<'_>, name: &Text, spanned: &raw::Written<raw::Upstream>) -> Vec<String> {
    const HINT: &str = r#"write servers = ["127.0.0.1:9000"]"#;
    let message = |what| format!("upstream {:?} has no {what}", name.get_ref());
    let Some(list) = &spanned.get_ref().servers else {
        if !check.written.unreadable(&["upstreams", name.get_ref(), "servers"]) {
            check.hinted(spanned.span(), message("servers"), HINT);
        }
        return Vec::new();
    };
    if list.get_ref().is_empty() {
        check.hinted(list.span(), message("server in its list"), HINT);
    }
    check.each(list, server)
}

fn server(check: &mut Check<'_>, text: &Text) -> Option<String> {
    let address = text.get_ref().as_str();
    if let Some(path) = address.strip_prefix("unix:") {
        if !path.starts_with('/') {
            let hint = r#"write "unix:/run/backend.sock""#;
            check.hinted(text.span(), format!("server {address:?} has no absolute path"), hint);
        }
        return Some(address.to_owned());
    }
    let address = &address_of(address);
    match host_and_port(address) {
        Ok(0) => check.problem(text.span(), format!("server {address:?} has port 0, on which no server can listen")),
        Ok(_) => return Some(address.to_ascii_lowercase()),
        Err(what) => {
            let bare = address.trim_start_matches("http://").split('/').next().unwrap_or_default();
            let example = if bare.is_empty() || bare.contains([':', '@']) {
                "127.0.0.1:9000".to_owned()
            } else {
                format!("{bare}:80")
            };
            check.hinted(
                text.span(),
                format!("server {address:?} {what}"),
                format!("write host:port, for example {example:?}"),
            );
        }
    }
    None
}

/// Returns the `host:port` of a server; the default port of `https://` is 443.
fn address_of(server: &str) -> String {
    let Some(address) = server.strip_prefix(tls::SCHEME) else { return server.to_owned() };
    let address = address.strip_suffix('/').unwrap_or(address);
    let has_port = address.parse::<Authority>().is_ok_and(|authority| authority.port().is_some());
    if has_port { address.to_owned() } else { format!("{address}:443") }
}

/// Returns the port of a `host:port`, or the problem with it.
pub(in crate::config) fn host_and_port(address: &str) -> Result<u16, &'static str> {
    if address.contains('@') {
        return Err("holds a user or a password");
    }
    if address.contains("://") {
        return Err("is a URL, not host:port");
    }
    let authority = address.parse::<Authority>().ok();
    let authority = authority.filter(|authority| !authority.host().is_empty());
    let authority = authority.as_ref().ok_or("is not host:port")?;
    let without = if authority.host() == address { "has no port" } else { "has no port from 0 to 65535" };
    authority.port_u16().ok_or(without)
}

/// Reports two names for one server: they would give one resource two keys, and so two claims.
fn refuse_shared_servers(
    check: &mut Check<'_>,
    raw: &BTreeMap<Text, raw::Written<raw::Upstream>>,
    upstreams: &NamedUpstreams,
) {
    let addresses = ServerPlaces::of(upstreams.values().map(|upstream| &**upstream));
    let mut seen: Vec<(&str, &Upstream, usize)> = Vec::new();
    let mut in_file_order = raw.iter().collect::<Vec<_>>();
    in_file_order.sort_by_key(|(name, _)| name.span().start);
    for (name, table) in in_file_order {
        let Some(upstream) = upstreams.get(name.get_ref()) else { continue };
        for text in table.get_ref().servers.iter().flat_map(raw::Written::get_ref) {
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
fn refuse_two_cases(
    check: &mut Check<'_>,
    raw: &BTreeMap<Text, raw::Written<raw::Upstream>>,
    upstreams: &NamedUpstreams,
) {
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
