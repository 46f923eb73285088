//! The dialect of the tests. It shows that one file and one variant make a dialect.
//!
//! Its clients write with `TAKE` and read with any other method. They present a lease in `Toy-Lease`, and get refusals
//! as plain text.

use http::{HeaderName, Method};

use crate::{
    core::{
        lease::LeaseId,
        policy::GuardRules,
        quirks::{Quirks, ServiceKind},
        refusal::Refusal,
        tags::precondition::Preconditions,
    },
    dialect::{Call, DialectFacts, ErrorDocument, Grammar, Incoming, Intent, native},
};

const TOY_LEASE: HeaderName = HeaderName::from_static("toy-lease");

static FACTS: DialectFacts = DialectFacts {
    quirks: Quirks { always_dated: true, service: ServiceKind::Toy, ..native::FACTS.quirks },
    ..native::FACTS
};

/// The dialect of the tests.
#[derive(Debug)]
pub(super) struct Toy;

impl Grammar for Toy {
    fn facts(&self) -> &'static DialectFacts {
        &FACTS
    }

    fn read(&self, request: Incoming<'_>, _rules: &GuardRules, _is_lease: bool) -> Result<Call, Refusal> {
        let takes = Method::from_bytes(b"TAKE").is_ok_and(|take| *request.method == take);
        let presented = request.headers.get(TOY_LEASE).and_then(|value| LeaseId::parse(value.as_bytes()).ok());
        let intent = if takes { Intent::Write } else { Intent::Read };
        Ok(Call::plain(intent, presented, Preconditions::default()))
    }

    fn lease_field(&self) -> &'static str {
        "Toy-Lease"
    }

    fn refusal(&self, _request: Incoming<'_>, refusal: &Refusal) -> ErrorDocument {
        let (status, code) = (refusal.code.status(), refusal.code.as_str());
        ErrorDocument { status, code, content_type: "text/plain", fields: Vec::new(), body: refusal.detail.to_string() }
    }
}
