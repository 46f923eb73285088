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

/// Parameters of a query that carry credentials in any configuration: a bearer token (RFC 6750 section 2.3), an API key,
/// or the signature of a signed URL.
pub const CREDENTIAL_PARAMETERS: [&str; 8] =
    ["access_token", "token", "api_key", "key", "sig", "signature", "X-Amz-Signature", "X-Goog-Signature"];

/// The parameters that sign one URL, so that a client has another one with each request. A shared access signature
/// (`sig`) is none of them: its client sends it until it ends.
const URL_SIGNATURES: [&str; 3] = ["X-Amz-Signature", "X-Goog-Signature", "Signature"];

/// The parameters that name who signed a URL.
const URL_SIGNERS: [&str; 4] = ["X-Amz-Credential", "X-Goog-Credential", "AWSAccessKeyId", "GoogleAccessId"];

/// True if a request with these fields and this query carries credentials.
pub fn has_credentials(headers: &HeaderMap, query: Option<&[u8]>) -> bool {
    let has_field = CREDENTIAL_FIELDS.iter().any(|name| headers.contains_key(name));
    has_field || query.is_some_and(|query| parameters(query, &CREDENTIAL_PARAMETERS).next().is_some())
}

/// Returns the parameters of a query that a backend could read under one of these names, as sent.
pub fn parameters<'a, N: AsRef<str>>(query: &'a [u8], names: &'a [N]) -> impl Iterator<Item = &'a [u8]> {
    query::parameters(query).filter(|parameter| query::is_one_of(parameter, names))
}

/// Returns the name of the signer of a URL, as sent. It proves nothing: only the backend can check the signature.
pub fn url_signer(query: &[u8]) -> Option<&[u8]> {
    let named = query::parameters(query).find_map(|parameter| {
        let value = |signer: &&str| parameter.strip_prefix(signer.as_bytes())?.strip_prefix(b"=");
        URL_SIGNERS.iter().find_map(value)
    })?;
    // The rest is the date and the scope of the signature.
    let end = named.windows(3).position(|part| part.eq_ignore_ascii_case(b"%2f")).unwrap_or(named.len());
    let name = named.get(..end)?.split(|&octet| octet == b'/').next()?;
    (!name.is_empty()).then_some(name)
}

/// True if a parameter signs its URL.
pub fn signs_url(parameter: &[u8]) -> bool {
    query::is_one_of(parameter, &URL_SIGNATURES)
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
pub static PROOF_FIELDS: [HeaderName; 2] = [HeaderName::from_static("dpop"), HeaderName::from_static("signature")];

/// True if the credentials of a request hold for its method, or for that request alone. No other request can carry them.
pub fn are_bound_to_request(headers: &HeaderMap) -> bool {
    let scheme = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let scheme = scheme.and_then(|value| value.split(|&octet| octet == b' ').next()).unwrap_or_default();
    let scheme = scheme.to_ascii_lowercase();
    BOUND_SCHEMES.contains(&scheme.as_slice())
        || scheme.windows(4).any(|part| part == b"hmac")
        || PROOF_FIELDS.iter().any(|name| headers.contains_key(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_in_fields_and_in_signed_urls() {
        let fields = |name: &'static str| HeaderMap::from_iter([(HeaderName::from_static(name), "a".parse().unwrap())]);
        for name in ["authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"] {
            assert!(has_credentials(&fields(name), None), "{name}");
        }
        assert!(!has_credentials(&fields("x-user"), None));
        for (query, expected) in [
            ("a=1&X-Amz-Signature=2", true),
            ("a=1;tok%65n=2", true),
            ("sig=", true),
            ("access_token=a", true),
            ("api.key=a", true),
            ("a=sig", false),
            ("tokens=1", false),
        ] {
            assert_eq!(has_credentials(&fields("host"), Some(query.as_bytes())), expected, "{query}");
        }
    }

    #[test]
    fn who_signs_a_url_is_known_by_name() {
        for (query, name) in [
            ("X-Amz-Credential=AKID%2F20260101%2Feu%2Fs3%2Faws4_request&X-Amz-Signature=0", Some("AKID")),
            ("X-Amz-Signature=0&X-Amz-Credential=AKID/20260101/eu", Some("AKID")),
            ("X-Goog-Credential=a%40b%2f20260101%2fauto", Some("a%40b")),
            ("AWSAccessKeyId=AKID&Expires=1&Signature=0", Some("AKID")),
            ("X-Amz-Credential=%2F2026", None),
            ("X-Amz-CredentialX=AKID", None),
            ("sig=0&sv=1", None),
        ] {
            assert_eq!(url_signer(query.as_bytes()), name.map(str::as_bytes), "{query}");
        }
        for (parameter, expected) in
            [("X-Amz-Signature=0", true), ("x-amz-signature=0", true), ("sig=0", false), ("token=0", false)]
        {
            assert_eq!(signs_url(parameter.as_bytes()), expected, "{parameter}");
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
