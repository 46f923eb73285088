//! The grammar of `WebDAV`: its facts, and its errors (RFC 4918 section 16).

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};

use super::{
    If, LOCK_TOKEN, LockDepth, StateToken, all_succeeded, depth,
    documents::error_of,
    fields::{MalformedField, lock_token},
};
use crate::{
    core::{
        lease::LeaseId,
        policy::{AbsentLease, GuardRules},
        quirks::{Quirks, ServiceKind},
        refusal::{Code, Refusal},
    },
    dialect::{
        Call, Defaults, Demands, DialectFacts, ErrorDocument, Grammar, Incoming, Intent, native, settings::LeaseTimes,
    },
};

const WAIT_REASON: &str = "no WebDAV client waits for a lock";

static FACTS: DialectFacts = DialectFacts {
    quirks: Quirks { leases_have_paths: false, has_locks: true, service: ServiceKind::WebDav, ..native::FACTS.quirks },
    defaults: Defaults {
        absent: AbsentLease::Allow,
        lease_times: LeaseTimes {
            min: Duration::from_secs(1),
            default: Duration::from_secs(600),
            max: Duration::from_secs(3600),
            max_hold_time: Duration::from_secs(7 * 24 * 3600),
        },
        ..native::FACTS.defaults
    },
    demands: Demands {
        leases: true,
        idle_lease_keys: &[
            ("prefix", "LOCK and UNLOCK go to the resource itself"),
            ("shared", "each client asks for an exclusive or a shared lock"),
            ("max_wait", WAIT_REASON),
            ("max_waiters", WAIT_REASON),
            ("linger", "no stream holds a lock"),
        ],
        acquires_on_read: false,
        deletes_can_wait: false,
        ..native::FACTS.demands
    },
};

/// The dialect of `WebDAV` clients.
#[derive(Debug)]
pub struct WebDav;

impl Grammar for WebDav {
    fn facts(&self) -> &'static DialectFacts {
        &FACTS
    }

    fn read(&self, request: Incoming<'_>, rules: &GuardRules, is_lease: bool) -> Result<Call, Refusal> {
        let mut call = native::call(request, rules, is_lease)?;
        call.intent = match request.method.as_str() {
            "LOCK" | "UNLOCK" => Intent::Lease,
            "OPTIONS" if call.intent != Intent::Preflight => Intent::Read,
            _ => call.intent,
        };
        Ok(call)
    }

    fn lease_field(&self) -> &'static str {
        "If"
    }

    fn tells_success(&self, method: &Method, multistatus: &[u8]) -> bool {
        method.as_str() == "PROPPATCH" && all_succeeded(multistatus)
    }

    fn refusal(&self, request: Incoming<'_>, refusal: &Refusal) -> ErrorDocument {
        let path = String::from_utf8_lossy(request.target);
        let path = path.split('?').next().unwrap_or_default();
        let path = refusal.cause.as_ref().and_then(|cause| cause.leased_elsewhere.as_deref()).unwrap_or(path);
        let (status, condition) = error(request.method, refusal);
        let condition = condition.map(|condition| match condition {
            Violated::UnknownToken => ("lock-token-matches-request-uri", None),
            Violated::Unsubmitted => ("lock-token-submitted", Some(path)),
            Violated::Conflict => ("no-conflicting-lock", Some(path)),
        });
        let (code, detail) = (refusal.code.as_str(), &*refusal.detail);
        let body = error_of(condition, (code, detail));
        ErrorDocument { status, code, content_type: "application/xml; charset=\"utf-8\"", fields: Vec::new(), body }
    }
}

/// A condition that clients know by its name (RFC 4918 section 16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Violated {
    UnknownToken,
    Unsubmitted,
    Conflict,
}

/// Returns the status of a refusal, and the condition that was violated.
fn error(method: &Method, refusal: &Refusal) -> (StatusCode, Option<Violated>) {
    let is_lock = method.as_str() == "LOCK";
    match refusal.code {
        Code::LeaseIdMissing | Code::LeaseAccess | Code::LeaseIdMismatchOnUse => {
            (StatusCode::LOCKED, Some(Violated::Unsubmitted))
        }
        Code::LeaseHeld => (StatusCode::LOCKED, Some(Violated::Conflict)),
        // On LOCK it is a refresh that names the token, as a precondition.
        Code::LeaseIdMismatch
        | Code::LeaseNotPresent
        | Code::LeaseBroken
        | Code::LeaseBreaking
        | Code::LeaseHoldMax
            if is_lock =>
        {
            (StatusCode::PRECONDITION_FAILED, Some(Violated::UnknownToken))
        }
        Code::LeaseIdMismatch | Code::LeaseNotPresent => (StatusCode::CONFLICT, Some(Violated::UnknownToken)),
        Code::LeaseNotPresentOnUse | Code::LeaseLost => (StatusCode::PRECONDITION_FAILED, Some(Violated::UnknownToken)),
        // Clients take 409 for a missing collection, and try a 503 again.
        Code::WriteInFlight | Code::DeletePending | Code::IdempotencyInFlight => {
            (StatusCode::SERVICE_UNAVAILABLE, None)
        }
        // A server that cannot do this for one resource says so by 403 (RFC 9110 section 15.5.4).
        Code::NotSupported if is_lock => (StatusCode::FORBIDDEN, None),
        code => {
            let named = refusal.service.and_then(|service| StatusCode::from_u16(service.status).ok());
            (named.unwrap_or(code.status()), None)
        }
    }
}

/// The fields of a request that are about locks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockFields {
    /// `If`.
    pub conditions: Option<If>,
    /// `Lock-Token`, on a method that reads it.
    pub token: Option<StateToken>,
    /// `Depth`, of a LOCK.
    pub depth: Option<LockDepth>,
}

impl LockFields {
    /// Reads the fields of a request with this method.
    ///
    /// # Errors
    ///
    /// A field cannot be read.
    pub fn read(method: &Method, headers: &HeaderMap) -> Result<Self, Refusal> {
        let malformed = |detail: String| Refusal::new(Code::MalformedPrecondition, detail);
        let of_field = |field: MalformedField| Refusal::new(Code::MalformedLeaseHeader, field.to_string());
        let mut lines = headers.get_all(super::IF).iter();
        let conditions = match (lines.next(), lines.next()) {
            _ if method.as_str() == "UNLOCK" => None,
            (None, _) => None,
            (Some(line), None) => Some(If::parse(line.as_bytes()).map_err(|error| malformed(error.to_string()))?),
            (Some(_), Some(_)) => return Err(malformed("send If once".to_owned())),
        };
        let token = match method.as_str() {
            "UNLOCK" => lock_token(headers).map_err(of_field)?,
            // Office sends it with what it saves, instead of `If`.
            "PUT" | "POST" | "GET" | "PROPPATCH" if headers.contains_key(LOCK_TOKEN) => {
                lock_token(headers).map_err(of_field)?
            }
            _ => None,
        };
        let depth = if method.as_str() == "LOCK" { depth(headers).map_err(of_field)? } else { None };
        Ok(Self { conditions, token, depth })
    }

    /// The tokens that the request submits.
    pub fn submitted(&self) -> Vec<LeaseId> {
        let of_if = self.conditions.iter().flat_map(If::submitted);
        let own = match self.token {
            Some(StateToken::Lock(id)) => Some(id),
            Some(StateToken::Unknown) | None => None,
        };
        of_if.chain(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;

    const UUID: &str = "181d4fae-7d8c-41d0-a765-00a0c91e6bf2";

    fn method(name: &str) -> Method {
        Method::from_bytes(name.as_bytes()).expect("a method")
    }

    #[test]
    fn each_refusal_has_a_status_that_clients_know() {
        for (name, code, status, condition) in [
            ("PUT", Code::LeaseIdMissing, 423, Some("<D:lock-token-submitted><D:href>/a&amp;b</D:href>")),
            ("PUT", Code::LeaseIdMismatchOnUse, 423, Some("<D:lock-token-submitted><D:href>/a&amp;b</D:href>")),
            ("LOCK", Code::LeaseHeld, 423, Some("<D:no-conflicting-lock><D:href>/a&amp;b</D:href>")),
            ("LOCK", Code::LeaseNotPresent, 412, Some("<D:lock-token-matches-request-uri/>")),
            ("LOCK", Code::LeaseHoldMax, 412, Some("<D:lock-token-matches-request-uri/>")),
            ("UNLOCK", Code::LeaseIdMismatch, 409, Some("<D:lock-token-matches-request-uri/>")),
            ("UNLOCK", Code::LeaseNotPresent, 409, Some("<D:lock-token-matches-request-uri/>")),
            ("PUT", Code::LeaseLost, 412, Some("<D:lock-token-matches-request-uri/>")),
            ("PUT", Code::PreconditionFailed, 412, None),
            ("PUT", Code::PreconditionRequired, 428, None),
            ("PUT", Code::WriteInFlight, 503, None),
            ("LOCK", Code::WriteInFlight, 503, None),
            ("LOCK", Code::NotSupported, 403, None),
            ("PUT", Code::NotSupported, 501, None),
            ("GET", Code::StoreUnavailable, 503, None),
        ] {
            let (method, headers) = (method(name), HeaderMap::new());
            let request = Incoming { method: &method, other_methods: &[], target: b"/a&b?c", headers: &headers };
            let told = WebDav.refusal(request, &Refusal::new(code, "do <that>"));
            assert_eq!(told.status.as_u16(), status, "{name} {code:?}");
            assert_eq!(
                told.body.contains("<D:lock") || told.body.contains("<D:no-"),
                condition.is_some(),
                "{}",
                told.body
            );
            assert!(told.body.contains(condition.unwrap_or("do &lt;that&gt;")), "{}", told.body);
        }
    }

    #[test]
    fn a_token_is_submitted_by_either_field() {
        let conditions = format!("(Not <opaquelocktoken:{UUID}>)");
        let submitted = |name, lines: &[(http::HeaderName, &str)]| {
            let headers = lines.iter().map(|(name, value)| (name.clone(), value.parse().expect("visible"))).collect();
            let read = LockFields::read(&method(name), &headers).map_err(|refusal| refusal.code);
            read.map(|read| read.submitted().len())
        };
        let token = format!("opaquelocktoken:{UUID}");
        for (name, own) in
            [("PUT", 1), ("POST", 1), ("GET", 1), ("PROPPATCH", 1), ("UNLOCK", 1), ("DELETE", 0), ("MOVE", 0)]
        {
            assert_eq!(submitted(name, &[(LOCK_TOKEN, &token)]), Ok(own), "{name}");
        }
        assert_eq!(submitted("DELETE", &[(super::super::IF, &conditions)]), Ok(1));
        assert_eq!(submitted("PUT", &[(super::super::IF, &conditions), (LOCK_TOKEN, &token)]), Ok(2));
        assert_eq!(submitted("UNLOCK", &[(super::super::IF, "x"), (LOCK_TOKEN, &token)]), Ok(1), "If does not hurt");
        assert_eq!(submitted("PUT", &[(super::super::IF, "x")]), Err(Code::MalformedPrecondition));
        assert_eq!(submitted("PUT", &[(LOCK_TOKEN, "x")]), Err(Code::MalformedLeaseHeader));
        let twice = [(super::super::IF, "(<a:b>)"), (super::super::IF, "(<a:b>)")];
        assert_eq!(submitted("PUT", &twice), Err(Code::MalformedPrecondition));
    }

    #[test]
    fn a_depth_counts_on_lock_alone() {
        let read = |name, value| LockFields::read(&method(name), &fields(&[("depth", value)]));
        assert_eq!(read("LOCK", "1").map(|read| read.depth), Ok(Some(LockDepth::One)));
        assert_eq!(read("LOCK", "2").map_err(|refusal| refusal.code), Err(Code::MalformedLeaseHeader));
        assert_eq!(read("PROPFIND", "1,noroot").map(|read| read.depth), Ok(None), "the backend reads it");
    }
}
