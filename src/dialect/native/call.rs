//! The grammar of the native dialect, which every dialect shares unless its own grammar differs.

use std::time::Duration;

use http::{HeaderMap, HeaderName, Method};

use super::{presented_id, presented_id_at_destination};
use crate::{
    core::{
        http::{cors::is_preflight, readings::destination::forbids_overwrite},
        policy::{AbsentLease, GuardRules, MethodClass, StoreMethod},
        quirks::{Quirks, ServiceKind},
        records::idempotency::IDEMPOTENCY_KEY,
        refusal::{Code, Refusal},
        tags::precondition::{Preconditions, TagCondition},
    },
    dialect::{
        AtDestination, Call, Defaults, Demands, DialectFacts, ErrorDocument, Grammar, Incoming, Intent,
        settings::LeaseTimes,
    },
};

static IDEMPOTENCY_FIELDS: [HeaderName; 1] = [IDEMPOTENCY_KEY];

/// The data of the dialect. Others differ from it in a few places.
pub static FACTS: DialectFacts = DialectFacts {
    quirks: Quirks {
        conditions_before_lease: false,
        unknown_date_fails: false,
        always_dated: false,
        date_after_write: false,
        missing_is_404: None,
        confirms_named_tag: false,
        tags_are_hashes: false,
        idempotency_fields: &IDEMPOTENCY_FIELDS,
        content_prefixes: &[],
        query_names_target: true,
        removes_trees: false,
        wraps_methods: false,
        is_flat: false,
        leases_have_paths: true,
        lease_answers_have_validators: false,
        head_errors_have_content: true,
        has_locks: false,
        is_closed_list: false,
        service: ServiceKind::Plain,
    },
    defaults: Defaults {
        unique_tags: false,
        probes_after_write: false,
        version_after_write: false,
        client_break: false,
        infinite: false,
        bind: false,
        absent: AbsentLease::Refuse,
        append_methods: &[Method::POST],
        store_method: StoreMethod::AsSent,
        lease_times: LeaseTimes {
            min: Duration::from_secs(15),
            default: Duration::from_secs(30),
            max: Duration::from_secs(60),
            max_hold_time: Duration::from_secs(3600),
        },
    },
    demands: Demands {
        leases: false,
        makes_own_requests: false,
        signed_requests: false,
        idle_keys: &[],
        idle_lease_keys: &[],
        lease_durations: None,
        acquires_on_read: true,
        deletes_can_wait: true,
        has_endless_locks: false,
    },
};

/// The native dialect.
#[derive(Debug)]
pub struct Native;

impl Grammar for Native {}

/// Reads a request by its method and fields.
///
/// # Errors
///
/// The conditions or the lease id of the request cannot be read.
pub fn call(request: Incoming<'_>, rules: &GuardRules, is_lease: bool) -> Result<Call, Refusal> {
    let lease_id = presented_id(request.headers)?;
    let class = rules.class_of(request.method);
    let conditions = conditions(class, request.headers)?;
    let intent = match class {
        MethodClass::Unjudged if is_preflight(request.headers) => Intent::Preflight,
        _ if is_lease => Intent::Lease,
        MethodClass::Read => Intent::Read,
        MethodClass::UnclaimedWrite => Intent::Append,
        // The door has refused all other classes.
        _ => Intent::Write,
    };
    let mut call = Call::plain(intent, lease_id, conditions);
    if class == MethodClass::TwoResources {
        call.destination = at_destination(request.headers)?;
    }
    Ok(call)
}

/// Reads the part of a COPY or MOVE that concerns its destination.
///
/// # Errors
///
/// `Overwrite` or the id of a lease cannot be read.
pub fn at_destination(headers: &HeaderMap) -> Result<AtDestination, Refusal> {
    let if_none_match = forbids_overwrite(headers)?.then_some(TagCondition::Any);
    let conditions = Preconditions { if_none_match, ..Preconditions::default() };
    Ok(AtDestination { conditions, lease_id: presented_id_at_destination(headers)?, needs_lease: true })
}

fn conditions(class: MethodClass, headers: &HeaderMap) -> Result<Preconditions, Refusal> {
    if class == MethodClass::Read {
        return Ok(Preconditions::parse_for_read(headers));
    }
    Preconditions::parse(headers).map_err(|malformed| Refusal::new(Code::MalformedPrecondition, malformed.to_string()))
}

/// Returns the problem document of a refusal (RFC 9457).
pub fn problem(refusal: &Refusal) -> ErrorDocument {
    ErrorDocument {
        status: refusal.code.status(),
        code: refusal.code.as_str(),
        content_type: "application/problem+json",
        fields: Vec::new(),
        body: refusal.problem(),
    }
}
