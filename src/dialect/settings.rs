//! The part of a route's configuration that depends on its dialect, as data.

use std::time::Duration;

use http::Method;

use crate::core::{
    policy::{AbsentLease, StoreMethod},
    quirks::Quirks,
};

/// The data of a dialect.
#[derive(Clone, Copy, Debug)]
pub struct DialectFacts {
    /// The differences from plain HTTP that count when a request is judged.
    pub quirks: Quirks,
    /// The defaults of routes in the dialect.
    pub defaults: Defaults,
    /// The demands on routes in the dialect.
    pub demands: Demands,
}

/// The configuration defaults that depend on the dialect.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is the default of a separate switch")]
pub struct Defaults {
    /// `unique_tags`.
    pub unique_tags: bool,
    /// True if `on_write` is `"probe"` for each source of tags.
    pub probes_after_write: bool,
    /// True if `etag_after_write` is `"always"` for version tags.
    pub version_after_write: bool,
    /// `lease.client_break`.
    pub client_break: bool,
    /// `lease.infinite`.
    pub infinite: bool,
    /// `lease.bind`.
    pub bind: bool,
    /// `lease.absent`.
    pub absent: AbsentLease,
    /// `append_methods`.
    pub append_methods: &'static [Method],
    /// `store_method`.
    pub store_method: StoreMethod,
    /// The times of leases.
    pub lease_times: LeaseTimes,
}

/// The default times of leases.
#[derive(Clone, Copy, Debug)]
pub struct LeaseTimes {
    /// `lease.min`.
    pub min: Duration,
    /// `lease.default`.
    pub default: Duration,
    /// `lease.max`.
    pub max: Duration,
    /// `lease.max_hold_time`.
    pub max_hold_time: Duration,
}

/// The demands of a dialect on the configuration of a route.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a demand of its own")]
pub struct Demands {
    /// True if the policy must be `"pessimistic"`.
    pub leases: bool,
    /// True if the proxy makes all requests to the upstream itself, with the conditions that they need. The policy must be
    /// `"optimistic"`.
    pub makes_own_requests: bool,
    /// True if clients sign requests, so that the proxy can neither change them nor probe with their credentials.
    pub signed_requests: bool,
    /// The keys of the route that have no effect.
    pub idle_keys: &'static [&'static str],
    /// The keys of the lease table that have no effect, each with the reason.
    pub idle_lease_keys: &'static [(&'static str, &'static str)],
    /// The shortest and the longest finite lease.
    pub lease_durations: Option<(Duration, Duration)>,
    /// True if a read can acquire a lease.
    pub acquires_on_read: bool,
    /// True if a DELETE can wait until no client holds a lease.
    pub deletes_can_wait: bool,
    /// True if its leases are locks without an end, and keep others from writing alone.
    pub has_endless_locks: bool,
}
