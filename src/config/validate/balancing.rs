//! The keys for load balancing, connection limits and health checks.

use std::time::Duration;

use http::uri::PathAndQuery;

use super::{
    super::{
        Balance, ConnectionLimits, HealthCheck, HealthProbe, Upstream,
        check::Limit,
        kinds::{Count, Time},
        raw::Text,
        section::Layers,
        table::{Section as _, ValueKind},
        units::{ZERO, hours, seconds, status_range},
        upstream::{HealthKeys, Queue, UpstreamKeys},
        words::{CheckWord, Word as _},
    },
    check::Check,
};

/// The default path of a health check.
const DEFAULT_PATH: &str = "/";
/// The default statuses of a healthy server.
const DEFAULT_STATUS: &str = "2xx";

/// Returns the weight of each server, in the order of `servers`.
pub(super) fn weights(check: &mut Check<'_>, raw: &UpstreamKeys, servers: &[String]) -> Vec<u32> {
    let mut weights = vec![1; servers.len()];
    for (server, weight) in &raw.weights {
        let place = servers.iter().position(|known| known.eq_ignore_ascii_case(server.get_ref()));
        match place.and_then(|place| weights.get_mut(place)) {
            Some(known) => {
                *known =
                    u32::try_from(check.count(Some(weight), Limit { key: "weights", default: 1, min: 1, max: 100 }))
                        .unwrap_or(1);
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

/// Reports `hash_by` if no hash is used.
pub(super) fn refuse_idle_hash(check: &mut Check<'_>, keys: &UpstreamKeys, upstream: &Upstream) {
    check.refuse(
        keys.hash_by.as_ref().filter(|text| text.get_ref() != "path"),
        upstream.balance == Balance::RoundRobin,
        "hash_by has no effect on servers that take turns",
        format!("write balance = {:?}, or leave hash_by out", Balance::ConsistentHash.word()),
    );
}

/// Reads the limits of connections to each server.
pub(super) fn connections(check: &mut Check<'_>, keys: &UpstreamKeys) -> ConnectionLimits {
    let queue = Queue::read(check, "queue.", Layers::only(&keys.queue), ());
    let (max, idle) = (keys.max_connections.as_ref(), keys.idle_timeout.as_ref());
    ConnectionLimits {
        max: Count::read(check, "max_connections", max, (1024, 1..=1_000_000)),
        queue_max_wait: queue.max_wait,
        queue_max_waiters: queue.max_waiters,
        idle_timeout: <Time as ValueKind<Duration>>::read(check, "idle_timeout", idle, (seconds(55), ZERO..=hours(1))),
    }
}

/// Returns the active health checks; `None` if they are off.
pub(super) fn health(check: &mut Check<'_>, raw: &HealthKeys) -> Option<HealthCheck> {
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
    let question = match kind {
        CheckWord::Off | CheckWord::Connect => HealthProbe::Connect,
        CheckWord::Http => HealthProbe::Http { path, status: statuses },
    };
    let health = HealthCheck::read(check, "health.", Layers::only(raw), (question,));
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
