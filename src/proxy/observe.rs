//! Routes that only watch (`observe = true`): the policy's verdict is counted beside the exchange (DESIGN, section 5).
//!
//! Nothing here waits, buffers, asks the upstream or touches the store. Clients of such a route hold the upstream's
//! own tags, whatever `etag` says, so they are judged by the last tag that passed.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use http::{HeaderMap, Method, StatusCode};
use moka::sync::Cache;
use parking_lot::Mutex;

use crate::{
    config::Route,
    core::{
        policy::{Compare, GuardRules, MethodClass},
        refusal::Code,
        resource::ResourceKey,
        tags::{
            precondition::{MatchRule, Preconditions},
            validators::{Representation, Validators},
        },
        verdict::{Verdict, judge_write},
    },
    telemetry::{Decision, metrics},
};

/// The number of resources watched at once. The one seen longest ago is dropped.
const RESOURCES_MAX: u64 = 100_000;

/// The observations of the traffic on watching routes.
#[derive(Debug)]
pub(super) struct Observer {
    resources: Cache<ResourceKey, Arc<ObservedResource>>,
    /// The number of times that each route would have given each verdict.
    counts: Mutex<BTreeMap<(String, &'static str), u64>>,
}

/// The observations of one resource.
#[derive(Debug, Default)]
struct ObservedResource {
    writes_in_flight: AtomicU64,
    /// The number of beginnings and ends of writes.
    events: AtomicU64,
    /// The validators of the last response to a GET, and the number of events when the GET began.
    last: Mutex<Option<(u64, Validators)>>,
}

/// One request on an observed route, until it is dropped.
#[derive(Debug)]
pub(super) struct Observation {
    seen: Arc<ObservedResource>,
    /// Whether the request is a write that has not ended.
    writes: bool,
    /// The number of events when a GET began. No other request adds knowledge.
    reads_at: Option<u64>,
}

impl Default for Observer {
    fn default() -> Self {
        Self { resources: Cache::new(RESOURCES_MAX), counts: Mutex::default() }
    }
}

impl Observer {
    /// Observes a request, and counts and logs the verdict on it.
    pub(super) fn begin(
        &self,
        route: &Route,
        guard: &GuardRules,
        key: &ResourceKey,
        method: &Method,
        headers: &HeaderMap,
    ) -> Observation {
        let seen = self.resources.get_with_by_ref(key, Arc::default);
        let is_write = matches!(
            guard.class_of(method),
            MethodClass::Write | MethodClass::UnclaimedWrite | MethodClass::TwoResources
        );
        let mut events = seen.events.load(Ordering::SeqCst);
        if is_write {
            let others = seen.writes_in_flight.fetch_add(1, Ordering::SeqCst);
            self.record(route, method, verdict(guard, method, headers, others, &seen.current(events)));
            events = seen.events.fetch_add(1, Ordering::SeqCst) + 1;
        }
        Observation { seen, writes: is_write, reads_at: (*method == Method::GET).then_some(events) }
    }

    /// Counts and logs a verdict.
    pub(super) fn record(&self, route: &Route, method: &Method, verdict: Decision) {
        if let Some(metrics) = metrics::get() {
            metrics.observed(&route.name, verdict);
        }
        let mut counts = self.counts.lock();
        let count = counts.entry((route.name.clone(), verdict.word())).or_default();
        *count += 1;
        tracing::info!(target: "ifmatch::observe", route = %route.name, %method, would = verdict.word(), count = *count);
    }
}

impl ObservedResource {
    /// Returns the current representation, or `Unknown` if a write began or ended since it was seen.
    fn current(&self, events: u64) -> Representation {
        match &*self.last.lock() {
            Some((at, validators)) if *at == events => Representation::Present(validators.clone()),
            _ => Representation::Unknown,
        }
    }
}

impl Observation {
    /// Observes the head of a response before the client sees it: the client's next request comes after the end of its
    /// write.
    pub(super) fn response(&mut self, status: StatusCode, headers: &HeaderMap) {
        if !status.is_informational() {
            self.end_write();
        }
        if let (Some(at), StatusCode::OK) = (self.reads_at, status) {
            let (validators, _) = Validators::from_headers(headers);
            *self.seen.last.lock() = Some((at, validators));
        }
    }

    /// Ends a write, once.
    fn end_write(&mut self) {
        if std::mem::take(&mut self.writes) {
            self.seen.events.fetch_add(1, Ordering::SeqCst);
            self.seen.writes_in_flight.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.end_write();
    }
}

/// Returns the verdict on a write. It is unknown if the guard would have asked the upstream.
fn verdict(
    guard: &GuardRules,
    method: &Method,
    headers: &HeaderMap,
    other_writes: u64,
    current: &Representation,
) -> Decision {
    let Ok(conditions) = Preconditions::parse(headers) else { return Decision::Refused(Code::MalformedPrecondition) };
    let rule = if guard.compare == Compare::Opaque { MatchRule::Opaque } else { MatchRule::Strong };
    match judge_write(guard, method, &conditions, current, rule) {
        Verdict::Refused(refusal) => Decision::Refused(refusal.code),
        // The write would have waited for the others, and then been judged by their result.
        _ if other_writes > 0 && guard.class_of(method) == MethodClass::Write => Decision::Refused(Code::WriteInFlight),
        Verdict::Missing | Verdict::AskUpstream => Decision::Unknown,
        Verdict::Pass => Decision::Passed,
    }
}
