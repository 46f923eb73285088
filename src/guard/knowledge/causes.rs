//! The causes of refusals that this process knows: the last changes of resources, and the reasons why reads got no tag.
//!
//! # Design
//!
//! *What do these memories cost a request that passes?* An applied write enters its change, and a read enters something
//! only if it gets no tag. A read with a tag only looks whether an earlier one got none.
//!
//! *Can a change be out of date?* It carries the version that it made. A refusal names it only if the record still has
//! that version, so a later write through any proxy hides it.

use std::sync::Arc;

use http::StatusCode;
use parking_lot::Mutex;

use super::{
    Knowledge,
    digest_cache::{DigestCache, of_entries},
    principal::Principal,
    warn_once::{Unsuited, WarnOnce},
};
use crate::{
    core::{
        cause::{LastChange, LeaseInTheWay, Reason, Untagged},
        policy::ProbeAuth,
        records::{
            record::{Revision, Snapshot, VariantName},
            tree_leases::LeaseReach,
        },
        refusal::{Code, Refusal},
        resource::KeyDigest,
        time::StoreTime,
        verdict::{changing, untagged},
    },
    guard::request::Request,
    telemetry::{metrics, stream_info},
};

/// The number of resources in each memory. The one that was used longest ago is dropped.
const RESOURCES_MAX: u64 = 10_000;

/// The memories that only refusals read.
pub(crate) struct Causes {
    /// Replaced in place, because an insertion costs three times as much as a look-up.
    changes: DigestCache<KeyDigest, Arc<Mutex<AppliedChange>>>,
    /// By variant, which names the principal: only the client that got the response learns of it.
    untagged: DigestCache<VariantName, Untagged>,
    warnings: WarnOnce,
}

struct AppliedChange {
    version: Revision,
    writer: Principal,
    at: StoreTime,
    trace_id: Option<Box<str>>,
}

impl Causes {
    /// Starts with empty memories.
    pub(crate) fn new() -> Self {
        Self { changes: of_entries(RESOURCES_MAX), untagged: of_entries(RESOURCES_MAX), warnings: WarnOnce::default() }
    }

    /// Returns the last change of a resource, for a client that has last read this version. `None` unless the record
    /// has the version of that change.
    fn last_change(
        &self,
        key: KeyDigest,
        snapshot: &Snapshot,
        (client, last_read): (Principal, Option<Revision>),
    ) -> Option<LastChange> {
        let known = self.changes.get(&key)?;
        let change = known.lock();
        let is_last = change.version == snapshot.version();
        let is_unread = change.writer != client && last_read.is_some_and(|read| read < change.version);
        is_last.then(|| LastChange { age: change.at.until(snapshot.now), trace_id: change.trace_id.clone(), is_unread })
    }

    /// Notes the last change of a resource.
    fn changed(&self, key: KeyDigest, change: AppliedChange) {
        match self.changes.get(&key) {
            Some(known) => *known.lock() = change,
            None => self.changes.insert(key, Arc::new(Mutex::new(change))),
        }
    }
}

impl Knowledge {
    /// Notes that a write was applied, and left this record.
    pub(crate) fn was_changed(&self, request: &Request, settled: &Snapshot) {
        let info = stream_info::current();
        if let Some(info) = &info {
            info.made_version(settled.version().0);
        }
        let trace_id = info.and_then(|info| info.trace_id()).map(Into::into);
        let writer = request.sender.principal;
        let change = AppliedChange { version: settled.version(), writer, at: settled.now, trace_id };
        self.causes.changed(request.key.digest(), change);
    }

    /// Notes that the resource has a tag for this client.
    pub(crate) fn is_tagged(&self, request: &Request) {
        if self.causes.untagged.contains_key(&request.variant()) {
            self.causes.untagged.invalidate(&request.variant());
        }
    }

    /// Logs once that the body of a response was not read to its end.
    pub(crate) fn was_relayed(&self, request: &Request, why: Untagged) {
        self.causes.warnings.tell_of_read(request.route(), request.rules(), why);
    }

    /// Notes that a write has left the resource without a tag, and logs it once.
    pub(crate) fn was_left_untagged(&self, request: &Request, why: Untagged) {
        self.causes.warnings.tell_of_write(request.route(), request.rules(), why);
        self.causes.untagged.insert(request.variant(), why);
    }

    /// Notes and counts a read that got no tag.
    pub(crate) fn was_untagged(&self, request: &Request, why: Untagged) {
        self.causes.untagged.insert(request.variant(), why);
        if let Some(info) = stream_info::current() {
            info.got_no_tag(why);
        }
        if let Some(metrics) = metrics::get() {
            metrics.untagged(&request.route().name, why.word());
        }
    }

    /// Logs once that a request has shown that the backend and the route do not suit each other.
    pub(crate) fn is_unsuited(&self, request: &Request, why: Unsuited) {
        self.causes.warnings.tell_of_backend(request.route(), why);
    }

    /// Logs once that a request on a route may change more than its path names.
    pub(crate) fn is_unclaimed(&self, request: &Request) {
        self.causes.warnings.tell_of_batch(request.route(), request.rules(), request.head.raw_path());
    }

    /// Adds the known cause to the refusal of a precondition.
    pub(crate) fn explain(&self, request: &Request, snapshot: &Snapshot, mut refusal: Refusal) -> Refusal {
        match refusal.code {
            Code::PreconditionFailed => {
                if refusal.cause_mut().reason == Some(Reason::BackendTagWeak) {
                    self.is_unsuited(request, Unsuited::WeakTags);
                }
                let principal = request.sender.principal;
                let client = (principal, self.read_grants.last_read(&request.key, principal));
                refusal.cause_mut().last_change = self.causes.last_change(request.key.digest(), snapshot, client);
                if self.changes_each_time(request, snapshot) {
                    refusal = changing(refusal);
                }
            }
            Code::PreconditionRequired | Code::ValidatorUnavailable => {
                if let Some(why) = self.causes.untagged.get(&request.variant()) {
                    refusal = untagged(refusal, why);
                }
            }
            _ => {}
        }
        let cause = refusal.cause_mut();
        cause.client_may_know = cause.client_may_know || self.may_know(request, snapshot);
        refusal
    }

    /// Like [`explain`](Self::explain), if a probe that was answered with this status decided.
    pub(crate) fn explain_probed(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        refusal: Refusal,
        status: Option<StatusCode>,
    ) -> Refusal {
        let mut refusal = self.explain(request, snapshot, refusal);
        let cause = refusal.cause_mut();
        cause.probe_status = status.map(|status| status.as_u16());
        // A probe with other credentials shows a state that may not be the client's.
        cause.client_may_know &= request.rules().probe_auth == ProbeAuth::Client;
        refusal
    }

    /// Adds to a refusal the lease that is in the way.
    pub(crate) fn explain_lease(&self, request: &Request, snapshot: &Snapshot, mut refusal: Refusal) -> Refusal {
        let cause = refusal.cause_mut();
        cause.lease = LeaseInTheWay::of(snapshot);
        if !snapshot.lease_state().is_held() {
            let around = snapshot.held_around(LeaseReach::Tree).next();
            cause.leased_elsewhere = around.and_then(|around| request.path_of(&around.root)).map(Into::into);
        }
        cause.client_may_know = self.may_know(request, snapshot);
        refusal
    }

    /// True if the upstream can be asked for the rights of the sender of a request, and has to be. The holder of a lease
    /// needs no other proof.
    pub(crate) fn is_stranger(&self, request: &Request, snapshot: &Snapshot) -> bool {
        !self.may_know(request, snapshot) && !request.proves_lease(snapshot) && request.can_lend_credentials()
    }

    /// True if the sender of a request may know the state of the resource.
    pub(crate) fn may_know(&self, request: &Request, snapshot: &Snapshot) -> bool {
        self.read_grants.may_know(&request.key, request.sender.principal, snapshot.now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        core::{policy::GuardRules, records::record::Record, resource::ResourceKey},
        guard::knowledge::principal::Presented,
        testing::guard,
    };

    /// A client by its credentials.
    fn principal(name: &'static str) -> Principal {
        let headers = http::HeaderMap::from_iter([(http::header::AUTHORIZATION, http::HeaderValue::from_static(name))]);
        let rules = GuardRules { identity_headers: vec![http::header::AUTHORIZATION], ..guard() };
        Principal::of(Presented { headers: &headers, query: None, certificate: None }, &rules)
    }

    #[test]
    fn a_change_is_told_until_the_record_has_another_version() {
        let (causes, key) = (Causes::new(), ResourceKey::from_text("a").digest());
        let (ann, bob) = (principal("ann"), principal("bob"));
        let at = |version, now| {
            let record = Record::absent(Revision(version));
            Snapshot::new(Revision(version), record, StoreTime::default().plus(Duration::from_secs(now)))
        };
        let told = |version, now, client| causes.last_change(key, &at(version, now), client);
        assert_eq!(told(7, 30, (bob, None)), None);
        let trace_id = Some("77".into());
        let change = AppliedChange { version: Revision(7), writer: ann, at: at(7, 10).now, trace_id: trace_id.clone() };
        causes.changed(key, change);
        let expected = LastChange { age: Duration::from_secs(20), trace_id, is_unread: false };
        assert_eq!(told(7, 30, (bob, None)), Some(expected.clone()), "what Bob has read is forgotten");
        assert_eq!(told(7, 30, (bob, Some(Revision(7)))), Some(expected.clone()));
        assert_eq!(told(7, 30, (ann, Some(Revision(6)))), Some(expected.clone()), "it is Ann's own change");
        assert_eq!(told(7, 30, (bob, Some(Revision(6)))), Some(LastChange { is_unread: true, ..expected }));
        assert_eq!(told(8, 30, (bob, None)), None);
        causes.changed(key, AppliedChange { version: Revision(8), writer: ann, at: at(8, 30).now, trace_id: None });
        assert_eq!(told(7, 30, (bob, None)), None);
        let expected = LastChange { age: Duration::ZERO, trace_id: None, is_unread: false };
        assert_eq!(told(8, 30, (bob, None)), Some(expected));
    }
}
