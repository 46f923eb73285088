//! What is there now: read off its owners when somebody asks for the metrics, so that it costs requests nothing.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use opentelemetry::{
    KeyValue,
    metrics::{AsyncInstrument, Meter},
};

use super::{
    definitions::{self as define, Metric},
    requests::server_attributes,
};
use crate::{core::counts::Counts, telemetry::lines};

/// One server as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// The name of its upstream.
    pub upstream: String,
    /// `host:port`.
    pub server: String,
    /// Whether it is checked at all.
    pub is_checked: bool,
    /// Whether its checks failed, so that it gets no requests.
    pub is_down: bool,
    /// Whether it could not be connected to a moment ago, so that it comes after the others.
    pub comes_last: bool,
    /// Exchanges under way with it.
    pub in_use: usize,
    /// Requests that wait because there are as many as there may be.
    pub waiting: usize,
}

/// Whoever holds something that is counted.
pub trait Gauged: Send + Sync {
    /// Requests that are being handled.
    fn active_requests(&self) -> u64 {
        0
    }

    /// Requests that wait for a claim, and those that wait for a lease.
    fn waiters(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Bytes of bodies in memory, and in spool files.
    fn body_bytes(&self) -> (u64, u64) {
        (0, 0)
    }

    /// The servers of all upstreams.
    fn servers(&self) -> Vec<ServerState> {
        Vec::new()
    }

    /// The records of the store, if their number is known.
    fn counts(&self) -> Option<Counts> {
        None
    }
}

/// Who is asked, as long as they live.
static OWNERS: Mutex<Vec<Weak<dyn Gauged>>> = Mutex::new(Vec::new());

/// Asks this owner too from now on, as long as it lives.
pub fn watch<T: Gauged + 'static>(owner: &Arc<T>) {
    let owner: Weak<dyn Gauged> = Arc::<T>::downgrade(owner);
    let mut owners = OWNERS.lock().unwrap_or_else(PoisonError::into_inner);
    owners.retain(|owner| owner.strong_count() > 0);
    owners.push(owner);
}

/// What each owner says.
fn each<T>(of: impl Fn(&dyn Gauged) -> T) -> Vec<T> {
    let owners = OWNERS.lock().unwrap_or_else(PoisonError::into_inner);
    owners.iter().filter_map(Weak::upgrade).map(|owner| of(owner.as_ref())).collect()
}

fn sum(of: impl Fn(&dyn Gauged) -> u64) -> u64 {
    each(of).into_iter().sum()
}

fn counted() -> Option<Counts> {
    each(|owner| owner.counts()).into_iter().flatten().next()
}

/// Makes the gauges.
pub(super) fn observe(meter: &Meter) {
    gauge(meter, &define::ACTIVE_REQUESTS, |gauge| gauge.observe(sum(|owner| owner.active_requests()), &[]));
    gauge(meter, &define::WAITERS, |gauge| {
        gauge.observe(sum(|owner| owner.waiters().0), &[KeyValue::new(define::QUEUE, "claim")]);
        gauge.observe(sum(|owner| owner.waiters().1), &[KeyValue::new(define::QUEUE, "lease")]);
    });
    gauge(meter, &define::BODY_BYTES, |gauge| {
        gauge.observe(sum(|owner| owner.body_bytes().0), &[KeyValue::new(define::PLACE, "memory")]);
        gauge.observe(sum(|owner| owner.body_bytes().1), &[KeyValue::new(define::PLACE, "spool")]);
    });
    gauge(meter, &define::UPSTREAM_UP, |gauge| observe_servers(gauge, |server| (!server.is_down).into()));
    gauge(meter, &define::UPSTREAM_ACTIVE, |gauge| observe_servers(gauge, |server| server.in_use as u64));
    gauge(meter, &define::UPSTREAM_WAITERS, |gauge| observe_servers(gauge, |server| server.waiting as u64));
    gauge(meter, &define::DOUBTS, |gauge| {
        if let Some(counts) = counted() {
            gauge.observe(counts.doubts, &[]);
        }
    });
    gauge(meter, &define::RECORDS, |gauge| {
        if let Some(counts) = counted() {
            gauge.observe(counts.records, &[]);
        }
    });
    gauge(meter, &define::RECORD_BYTES, |gauge| {
        if let Some(bytes) = counted().and_then(|counts| counts.bytes) {
            gauge.observe(bytes, &[]);
        }
    });
    gauge(meter, &define::LEASES, |gauge| {
        if let Some(counts) = counted() {
            for (state, leases) in counts.leases() {
                gauge.observe(leases, &[KeyValue::new(define::LEASE_STATE, state)]);
            }
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

fn gauge(meter: &Meter, metric: &Metric, read: impl Fn(&dyn AsyncInstrument<u64>) + Send + Sync + 'static) {
    let builder = meter.u64_observable_gauge(metric.name).with_unit(metric.unit).with_description(metric.about);
    builder.with_callback(read).build();
}
