//! The `[upstreams.NAME]` tables.

use std::{collections::BTreeMap, sync::Arc};

use http::uri::Authority;

use super::{
    super::{
        Upstream, listen::host_and_port, raw::Text, section::Layers, table::Section as _, upstream::UpstreamKeys,
        written::Written,
    },
    addresses::ServerPlaces,
    balancing,
    check::Check,
    tls,
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
    let servers = servers(check, name, spanned);
    let weights = balancing::weights(check, keys, &servers);
    let (connections, health) = (balancing::connections(check, keys), balancing::health(check, &keys.health));
    let given = (name.get_ref().clone(), servers, weights, connections, health, tls::upstream(check, keys));
    let upstream = Upstream::read(check, "", Layers::only(keys), given);
    balancing::refuse_idle_hash(check, keys, &upstream);
    upstream
}

fn servers(check: &mut Check<'_>, name: &Text, spanned: &Written<UpstreamKeys>) -> Vec<String> {
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
