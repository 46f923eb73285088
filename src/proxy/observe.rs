//! Routes that only watch (`observe = true`): the policy's verdict is counted beside the exchange, and so are the updates
//! that get lost (DESIGN, section 5).
//!
//! Nothing here waits, buffers, asks the upstream or touches the store. Clients of such a route hold the upstream's own
//! tags, with any `etag`, so they are judged by the last tag that passed.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use moka::sync::Cache;
use parking_lot::Mutex;
use pingora::http::RequestHeader;

use crate::{
    config::Route,
    core::{
        http::client_address::ClientAddress,
        lost_updates::{LostUpdate, SightedName, Sightings, WriteBasis, WriteMoment},
        policy::{Compare, GuardRules, MethodClass},
        refusal::Code,
        resource::ResourceKey,
        tags::{
            entity_tag::EntityTag,
            parts_hash::PartsHasher,
            precondition::{MatchRule, Preconditions},
            validators::{Representation, Validators},
        },
        verdict::{Verdict, judge_write},
    },
    guard::{Principal, WarnOnce},
    routing::GuardedRequest,
    telemetry::{Decision, metrics},
};

/// The number of resources watched at once. The one seen longest ago is dropped.
const RESOURCES_MAX: u64 = 100_000;

/// The observations of the traffic on watching routes.
#[derive(Debug)]
pub(super) struct Observer {
    resources: Cache<ResourceKey, Arc<ObservedResource>>,
    counts: Arc<ObservedCounts>,
    warnings: WarnOnce,
}

/// The number of times that each route would have given each verdict, and has lost an update in each way.
#[derive(Debug, Default)]
struct ObservedCounts(Mutex<BTreeMap<(String, &'static str), u64>>);

/// The observations of one resource.
#[derive(Debug, Default)]
struct ObservedResource {
    writes_in_flight: AtomicU64,
    /// The number of beginnings and ends of writes.
    events: AtomicU64,
    /// The validators of the last response to a GET, and the number of events when the GET began.
    last: Mutex<Option<(u64, Validators)>>,
    sightings: Mutex<Sightings>,
}

/// One request on an observed route, until it is dropped.
#[derive(Debug)]
pub(super) struct Observation {
    seen: Arc<ObservedResource>,
    client: SightedName,
    /// The write that has not ended.
    write: Option<ObservedWrite>,
    is_read: bool,
    /// The number of events when a GET began. No other request tells the validators of the resource.
    reads_at: Option<u64>,
}

/// A write on an observed route.
#[derive(Debug)]
struct ObservedWrite {
    counts: Arc<ObservedCounts>,
    request: GuardedRequest,
    class: MethodClass,
    began: WriteMoment,
    basis: WriteBasis,
}

impl Default for Observer {
    fn default() -> Self {
        Self { resources: Cache::new(RESOURCES_MAX), counts: Arc::default(), warnings: WarnOnce::default() }
    }
}

impl Observer {
    /// Observes a request of a client, and counts and logs the verdict on it.
    pub(super) fn begin(
        &self,
        guard: &GuardRules,
        request: GuardedRequest,
        head: &RequestHeader,
        client: SightedName,
    ) -> Observation {
        let seen = self.resources.get_with_by_ref(&request.key, Arc::default);
        let method = &request.methods.judged;
        let class = guard.class_of(method);
        let is_write = matches!(class, MethodClass::Write | MethodClass::UnclaimedWrite | MethodClass::TwoResources);
        let mut events = seen.events.load(Ordering::SeqCst);
        if class == MethodClass::UnclaimedWrite {
            self.warnings.tell_of_batch(&request.route, guard, head.raw_path());
        }
        let reads_at = *method == Method::GET;
        let mut write = None;
        if is_write {
            let others = seen.writes_in_flight.fetch_add(1, Ordering::SeqCst);
            let conditions = Preconditions::parse(&head.headers);
            let verdict = verdict(guard, method, conditions.as_ref().ok(), others, &seen.current(events));
            self.counts.verdict(&request.route, method, Some(&request.key), verdict);
            events = seen.events.fetch_add(1, Ordering::SeqCst) + 1;
            let basis = conditions.map_or(WriteBasis::Untold, |conditions| WriteBasis::of(&conditions));
            let began = seen.sightings.lock().begin_write();
            write = Some(ObservedWrite { counts: Arc::clone(&self.counts), request, class, began, basis });
        }
        let reads_at = reads_at.then_some(events);
        Observation { seen, client, write, is_read: class == MethodClass::Read, reads_at }
    }

    /// Counts and logs the verdict on a request that the door would have refused.
    pub(super) fn refused(&self, route: &Route, method: &Method, code: Code) {
        self.counts.verdict(route, method, None, Decision::Refused(code));
    }
}

impl ObservedCounts {
    fn add(&self, route: &Route, word: &'static str) -> u64 {
        let mut counts = self.0.lock();
        let count = counts.entry((route.name.clone(), word)).or_default();
        *count += 1;
        *count
    }

    fn verdict(&self, route: &Route, method: &Method, key: Option<&ResourceKey>, verdict: Decision) {
        if let Some(metrics) = metrics::get() {
            metrics.observed(&route.name, verdict);
        }
        let (would, count) = (verdict.word(), self.add(route, verdict.word()));
        let key = key.map(tracing::field::display);
        tracing::info!(target: "ifmatch::observe", route = %route.name, %method, would, count, key);
    }

    fn lost(&self, request: &GuardedRequest, lost: LostUpdate) {
        let route = &request.route;
        if let Some(metrics) = metrics::get() {
            metrics.lost_update(&route.name, lost);
        }
        let (word, count) = (lost.word(), self.add(route, lost.word()));
        tracing::info!(
            target: "ifmatch::observe", route = %route.name, method = %request.methods.judged, lost = word, count,
            key = %request.key
        );
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
        if status.is_informational() {
            return;
        }
        let (validators, _) = Validators::from_headers(headers);
        if let Some(write) = self.end_write().filter(|_| status.is_success()) {
            write.applied(&self.seen, self.client, validators.tag.as_ref());
        }
        if self.is_read && (status.is_success() || status == StatusCode::NOT_MODIFIED) {
            self.seen.sightings.lock().shown(self.client, validators.tag.as_ref());
        }
        if let (Some(at), StatusCode::OK) = (self.reads_at, status) {
            *self.seen.last.lock() = Some((at, validators));
        }
    }

    /// Ends a write, once.
    fn end_write(&mut self) -> Option<ObservedWrite> {
        let write = self.write.take()?;
        self.seen.events.fetch_add(1, Ordering::SeqCst);
        self.seen.writes_in_flight.fetch_sub(1, Ordering::SeqCst);
        Some(write)
    }
}

impl ObservedWrite {
    /// Notes that the write was applied, and counts the update that it replaced unread.
    fn applied(&self, seen: &ObservedResource, client: SightedName, tag: Option<&EntityTag>) {
        let basis = match self.class {
            MethodClass::Write => &self.basis,
            // A write that only adds replaces nothing.
            MethodClass::UnclaimedWrite => &WriteBasis::Untold,
            // A COPY leaves its source as it is.
            _ => return,
        };
        let lost = seen.sightings.lock().applied(client, self.began, basis, tag);
        if let Some(lost) = lost {
            self.counts.lost(&self.request, lost);
        }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.end_write();
    }
}

/// Returns the name of a client: its credentials, or else its address and its program. Cookies that the route does not
/// name are no part of it, since a page may change them between a read and a write.
pub(super) fn client_name(principal: Principal, address: ClientAddress, headers: &HeaderMap) -> SightedName {
    if let Some(name) = principal.declared() {
        return name;
    }
    let address = format!("{address:?}");
    let program = headers.get(header::USER_AGENT).map_or(&b""[..], HeaderValue::as_bytes);
    PartsHasher::default().add(address.as_bytes()).add(program).half()
}

/// Returns the verdict on a write. It is unknown if the guard would have asked the upstream.
fn verdict(
    guard: &GuardRules,
    method: &Method,
    conditions: Option<&Preconditions>,
    other_writes: u64,
    current: &Representation,
) -> Decision {
    let Some(conditions) = conditions else { return Decision::Refused(Code::MalformedPrecondition) };
    let rule = if guard.compare == Compare::Opaque { MatchRule::Opaque } else { MatchRule::Strong };
    match judge_write(guard, method, conditions, current, rule) {
        Verdict::Refused(refusal) => Decision::Refused(refusal.code),
        // The write would have waited for the others, and then been judged by their result.
        _ if other_writes > 0 && guard.class_of(method) == MethodClass::Write => Decision::Refused(Code::WriteInFlight),
        Verdict::Missing | Verdict::AskUpstream => Decision::Unknown,
        Verdict::Pass => Decision::Passed,
    }
}
