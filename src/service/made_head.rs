//! The heads of requests that a service makes in the name of its client.

use http::{HeaderName, Method, header};
use pingora::http::RequestHeader;

use crate::{
    core::{http::credentials::signer, policy::GuardRules},
    upstream::fields::FieldsOfHead as _,
};

/// The fields of a client's request that also belong to those which the proxy makes for it, beside its credentials.
const KEPT: [HeaderName; 6] = [
    header::HOST,
    header::USER_AGENT,
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];

/// Returns the head of a request with this method and path, and with the credentials of the client.
pub(super) fn made_head(
    received: &RequestHeader,
    (method, path): (&Method, &str),
    rules: &GuardRules,
) -> pingora::Result<RequestHeader> {
    let mut head = received.clone();
    head.set_method(method.clone());
    head.set_raw_path(path.as_bytes())?;
    // A signature holds for the client's own request alone.
    let is_signed = signer(&received.headers).is_some();
    let is_credential = |name: &HeaderName| {
        let is_declared = rules.identity_headers.contains(name) || *name == header::COOKIE;
        is_declared && !(is_signed && *name == header::AUTHORIZATION)
    };
    head.remove_all(|name| !KEPT.contains(name) && !name.as_str().starts_with("x-forwarded-") && !is_credential(name));
    Ok(head)
}
