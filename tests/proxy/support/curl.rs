//! The real curl: the client that most people try a server with.

use std::{io::ErrorKind, net::SocketAddr, process::Command};

use super::{message::Headers, response::Response};

/// No exchange of a test takes longer; in seconds.
const PATIENCE: &str = "60";

/// The exit code for an HTTP/2 stream that was reset.
const BAD_STREAM: i32 = 92;

/// How curl is to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http11,
    /// HTTP/2 with prior knowledge, RFC 9113 section 3.3.
    H2c,
}

/// How a body is to be announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// With Content-Length.
    Length,
    /// Chunked over HTTP/1.1, by the end of the stream alone over HTTP/2.
    End,
}

/// The part of a response that curl has read.
pub enum Read {
    /// All of it. It has no interim responses and no trailers.
    Whole(Response),
    /// Its head for certain; of its body perhaps something.
    Head(Response),
}

/// Sends one request with a body, and expects that curl reads the response and ends without an error. The fields are
/// given as lines; `Expect` is sent only where it is among them.
///
/// Where the head of an error arrives in the middle of an upload over HTTP/2, curl 7.88 ends the stream before the length
/// that it has declared. The reset that this earns it may overtake the body of the answer ([`Read::Head`]).
pub async fn curl(
    protocol: Protocol,
    addr: SocketAddr,
    method: &str,
    target: &str,
    fields: &[&str],
    (announced, body): (Announced, Vec<u8>),
) -> Read {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [upload, head, content] = ["upload", "head", "content"].map(|name| directory.path().join(name));
    std::fs::write(&upload, body).expect("a file");
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--path-as-is", "--max-time", PATIENCE]);
    command.arg(if protocol == Protocol::H2c { "--http2-prior-knowledge" } else { "--http1.1" });
    command.args(["--request", method, "--write-out", "%{http_code}"]);
    command.arg("--dump-header").arg(&head).arg("--output").arg(&content);
    if !fields.iter().any(|field| field.starts_with("Expect")) {
        command.args(["--header", "Expect:"]);
    }
    for field in fields {
        command.args(["--header", field]);
    }
    match announced {
        Announced::Length => command.arg("--upload-file").arg(&upload),
        // From a pipe, so that it cannot know the length.
        Announced::End => command.args(["--upload-file", "-"]).stdin(std::fs::File::open(&upload).expect("the file")),
    };
    command.arg(format!("http://{addr}{target}"));
    // The scenario's own tasks go on meanwhile.
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("curl does not panic");
    let output = output.unwrap_or_else(|error| match error.kind() {
        ErrorKind::NotFound => panic!("curl is missing: `make test` installs it"),
        _ => panic!("curl cannot be run: {error}"),
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    let status: u16 = String::from_utf8_lossy(&output.stdout).parse().unwrap_or(0);
    let code = output.status.code();
    let fell_over_itself = protocol == Protocol::H2c && code == Some(BAD_STREAM) && status >= 400;
    assert!(code == Some(0) || fell_over_itself, "curl, after status {status}: {} {errors}", output.status);
    let head = std::fs::read_to_string(head).expect("the head");
    let body = std::fs::read(content).unwrap_or_default();
    let headers = last_head(&head);
    let response = Response { status, headers, body, trailers: Headers::default(), informational: Vec::new() };
    if fell_over_itself { Read::Head(response) } else { Read::Whole(response) }
}

/// The fields of the last of several heads.
pub fn last_head(heads: &str) -> Headers {
    let mut headers = Headers::default();
    let last = heads.trim_end().rsplit("\r\n\r\n").next().unwrap_or_default();
    for (name, value) in last.lines().skip(1).filter_map(|line| line.split_once(':')) {
        headers.push(name, value.trim());
    }
    headers
}
