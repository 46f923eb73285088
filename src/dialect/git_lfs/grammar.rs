//! The grammar of the dialect: its differences from plain HTTP.

use super::{LfsCall, LfsOperation, error, refusals};
use crate::{
    core::{
        lease::Denied,
        policy::GuardRules,
        quirks::{Quirks, ServiceKind},
        refusal::Refusal,
        tags::checksum::Checksum,
    },
    dialect::{
        Call, Demands, DialectFacts, ErrorDocument, Grammar, Incoming, Intent, endless_locks::ENDLESS_LOCKS, native,
    },
};

const NO_DURATION: &str = "its clients name no duration, and hold a lock until they give it up";
const NO_WAIT: &str = "its clients never wait in line";
const BY_PRINCIPAL: &str = "the credentials alone tell the locks of a client from those of others";

static FACTS: DialectFacts = DialectFacts {
    quirks: Quirks {
        query_names_target: false,
        is_closed_list: true,
        service: ServiceKind::GitLfs,
        ..ENDLESS_LOCKS.quirks
    },
    defaults: ENDLESS_LOCKS.defaults,
    demands: Demands {
        idle_keys: &["safe_methods", "append_methods", "websocket"],
        idle_lease_keys: &[
            ("prefix", "a path is locked by POST of the locks of its repository"),
            ("default", NO_DURATION),
            ("min", NO_DURATION),
            ("max", NO_DURATION),
            ("max_hold_time", NO_DURATION),
            ("shared", "its clients know only exclusive locks"),
            ("max_wait", NO_WAIT),
            ("max_waiters", NO_WAIT),
            ("linger", "no stream holds a lock"),
            ("bind", BY_PRINCIPAL),
            ("required", "clients ask for locks before they push, and write objects without any"),
            ("absent", "the server keeps nothing at the paths of locks"),
        ],
        ..ENDLESS_LOCKS.demands
    },
};

/// The dialect of Git LFS.
#[derive(Debug)]
pub struct GitLfs;

impl Grammar for GitLfs {
    fn facts(&self) -> &'static DialectFacts {
        &FACTS
    }

    fn read(&self, request: Incoming<'_>, rules: &GuardRules, _is_lease: bool) -> Result<Call, Refusal> {
        let call = Call { lease_id: None, ..native::call(request, rules, false)? };
        if call.intent == Intent::Preflight {
            return Ok(call);
        }
        let operation = LfsCall::of(request)?.operation;
        let (name, intent) = operation.facts();
        // The name of an object is the hash of its content, so no client can put other content in its place.
        let checksums = match operation {
            LfsOperation::WriteObject(id) => vec![Checksum::Sha256(id.sha256())],
            _ => Vec::new(),
        };
        Ok(Call { intent, operation: Some(name), checksums, ..call })
    }

    fn lease_denied(&self, denied: Denied) -> Refusal {
        refusals::refuse(&denied)
    }

    fn checksum_mismatch(&self, _checksum: Checksum) -> Refusal {
        refusals::other_content()
    }

    fn refusal(&self, _request: Incoming<'_>, refusal: &Refusal) -> ErrorDocument {
        error::document(refusal)
    }
}
