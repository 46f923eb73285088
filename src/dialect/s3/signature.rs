//! The signatures of requests (AWS Signature Version 4, RFC 9421) and the fields that they cover.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, header};

use crate::core::http::{
    readings::{query, query_names::may_be_read_as},
    request_target::{join_query, split_query},
};

/// The prefix of an `Authorization` value: `AWS4-HMAC-SHA256`, `AWS4-ECDSA-P256-SHA256`.
const SCHEME: &[u8] = b"AWS4-";

/// The prefix of the parameters that sign a URL, in any case.
const PARAMETER_PREFIX: &[u8] = b"x-amz-";

/// The prefixes of fields without which some objects cannot be read: the key that an object is encrypted with, the
/// payer of the request, and the expected owner of the bucket.
const NEEDED_TO_READ: [&str; 3] =
    ["x-amz-server-side-encryption-customer-", "x-amz-request-payer", "x-amz-expected-bucket-owner"];

/// The part of a request's signature that binds a proxy.
#[derive(Clone, Copy, Debug)]
pub struct Signature<'a> {
    headers: &'a HeaderMap,
    target: &'a [u8],
}

impl<'a> Signature<'a> {
    /// Returns the signature of a request with this target and these fields. The request may be unsigned.
    pub fn of(target: &'a [u8], headers: &'a HeaderMap) -> Self {
        Self { headers, target }
    }

    /// True if the signature is an AWS signature. It covers one method and one target, so no other request can carry
    /// it.
    pub fn is_of_aws(self) -> bool {
        self.authorization().is_some() || self.parameter("x-amz-signature").is_some()
    }

    /// True if the signature covers a field. If so, the field must arrive as the client sent it.
    pub fn covers(self, name: &HeaderName) -> bool {
        let is_name = |listed: &[u8]| listed.eq_ignore_ascii_case(name.as_str().as_bytes());
        let in_field = self.authorization().is_some_and(|value| {
            let mut parts = value.split(|octet| matches!(octet, b',' | b' '));
            let list = parts.find_map(|part| part.strip_prefix(b"SignedHeaders="));
            list.is_some_and(|list| list.split(|&octet| octet == b';').any(is_name))
        });
        let in_url = || {
            let list = self.parameter("x-amz-signedheaders").unwrap_or_default();
            list.split(|&octet| octet == b';').any(is_name)
        };
        let in_components = || {
            let component = format!("\"{name}\"");
            let lines = self.headers.get_all("signature-input").iter();
            lines.filter_map(|line| line.to_str().ok()).any(|line| line.contains(&component))
        };
        in_field || in_url() || in_components()
    }

    fn authorization(self) -> Option<&'a [u8]> {
        let value = self.headers.get(header::AUTHORIZATION)?.as_bytes();
        value.starts_with(SCHEME).then_some(value)
    }

    fn parameter(self, name: &'static str) -> Option<Cow<'a, [u8]>> {
        query::values(self.target, name).next()
    }
}

/// Returns a target without the parameters that sign it.
pub fn target_without_signature(target: &[u8]) -> Vec<u8> {
    let signs = |pair: &[u8]| {
        pair.get(..PARAMETER_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PARAMETER_PREFIX))
    };
    with_parameters(target, |pair| !signs(pair))
}

/// Returns the target of the object that an operation acts on. Parameters of the operation, such as the upload that it
/// completes, are removed.
pub fn object_of(target: &[u8]) -> Vec<u8> {
    with_parameters(target, |pair| may_be_read_as(query::name_of(pair), "versionId"))
}

fn with_parameters(target: &[u8], kept: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let (path, query) = split_query(target);
    let pairs = query.unwrap_or_default().split(|&octet| octet == b'&');
    let kept = pairs.filter(|pair| !pair.is_empty() && kept(pair)).collect::<Vec<_>>().join(&b'&');
    join_query(path, Some(&kept[..]).filter(|kept| !kept.is_empty()))
}

/// True if a field of a write belongs in a separately signed request that reads the same object.
pub fn keep_for_own_signature(name: &HeaderName) -> bool {
    let name = name.as_str();
    let is_of_aws = name.starts_with("x-amz-") || name.starts_with("amz-sdk-");
    !is_of_aws || NEEDED_TO_READ.iter().any(|needed| name.starts_with(needed))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))])
    }

    #[test]
    fn p32_a_field_is_signed_where_any_kind_of_signature_names_it() {
        let none = HeaderMap::new();
        let aws = headers(
            "authorization",
            "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu/s3/aws4_request, SignedHeaders=host;if-match;x-amz-date, Signature=0",
        );
        let close = headers("authorization", "AWS4-HMAC-SHA256 Credential=A,SignedHeaders=host;if-match,Signature=0");
        let rfc = headers("signature-input", "sig1=(\"@method\" \"if-match\");created=1");
        for (target, fields, is_signed, is_of_aws) in [
            ("/b/k", &aws, true, true),
            ("/b/k", &close, true, true),
            ("/b/k", &rfc, true, false),
            ("/b/k?X-Amz-SignedHeaders=host%3Bif-match&X-Amz-Signature=0", &none, true, true),
            ("/b/k?X-Amz-SignedHeaders=host&X-Amz-Signature=0", &none, false, true),
            ("/b/k?a=b", &none, false, false),
            ("/b/k", &headers("authorization", "Bearer SignedHeaders=if-match"), false, false),
        ] {
            let signature = Signature::of(target.as_bytes(), fields);
            assert_eq!(
                (signature.covers(&header::IF_MATCH), signature.is_of_aws()),
                (is_signed, is_of_aws),
                "{target}"
            );
            assert!(!signature.covers(&header::IF_NONE_MATCH));
        }
    }

    #[test]
    fn a_probe_takes_nothing_of_the_clients_signature() {
        let target = b"/b/k?X-Amz-Algorithm=a&versionId=1&X-Amz-Signature=0&x-amz-date=2&";
        assert_eq!(target_without_signature(target), b"/b/k?versionId=1");
        assert_eq!(target_without_signature(b"/b/k?X-Amz-Signature=0"), b"/b/k");
        assert_eq!(object_of(b"/b/k?uploadId=a&versionId=1&X-Amz-Signature=0"), b"/b/k?versionId=1");
        assert_eq!(object_of(b"/b/k?uploadId=a"), b"/b/k");
        assert_eq!(
            object_of(b"/b/k?uploadId=a&version%49d=1"),
            b"/b/k?version%49d=1",
            "another version in any spelling"
        );
        for (name, kept) in [
            ("x-amz-date", false),
            ("x-amz-acl", false),
            ("amz-sdk-invocation-id", false),
            ("x-amz-server-side-encryption-customer-key", true),
            ("x-amz-server-side-encryption", false),
            ("accept", true),
        ] {
            assert_eq!(keep_for_own_signature(&HeaderName::from_static(name)), kept, "{name}");
        }
    }
}
