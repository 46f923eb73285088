//! The real Chromium, without a window: what a page of another origin really gets to see.

use std::{io::ErrorKind, path::Path, process::Command};

use tokio::task::spawn_blocking;

use super::{backend::Answer, backend::Backend, clients::node_package};

/// The page's own time in which it must have come to its end, in milliseconds. It stands still while requests are
/// in flight, so a slow machine is given as long as it needs.
const VIRTUAL_MILLISECONDS: u64 = 30_000;

/// No visit takes longer; in seconds.
const PATIENCE: &str = "60";

/// A server of pages: one origin.
pub struct Pages {
    server: Backend,
}

impl Pages {
    pub async fn start() -> Self {
        Self { server: Backend::start().await }
    }

    /// As browsers name it.
    pub fn origin(&self) -> String {
        format!("http://{}", self.server.addr())
    }

    /// Opens a page of this origin that runs a script, and gives back what the script has said by `say(...)`, line by
    /// line. The script is the body of an asynchronous function; an error that it does not catch is what it says last.
    pub async fn run(&self, script: &str) -> Vec<String> {
        let page = format!(
            "<!doctype html><meta charset=utf-8><pre id=said></pre><script>
const said = document.getElementById('said');
const say = (...words) => said.textContent += words.join(' ') + '\\n';
(async () => {{ {script} }})().catch(error => say('failed:', error.name)).then(() => say('end'));
</script>"
        );
        self.server.always("GET", "/page", move |_| {
            Answer::status(200).header("Content-Type", "text/html").header("Cache-Control", "no-store").body(&page)
        });
        let document = visit(format!("{}/page", self.origin())).await;
        let said = document.split_once("<pre id=\"said\">").and_then(|(_, rest)| rest.split_once("</pre>"));
        let (said, _) = said.unwrap_or_else(|| panic!("this is not the page: {document}"));
        let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
        assert_eq!(lines.pop().as_deref(), Some("end"), "the script came to its end, after {lines:?}");
        lines
    }
}

/// Runs a script of `tests/` that does in Chromium what a person does; gives back what it has said, line by line. Its
/// last line is "finished".
pub async fn drive(script: &str, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("timeout");
    let package = node_package("playwright-core");
    command.env("NODE_PATH", package.parent().expect("packages lie in a directory"));
    command.args([PATIENCE, "node"]).arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script));
    command.args(arguments);
    let output = spawn_blocking(move || command.output()).await.expect("no panic").expect("the script runs");
    let mut said: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.pop().as_deref(), Some("finished"), "{script} {arguments:?}: {said:?}\n{complaint}");
    said
}

/// The document of a page when it has come to its end.
async fn visit(url: String) -> String {
    let profile = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new("timeout");
    command.args([PATIENCE, "chromium", "--headless", "--dump-dom", "--disable-gpu", "--disable-dev-shm-usage"]);
    // The tests may run as root, whom the sandbox does not take; the page is our own.
    command.args(["--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update"]);
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.arg(format!("--virtual-time-budget={VIRTUAL_MILLISECONDS}")).arg(url);
    let output = spawn_blocking(move || command.output()).await.expect("no panic");
    let output = output.unwrap_or_else(|error| match error.kind() {
        ErrorKind::NotFound => panic!("timeout (coreutils) is missing"),
        _ => panic!("chromium cannot be run: {error}"),
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => String::from_utf8(output.stdout).expect("a document is UTF-8"),
        Some(126 | 127) => panic!("chromium is missing: run `make setup-test`"),
        code => panic!("chromium ended with {code:?}: {errors}"),
    }
}
