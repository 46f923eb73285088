//! The grammar of Azure Blob Storage: a closed list of operations, and answers in Azure's terms.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use uuid::Builder;

use super::{
    AskedOperation, AzureOperation, AzureResource, BlobRoute, CLIENT_REQUEST_ID, ERROR_CODE, action,
    blocks::AzureBlocks, checksums, common_fields, copy::AzureCopies, done, error_of, lease_fields, lists::AzureLists,
    metadata::AzureMetadata, outcome, read, refuse, refuse_use,
};
use crate::{
    core::{
        lease::{Denied, Done, LeaseId, UseDenied},
        policy::{GuardRules, LeaseGuards, LeaseRules},
        quirks::{Quirks, ServiceKind},
        records::{idempotency::IDEMPOTENCY_KEY, record::Snapshot},
        refusal::Refusal,
        tags::checksum::Checksum,
    },
    dialect::{
        Call, CallOutcome, Defaults, Demands, DialectFacts, ErrorDocument, Fresh, Grammar, Incoming, LeaseOperation,
        Random, Response,
        description::DescriptionGrammar,
        native,
        objects::{BlockGrammar, CopyGrammar, ListGrammar},
    },
};

static IDEMPOTENCY_FIELDS: [HeaderName; 2] = [IDEMPOTENCY_KEY, CLIENT_REQUEST_ID];

/// Metadata, properties and tags of a blob, and the source of a copy. An operation with them has no other content.
static CONTENT_PREFIXES: [&str; 7] =
    ["x-ms-meta-", "x-ms-blob-", "x-ms-tags", "x-ms-access-tier", "x-ms-if-", "x-ms-copy-", "x-ms-source-"];

static FACTS: DialectFacts = DialectFacts {
    quirks: Quirks {
        conditions_before_lease: true,
        unknown_date_fails: true,
        always_dated: true,
        date_after_write: true,
        missing_is_404: None,
        confirms_named_tag: false,
        tags_are_hashes: false,
        idempotency_fields: &IDEMPOTENCY_FIELDS,
        content_prefixes: &CONTENT_PREFIXES,
        query_names_target: false,
        removes_trees: true,
        wraps_methods: false,
        is_flat: false,
        leases_have_paths: false,
        lease_answers_have_validators: true,
        head_errors_have_content: false,
        has_locks: false,
        is_closed_list: true,
        service: ServiceKind::Azure,
    },
    defaults: Defaults {
        unique_tags: false,
        // The modification date needs a probe, for any source of tags.
        probes_after_write: true,
        // There are no other writers, so the version belongs to this write, and the bytes need not be compared.
        version_after_write: true,
        client_break: true,
        infinite: true,
        ..native::FACTS.defaults
    },
    demands: Demands {
        leases: true,
        signed_requests: false,
        idle_keys: &["safe_methods", "append_methods", "websocket"],
        idle_lease_keys: &[
            ("prefix", "a lease is requested with ?comp=lease on the URL of its resource"),
            ("default", "its clients always name a duration"),
            ("shared", "its clients know only exclusive leases"),
            ("max_wait", "its clients retry, and never wait for a lease"),
            ("max_waiters", "its clients retry, and never wait for a lease"),
            ("linger", "no stream holds a lease"),
        ],
        lease_durations: Some((Duration::from_secs(15), Duration::from_secs(60))),
        acquires_on_read: false,
        deletes_can_wait: false,
        ..native::FACTS.demands
    },
};

/// The dialect of Azure Blob Storage.
#[derive(Debug)]
pub struct Azure;

impl Grammar for Azure {
    fn facts(&self) -> &'static DialectFacts {
        &FACTS
    }

    fn read(&self, request: Incoming<'_>, rules: &GuardRules, _is_lease: bool) -> Result<Call, Refusal> {
        let serves = match rules.lease.as_ref().map(|rules| rules.guards) {
            _ if rules.has_members => AzureResource::Account,
            Some(LeaseGuards::Delete) => AzureResource::Container,
            _ => AzureResource::Blob,
        };
        let route = BlobRoute { serves, metadata_suffix: rules.metadata_suffix.as_deref() };
        read(request, route)
    }

    fn lease(&self, request: Incoming<'_>, rules: &LeaseRules, fresh: Fresh) -> Result<LeaseOperation, Refusal> {
        Ok(LeaseOperation::Step { action: action(request.headers, rules, fresh)?, wait: None })
    }

    fn checksum_mismatch(&self, checksum: Checksum) -> Refusal {
        checksums::mismatch(checksum)
    }

    fn blocks(&self) -> Option<&'static dyn BlockGrammar> {
        Some(&AzureBlocks)
    }

    fn copies(&self) -> Option<&'static dyn CopyGrammar> {
        Some(&AzureCopies)
    }

    fn lists(&self) -> Option<&'static dyn ListGrammar> {
        Some(&AzureLists)
    }

    fn description(&self) -> Option<&'static dyn DescriptionGrammar> {
        Some(&AzureMetadata)
    }

    fn lease_done(
        &self,
        success: Done,
        presented: Option<LeaseId>,
        _snapshot: &Snapshot,
        _waited: bool,
    ) -> Result<Response, Refusal> {
        let (status, field) = done(success, presented)?;
        Ok(Response { status, fields: field.into_iter().collect(), body: None })
    }

    fn lease_denied(&self, denied: Denied) -> Refusal {
        refuse(&denied)
    }

    fn use_denied(&self, denied: UseDenied) -> Refusal {
        refuse_use(denied)
    }

    fn is_own_field(&self, name: &HeaderName) -> bool {
        name.as_str().starts_with("x-ms-lease-")
    }

    fn lease_field(&self) -> &'static str {
        "x-ms-lease-id"
    }

    fn refusal(&self, request: Incoming<'_>, refusal: &Refusal) -> ErrorDocument {
        let error = error_of(refusal, AskedOperation::of(request.method, request.target, request.headers));
        let id = refusal.request_id.map(|id| id.to_string());
        let last_line = id.as_ref().map(|id| format!("\nRequestId:{id}")).unwrap_or_default();
        let mut document = error.document(&[&*refusal.detail, &last_line].concat());
        document.fields.extend(common_fields(request.headers, id));
        document
    }

    fn outcome(&self, call: &Call, status: StatusCode, _fields: &HeaderMap) -> CallOutcome {
        let operation = call.operation.and_then(AzureOperation::named).unwrap_or(AzureOperation::ReadBlob);
        outcome(operation, status, call.conditions.if_match.is_some())
    }

    fn answer_fields(&self, request: &HeaderMap, random: Random) -> Vec<(HeaderName, HeaderValue)> {
        // Only refusals are kept under an id.
        common_fields(request, Some(Builder::from_random_bytes(random()).into_uuid().to_string()))
    }

    fn not_modified_fields(&self) -> Vec<(HeaderName, HeaderValue)> {
        vec![(ERROR_CODE, HeaderValue::from_static("ConditionNotMet"))]
    }

    fn state_fields(&self, snapshot: &Snapshot) -> Vec<(HeaderName, HeaderValue)> {
        lease_fields(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::{
        core::{cause::RequestId, refusal::Code},
        dialect::azure::REQUEST_ID,
    };

    #[test]
    fn a_refusal_tells_its_id_in_a_field_and_in_the_last_line_of_its_message() {
        let headers = HeaderMap::new();
        let request = Incoming { method: &Method::PUT, other_methods: &[], target: b"/c/b", headers: &headers };
        let mut refusal = Refusal::new(Code::LeaseIdMissing, "Leased.");
        let told = |refusal: &Refusal| {
            let ErrorDocument { fields, body, .. } = Azure.refusal(request, refusal);
            let id = fields.into_iter().find(|(name, _)| *name == REQUEST_ID).map(|(_, id)| id);
            let message = body.split("<Message>").nth(1).and_then(|rest| rest.split("</Message>").next());
            (id, message.map(str::to_owned))
        };
        assert_eq!(told(&refusal), (None, Some("Leased.".to_owned())));
        refusal.request_id = Some(RequestId(0xa1));
        let id = HeaderValue::from_static("00000000000000a1");
        assert_eq!(told(&refusal), (Some(id), Some("Leased.\nRequestId:00000000000000a1".to_owned())));
    }
}
