//! Current values, read from their owners when the metrics are collected, so that they cost requests nothing.

use std::{
    sync::{Arc, Weak},
    time::{SystemTime, UNIX_EPOCH},
};

use opentelemetry::{
    KeyValue,
    metrics::{AsyncInstrument, Meter},
};
use parking_lot::Mutex;

use super::{
    definitions::{self as define, Metric},
    requests::server_attributes,
};
use crate::{
    core::records::counts::Counts,
    telemetry::lines,
    tls::{CertificateExpiry, Downstream},
};

/// The state of one server, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// The name of the upstream.
    pub upstream: String,
    /// The `host:port` of the server.
    pub server: String,
    /// True if the server has active health checks.
    pub is_checked: bool,
    /// True if the checks failed, so that the server receives no requests.
    pub is_down: bool,
    /// True if a connection failed a moment ago, so that the server is tried after the others.
    pub comes_last: bool,
    /// The number of exchanges in flight with the server.
    pub in_use: usize,
    /// The number of requests that wait because the server has the maximum of exchanges.
    pub waiting: usize,
}

/// The state of the configuration, for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadState {
    /// The time at which the configuration in effect was loaded.
    pub loaded_at: SystemTime,
    /// True if a later reload was refused.
    pub is_refused_since: bool,
}

/// An owner of counted things.
pub trait Gauged: Send + Sync {
    /// Returns the number of requests that are being handled.
    fn active_requests(&self) -> u64 {
        0
    }

    /// Returns the name of a queue, and the number of requests that wait in it.
    fn waiters(&self) -> Option<(&'static str, u64)> {
        None
    }

    /// Returns the bytes of bodies in memory, and in spool files.
    fn body_bytes(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Returns the servers of all upstreams.
    fn servers(&self) -> Vec<ServerState> {
        Vec::new()
    }

    /// Returns the counts of the records in the store, if they are known.
    fn counts(&self) -> Option<Counts> {
        None
    }

    /// Returns the state of the configuration.
    fn load(&self) -> Option<LoadState> {
        None
    }

    /// Returns the certificates of the listeners.
    fn certificates(&self) -> Vec<CertificateExpiry> {
        Vec::new()
    }
}

impl Gauged for Downstream {
    fn certificates(&self) -> Vec<CertificateExpiry> {
        Self::certificates(self)
    }
}

/// The queues in which requests wait: for a claim, for a lease, or as reads for the end of writes.
const QUEUES: [&str; 3] = ["claim", "lease", "read"];

/// The owners, as long as they live.
static OWNERS: Mutex<Vec<Weak<dyn Gauged>>> = Mutex::new(Vec::new());

/// Adds an owner, whose values are read as long as it lives.
pub fn watch<T: Gauged + 'static>(owner: &Arc<T>) {
    let owner: Weak<dyn Gauged> = Arc::<T>::downgrade(owner);
    let mut owners = OWNERS.lock();
    owners.retain(|owner| owner.strong_count() > 0);
    owners.push(owner);
}

/// Returns a value from each owner.
fn each<T>(of: impl Fn(&dyn Gauged) -> T) -> Vec<T> {
    let owners = OWNERS.lock();
    owners.iter().filter_map(Weak::upgrade).map(|owner| of(owner.as_ref())).collect()
}

fn sum(of: impl Fn(&dyn Gauged) -> u64) -> u64 {
    each(of).into_iter().sum()
}

fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn loaded() -> Option<LoadState> {
    each(|owner| owner.load()).into_iter().flatten().next()
}

fn counted() -> Option<Counts> {
    each(|owner| owner.counts()).into_iter().flatten().next()
}

/// Creates the gauges.
pub(super) fn observe(meter: &Meter) {
    gauge(meter, &define::ACTIVE_REQUESTS, |gauge| gauge.observe(sum(|owner| owner.active_requests()), &[]));
    gauge(meter, &define::WAITERS, |gauge| {
        for queue in QUEUES {
            let waiters = sum(|owner| owner.waiters().map_or(0, |(name, count)| if name == queue { count } else { 0 }));
            gauge.observe(waiters, &[KeyValue::new(define::QUEUE, queue)]);
        }
    });
    gauge(meter, &define::BODY_BYTES, |gauge| {
        gauge.observe(sum(|owner| owner.body_bytes().0), &[KeyValue::new(define::PLACE, "memory")]);
        gauge.observe(sum(|owner| owner.body_bytes().1), &[KeyValue::new(define::PLACE, "spool")]);
    });
    gauge(meter, &define::UPSTREAM_UP, |gauge| observe_servers(gauge, |server| (!server.is_down).into()));
    gauge(meter, &define::UPSTREAM_ACTIVE, |gauge| observe_servers(gauge, |server| server.in_use as u64));
    gauge(meter, &define::UPSTREAM_WAITERS, |gauge| observe_servers(gauge, |server| server.waiting as u64));
    gauge_if_known(meter, &define::DOUBTS, || Some(counted()?.doubts));
    gauge_if_known(meter, &define::RECORDS, || Some(counted()?.records));
    gauge_if_known(meter, &define::RECORD_BYTES, || counted()?.bytes);
    gauge(meter, &define::LEASES, |gauge| {
        for (state, leases) in counted().iter().flat_map(Counts::leases) {
            gauge.observe(leases, &[KeyValue::new(define::LEASE_STATE, state)]);
        }
    });
    let started_at = unix_seconds(SystemTime::now());
    gauge(meter, &define::START_TIME, move |gauge| gauge.observe(started_at, &[]));
    gauge_if_known(meter, &define::RELOAD_SUCCESSFUL, || Some((!loaded()?.is_refused_since).into()));
    gauge_if_known(meter, &define::LOAD_TIME, || Some(unix_seconds(loaded()?.loaded_at)));
    gauge(meter, &define::CERTIFICATE_EXPIRY, |gauge| {
        for certificate in each(|owner| owner.certificates()).into_iter().flatten() {
            gauge.observe(certificate.expires_at, &[KeyValue::new(define::CERTIFICATE, certificate.file)]);
        }
    });
    let dropped = &define::LINES_DROPPED;
    let counter = meter.u64_observable_counter(dropped.name).with_unit(dropped.unit).with_description(dropped.about);
    counter.with_callback(|counter| counter.observe(lines::dropped(), &[])).build();
}

fn observe_servers(gauge: &dyn AsyncInstrument<u64>, of: impl Fn(&ServerState) -> u64) {
    for server in each(|owner| owner.servers()).iter().flatten() {
        let mut attributes = vec![KeyValue::new(define::UPSTREAM, server.upstream.clone())];
        attributes.extend(server_attributes(&server.server));
        gauge.observe(of(server), &attributes);
    }
}

/// Creates a gauge that has a value only while this is known.
fn gauge_if_known(meter: &Meter, metric: &Metric, read: impl Fn() -> Option<u64> + Send + Sync + 'static) {
    gauge(meter, metric, move |gauge| read().iter().for_each(|value| gauge.observe(*value, &[])));
}

fn gauge(meter: &Meter, metric: &Metric, read: impl Fn(&dyn AsyncInstrument<u64>) + Send + Sync + 'static) {
    let builder = meter.u64_observable_gauge(metric.name).with_unit(metric.unit).with_description(metric.about);
    builder.with_callback(read).build();
}
