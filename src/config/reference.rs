//! Tests that `config/ifmatch.toml`, the users' reference, documents every key and its real default.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use super::{
    Loaded, limits as limit,
    limits::Limit,
    parse, raw,
    schema::{REFERENCE, key_and_default},
    section::field_names,
    units,
};

/// Keys without a default. Some belong to store kinds that are not the default, others to lists that are empty by
/// default. The reference shows them as `# key = value`.
const WITHOUT_DEFAULT: [&str; 6] = [
    "routes.hash_wait",
    "routes.writes_to",
    "server.control_socket",
    "store.path",
    "server.tls.certificates.cert",
    "server.tls.certificates.key",
];

/// The file with all defaults written out.
fn uncommented() -> String {
    let shows_default = |line: &str| matches!(key_and_default(line), Some((_, Some(_))));
    let lines = REFERENCE.lines();
    lines.map(|line| if shows_default(line) { &line[1..] } else { line }).collect::<Vec<_>>().join("\n")
}

fn loaded(text: &str) -> Loaded {
    parse("config/ifmatch.toml", text).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn loads_as_it_is_without_warnings() {
    assert_eq!(loaded(REFERENCE).warnings, []);
}

#[test]
fn shows_the_real_defaults() {
    assert_eq!(format!("{:#?}", loaded(&uncommented()).config), format!("{:#?}", loaded(REFERENCE).config));
}

#[test]
fn shows_every_key_and_no_other() {
    let expected = [
        known::<raw::File>(""),
        known::<raw::Server>("server."),
        known::<raw::Admin>("admin."),
        known::<raw::ServerTls>("server.tls."),
        known::<raw::Certificate>("server.tls.certificates."),
        known::<raw::Store>("store."),
        known::<raw::Tls>("store.tls."),
        known::<raw::Telemetry>("telemetry."),
        known::<raw::Otlp>("telemetry.otlp."),
        known::<raw::Tls>("telemetry.otlp.tls."),
        known::<raw::Upstream>("upstreams.docs."),
        known::<raw::Queue>("upstreams.docs.queue."),
        known::<raw::Health>("upstreams.docs.health."),
        known::<raw::UpstreamTls>("upstreams.docs.tls."),
        known::<raw::Route>("routes."),
        known::<raw::Claim>("routes.claim."),
        known::<raw::Probe>("routes.probe."),
        known::<raw::Lease>("routes.lease."),
    ];
    for key in WITHOUT_DEFAULT {
        let name = key.rsplit('.').next().unwrap_or_default();
        assert!(REFERENCE.lines().any(|line| line.starts_with(&format!("# {name} = "))), "{key} is not shown");
    }
    let file = uncommented().parse::<toml::Table>().expect("the file is TOML");
    let mut shown = BTreeSet::new();
    keys(&toml::Value::Table(file), "", &mut shown);
    // The name of an upstream is not a key.
    shown.remove("upstreams.docs");
    shown.extend(WITHOUT_DEFAULT.map(str::to_owned));
    assert_eq!(shown, expected.into_iter().flatten().collect());
}

#[test]
fn names_the_range_of_every_number() {
    for limit in [
        limit::THREADS,
        limit::MAX_CLAIM_WAITERS,
        limit::CAPACITY,
        limit::WEIGHT,
        limit::MAX_CONNECTIONS,
        limit::QUEUE_MAX_WAITERS,
        limit::HEALTHY_AFTER,
        limit::UNHEALTHY_AFTER,
        limit::CLAIM_MAX_WAITERS,
        limit::LEASE_MAX_PER_PRINCIPAL,
        limit::LEASE_MAX_WAITERS,
    ] {
        names_range(&limit, |text| text.parse().ok());
    }
    let sizes = [
        limit::MAX_BODY_MEMORY,
        limit::MAX_BODY_MEMORY_TOTAL,
        limit::MAX_BODY_SIZE,
        limit::MAX_SPOOL_SIZE,
        limit::MAX_HASH_SIZE,
    ];
    for limit in sizes {
        names_range(&limit, units::size);
    }
    for limit in [
        limit::BODY_TIMEOUT,
        limit::KEEPALIVE_TIMEOUT,
        limit::SHUTDOWN_TIMEOUT,
        limit::HANDSHAKE_TIMEOUT,
        limit::RELOAD_INTERVAL,
        limit::IDLE_TTL,
        limit::STORE_TIMEOUT,
        limit::START_GRACE,
        limit::CONNECT_TIMEOUT,
        limit::UPSTREAM_TIMEOUT,
        limit::LATE_WRITE_WINDOW,
        limit::REUSE_IDLE_WRITES,
        limit::READ_TIMEOUT,
        limit::WRITE_TIMEOUT,
        limit::IDLE_TIMEOUT,
        limit::QUEUE_MAX_WAIT,
        limit::HEALTH_INTERVAL,
        limit::HEALTH_TIMEOUT,
        limit::HASH_WAIT,
        limit::IDENTITY_TTL,
        limit::CLAIM_MAX_WAIT,
        limit::PROBE_TIMEOUT,
        limit::IDEMPOTENCY_TTL,
        limit::LEASE_REMEMBER_TIME,
        limit::LEASE_DEFAULT,
        limit::LEASE_MIN,
        limit::LEASE_MAX,
        limit::LEASE_MAX_WAIT,
        limit::LEASE_MAX_HOLD_TIME,
    ] {
        names_range(&limit, units::duration);
    }
}

/// Checks that the comment above one of the lines that show the key contains `MIN to MAX`.
fn names_range<T: PartialEq + std::fmt::Debug>(limit: &Limit<T>, read: fn(&str) -> Option<T>) {
    // The keys of `lease` and `health` have their own lines. Other keys are shown in the line of their table.
    let in_table = ["lease.", "health."].iter().find_map(|table| limit.key.strip_prefix(table));
    let key = in_table.unwrap_or(limit.key.split('.').next().unwrap_or_default());
    let shown = [format!("#{key} = "), format!("# {key} = ")];
    let is_shown = |part: &&str| shown.iter().any(|shown| part.contains(shown));
    let comments = REFERENCE.split("\n\n").filter(is_shown).map(|part| part.replace("\n# ", " "));
    let ranges = comments.flat_map(|comment| {
        let words = comment.split_whitespace().map(|word| word.trim_matches(['"', ',', '.', ';', ':']).to_owned());
        let words = words.collect::<Vec<_>>();
        let ends =
            words.windows(3).filter(|window| window[1] == "to").map(|window| (read(&window[0]), read(&window[2])));
        ends.collect::<Vec<_>>()
    });
    let ranges = ranges.filter_map(|(min, max)| min.zip(max)).collect::<Vec<_>>();
    assert!(
        ranges.iter().any(|(min, max)| (min, max) == (&limit.min, &limit.max)),
        "{limit:?} is not among {ranges:?}"
    );
}

fn known<T: DeserializeOwned>(prefix: &str) -> BTreeSet<String> {
    field_names::<T>().iter().map(|name| format!("{prefix}{name}")).collect()
}

fn keys(value: &toml::Value, prefix: &str, found: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                found.insert(format!("{prefix}{key}"));
                keys(value, &format!("{prefix}{key}."), found);
            }
        }
        toml::Value::Array(list) => list.iter().for_each(|element| keys(element, prefix, found)),
        _ => {}
    }
}
