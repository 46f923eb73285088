//! The keys of a route whose clients were made for a storage service.

use super::{check::Check, keys::RouteLayers, secrets::warn_if_open};
use crate::{
    config::{Word, written::Written},
    core::policy::{GuardRules, LeaseAuth, ProbeAuth, Require, TagSource},
};

/// Reports a field of probes without its file, or a file without its use.
pub(super) fn own_field_has_its_file(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules) {
    let file = keys.get(|raw| &raw.probe_field_file);
    let uses_it = guard.probe_auth == ProbeAuth::Field;
    check.refuse(
        keys.get(|raw| &raw.probe_auth),
        uses_it && guard.probe_field_file.is_none(),
        "probe_auth = \"field\" needs probe_field_file",
        "name the file that holds the field: \"Authorization: Bearer ...\"",
    );
    check.refuse(
        file,
        !uses_it && guard.probe_field_file.is_some(),
        "probe_field_file has no use here",
        "write probe_auth = \"field\", or leave it out",
    );
    if let Some(file) = file {
        warn_if_open(check, "probe_field_file", file);
    }
}

/// Reports leases that every client could take, on a route that does not say so.
pub(super) fn leases_ask_for_their_clients(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules) {
    let asks = guard.lease.as_ref().is_some_and(|rules| rules.auth == LeaseAuth::Probe);
    check.refuse(
        keys.get(|raw| &raw.probe_auth),
        asks && matches!(guard.probe_auth, ProbeAuth::SigV4 | ProbeAuth::Field),
        format!("lease.auth = \"probe\" and probe_auth = {:?} do not go together", guard.probe_auth.word()),
        "write lease.auth = \"none\": the backend sees the proxy's own credentials, so every client may take a lease",
    );
}

/// Reports settings under which the proxy would have to change requests that S3 clients have signed.
pub(super) fn signed_requests_stay_as_they_are(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules) {
    let (name, Some(dialect)) = (guard.dialect.word(), keys.get(|raw| &raw.dialect)) else { return };
    if !guard.etag.is_upstreams_own() {
        const HINT: &str = "S3 clients sign their conditional fields, which other tag sources would have to remove; S3 \
                            servers send their own tags";
        let span = keys.get(|raw| &raw.etag).map_or_else(|| dialect.span(), Written::span);
        let message = format!("dialect = {name:?} needs etag = \"upstream\" or \"delegate\"");
        check.hinted(span, message, HINT);
    }
    // A server that judges itself is probed only to learn whether the resource exists and so needs a condition.
    let probes = guard.etag != TagSource::Delegate || guard.require == Require::Existing;
    if guard.probe_auth == ProbeAuth::Client && probes {
        const HINT: &str = "a client's signature covers only its own request; write probe_auth = \"sigv4\" for the \
                            proxy's own credentials, or \"none\" if everyone may read";
        let span = keys.get(|raw| &raw.probe_auth).map_or_else(|| dialect.span(), Written::span);
        check.hinted(span, format!("dialect = {name:?} cannot probe with the client's credentials"), HINT);
    }
}
