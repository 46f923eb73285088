//! The keys of a route whose clients are made for a storage service.

use super::{check::Check, keys::RouteKeys};
use crate::{
    config::Word,
    core::policy::{ErrorShape, GuardRules, ProbeAuth, Require, TagSource},
};

/// What S3 servers call their region where nobody has said another one.
pub(super) const PROBE_REGION: &str = "us-east-1";

/// Clients of S3 sign what they send: what is judged must not have to change it.
pub(super) fn signed_requests_stay_as_they_are(check: &mut Check<'_>, keys: RouteKeys<'_>, guard: &GuardRules) {
    let Some(errors) = keys.get(|raw| raw.errors.as_ref()).filter(|_| guard.errors == ErrorShape::S3) else { return };
    if !guard.etag.is_upstreams_own() {
        const HINT: &str = "S3 clients sign their conditional fields, which would have to be taken out for other tags; \
                            S3 servers label their objects";
        let span = keys.get(|raw| raw.etag.as_ref()).unwrap_or(errors).span();
        check.hinted(span, "errors = \"s3\" needs etag = \"upstream\" or \"delegate\"", HINT);
    }
    // A server that judges by itself is asked only whether there is something that needs a condition.
    let probes = guard.etag != TagSource::Delegate || guard.require == Require::Existing;
    if guard.probe_auth == ProbeAuth::Client && probes {
        const HINT: &str = "a client's signature holds for its own request alone; write probe_auth = \"sigv4\" for the \
                            proxy's own credentials, or \"none\" where everybody may read";
        let span = keys.get(|raw| raw.probe_auth.as_ref()).unwrap_or(errors).span();
        check.hinted(span, "errors = \"s3\" cannot probe with the client's credentials", HINT);
    }
}

/// The azure dialect has errors of its own.
pub(super) fn azure_reads_its_own_errors(check: &mut Check<'_>, keys: RouteKeys<'_>) {
    if let Some(errors) = keys.get(|raw| raw.errors.as_ref()) {
        let word = errors.get_ref();
        if ErrorShape::of(word).is_some_and(|shape| shape != ErrorShape::Azure) {
            let message = format!("errors = {word:?} cannot stand beside lease.dialect = \"azure\"");
            check.hinted(errors.span(), message, "leave it out: the clients of that dialect read Azure's errors");
        }
    }
}

/// The region that probes are signed for.
pub(super) fn probe_region(check: &mut Check<'_>, keys: RouteKeys<'_>) -> Box<str> {
    let Some(region) = keys.get(|raw| raw.probe_region.as_ref()) else { return PROBE_REGION.into() };
    check.name("probe_region", region);
    region.get_ref().as_str().into()
}
