//! The grammar of Azure Queue Storage: a closed list of operations, and answers in its terms.

use http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Builder;

use super::QueueCall;
use crate::{
    core::{
        policy::GuardRules,
        quirks::{Quirks, ServiceKind},
        refusal::Refusal,
    },
    dialect::{
        Call, Defaults, Demands, DialectFacts, ErrorDocument, Grammar, Incoming, Intent, Random,
        azure::{AskedOperation, common_fields, error_of},
        native,
    },
};

static FACTS: DialectFacts = DialectFacts {
    quirks: Quirks {
        query_names_target: false,
        is_flat: true,
        leases_have_paths: false,
        is_closed_list: true,
        // A request that is repeated puts or takes another message, as Azure's do.
        idempotency_fields: &[],
        service: ServiceKind::AzureQueue,
        ..native::FACTS.quirks
    },
    defaults: Defaults { version_after_write: true, ..native::FACTS.defaults },
    demands: Demands {
        makes_own_requests: true,
        idle_keys: &["safe_methods", "append_methods", "websocket"],
        acquires_on_read: false,
        deletes_can_wait: false,
        ..native::FACTS.demands
    },
};

/// The dialect of Azure Queue Storage.
#[derive(Debug)]
pub struct AzureQueue;

impl Grammar for AzureQueue {
    fn facts(&self) -> &'static DialectFacts {
        &FACTS
    }

    fn read(&self, request: Incoming<'_>, rules: &GuardRules, _is_lease: bool) -> Result<Call, Refusal> {
        let call = native::call(request, rules, false)?;
        if call.intent == Intent::Preflight {
            return Ok(call);
        }
        let (name, intent) = QueueCall::of(request)?.operation.facts();
        Ok(Call { intent, operation: Some(name), ..call })
    }

    fn refusal(&self, request: Incoming<'_>, refusal: &Refusal) -> ErrorDocument {
        let error = error_of(refusal, AskedOperation::default());
        let id = refusal.request_id.map(|id| id.to_string());
        let last_line = id.as_ref().map(|id| format!("\nRequestId:{id}")).unwrap_or_default();
        let mut document = error.document(&[&*refusal.detail, &last_line].concat());
        document.fields.extend(common_fields(request.headers, id));
        document
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
    use crate::{
        core::{cause::RequestId, refusal::Code},
        dialect::azure_queue::queue_not_found,
        testing::guard,
    };

    fn read(method: &Method, target: &[u8]) -> Result<(Intent, Option<&'static str>), Code> {
        let headers = HeaderMap::new();
        let call = AzureQueue.read(Incoming { method, other_methods: &[], target, headers: &headers }, &guard(), false);
        call.map(|call| (call.intent, call.operation)).map_err(|refusal| refusal.code)
    }

    #[test]
    fn an_operation_has_the_name_in_azures_documentation() {
        assert_eq!(read(&Method::GET, b"/jobs/messages"), Ok((Intent::Write, Some("Get Messages"))));
        assert_eq!(read(&Method::GET, b"/?comp=list"), Ok((Intent::List, Some("List Queues"))));
        assert_eq!(read(&Method::TRACE, b"/jobs/messages"), Err(Code::MethodNotAllowed));
    }

    #[test]
    fn a_refusal_tells_its_name_and_its_id() {
        let headers = HeaderMap::new();
        let request = Incoming { method: &Method::GET, other_methods: &[], target: b"/jobs", headers: &headers };
        let refused = Refusal { request_id: Some(RequestId(0xa1)), ..queue_not_found() };
        let told = AzureQueue.refusal(request, &refused);
        assert_eq!((told.status.as_u16(), told.code), (404, "QueueNotFound"));
        let message = "<Message>The specified queue does not exist.\nRequestId:00000000000000a1</Message>";
        assert!(told.body.contains(message), "{}", told.body);
        let busy = AzureQueue.refusal(request, &Refusal::new(Code::WriteInFlight, "Later."));
        assert_eq!((busy.status.as_u16(), busy.code), (503, "ServerBusy"));
    }
}
