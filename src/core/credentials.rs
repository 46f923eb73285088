//! The credentials in a request: whether there are any, and the signer of a request in schemes whose signature covers
//! the time, so that every request has other credentials.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::readings::query;

/// Fields that carry credentials in any configuration.
pub static CREDENTIAL_FIELDS: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::PROXY_AUTHORIZATION,
    header::COOKIE,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
];

/// Parameters of a query that carry credentials: a bearer token (RFC 6750 section 2.3), an API key, or the signature of
/// a signed URL.
const CREDENTIAL_PARAMETERS: [&str; 6] =
    ["access_token", "api_key", "sig", "signature", "x-amz-signature", "x-goog-signature"];

/// Whether a request with these fields and this query carries credentials. `identity_headers` are further fields that
/// may.
pub fn has_credentials(headers: &HeaderMap, identity_headers: &[HeaderName], query: Option<&[u8]>) -> bool {
    let has_field = CREDENTIAL_FIELDS.iter().chain(identity_headers).any(|name| headers.contains_key(name));
    let is_credential = |parameter: &[u8]| {
        let name = query::name_of(parameter);
        CREDENTIAL_PARAMETERS.iter().any(|known| query::is_read_as(name, known))
    };
    has_field || query.is_some_and(|query| query.split(|&octet| octet == b'&').any(is_credential))
}

/// Returns the name of the signer (AWS Signature Version 4; Azure's `SharedKey`). The name proves nothing: only the
/// backend can check the signature.
pub fn signer(headers: &HeaderMap) -> Option<&[u8]> {
    signer_of(headers.get(header::AUTHORIZATION)?.as_bytes())
}

/// Like [`signer`], but from a value of Authorization.
pub fn signer_of(credentials: &[u8]) -> Option<&[u8]> {
    let mut words = credentials.split(|octet| matches!(octet, b' ' | b','));
    let name = match words.next()? {
        b"SharedKey" | b"SharedKeyLite" => words.next()?.split(|&octet| octet == b':').next(),
        scheme if scheme.starts_with(b"AWS4-") => {
            words.find_map(|word| word.strip_prefix(b"Credential="))?.split(|&octet| octet == b'/').next()
        }
        _ => None,
    };
    name.filter(|name| !name.is_empty())
}

/// Schemes of `Authorization` whose credentials hold for one method or one request. Other schemes that sign requests
/// have `HMAC` in their names.
const BOUND_SCHEMES: [&[u8]; 5] = [b"digest", b"dpop", b"hawk", b"oauth", b"signature"];

/// Fields that prove the right to one request: `DPoP` (RFC 9449) and HTTP Message Signatures (RFC 9421).
static BOUND_FIELDS: [HeaderName; 2] = [HeaderName::from_static("dpop"), HeaderName::from_static("signature")];

/// Whether the credentials of a request hold for its method, or for that request alone. No other request can carry them.
pub fn are_bound_to_request(headers: &HeaderMap) -> bool {
    let scheme = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let scheme = scheme.and_then(|value| value.split(|&octet| octet == b' ').next()).unwrap_or_default();
    let scheme = scheme.to_ascii_lowercase();
    BOUND_SCHEMES.contains(&scheme.as_slice())
        || scheme.windows(4).any(|part| part == b"hmac")
        || BOUND_FIELDS.iter().any(|name| headers.contains_key(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_in_fields_and_in_signed_urls() {
        let fields = |name: &'static str| HeaderMap::from_iter([(HeaderName::from_static(name), "a".parse().unwrap())]);
        let own = [HeaderName::from_static("x-user")];
        for name in ["authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-user"] {
            assert!(has_credentials(&fields(name), &own, None), "{name}");
        }
        assert!(!has_credentials(&fields("x-user"), &[], None));
        for (query, expected) in
            [("a=1&X-Amz-Signature=2", true), ("sig=", true), ("access_token=a", true), ("a=sig", false)]
        {
            assert_eq!(has_credentials(&fields("host"), &own, Some(query.as_bytes())), expected, "{query}");
        }
    }

    #[test]
    fn credentials_for_one_request_are_known_by_scheme_or_field() {
        for (credentials, expected) in [
            ("Digest username=\"a\", response=\"b\"", true),
            ("digest username=\"a\"", true),
            ("DPoP abc", true),
            ("HMAC abc", true),
            ("HMAC-SHA256 Credential=a", true),
            ("ACS-HMAC a:b", true),
            ("AWS4-HMAC-SHA256 Credential=a", true),
            ("Signature keyId=\"a\"", true),
            ("Hawk id=\"a\"", true),
            ("OAuth oauth_signature=\"a\"", true),
            ("Bearer hmac", false),
            ("Basic digest", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, credentials.parse().unwrap())]);
            assert_eq!(are_bound_to_request(&headers), expected, "{credentials}");
        }
        for (name, expected) in [("dpop", true), ("signature", true), ("signature-input", false), ("cookie", false)] {
            let headers = HeaderMap::from_iter([(HeaderName::from_static(name), "a".parse().unwrap())]);
            assert_eq!(are_bound_to_request(&headers), expected, "{name}");
        }
        assert!(!are_bound_to_request(&HeaderMap::new()));
    }

    #[test]
    fn who_signs_each_request_is_known_by_name() {
        for (credentials, name) in [
            (
                "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu/s3/aws4_request, SignedHeaders=host, Signature=0",
                Some("AKID"),
            ),
            (
                "AWS4-HMAC-SHA256 SignedHeaders=host,Credential=AKID/20260101/eu/s3/aws4_request,Signature=0",
                Some("AKID"),
            ),
            ("SharedKey account:c2lnbmF0dXJl", Some("account")),
            ("SharedKeyLite account:c2lnbmF0dXJl", Some("account")),
            ("Bearer Credential=AKID/", None),
            ("AWS4-HMAC-SHA256 Signature=0", None),
            ("AWS4-HMAC-SHA256 Credential=/", None),
            ("SharedKey :c2lnbmF0dXJl", None),
        ] {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, credentials.parse().unwrap())]);
            assert_eq!(signer(&headers), name.map(str::as_bytes), "{credentials}");
        }
        assert_eq!(signer(&HeaderMap::new()), None);
    }
}
