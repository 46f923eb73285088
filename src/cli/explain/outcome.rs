//! The fate of a request, if the configuration and the request alone decide it. The functions that judge a request
//! which comes over the network judge it here too, without any knowledge of the resource.

use super::ExplainedRequest;
use crate::{
    core::{
        lease::judge_use,
        policy::{GuardRules, LeaseRules, MethodClass, Require, TagSource},
        records::{
            idempotency::heeded_key,
            record::{Record, Revision, Snapshot},
        },
        refusal::Refusal,
        tags::{
            precondition::{Requirement, TagCondition, requirement},
            validators::Representation,
        },
        time::StoreTime,
        verdict::required,
    },
    dialect::{Call, Incoming, Intent},
    routing::{GuardedDestination, GuardedRequest, door::Door},
};

/// The outcome of an operation on a lease.
const LEASE_DECIDES: &str = "the state of the lease decides";

/// Explains what becomes of a request, and what a write needs.
pub(super) fn outcome(
    door: &Door,
    guard: Option<&GuardRules>,
    request: &ExplainedRequest,
) -> Vec<(&'static str, String)> {
    match door {
        Door::Refuse { refusal, .. } => vec![("outcome", refused(refusal))],
        Door::Pass { .. } if guard.is_some() => vec![("outcome", "it passes unjudged".to_owned())],
        Door::Pass { .. } => vec![("outcome", "it passes unchanged; nothing guards this route".to_owned())],
        Door::Observed { would: Err(code), .. } => {
            vec![("outcome", format!("it passes; without observe: {} {}", code.status().as_u16(), code.as_str()))]
        }
        Door::Guarded(guarded) | Door::Handshake(guarded) | Door::Observed { would: Ok(guarded), .. } => match guard {
            Some(guard) if guard.quirks.is_closed_list => operation(guarded, guard, request),
            Some(guard) => judged(guarded, guard, request),
            None => Vec::new(),
        },
    }
}

/// The request as its dialect reads it.
fn incoming<'a>(guarded: &'a GuardedRequest, request: &'a ExplainedRequest) -> Incoming<'a> {
    Incoming {
        method: &guarded.methods.judged,
        other_methods: &guarded.methods.others,
        target: request.target.as_bytes(),
        headers: &request.headers,
    }
}

/// Explains the fate of a request in a dialect that is a list of operations: it is one of them, or it is refused.
fn operation(guarded: &GuardedRequest, guard: &GuardRules, request: &ExplainedRequest) -> Vec<(&'static str, String)> {
    let incoming = incoming(guarded, request);
    let call = match guard.dialect.grammar().read(incoming, guard, guarded.is_lease()) {
        Ok(call) => call,
        Err(refusal) => return vec![("outcome", refused_in(guard, incoming, &refusal))],
    };
    let mut lines: Vec<_> = call.operation.map(|name| ("operation", name.to_owned())).into_iter().collect();
    let demands = guard.dialect.grammar().facts().demands;
    if let Some(rules) = guard.lease.as_ref().filter(|rules| rules.guards.covers_any(guarded.methods.usages))
        && call.intent != Intent::Lease
        && !demands.has_endless_locks
    {
        lines.push(("lease", lease_needs(guard, rules)));
    }
    let outcome = match call.intent {
        Intent::Lease => "the lease is judged after the backend has been asked for the resource".to_owned(),
        intent if demands.makes_own_requests || intent == Intent::List && demands.has_endless_locks => {
            "ifmatch sends the backend the requests that the operation needs".to_owned()
        }
        Intent::StageBlock => "the block waits in this process for the list that joins it".to_owned(),
        _ => {
            let condition = if call.conditions.is_empty() { "" } else { ", if its conditions are true" };
            let (method, target) =
                call.forwarded.as_ref().map_or((incoming.method, incoming.target), |sent| (&sent.method, &sent.target));
            format!("the backend gets {method} {}{condition}", String::from_utf8_lossy(target))
        }
    };
    lines.push(("outcome", outcome));
    lines
}

fn judged(guarded: &GuardedRequest, guard: &GuardRules, request: &ExplainedRequest) -> Vec<(&'static str, String)> {
    let (class, incoming) = (guard.class_of(&guarded.methods.judged), incoming(guarded, request));
    let call = guard.dialect.grammar().read(incoming, guard, guarded.is_lease()).ok();
    if let Some(Call { intent: Intent::Lease, operation: Some(name), .. }) = call {
        return vec![("operation", name.to_owned()), ("outcome", LEASE_DECIDES.to_owned())];
    }
    if class == MethodClass::Unjudged {
        return vec![("outcome", "it passes unjudged; ifmatch adds its fields to what the upstream allows".to_owned())];
    }
    let kind = match class {
        MethodClass::Read => "a read",
        MethodClass::UnclaimedWrite => "a write that runs beside others",
        MethodClass::TwoResources => "a write of two resources",
        _ => "a write",
    };
    let mut lines = vec![("method", format!("{} is {kind}", guarded.methods.judged))];
    if let Some(rules) = guard.lease.as_ref().filter(|rules| rules.guards.covers_any(guarded.methods.usages)) {
        lines.push(("lease", lease_needs(guard, rules)));
    }
    if class != MethodClass::Read {
        lines.push(("needs", needs(guard.demand(&guarded.methods.judged), guard.allow_any).to_owned()));
        if !guard.also_changes.is_empty() {
            let paths = guard.also_changes.iter().map(|template| template.pattern().to_string()).collect::<Vec<_>>();
            lines.push(("also changes", paths.join(", ")));
        }
    }
    if let Some(sent) = call.and_then(|call| call.forwarded) {
        lines.push(("sent as", format!("{} {}", sent.method, String::from_utf8_lossy(&sent.target))));
    }
    if let Some(GuardedDestination { request: destination, .. }) = guarded.destination.as_deref() {
        let demand = guard_of_destination(guarded).map(|rules| rules.demand_at_destination(&guarded.methods.judged));
        let needs = match demand {
            Some(Require::Existing | Require::Always) => "Overwrite: F if something is there",
            Some(Require::Never) | None => "nothing; Overwrite: F is judged",
        };
        lines.push(("destination", format!("{}, on route {:?}", destination.key, destination.route.name)));
        lines.push(("needs there", needs.to_owned()));
    }
    let outcome = verdict(guarded, guard, incoming).unwrap_or_else(|refused| {
        let (refusal, remedy) = *refused;
        refused_in(guard, incoming, &refusal) + remedy
    });
    let outcome = if guard.observe { format!("it passes; without observe: {outcome}") } else { outcome };
    lines.push(("outcome", outcome));
    lines
}

/// A refusal, and what the operator could change for the request to pass; empty if nothing.
type RefusedWith = Box<(Refusal, &'static str)>;

/// Judges by the functions of the guard, in its order: the form of the request, its idempotency key, its lease, its
/// preconditions.
fn verdict(guarded: &GuardedRequest, guard: &GuardRules, incoming: Incoming<'_>) -> Result<String, RefusedWith> {
    let plain = |refusal| Box::new((refusal, ""));
    let call = guard.dialect.grammar().read(incoming, guard, guarded.is_lease()).map_err(plain)?;
    if call.intent == Intent::Lease {
        return Ok(LEASE_DECIDES.to_owned());
    }
    let class = guard.class_of(&guarded.methods.judged);
    if class != MethodClass::Read {
        heeded_key(incoming.headers, guard).map_err(plain)?;
    }
    if call.lease_id.is_some() {
        return Ok("its lease is judged against the current state, and then its preconditions".to_owned());
    }
    judge_use(&nothing_known(), guard.lease.as_ref(), guarded.methods.usages, None, None)
        .map_err(|denied| plain(guard.dialect.grammar().use_denied(denied)))?;
    if class == MethodClass::Read {
        return Ok("it is answered with a tag, or with 304 or 412 by its preconditions".to_owned());
    }
    let (demand, conditions) = (guard.demand(&guarded.methods.judged), &call.conditions);
    if let (Some(destination), Some(rules)) = (&guarded.destination, guard_of_destination(guarded))
        && call.destination.lease_id.is_none()
        && requirement(demand, guard.allow_any, conditions, &Representation::Unknown) != Requirement::Missing
    {
        judge_use(&nothing_known(), rules.lease.as_ref(), destination.request.methods.usages, None, None)
            .map_err(|denied| plain(guard.dialect.grammar().use_denied(denied)))?;
    }
    let passes = match requirement(demand, guard.allow_any, conditions, &Representation::Unknown) {
        Requirement::Missing if conditions.if_match == Some(TagCondition::Any) => {
            return Err(Box::new((required(guard, conditions), " (If-Match: * is enough only with allow_any = true)")));
        }
        Requirement::Missing => return Err(plain(required(guard, conditions))),
        Requirement::Satisfied | Requirement::NeedsExistence if guarded.destination.is_some() => {
            "it is judged against the current states of its source and of its destination"
        }
        Requirement::NeedsExistence => "the current state of the resource decides if that is enough",
        Requirement::Satisfied if conditions.is_empty() => "it passes without a precondition",
        Requirement::Satisfied if guard.etag == TagSource::Delegate => "the backend judges its preconditions",
        Requirement::Satisfied => "its preconditions are judged against the current state",
    };
    Ok(passes.to_owned())
}

/// The rules by which the destination of a COPY or MOVE is judged.
fn guard_of_destination(guarded: &GuardedRequest) -> Option<&GuardRules> {
    guarded.destination.as_ref()?.request.route.guard.as_deref()
}

/// The record of a resource of which nothing is known.
fn nothing_known() -> Snapshot {
    Snapshot::new(Revision(0), Record::absent(Revision(0)), StoreTime::default())
}

fn lease_needs(guard: &GuardRules, rules: &LeaseRules) -> String {
    let when = if rules.required { ", always: a lease must be taken first" } else { " while the resource is leased" };
    format!("{}{when}", guard.dialect.grammar().lease_field())
}

fn needs(require: Require, allow_any: bool) -> &'static str {
    match (require, allow_any) {
        (Require::Never, _) => "nothing; a precondition is judged if there is one",
        (Require::Existing, false) => "If-Match with the current tag if the resource exists, nothing to create it",
        (Require::Existing, true) => "If-Match with the current tag or * if the resource exists, nothing to create it",
        (Require::Always, false) => "If-Match with the current tag, or If-None-Match: * to create",
        (Require::Always, true) => "If-Match with the current tag or *, or If-None-Match: * to create",
    }
}

fn refused(refusal: &Refusal) -> String {
    format!("{} {}: {}", refusal.code.status().as_u16(), refusal.code.as_str(), refusal.detail)
}

/// Returns a refusal as the clients of the route's dialect get it.
fn refused_in(guard: &GuardRules, incoming: Incoming<'_>, refusal: &Refusal) -> String {
    let error = guard.dialect.grammar().refusal(incoming, refusal);
    format!("{} {}: {}", error.status.as_u16(), error.code, refusal.detail)
}
