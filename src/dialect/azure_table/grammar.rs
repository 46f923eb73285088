//! The grammar of Azure Table Storage: a closed list of operations, and answers in its terms.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use uuid::Builder;

use super::{TableOperation, document, error::outcome, operation::entities_of};
use crate::{
    core::{
        policy::GuardRules,
        quirks::{Quirks, ServiceKind},
        records::idempotency::IDEMPOTENCY_KEY,
        refusal::{Code, Refusal},
    },
    dialect::{
        Call, CallOutcome, Defaults, Demands, DialectFacts, ErrorDocument, Grammar, Incoming, Intent, Random,
        azure::{AskedOperation, CLIENT_REQUEST_ID, common_fields, error_of},
        native,
    },
};

static IDEMPOTENCY_FIELDS: [HeaderName; 2] = [IDEMPOTENCY_KEY, CLIENT_REQUEST_ID];

static FACTS: DialectFacts = DialectFacts {
    quirks: Quirks {
        missing_is_404: Some("ResourceNotFound"),
        idempotency_fields: &IDEMPOTENCY_FIELDS,
        // The query selects properties of an entity, whose tag stays the same.
        query_names_target: false,
        removes_trees: true,
        wraps_methods: true,
        is_flat: true,
        is_closed_list: true,
        service: ServiceKind::Azure,
        ..native::FACTS.quirks
    },
    defaults: Defaults { unique_tags: true, ..native::FACTS.defaults },
    demands: Demands {
        idle_keys: &["safe_methods", "append_methods", "websocket"],
        acquires_on_read: false,
        deletes_can_wait: false,
        ..native::FACTS.demands
    },
};

/// The dialect of Azure Table Storage.
#[derive(Debug)]
pub struct AzureTable;

impl Grammar for AzureTable {
    fn facts(&self) -> &'static DialectFacts {
        &FACTS
    }

    fn removed_tree(&self, key: &str) -> Option<String> {
        entities_of(key)
    }

    fn read(&self, request: Incoming<'_>, rules: &GuardRules, is_lease: bool) -> Result<Call, Refusal> {
        let call = native::call(request, rules, is_lease)?;
        if matches!(call.intent, Intent::Lease | Intent::Preflight) {
            return Ok(call);
        }
        let operation = TableOperation::of(request.method, request.target)?;
        if operation == TableOperation::DeleteEntity && !request.headers.contains_key(header::IF_MATCH) {
            let detail = "Deleting an entity needs If-Match, with the tag of the entity or with *.";
            return Err(Refusal::new(Code::PreconditionRequired, detail));
        }
        // A table that does not exist yet has nothing that a lease could protect.
        let needs_lease = operation != TableOperation::CreateTable;
        Ok(Call { intent: operation.intent(), operation: Some(operation.name()), needs_lease, ..call })
    }

    fn refusal(&self, request: Incoming<'_>, refusal: &Refusal) -> ErrorDocument {
        let error = error_of(refusal, AskedOperation::default());
        // A condition is false only for an entity that has changed, or that exists already.
        let code = if error.code == "ConditionNotMet" { "UpdateConditionNotSatisfied" } else { error.code };
        let id = refusal.request_id.map(|id| id.to_string());
        let last_line = id.as_ref().map(|id| format!("\nRequestId:{id}")).unwrap_or_default();
        let mut document = document(error.status, code, &[&*refusal.detail, &last_line].concat());
        document.fields.extend(common_fields(request.headers, id));
        document
    }

    fn outcome(&self, call: &Call, status: StatusCode, fields: &HeaderMap) -> CallOutcome {
        let operation = call.operation.and_then(TableOperation::named).unwrap_or(TableOperation::GetEntity);
        outcome(operation, status, fields)
    }

    fn answer_fields(&self, request: &HeaderMap, random: Random) -> Vec<(HeaderName, HeaderValue)> {
        // Only refusals are kept under an id.
        common_fields(request, Some(Builder::from_random_bytes(random()).into_uuid().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::{core::cause::RequestId, testing::guard};

    const ENTITY: &[u8] = b"/people(PartitionKey='a',RowKey='1')";

    fn read(method: &Method, target: &[u8], headers: &HeaderMap, is_lease: bool) -> Result<Intent, Code> {
        let call = AzureTable.read(Incoming { method, other_methods: &[], target, headers }, &guard(), is_lease);
        call.map(|call| call.intent).map_err(|refusal| refusal.code)
    }

    #[test]
    fn only_a_deletion_needs_a_condition() {
        let none = HeaderMap::new();
        for method in [Method::PUT, Method::PATCH] {
            assert_eq!(read(&method, ENTITY, &none, false), Ok(Intent::Write), "{method}");
        }
        assert_eq!(read(&Method::DELETE, ENTITY, &none, false), Err(Code::PreconditionRequired));
        let any = HeaderMap::from_iter([(header::IF_MATCH, HeaderValue::from_static("*"))]);
        assert_eq!(read(&Method::DELETE, ENTITY, &any, false), Ok(Intent::Write));
    }

    #[test]
    fn leases_are_those_of_the_native_dialect() {
        assert_eq!(read(&Method::POST, b"/.leases/hr/people", &HeaderMap::new(), true), Ok(Intent::Lease));
    }

    #[test]
    fn a_refusal_tells_its_name_and_its_id() {
        let headers = HeaderMap::new();
        let request = Incoming { method: &Method::PUT, other_methods: &[], target: ENTITY, headers: &headers };
        for (code, status, name) in [
            (Code::PreconditionFailed, 412, "UpdateConditionNotSatisfied"),
            (Code::PreconditionRequired, 400, "MissingRequiredHeader"),
            (Code::WriteInFlight, 503, "ServerBusy"),
            (Code::LeaseIdMissing, 412, "LeaseIdMissing"),
        ] {
            let refused = Refusal { request_id: Some(RequestId(0xa1)), ..Refusal::new(code, "No.") };
            let told = AzureTable.refusal(request, &refused);
            assert_eq!((told.status.as_u16(), told.code), (status, name));
            assert!(told.body.contains("\"value\":\"No.\\nRequestId:00000000000000a1\""), "{}", told.body);
            let id = told.fields.iter().find(|(name, _)| name == "x-ms-request-id").map(|(_, id)| id);
            assert_eq!(id, Some(&HeaderValue::from_static("00000000000000a1")));
        }
    }
}
