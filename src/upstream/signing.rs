//! Signing a request with the proxy's own credentials (AWS Signature Version 4; `probe_auth = "sigv4"`).

use std::{env, time::SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::{
    http_request::{
        PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
        UriPathNormalizationMode, sign,
    },
    sign::v4::SigningParams,
};
use aws_smithy_runtime_api::client::identity::Identity;
use http::header;
use pingora::http::RequestHeader;
use thiserror::Error;

/// The environment variables that hold the credentials.
const VARIABLES: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];

/// The service that the signature is for.
const SERVICE: &str = "s3";

/// Signs with one set of credentials, and never discloses them.
pub(crate) struct Signer(Identity);

/// The environment holds no credentials.
#[derive(Debug, Error)]
#[error("probe_auth = \"sigv4\" needs the proxy's own credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")]
pub struct NoKeys;

/// A request that cannot be signed.
#[derive(Debug, Error)]
#[error("the request has a target or a field that cannot be signed")]
pub(crate) struct Unsignable;

impl Signer {
    /// Reads the credentials from the process's environment.
    pub(crate) fn from_environment() -> Result<Self, NoKeys> {
        let [id, secret, token] = VARIABLES.map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
        let (Some(id), Some(secret)) = (id, secret) else { return Err(NoKeys) };
        Ok(Self(Credentials::new(id, secret, token, None, "environment").into()))
    }

    /// Signs a request without a body: its method, target, Host and `x-amz-*` fields.
    pub(crate) fn sign(&self, head: &mut RequestHeader, region: &str, now: SystemTime) -> Result<(), Unsignable> {
        let mut settings = SigningSettings::default();
        // S3 takes paths unchanged, and requires the hash of the body.
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        let params = SigningParams::builder().identity(&self.0).region(region).name(SERVICE).time(now);
        let params = params.settings(settings).build().map_err(|_incomplete| Unsignable)?.into();
        let host = head.headers.get(header::HOST).and_then(|host| host.to_str().ok()).ok_or(Unsignable)?;
        let target = str::from_utf8(head.raw_path()).map_err(|_not_text| Unsignable)?;
        let signed =
            head.headers.iter().filter(|(name, _)| *name == header::HOST || name.as_str().starts_with("x-amz-"));
        let signed = signed.map(|(name, value)| value.to_str().map(|value| (name.as_str(), value)));
        let signed = signed.collect::<Result<Vec<_>, _>>().map_err(|_not_text| Unsignable)?;
        let (method, uri) = (head.method.as_str(), format!("http://{host}{target}"));
        let request = SignableRequest::new(method, uri, signed.into_iter(), SignableBody::Bytes(b""));
        let output = sign(request.map_err(|_unreadable| Unsignable)?, &params).map_err(|_failed| Unsignable)?;
        let (fields, _) = output.into_parts().0.into_parts();
        for field in fields {
            head.insert_header(field.name(), field.value()).map_err(|_invalid| Unsignable)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The example from the documentation of S3's signatures, without its range.
    fn signed(token: Option<&str>) -> RequestHeader {
        let credentials = Credentials::new("AKIDEXAMPLE", "SECRETEXAMPLE", token.map(str::to_owned), None, "test");
        let mut head = RequestHeader::build("HEAD", b"/bucket/key%20one?versionId=1", None).unwrap();
        head.insert_header("Host", "127.0.0.1:9000").unwrap();
        head.insert_header("Accept", "*/*").unwrap();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        Signer(credentials.into()).sign(&mut head, "eu-central-1", now).unwrap();
        head
    }

    fn field(head: &RequestHeader, name: &str) -> String {
        head.headers[name].to_str().unwrap().to_owned()
    }

    #[test]
    fn signs_what_it_says_to_the_service_and_nothing_else() {
        let head = signed(Some("TOKENEXAMPLE"));
        let authorization = field(&head, "authorization");
        let expected = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20231114/eu-central-1/s3/aws4_request, \
                        SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=";
        assert!(authorization.starts_with(expected), "{authorization}");
        assert_eq!(field(&head, "x-amz-date"), "20231114T221320Z");
        assert_eq!(field(&head, "x-amz-security-token"), "TOKENEXAMPLE");
        assert!(!signed(None).headers.contains_key("x-amz-security-token"));
        assert_ne!(authorization, field(&signed(None), "authorization"));
    }

    #[test]
    fn shows_its_secret_nowhere() {
        let fields = format!("{:?}", signed(Some("TOKENEXAMPLE")));
        assert!(!fields.contains("SECRETEXAMPLE"), "{fields}");
    }
}
