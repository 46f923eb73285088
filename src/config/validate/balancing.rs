//! The keys for load balancing, connection limits, health checks, `Host` and trusted proxies.

use std::net::IpAddr;

use http::{HeaderValue, uri::PathAndQuery};
use ipnet::IpNet;

use super::{
    super::{
        Balance, ConnectionLimits, HashBy, HealthCheck, HealthProbe, HostHeader, TrustedProxies, limits,
        raw::{self, Text, Texts},
        units::status_range,
        words::{CheckWord, Word as _},
    },
    check::Check,
};

/// The word for all peers that connect over a unix socket.
const UNIX: &str = "unix";
/// The default path of a health check.
const DEFAULT_PATH: &str = "/";
/// The default statuses of a healthy server.
const DEFAULT_STATUS: &str = "2xx";

/// Returns the weight of each server, in the order of `servers`.
pub(super) fn weights(check: &mut Check<'_>, raw: &raw::Upstream, servers: &[String]) -> Vec<u32> {
    let mut weights = vec![1; servers.len()];
    for (server, weight) in &raw.weights {
        let place = servers.iter().position(|known| known.eq_ignore_ascii_case(server.get_ref()));
        match place.and_then(|place| weights.get_mut(place)) {
            Some(known) => {
                *known = u32::try_from(check.count(Some(weight), limits::WEIGHT)).unwrap_or(1);
            }
            // A server that could not be read has been reported.
            None if servers.is_empty() => {}
            None => {
                let hint = format!("the servers are {}", servers.join(", "));
                check.hinted(
                    server.span(),
                    format!("weights names {:?}, which is not one of the servers", server.get_ref()),
                    hint,
                );
            }
        }
    }
    weights
}

/// Returns how the server for an unguarded request is chosen. Reports `hash_by` if no hash is used.
pub(super) fn balance(check: &mut Check<'_>, raw: &raw::Upstream) -> (Balance, HashBy) {
    let balance = check.word("balance", raw.balance.as_ref()).unwrap_or_default();
    let hash_by = check.word("hash_by", raw.hash_by.as_ref()).unwrap_or_default();
    check.refuse(
        raw.hash_by.as_ref().filter(|text| text.get_ref() != "path"),
        balance == Balance::RoundRobin,
        "hash_by has no effect on servers that take turns",
        format!("write balance = {:?}, or leave hash_by out", Balance::ConsistentHash.word()),
    );
    (balance, hash_by)
}

pub(super) fn connections(check: &mut Check<'_>, raw: &raw::Upstream) -> ConnectionLimits {
    ConnectionLimits {
        max: check.count(raw.max_connections.as_ref(), limits::MAX_CONNECTIONS),
        queue_max_wait: check.duration(raw.queue.max_wait.as_ref(), limits::QUEUE_MAX_WAIT),
        queue_max_waiters: check.count(raw.queue.max_waiters.as_ref(), limits::QUEUE_MAX_WAITERS),
        idle_timeout: check.duration(raw.idle_timeout.as_ref(), limits::IDLE_TIMEOUT),
    }
}

/// Returns the active health checks; `None` if they are off.
pub(super) fn health(check: &mut Check<'_>, raw: &raw::Health) -> Option<HealthCheck> {
    let kind = check.word("health.check", raw.check.as_ref()).unwrap_or(CheckWord::Off);
    let path = path(check, raw.path.as_ref());
    let status = raw.status.as_ref();
    let statuses = status_range(status.map_or(DEFAULT_STATUS, |text| text.get_ref())).unwrap_or_else(|| {
        let message = format!("health.status is {:?}", status.map_or("", |text| text.get_ref()));
        if let Some(text) = status {
            check.hinted(text.span(), message, r#"write "2xx", "204", or another status or class"#);
        }
        200..=299
    });
    for (key, text, default) in
        [("health.path", &raw.path, DEFAULT_PATH), ("health.status", &raw.status, DEFAULT_STATUS)]
    {
        let text = text.as_ref().filter(|text| text.get_ref() != default);
        let message = format!("{key} has no effect if health.check is {:?}", kind.word());
        check.refuse(text, kind != CheckWord::Http, message, "write check = \"http\"");
    }
    let health = HealthCheck {
        question: match kind {
            CheckWord::Off | CheckWord::Connect => HealthProbe::Connect,
            CheckWord::Http => HealthProbe::Http { path, status: statuses },
        },
        interval: check.duration(raw.interval.as_ref(), limits::HEALTH_INTERVAL),
        timeout: check.duration(raw.timeout.as_ref(), limits::HEALTH_TIMEOUT),
        healthy_after: check.count(raw.healthy_after.as_ref(), limits::HEALTHY_AFTER),
        unhealthy_after: check.count(raw.unhealthy_after.as_ref(), limits::UNHEALTHY_AFTER),
    };
    (kind != CheckWord::Off).then_some(health)
}

fn path(check: &mut Check<'_>, value: Option<&Text>) -> String {
    let Some(value) = value else { return DEFAULT_PATH.to_owned() };
    let path = value.get_ref();
    let is_target = path.starts_with('/') && !path.contains('#') && path.parse::<PathAndQuery>().is_ok();
    if !is_target {
        check.hinted(value.span(), format!("health.path is {path:?}, which is not a path"), "write \"/healthz\"");
        return DEFAULT_PATH.to_owned();
    }
    path.clone()
}

/// Reads `host_header`: a word, or the name of a host.
pub(super) fn host_header(check: &mut Check<'_>, value: Option<&Text>) -> HostHeader {
    const HINT: &str = r#"it is "preserve", "upstream", or the name of a host: "docs.internal", "localhost:80""#;
    let Some(value) = value else { return HostHeader::Preserve };
    match value.get_ref().as_str() {
        "preserve" => HostHeader::Preserve,
        "upstream" => HostHeader::Upstream,
        // A single word is more likely a misspelt word than a host.
        name if name.contains(['.', ':']) && is_authority(name) => HostHeader::Named(name.to_owned()),
        name => {
            check.hinted(value.span(), format!("host_header cannot be {name:?}"), HINT);
            HostHeader::Preserve
        }
    }
}

/// Reads `trusted_proxies`: networks, addresses, and the word for peers over a unix socket.
pub(super) fn trusted_proxies(check: &mut Check<'_>, value: Option<&Texts>) -> TrustedProxies {
    const HINT: &str = r#"write "10.0.0.0/8", "192.0.2.1", "2001:db8::/32" or "unix""#;
    let Some(value) = value else { return TrustedProxies::default() };
    let networks = check.each(value, |check, text| {
        let written = text.get_ref().as_str();
        if written == UNIX {
            return None;
        }
        let network = written.parse::<IpNet>().or_else(|_| written.parse::<IpAddr>().map(IpNet::from));
        if network.is_err() {
            check.hinted(text.span(), format!("trusted_proxies: {written:?} is not a network"), HINT);
        }
        let network = network.ok();
        if network.is_some_and(|network| network.prefix_len() == 0) {
            let message = format!("trusted_proxies has {written:?}: every client can say where it comes from");
            check.warn(text.span(), message, "write the networks of the proxies in front of this one");
        }
        network
    });
    TrustedProxies { networks, over_unix: value.get_ref().iter().any(|text| text.get_ref() == UNIX) }
}

fn is_authority(name: &str) -> bool {
    let authority = name.parse::<http::uri::Authority>();
    authority.is_ok_and(|authority| !authority.as_str().contains('@')) && HeaderValue::from_str(name).is_ok()
}
