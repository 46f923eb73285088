//! The signer of a request, for schemes whose signature covers the time, so that every request has other credentials.

use http::{HeaderMap, header};

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

#[cfg(test)]
mod tests {
    use super::*;

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
