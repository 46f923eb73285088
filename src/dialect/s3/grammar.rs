//! The grammar of S3: its differences from plain HTTP.

use http::{HeaderName, HeaderValue};

use super::{copy, error_of, object_of, quoted, refuse_unguardable, removals};
use crate::{
    core::{
        policy::GuardRules,
        quirks::{Quirks, ServiceKind},
        records::idempotency::IDEMPOTENCY_KEY,
        refusal::{Code, Refusal},
        tags::precondition::Preconditions,
    },
    dialect::{
        Call, Defaults, Demands, DialectFacts, ErrorDocument, Grammar, Incoming, Intent, native, objects::SentContent,
        xml,
    },
};

/// The field with the id that the SDKs give to each operation, and repeat when they retry it.
const AMZ_SDK_INVOCATION_ID: HeaderName = HeaderName::from_static("amz-sdk-invocation-id");

/// The field with the id that S3 gives to each request.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");

static IDEMPOTENCY_FIELDS: [HeaderName; 2] = [IDEMPOTENCY_KEY, AMZ_SDK_INVOCATION_ID];

/// Metadata of an object, its tags and rights, and the object that it is copied from.
static CONTENT_PREFIXES: [&str; 6] =
    ["x-amz-meta-", "x-amz-tagging", "x-amz-acl", "x-amz-grant-", "x-amz-copy-source", "x-amz-storage-class"];

static FACTS: DialectFacts = DialectFacts {
    quirks: Quirks {
        always_dated: true,
        missing_is_404: Some("NoSuchKey"),
        // S3 has only strong tags, so the named tag is the one that matched.
        confirms_named_tag: true,
        tags_are_hashes: true,
        idempotency_fields: &IDEMPOTENCY_FIELDS,
        content_prefixes: &CONTENT_PREFIXES,
        is_flat: true,
        service: ServiceKind::S3,
        ..native::FACTS.quirks
    },
    defaults: Defaults { unique_tags: true, ..native::FACTS.defaults },
    demands: Demands { signed_requests: true, deletes_can_wait: false, ..native::FACTS.demands },
};

/// The dialect of Amazon S3.
#[derive(Debug)]
pub struct S3;

impl Grammar for S3 {
    fn facts(&self) -> &'static DialectFacts {
        &FACTS
    }

    fn read(&self, request: Incoming<'_>, rules: &GuardRules, is_lease: bool) -> Result<Call, Refusal> {
        refuse_unguardable(request, &rules.etag)?;
        let headers = quoted(request.headers);
        let mut call = native::call(Incoming { headers: &headers, ..request }, rules, is_lease)?;
        if removals::is_list(request) && !is_lease {
            if call.conditions != Preconditions::default() {
                let detail = "give each object its own condition, in its element ETag";
                return Err(Refusal::new(Code::NotSupported, detail));
            }
            (call.intent, call.content) = (Intent::Write, SentContent::Removals);
            return Ok(call);
        }
        if matches!(call.intent, Intent::Write | Intent::Append)
            && let Some(source) = copy::source(request.headers, &rules.etag)?
        {
            call.content = SentContent::CopyOf(source);
        }
        Ok(call)
    }

    fn refusal(&self, _request: Incoming<'_>, refusal: &Refusal) -> ErrorDocument {
        let (status, code) = error_of(refusal);
        let id = refusal.request_id.map(|id| id.to_string());
        let mut elements = vec![("Code", code), ("Message", &*refusal.detail)];
        elements.extend(id.as_deref().map(|id| ("RequestId", id)));
        let body = xml::error(&elements);
        // SDKs read the id from the field, which the answer to a HEAD has too.
        let fields = id.and_then(|id| HeaderValue::try_from(id).ok()).map(|id| (REQUEST_ID, id));
        ErrorDocument { status, code, content_type: xml::CONTENT_TYPE, fields: fields.into_iter().collect(), body }
    }

    fn probe_target(&self, target: &[u8]) -> Vec<u8> {
        object_of(target)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::*;
    use crate::core::cause::RequestId;

    #[test]
    fn a_refusal_tells_its_id_in_a_field_and_in_an_element() {
        let headers = HeaderMap::new();
        let request = Incoming { method: &Method::PUT, other_methods: &[], target: b"/b/k", headers: &headers };
        let mut refusal = Refusal::new(Code::NotSupported, "No.");
        let unnamed = S3.refusal(request, &refusal);
        assert_eq!(unnamed.fields, []);
        assert!(unnamed.body.ends_with("<Message>No.</Message></Error>"), "{}", unnamed.body);
        refusal.request_id = Some(RequestId(0xa1));
        let named = S3.refusal(request, &refusal);
        assert_eq!(named.fields, [(REQUEST_ID, HeaderValue::from_static("00000000000000a1"))]);
        let end = "<Message>No.</Message><RequestId>00000000000000a1</RequestId></Error>";
        assert!(named.body.ends_with(end), "{}", named.body);
    }
}
