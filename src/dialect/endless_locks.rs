//! The parts that dialects with locks without an end share.
//!
//! Their clients take each 409 for the lock of another client, and give up. They repeat a request after a 503.

use http::StatusCode;
use serde_json::{Map, Value};

use super::{
    ErrorDocument, native,
    settings::{Defaults, Demands, DialectFacts},
};
use crate::core::{
    cause::Reason,
    policy::AbsentLease,
    quirks::Quirks,
    refusal::{Code, Refusal},
};

/// The data of dialects whose locks have no end.
pub(super) static ENDLESS_LOCKS: DialectFacts = DialectFacts {
    quirks: Quirks { leases_have_paths: false, ..native::FACTS.quirks },
    defaults: Defaults {
        client_break: true,
        infinite: true,
        bind: true,
        absent: AbsentLease::Allow,
        append_methods: &[],
        ..native::FACTS.defaults
    },
    demands: Demands {
        leases: true,
        acquires_on_read: false,
        deletes_can_wait: false,
        has_endless_locks: true,
        ..native::FACTS.demands
    },
};

/// True if a refusal names an obstacle that passes by itself.
pub(super) fn is_passing(refusal: &Refusal) -> bool {
    let is_awaited = refusal.cause.as_ref().is_some_and(|cause| cause.reason == Some(Reason::LeaseAwaited));
    match refusal.code {
        Code::WriteInFlight | Code::IdempotencyInFlight | Code::DeletePending => true,
        Code::LeaseHeld => is_awaited,
        _ => false,
    }
}

/// Returns the problem document (RFC 9457) of a refusal with this status and these members. The members of the problem
/// itself go first: the text of a client cannot take their place.
pub(super) fn with_members(refusal: &Refusal, status: StatusCode, members: Map<String, Value>) -> ErrorDocument {
    let plain = native::problem(refusal);
    let body = joined(&plain.body, status, members).unwrap_or(plain.body);
    ErrorDocument { status, body, ..plain }
}

fn joined(problem: &str, status: StatusCode, others: Map<String, Value>) -> Option<String> {
    let mut members: Map<String, Value> = serde_json::from_str(problem).ok()?;
    members.insert("status".to_owned(), status.as_u16().into());
    for (name, value) in others {
        members.entry(name).or_insert(value);
    }
    serde_json::to_string(&members).ok()
}
