//! A client of the admin listener: one request per connection.

use std::{
    env,
    error::Error,
    fmt::{Display, Write as _},
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use bytes::Bytes;
use clap::Args;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::Value;
use tokio::{
    net::{TcpStream, UnixStream},
    time::timeout,
};

use super::{Exit, exchange::exchange, print, run::fail};
use crate::admin::ADMIN_FIELD;

/// The address of the admin listener, unless the user names another one.
const DEFAULT_ADDRESS: &str = "http://127.0.0.1:9901";

/// The environment variable that names the listener if no option does.
const ADDRESS_VARIABLE: &str = "IFMATCH_ADMIN";

/// The environment variable that holds the token if no file is given.
const TOKEN_VARIABLE: &str = "IFMATCH_ADMIN_TOKEN";
/// How long it may take to connect.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long an answer may take: a little more than the listener allows itself.
const ANSWER_MAX: Duration = Duration::from_secs(100);

/// The characters that are percent-encoded in a query.
const IN_QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'&').add(b'+').add(b'<').add(b'>');

/// The options of every command that asks an admin listener.
#[derive(Debug, Args)]
pub(super) struct AdminOptions {
    /// The admin listener: `http://host:port` or `unix:/path`; without it, the variable `IFMATCH_ADMIN` names the listener,
    /// else it is at `http://127.0.0.1:9901`.
    #[arg(long, global = true, value_name = "URL")]
    admin: Option<String>,
    /// The file of its token; without it, the variable `IFMATCH_ADMIN_TOKEN` holds the token, if there is one.
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print JSON, as the admin listener returns it.
    #[arg(long, global = true)]
    json: bool,
}

impl AdminOptions {
    /// Creates the client of the listener that the options name.
    pub(super) fn client(&self) -> Result<AdminClient, CommandFailure> {
        AdminClient::new(self.admin.as_deref(), self.token_file.as_deref())
    }

    /// Prints a document as it is, or for people.
    pub(super) fn show(&self, document: impl Display, for_people: impl FnOnce()) {
        if self.json { print(document) } else { for_people() }
    }
}

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

/// The reason why a command failed, in words for the user.
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
    #[error("{0}")]
    Unhealthy(&'static str),
}

impl AdminClient {
    /// Creates the client of a listener. An option, the environment or the default names its address. The token, if
    /// there is one, comes from a file or from the environment.
    pub(super) fn new(address: Option<&str>, token_file: Option<&Path>) -> Result<Self, CommandFailure> {
        let of_environment = || env::var(ADDRESS_VARIABLE).ok().filter(|address| !address.is_empty());
        let address = address.map(str::to_owned).or_else(of_environment).unwrap_or_else(|| DEFAULT_ADDRESS.to_owned());
        let token = match token_file {
            Some(path) => {
                let text = fs::read_to_string(path).map_err(|error| CommandFailure::Token(path.to_owned(), error))?;
                Some(text.trim_end_matches(['\r', '\n']).to_owned())
            }
            None => env::var(TOKEN_VARIABLE).ok(),
        };
        Ok(Self { place: place(&address).ok_or(CommandFailure::Address(address))?, token })
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
            let answer = match &self.place {
                AdminAddress::Tcp(address) => exchange(self.reach(TcpStream::connect(address)).await?, request).await,
                AdminAddress::Unix(path) => exchange(self.reach(UnixStream::connect(path)).await?, request).await,
            };
            answer.map_err(|error| CommandFailure::NoAnswer(Some(error)))
        };
        let answer = timeout(ANSWER_MAX, answered).await.map_err(|_elapsed| CommandFailure::NoAnswer(None))??;
        Ok((answer.status(), serde_json::from_slice(answer.body()).unwrap_or_default()))
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

/// Runs a command, and reports its failure.
pub(super) fn execute_on_runtime(act: impl Future<Output = Result<(), CommandFailure>>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error, Exit::Runtime),
    };
    match runtime.block_on(act) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure @ CommandFailure::Address(_)) => fail(&failure, Exit::Usage),
        Err(failure) => fail(&failure, Exit::Runtime),
    }
}

/// Returns a text member of a JSON object.
pub(super) fn text(object: &Value, member: &str) -> Option<String> {
    Some(object.get(member)?.as_str()?.to_owned())
}

/// Returns a number member of a JSON object.
pub(super) fn number(object: &Value, member: &str) -> Option<u64> {
    object.get(member)?.as_u64()
}

/// Returns a target with these parameters.
pub(super) fn query(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut target = path.to_owned();
    for (number, (name, value)) in parameters.iter().enumerate() {
        let before = if number == 0 { '?' } else { '&' };
        // Writing to a string cannot fail.
        let _ = write!(target, "{before}{name}={}", utf8_percent_encode(value, IN_QUERY));
    }
    target
}

/// Formats a time in whole seconds, as one word.
pub(super) fn short(milliseconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(milliseconds / 1_000)).to_string().replace(' ', "")
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

    #[test]
    fn a_query_holds_any_key() {
        assert_eq!(query("/records", &[("key", "a:/b c?d&e=f+g#h%")]), "/records?key=a:/b%20c?d%26e=f%2Bg%23h%25");
    }

    #[test]
    fn times_are_whole_seconds_in_one_word() {
        assert_eq!([0, 999, 61_500, 7_200_000].map(short), ["0s", "0s", "1m1s", "2h"]);
    }
}
