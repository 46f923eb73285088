//! Proxies and servers that speak TLS, and the real curl as their client.

#![allow(clippy::unnecessary_debug_formatting, reason = "a path in quotes is a text of TOML")]

use std::{
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use super::{
    certificates::Authority,
    curl::last_head,
    message::Headers,
    nginx::Nginx,
    ports,
    proxy::{Proxy, Setup},
    response::Response,
    wait::until,
};

/// An authority, and a directory for what it issues.
pub struct Office {
    directory: TempDir,
    pub authority: Authority,
}

impl Office {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory"), authority: Authority::new("the authority") }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The file of the authority's own certificate.
    pub fn ca(&self) -> PathBuf {
        self.authority.write(self.path(), "ca")
    }

    /// The files of a certificate for these names.
    pub fn issue(&self, names: &[&str]) -> (PathBuf, PathBuf) {
        self.authority.issue(names).write(self.path(), names[0])
    }
}

/// A proxy with a listener that speaks TLS beside its plain one.
pub struct Secure {
    pub proxy: Proxy,
    pub addr: SocketAddr,
}

impl Secure {
    /// With these certificates, and these lines in `[server.tls]`.
    pub async fn start(setup: Setup, certificates: &[(PathBuf, PathBuf)], lines: &str) -> Self {
        let addr = ports::free();
        Self::of(Proxy::start(&Self::configuration(&setup, addr, certificates, lines)).await, addr).await
    }

    /// A proxy that accepts at its plain listener. The one with TLS begins a moment later.
    pub async fn of(proxy: Proxy, addr: SocketAddr) -> Self {
        until("the listener with TLS", || TcpStream::connect(addr).is_ok()).await;
        Self { proxy, addr }
    }

    /// Without the plain listener.
    pub async fn alone(setup: Setup, certificates: &[(PathBuf, PathBuf)]) -> Self {
        let proxy = Proxy::start(&Self::listening(&setup, "\"tls:{addr}\"", certificates, "")).await;
        Self { addr: proxy.addr(), proxy }
    }

    /// The configuration of a proxy that also speaks TLS at this address.
    pub fn configuration(setup: &Setup, addr: SocketAddr, certificates: &[(PathBuf, PathBuf)], lines: &str) -> String {
        Self::listening(setup, &format!("\"{{addr}}\", \"tls:{addr}\""), certificates, lines)
    }

    fn listening(setup: &Setup, listen: &str, certificates: &[(PathBuf, PathBuf)], lines: &str) -> String {
        let list = certificates.iter().map(|(cert, key)| format!("{{ cert = {cert:?}, key = {key:?} }}"));
        let tls = format!("[server.tls]\ncertificates = [{}]\n{lines}\n", list.collect::<Vec<_>>().join(", "));
        let file = setup.configuration().replace("{listen}", &format!("listen = [{listen}]"));
        format!("{file}\n{tls}")
    }
}

/// Directives of an nginx that also speaks TLS at an address.
pub fn nginx_tls(addr: SocketAddr, parameters: &str, (certificate, key): &(PathBuf, PathBuf)) -> String {
    format!(
        "listen {addr} ssl {parameters}; ssl_certificate {}; ssl_certificate_key {}; etag off; if_modified_since off; \
         add_header X-Protocol $server_protocol always;",
        certificate.display(),
        key.display()
    )
}

/// An nginx that speaks TLS, with these parameters of `listen` and these directives, and its address.
pub async fn nginx(parameters: &str, files: &(PathBuf, PathBuf), directives: &str) -> (Nginx, SocketAddr) {
    let addr = ports::free();
    let nginx = Nginx::with(&format!("{} {directives}", nginx_tls(addr, parameters, files))).await;
    (nginx, addr)
}

/// One request of curl's.
#[derive(Clone, Debug)]
pub struct Curl {
    arguments: Vec<String>,
    body: Option<String>,
}

/// The outcome of the request.
#[derive(Debug)]
pub struct Outcome {
    /// curl's exit code; 0 if there is a response.
    pub code: i32,
    /// `"1.1"` or `"2"`.
    pub version: String,
    pub response: Response,
}

impl Curl {
    pub fn new(method: &str) -> Self {
        let arguments = ["--silent", "--show-error", "--max-time", "60", "--request", method, "--header", "Expect:"];
        Self { arguments: arguments.map(str::to_owned).to_vec(), body: None }
    }

    #[must_use]
    pub fn arg(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Trusts this authority.
    #[must_use]
    pub fn trust(self, ca: &Path) -> Self {
        self.arg("--cacert").arg(&ca.display().to_string())
    }

    /// Shows this certificate.
    #[must_use]
    pub fn identity(self, (certificate, key): &(PathBuf, PathBuf)) -> Self {
        self.arg("--cert").arg(&certificate.display().to_string()).arg("--key").arg(&key.display().to_string())
    }

    #[must_use]
    pub fn field(self, field: &str) -> Self {
        self.arg("--header").arg(field)
    }

    #[must_use]
    pub fn body(mut self, body: &str) -> Self {
        self.body = Some(body.to_owned());
        self
    }

    /// Asks the server at this address for a target, by this name.
    pub async fn send(self, name: &str, addr: SocketAddr, target: &str) -> Outcome {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let [upload, head, content] = ["upload", "head", "content"].map(|file| directory.path().join(file));
        let mut command = Command::new("curl");
        command.args(&self.arguments).args(["--write-out", "%{http_code} %{http_version}"]);
        command.args(["--resolve", &format!("{name}:{}:{}", addr.port(), addr.ip())]);
        command.arg("--dump-header").arg(&head).arg("--output").arg(&content);
        if let Some(body) = &self.body {
            std::fs::write(&upload, body).expect("a file");
            command.arg("--data-binary").arg(format!("@{}", upload.display()));
        }
        command.arg(format!("https://{name}:{}{target}", addr.port()));
        let output = tokio::task::spawn_blocking(move || command.output()).await.expect("curl does not panic");
        let Output { status, stdout, .. } = output.expect("curl is missing: `make test` installs it");
        let told = String::from_utf8_lossy(&stdout).into_owned();
        let (code, version) = told.split_once(' ').unwrap_or_default();
        let headers = last_head(&std::fs::read_to_string(head).unwrap_or_default());
        let body = std::fs::read(content).unwrap_or_default();
        let response = Response {
            status: code.parse().unwrap_or(0),
            headers,
            body,
            trailers: Headers::default(),
            informational: Vec::new(),
        };
        Outcome { code: status.code().unwrap_or(-1), version: version.to_owned(), response }
    }

    /// The same if a response is expected.
    pub async fn response(self, name: &str, addr: SocketAddr, target: &str) -> Response {
        let outcome = self.send(name, addr, target).await;
        assert_eq!(outcome.code, 0, "{outcome:?}");
        outcome.response
    }
}
