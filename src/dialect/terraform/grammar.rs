//! The grammar of the dialect: its differences from plain HTTP.

use http::{Method, StatusCode};

use super::{
    error, lock_request, refusals,
    request::{LockRequest, take_id},
};
use crate::{
    core::{
        lease::{Denied, UseDenied},
        policy::{GuardRules, StoreMethod},
        quirks::{Quirks, ServiceKind},
        refusal::Refusal,
    },
    dialect::{
        Call, Defaults, Demands, DialectFacts, ErrorDocument, ForwardedHead, Grammar, Incoming, Intent,
        endless_locks::ENDLESS_LOCKS, native,
    },
};

const NO_DURATION: &str = "its clients name no duration, and hold a lock until they give it up";
const NO_WAIT: &str = "its clients repeat a request for a lock (-lock-timeout), and never wait in line";

static FACTS: DialectFacts = DialectFacts {
    quirks: Quirks { service: ServiceKind::Terraform, ..ENDLESS_LOCKS.quirks },
    defaults: Defaults { store_method: StoreMethod::Put, ..ENDLESS_LOCKS.defaults },
    demands: Demands {
        idle_lease_keys: &[
            ("prefix", "a state is locked by LOCK on its own URL"),
            ("default", NO_DURATION),
            ("min", NO_DURATION),
            ("max", NO_DURATION),
            ("max_hold_time", NO_DURATION),
            ("shared", "its clients know only exclusive locks"),
            ("max_wait", NO_WAIT),
            ("max_waiters", NO_WAIT),
            ("linger", "no stream holds a lock"),
        ],
        ..ENDLESS_LOCKS.demands
    },
};

/// The dialect of Terraform's `http` backend.
#[derive(Debug)]
pub struct Terraform;

impl Grammar for Terraform {
    fn facts(&self) -> &'static DialectFacts {
        &FACTS
    }

    fn read(&self, request: Incoming<'_>, rules: &GuardRules, is_lease: bool) -> Result<Call, Refusal> {
        let call = Call { lease_id: None, ..native::call(request, rules, is_lease)? };
        if let Some(LockRequest { verb, target, .. }) = lock_request(request, rules)? {
            let forwarded = Some(forwarded(request, request.method, target));
            return Ok(Call { intent: Intent::Lease, operation: Some(verb.word()), forwarded, ..call });
        }
        if !matches!(call.intent, Intent::Write | Intent::Append) {
            return Ok(call);
        }
        let (lease_id, target) = take_id(request.target)?;
        let becomes_put = rules.store_method == StoreMethod::Put
            && *request.method == Method::POST
            && request.other_methods.is_empty();
        let method = if becomes_put { &Method::PUT } else { request.method };
        let differs = becomes_put || target != request.target;
        let forwarded = differs.then(|| forwarded(request, method, target));
        // A state is replaced as a whole: no write of it runs beside others.
        Ok(Call { intent: Intent::Write, lease_id, forwarded, ..call })
    }

    fn lease_denied(&self, denied: Denied) -> Refusal {
        refusals::refuse(&denied)
    }

    fn use_denied(&self, denied: UseDenied) -> Refusal {
        refusals::refuse_use(denied)
    }

    fn lease_field(&self) -> &'static str {
        "?ID="
    }

    fn refusal(&self, _request: Incoming<'_>, refusal: &Refusal) -> ErrorDocument {
        error::document(refusal)
    }
}

fn forwarded(request: Incoming<'_>, method: &Method, target: Vec<u8>) -> ForwardedHead {
    ForwardedHead { method: method.clone(), target, fields: request.headers.clone() }
}

/// Returns the status that tells a client of a write. For a DELETE it accepts 200 alone.
pub fn told_status(status: StatusCode) -> StatusCode {
    // These do not tell that the whole write was done.
    let is_open = matches!(status, StatusCode::ACCEPTED | StatusCode::MULTI_STATUS);
    if status.is_success() && !is_open { StatusCode::OK } else { status }
}
