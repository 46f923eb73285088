//! The packages of `clients/`: type-checked, and their own tests against the real program.

use std::{net::SocketAddr, process::Command};

use tokio::task::spawn_blocking;

use crate::support::{clients, nginx::Nginx, proxy::Proxy};

/// A proxy with what the tests of the packages use, before an nginx.
pub async fn proxy(nginx: SocketAddr, server: &str) -> Proxy {
    Proxy::start(&format!(
        r#"[server]
{{listen}}
{server}

[upstreams.files]
servers = ["{nginx}"]

[[routes]]
name = "documents"
path = "/documents/{{id}}"
upstream = "files"
policy = "optimistic"
idempotency = "accept"
watch = true
hash_wait = "10s"

[[routes]]
name = "drawings"
path = "/drawings/{{id}}"
upstream = "files"
policy = "pessimistic"
watch = true
hash_wait = "10s"

[routes.lease]
min = "1s"
linger = "20s"
client_break = true
"#
    ))
    .await
}

/// Runs a program beside two proxies, one of which keeps no streams.
async fn run(mut command: Command) {
    let nginx = Nginx::start().await;
    let (whole, without_streams) = (proxy(nginx.addr(), "").await, proxy(nginx.addr(), "max_watches = 0").await);
    command.env("IFMATCH_URL", format!("http://{}", whole.addr()));
    command.env("IFMATCH_WITHOUT_STREAMS_URL", format!("http://{}", without_streams.addr()));
    let output = spawn_blocking(move || command.output()).await.expect("no panic").expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn the_package_for_typescript_passes_its_tests() {
    let mut npm = Command::new("npm");
    npm.arg("test").current_dir(clients::package("typescript"));
    run(npm).await;
}

#[tokio::test]
async fn the_package_for_python_passes_its_tests() {
    let mut pytest = clients::package_python();
    pytest.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]).current_dir(clients::package("python"));
    run(pytest).await;
}

#[test]
fn the_package_for_python_is_typed_strictly() {
    let mut mypy = clients::package_python();
    let output = mypy.args(["-m", "mypy"]).current_dir(clients::package("python")).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
