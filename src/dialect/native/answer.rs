//! The answers to lease operations, and the refusals of leases.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::{super::Response, FENCING_TOKEN, LEASE_DURATION, LEASE_HOLDER, LEASE_ID, LEASE_STATE, LEASE_TIME};
use crate::core::{
    http::preferences::PREFERENCE_APPLIED,
    lease::{Denied, Done, LeaseDuration, LeaseId, PublicLease, UseDenied, rounded_up},
    records::record::Snapshot,
    refusal::{Code, Refusal},
};

/// When to retry while a lease without an end is held.
const RETRY_INFINITE: Duration = Duration::from_secs(60);

/// The room for the fields of the longest response, that to an acquisition.
const FIELDS: usize = 6;

/// Returns the response to an operation that succeeded. `snapshot` is the record after it.
pub fn done(done: Done, snapshot: &Snapshot, waited: bool) -> Response {
    let mut fields = HeaderMap::with_capacity(FIELDS);
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let status = match done {
        Done::Acquired { id, duration, .. } => {
            fields.extend(grant_fields(id, duration, snapshot));
            StatusCode::CREATED
        }
        Done::Renewed { duration } => {
            fields.insert(LEASE_DURATION, duration_value(duration));
            fields.insert(FENCING_TOKEN, HeaderValue::from(snapshot.fence().0));
            StatusCode::OK
        }
        Done::Changed { id } => {
            fields.insert(LEASE_ID, id_value(id));
            StatusCode::OK
        }
        Done::DeleteWithdrawn | Done::Released | Done::AlreadyReleased => StatusCode::NO_CONTENT,
        Done::Broken { remaining } => {
            fields.insert(LEASE_TIME, HeaderValue::from(rounded_up(remaining)));
            StatusCode::ACCEPTED
        }
    };
    if waited {
        fields.extend([applied_wait()]);
    }
    Response { status, fields, body: None }
}

/// Returns the field that tells a client that its preference to wait was applied.
pub fn applied_wait() -> (HeaderName, HeaderValue) {
    (PREFERENCE_APPLIED, HeaderValue::from_static("wait"))
}

/// Returns the fields that tell a client of its grant.
pub fn grant_fields(id: LeaseId, duration: LeaseDuration, snapshot: &Snapshot) -> [(HeaderName, HeaderValue); 3] {
    [
        (LEASE_ID, id_value(id)),
        (LEASE_DURATION, duration_value(duration)),
        (FENCING_TOKEN, HeaderValue::from(snapshot.fence().0)),
    ]
}

fn duration_value(duration: LeaseDuration) -> HeaderValue {
    match duration {
        LeaseDuration::Infinite => HeaderValue::from_static("infinite"),
        // Rounded down: a holder that counts on less time than it has is safe.
        LeaseDuration::Fixed(duration) => HeaderValue::from(duration.as_secs()),
    }
}

pub(in crate::dialect) fn id_value(id: LeaseId) -> HeaderValue {
    let mut value = HeaderValue::try_from(id.reveal()).unwrap_or(HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

/// Returns the answer to `GET`: of several leases, the one that lasts longest.
pub fn show(snapshot: &Snapshot) -> Response {
    let mut fields = HeaderMap::new();
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Serialising words and numbers cannot fail.
    let body = serde_json::to_string(&PublicLease::of(snapshot)).unwrap_or_default();
    Response { status: StatusCode::OK, fields, body: Some(body) }
}

/// Returns the fields by which a read of the resource tells the state of its lease.
pub fn state_fields(snapshot: &Snapshot) -> HeaderMap {
    let state = snapshot.lease_state();
    let holder = snapshot.lease().filter(|_| state.is_held()).and_then(|lease| lease.holder.as_ref());
    let mut fields = HeaderMap::from_iter([(LEASE_STATE, HeaderValue::from_static(state.word()))]);
    fields.extend(holder.and_then(|holder| Some((LEASE_HOLDER, HeaderValue::from_str(&holder.to_field()).ok()?))));
    fields
}

/// Returns the refusal of an operation.
pub fn refuse(denied: Denied) -> Refusal {
    match denied {
        Denied::Held { remaining, holder, .. } => {
            let detail = "another client holds the lease; retry after retry_after, or wait with Prefer: wait=N";
            let refusal = Refusal::new(Code::LeaseHeld, detail).retry_after(remaining.unwrap_or(RETRY_INFINITE));
            match holder {
                Some(holder) => refusal.held_by(holder.as_str()),
                None => refusal,
            }
        }
        Denied::NoPlace { remaining } => {
            let detail = "no further client can share the lease now: a client waits for the exclusive lease, or as \
                          many clients as possible share it; retry after retry_after, or wait with Prefer: wait=N";
            Refusal::new(Code::LeaseHeld, detail).retry_after(remaining.unwrap_or(RETRY_INFINITE))
        }
        Denied::IdMismatch => {
            Refusal::new(Code::LeaseIdMismatch, "the lease has another id, or belongs to another client")
        }
        Denied::NotPresent => Refusal::new(
            Code::LeaseNotPresent,
            "no lease has this id; if it was yours, it has ended, and others may have written since: acquire a new lease \
             with POST, and read the resource again before you write",
        ),
        Denied::Breaking => {
            Refusal::new(Code::LeaseBreaking, "the lease is being broken: finish and release it, then acquire it anew")
        }
        Denied::Broken => Refusal::new(Code::LeaseBroken, "the lease was broken; acquire it anew with POST"),
        Denied::BeyondHoldMax => Refusal::new(
            Code::LeaseHoldMax,
            "the lease was held for as long as this route allows: release it, so that other clients get a turn",
        ),
        Denied::DeletePending => Refusal::new(
            Code::DeletePending,
            "the resource is deleted as soon as the last client gives its lease up: until then, no other gets the lease",
        )
        .retry_after(Duration::from_secs(1)),
        Denied::Busy(_) => {
            let detail = "a write is in flight or in doubt, and the lease can be granted only after it; retry later";
            Refusal::new(Code::WriteInFlight, detail).retry_after(Duration::from_secs(1))
        }
    }
}

/// Returns the refusal of a read or write that a lease forbids.
pub fn refuse_use(denied: UseDenied) -> Refusal {
    match denied {
        UseDenied::IdMissing => Refusal::new(
            Code::LeaseIdMissing,
            "the resource is leased: send the Lease-Id of the lease, or come back later",
        ),
        UseDenied::LeaseRequired => {
            Refusal::new(Code::LeaseIdMissing, "acquire a lease of the resource first, and send its Lease-Id")
        }
        UseDenied::IdMismatch => {
            Refusal::new(Code::LeaseIdMismatchOnUse, "another client holds the lease of the resource")
        }
        UseDenied::BeyondAccess => Refusal::new(
            Code::LeaseAccess,
            "the lease was acquired for other uses than this one: acquire it again with its Lease-Id, Lease-Mode: shared, \
             and a Lease-Access that names the use",
        ),
        UseDenied::NotPresent => Refusal::new(
            Code::LeaseNotPresentOnUse,
            "no lease has this id; if it was yours, it has ended, and others may have written since: acquire a new \
             lease, and read the resource again before you write",
        ),
        UseDenied::DeletePending => Refusal::new(
            Code::DeletePending,
            "the resource is deleted as soon as no client holds its lease: until then, only those clients can use it",
        )
        .retry_after(Duration::from_secs(1)),
        UseDenied::Lost => Refusal::new(
            Code::LeaseLost,
            "the lease has ended: acquire it anew, and read the resource before you write, as others may have written",
        ),
    }
}
