//! The client of `doctor`: one request per connection, with and without TLS.

use std::{error::Error, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header, uri::Scheme};
use http_body_util::Full;
use rustls::pki_types::ServerName;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;

use super::received::ReceivedAnswer;
use crate::{cli::exchange::exchange, tls};

/// The resource that is asked for, and how to reach its server.
#[derive(Clone)]
pub(super) struct DoctorClient {
    uri: Uri,
    address: (String, u16),
    /// Present if the URL begins with https.
    tls: Option<(TlsConnector, ServerName<'static>)>,
    /// The fields of each request.
    fields: HeaderMap,
    patience: Duration,
}

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum DoctorFailure {
    #[error("{0:?} is not a URL that begins with http:// or https://")]
    Url(String),
    #[error("{0:?} is not 'Name: value'")]
    Field(String),
    #[error("doctor sets {0} itself; remove it from -H")]
    OwnField(HeaderName),
    #[error("{0} cannot be reached")]
    Unreachable(String, #[source] io::Error),
    #[error("{0} gave no answer that can be read")]
    NoAnswer(Uri, #[source] Box<dyn Error + Send + Sync>),
    #[error("{0} gave no answer within {1:?}; --timeout sets another limit")]
    Late(Uri, Duration),
    #[error("the resource can no longer be read: the answer is {0}")]
    Gone(StatusCode),
}

impl DoctorClient {
    /// Creates a client for a URL. Each request has these fields.
    pub(super) fn new(url: &str, fields: HeaderMap, patience: Duration) -> Result<Self, DoctorFailure> {
        let wrong = || DoctorFailure::Url(url.to_owned());
        let uri = url.parse::<Uri>().map_err(|_malformed| wrong())?;
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(wrong)?;
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let secure = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err(wrong()),
        };
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let name = || ServerName::try_from(host.clone()).map_err(|_invalid| wrong());
        let tls = if secure { Some((connector(), name()?)) } else { None };
        Ok(Self { address: (host, port), tls, fields, patience, uri })
    }

    /// Returns the path of the resource.
    pub(super) fn path(&self) -> &str {
        self.uri.path()
    }

    /// Returns a client for another path of the server, with the same query.
    pub(super) fn at(&self, path: &str) -> Result<Self, DoctorFailure> {
        let query = self.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        self.at_target(&format!("{path}{query}"))
    }

    fn at_target(&self, target: &str) -> Result<Self, DoctorFailure> {
        let wrong = || DoctorFailure::Url(target.to_owned());
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(target.parse().map_err(|_malformed| wrong())?);
        let uri = Uri::from_parts(parts).map_err(|_malformed| wrong())?;
        Ok(Self { uri, ..self.clone() })
    }

    /// Returns a client for the same path with one more parameter in its query.
    pub(super) fn with_parameter(&self, parameter: &str) -> Result<Self, DoctorFailure> {
        let query = self.uri.query().map_or_else(|| parameter.to_owned(), |query| format!("{query}&{parameter}"));
        self.at_target(&format!("{}?{query}", self.path()))
    }

    /// Returns a client whose requests ask caches to pass them on.
    pub(super) fn past_caches(&self) -> Self {
        let mut client = self.clone();
        client.fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        client
    }

    /// Sends one request, and returns its answer.
    pub(super) async fn send(
        &self,
        method: Method,
        fields: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<ReceivedAnswer, DoctorFailure> {
        let request = self.request(method, fields, body).map_err(|error| self.no_answer(error))?;
        let answered = timeout(self.patience, self.exchange(request)).await;
        answered.map_err(|_elapsed| DoctorFailure::Late(self.uri.clone(), self.patience))?
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<ReceivedAnswer, DoctorFailure> {
        let (host, port) = &self.address;
        let unreachable = |error| DoctorFailure::Unreachable(format!("{host}:{port}"), error);
        let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(unreachable)?;
        let answer = match &self.tls {
            Some((tls, name)) => exchange(tls.connect(name.clone(), stream).await.map_err(unreachable)?, request).await,
            None => exchange(stream, request).await,
        };
        let (head, body) = answer.map_err(|error| self.no_answer(error))?.into_parts();
        Ok(ReceivedAnswer { status: head.status, fields: head.headers, body })
    }

    fn no_answer(&self, error: impl Into<Box<dyn Error + Send + Sync>>) -> DoctorFailure {
        DoctorFailure::NoAnswer(self.uri.clone(), error.into())
    }

    fn request(
        &self,
        method: Method,
        fields: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, http::Error> {
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        let mut request = Request::builder().method(method).uri(target).body(Full::new(body))?;
        *request.headers_mut() = self.fields.clone();
        for (name, value) in fields {
            request.headers_mut().insert(name, value.clone());
        }
        if let (false, Some(authority)) = (self.fields.contains_key(header::HOST), self.uri.authority()) {
            request.headers_mut().insert(header::HOST, HeaderValue::from_str(authority.as_str())?);
        }
        Ok(request)
    }
}

/// Checks servers by the authorities of the operating system.
fn connector() -> TlsConnector {
    #[allow(clippy::expect_used, reason = "ring supports the versions that are safe by default")]
    let mut config = tls::client(tls::system_authorities(), None).expect("ring has TLS 1.2 and 1.3");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// Reads the fields of `-H`.
pub(super) fn fields(texts: &[String]) -> Result<HeaderMap, DoctorFailure> {
    let mut fields = HeaderMap::new();
    for text in texts {
        let parsed = text.split_once(':').and_then(|(name, value)| {
            Some((name.trim().parse::<HeaderName>().ok()?, value.trim().parse::<HeaderValue>().ok()?))
        });
        let (name, value) = parsed.ok_or_else(|| DoctorFailure::Field(text.clone()))?;
        if is_own(&name) {
            return Err(DoctorFailure::OwnField(name));
        }
        fields.append(name, value);
    }
    Ok(fields)
}

fn is_own(name: &HeaderName) -> bool {
    const OWN: [HeaderName; 7] = [
        header::ACCEPT_ENCODING,
        header::CACHE_CONTROL,
        header::CONTENT_LENGTH,
        header::CONTENT_TYPE,
        header::CONNECTION,
        header::RANGE,
        header::TRANSFER_ENCODING,
    ];
    OWN.contains(name) || name.as_str().starts_with("if-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_server() {
        let address = |url| DoctorClient::new(url, HeaderMap::new(), Duration::ZERO).map(|client| client.address);
        for (url, host, port) in [
            ("http://a.example/x?y", "a.example", 80),
            ("https://a.example", "a.example", 443),
            ("http://[::1]:8080/", "::1", 8080),
        ] {
            assert_eq!(address(url).expect(url), (host.to_owned(), port));
        }
        for url in ["/x", "a.example/x", "ftp://a.example/", "http://user@a.example/", "http://"] {
            assert!(matches!(address(url), Err(DoctorFailure::Url(_))), "{url}");
        }
    }

    #[test]
    fn another_path_keeps_the_rest_of_the_url() {
        let client = DoctorClient::new("http://a.example:1/x?y=Z", HeaderMap::new(), Duration::ZERO).expect("a client");
        assert_eq!(client.path(), "/x");
        assert_eq!(client.at("/a%2FB").expect("a path").uri, "http://a.example:1/a%2FB?y=Z");
    }

    #[test]
    fn past_caches_each_request_says_so() {
        let client = DoctorClient::new("http://a.example/", HeaderMap::new(), Duration::ZERO).expect("a client");
        let request = client.past_caches().request(Method::GET, &[], Bytes::new()).expect("a request");
        assert_eq!(request.headers()["cache-control"], "no-cache");
    }

    #[test]
    fn fields_are_name_and_value_and_none_of_doctors_own() {
        let of = |text: &str| fields(&[text.to_owned()]);
        assert_eq!(of("Authorization: Bearer a:b").expect("a field")["authorization"], "Bearer a:b");
        for text in ["Authorization", "a b: c", "X: a\nb"] {
            assert!(matches!(of(text), Err(DoctorFailure::Field(_))), "{text}");
        }
        for text in ["If-Match: *", "if-range: x", "Accept-Encoding: br", "Content-Length: 1"] {
            assert!(matches!(of(text), Err(DoctorFailure::OwnField(_))), "{text}");
        }
    }
}
