//! The grammar of S3: its differences from plain HTTP.

use http::HeaderName;

use super::{error_of, object_of, quoted, refuse_unguardable};
use crate::{
    core::{idempotency::IDEMPOTENCY_KEY, policy::GuardRules, quirks::Quirks, refusal::Refusal},
    dialect::{Call, Defaults, Demands, ErrorDocument, Grammar, Incoming, Random, native, xml},
};

/// The field with the id that the SDKs give to each operation, and repeat when they retry it.
const AMZ_SDK_INVOCATION_ID: HeaderName = HeaderName::from_static("amz-sdk-invocation-id");

static IDEMPOTENCY_FIELDS: [HeaderName; 2] = [IDEMPOTENCY_KEY, AMZ_SDK_INVOCATION_ID];

static QUIRKS: Quirks = Quirks {
    always_dated: true,
    missing_is_404: Some("NoSuchKey"),
    // S3 has only strong tags, so the named tag is the one that matched.
    confirms_named_tag: true,
    idempotency_fields: &IDEMPOTENCY_FIELDS,
    ..native::QUIRKS
};

static DEFAULTS: Defaults = Defaults { unique_tags: true, ..native::DEFAULTS };

static DEMANDS: Demands = Demands { signed_requests: true, ..native::DEMANDS };

/// The dialect of Amazon S3.
#[derive(Debug)]
pub struct S3;

impl Grammar for S3 {
    fn quirks(&self) -> &'static Quirks {
        &QUIRKS
    }

    fn defaults(&self) -> &'static Defaults {
        &DEFAULTS
    }

    fn demands(&self) -> &'static Demands {
        &DEMANDS
    }

    fn read(&self, request: Incoming<'_>, rules: &GuardRules, is_lease: bool) -> Result<Call, Refusal> {
        refuse_unguardable(request.method, request.target, request.headers, &rules.etag)?;
        let headers = quoted(request.headers);
        native::call(Incoming { headers: &headers, ..request }, rules, is_lease)
    }

    fn refusal(&self, _request: Incoming<'_>, refusal: &Refusal, _random: Random) -> ErrorDocument {
        let (status, code) = error_of(refusal);
        let body = xml::error(&[("Code", code), ("Message", &refusal.detail)]);
        ErrorDocument { status, code, content_type: xml::CONTENT_TYPE, fields: Vec::new(), body }
    }

    fn probe_target(&self, target: &[u8]) -> Vec<u8> {
        object_of(target)
    }
}
