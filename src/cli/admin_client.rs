//! A client of the admin listener: one request per connection.

use std::{env, error::Error, fs, io, path::Path, path::PathBuf, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::timeout,
};

use crate::admin::ADMIN_FIELD;

/// Where the commands look for the admin listener if they are told nothing else.
pub(super) const DEFAULT_ADDRESS: &str = "http://127.0.0.1:9901";

/// The environment variable that holds the token if no file is given.
const TOKEN_VARIABLE: &str = "IFMATCH_ADMIN_TOKEN";
/// How long it may take to connect.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long an answer may take: a little more than the listener allows itself.
const ANSWER_MAX: Duration = Duration::from_secs(100);
/// The largest answer, in bytes.
const ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// The address of an admin listener, and the token that it requires.
pub(super) struct AdminClient {
    place: AdminAddress,
    token: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum AdminAddress {
    /// `host:port`.
    Tcp(String),
    Unix(PathBuf),
}

/// Why a command failed, in words for the user.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandFailure {
    #[error("{0:?} is not the address of an admin listener: write http://127.0.0.1:9901 or unix:/path")]
    Address(String),
    #[error("the token cannot be read from {}", .0.display())]
    Token(PathBuf, #[source] io::Error),
    #[error("the admin listener at {0} cannot be reached; is it configured ([admin] listen), and is this its address?")]
    Unreachable(String, #[source] Option<io::Error>),
    #[error("the admin listener gave no answer")]
    NoAnswer(#[source] Option<Box<dyn Error + Send + Sync>>),
    #[error("{code}: {detail}")]
    Refused { code: String, detail: String },
}

impl AdminClient {
    /// Creates the client of a listener, with the token from a file or from the environment, if there is one.
    pub(super) fn new(address: &str, token_file: Option<&Path>) -> Result<Self, CommandFailure> {
        let token = match token_file {
            Some(path) => {
                let text = fs::read_to_string(path).map_err(|error| CommandFailure::Token(path.to_owned(), error))?;
                Some(text.trim_end_matches(['\r', '\n']).to_owned())
            }
            None => env::var(TOKEN_VARIABLE).ok(),
        };
        Ok(Self { place: place(address).ok_or_else(|| CommandFailure::Address(address.to_owned()))?, token })
    }

    /// Sends a GET and returns the JSON of the answer.
    pub(super) async fn get(&self, target: &str) -> Result<Value, CommandFailure> {
        self.ask(Method::GET, target, None).await
    }

    /// Sends a POST and returns the JSON of the answer.
    pub(super) async fn post(&self, target: &str, document: &Value) -> Result<Value, CommandFailure> {
        self.ask(Method::POST, target, Some(document)).await
    }

    async fn ask(&self, method: Method, target: &str, document: Option<&Value>) -> Result<Value, CommandFailure> {
        let (status, document) = self.answer(method, target, document).await?;
        if status == StatusCode::OK && !document.is_null() {
            return Ok(document);
        }
        let text = |member: &str| document.get(member).and_then(Value::as_str).map(str::to_owned);
        let code = text("code").unwrap_or_else(|| status.to_string());
        Err(CommandFailure::Refused {
            code,
            detail: text("detail").unwrap_or_else(|| "is this an admin listener?".to_owned()),
        })
    }

    /// Sends a request and returns the status and the JSON of the answer, which is null if the answer has none.
    pub(super) async fn answer(
        &self,
        method: Method,
        target: &str,
        document: Option<&Value>,
    ) -> Result<(StatusCode, Value), CommandFailure> {
        let request =
            self.request(method, target, document).map_err(|error| CommandFailure::NoAnswer(Some(error.into())))?;
        let answered = async {
            match &self.place {
                AdminAddress::Tcp(address) => exchange(self.reach(TcpStream::connect(address)).await?, request).await,
                AdminAddress::Unix(path) => exchange(self.reach(UnixStream::connect(path)).await?, request).await,
            }
        };
        let (status, body) =
            timeout(ANSWER_MAX, answered).await.map_err(|_elapsed| CommandFailure::NoAnswer(None))??;
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }

    async fn reach<S>(&self, connection: impl Future<Output = io::Result<S>>) -> Result<S, CommandFailure> {
        let place = match &self.place {
            AdminAddress::Tcp(address) => address.clone(),
            AdminAddress::Unix(path) => format!("unix:{}", path.display()),
        };
        match timeout(CONNECT_MAX, connection).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(CommandFailure::Unreachable(place, Some(error))),
            Err(_elapsed) => Err(CommandFailure::Unreachable(place, None)),
        }
    }

    fn request(
        &self,
        method: Method,
        target: &str,
        document: Option<&Value>,
    ) -> Result<Request<Full<Bytes>>, http::Error> {
        let host = match &self.place {
            AdminAddress::Tcp(address) => address.as_str(),
            AdminAddress::Unix(_) => "localhost",
        };
        let mut request =
            Request::builder().method(method).uri(target).header(header::HOST, host).header(ADMIN_FIELD, "1");
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        match document {
            Some(document) => request
                .header(header::CONTENT_TYPE, "application/json")
                .body(Full::new(Bytes::from(document.to_string()))),
            None => request.body(Full::default()),
        }
    }
}

fn place(address: &str) -> Option<AdminAddress> {
    if let Some(path) = address.strip_prefix("unix:") {
        return (!path.is_empty()).then(|| AdminAddress::Unix(PathBuf::from(path)));
    }
    let with_scheme = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let uri = with_scheme.parse::<Uri>().ok().filter(|uri| uri.scheme_str() == Some("http") && uri.path() == "/")?;
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    Some(AdminAddress::Tcp(format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80))))
}

/// Sends a request and reads its answer up to a limit.
async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), CommandFailure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let lost = |error: hyper::Error| CommandFailure::NoAnswer(Some(error.into()));
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
    // The connection ends with the answer; the request reports how it ended.
    tokio::spawn(async move { drop(connection.await) });
    let response: Response<Incoming> = sender.send_request(request).await.map_err(lost)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
    Ok((status, body.map_err(|error| CommandFailure::NoAnswer(Some(error)))?.to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_urls_or_sockets() {
        let tcp = |address: &str| Some(AdminAddress::Tcp(address.to_owned()));
        assert_eq!(place("http://127.0.0.1:9901"), tcp("127.0.0.1:9901"));
        assert_eq!(place("http://[::1]:9901/"), tcp("[::1]:9901"));
        assert_eq!(place("localhost:9901"), tcp("localhost:9901"));
        assert_eq!(place("http://admin.example"), tcp("admin.example:80"));
        assert_eq!(place("unix:/run/admin"), Some(AdminAddress::Unix(PathBuf::from("/run/admin"))));
        for address in ["", "unix:", "https://a:1", "http://a:1/b", "http://a@b:1", "http://"] {
            assert_eq!(place(address), None, "{address}");
        }
    }
}
