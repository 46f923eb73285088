//! The SDKs for Azure Blob Storage as they are, anonymous, in front of the real nginx, which knows nothing of tags, leases
//! or Azure (the dialect of `lease.dialect = "azure"`, DESIGN, section 8).
//!
//! The scripts of `tests/azure/` have their operations and the expected results.

use std::{net::SocketAddr, path::PathBuf, process::Command};

use tokio::task::spawn_blocking;

use crate::{
    operations::example_files::start_in_front_of,
    support::{admin, azure::BLOBS, clients, nginx::Nginx, proxy::Proxy},
};

/// As the files say that an nginx should be.
pub async fn start(file: &str) -> (Nginx, Proxy) {
    let nginx = Nginx::with("etag off; if_modified_since off; autoindex on; autoindex_format json;").await;
    let proxy = start_in_front_of(nginx.addr(), file).await;
    (nginx, proxy)
}

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/azure").join(name)
}

/// Runs a script to its end; all that it checks must hold. Returns what it prints.
pub async fn passes(mut command: Command, name: &str, addr: SocketAddr) -> String {
    command.arg(script(name)).arg(format!("http://{addr}"));
    let output = spawn_blocking(move || command.output()).await.expect("no panic").expect("the script runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    // A script whose last promise is forgotten ends well too.
    let finished = output.status.success() && said.ends_with("\nfinished\n");
    assert!(finished, "{name}, {}:\n{said}{complaint}", output.status);
    said
}

/// The Python of the scripts.
pub fn python() -> Command {
    let mut command = clients::python();
    // A test leaves nothing beside its script.
    command.arg("-B");
    command
}

/// The Node.js of the scripts.
pub fn node() -> Command {
    let mut command = Command::new("node");
    let package = clients::node_package("@azure/storage-blob");
    let modules = package.ancestors().nth(2).expect("a package lies in a directory of a directory of packages");
    command.env("NODE_PATH", modules);
    command
}

#[tokio::test]
async fn the_sdk_for_python_works_in_front_of_a_plain_server() {
    let (nginx, proxy) = start("azure-container.toml").await;
    passes(python(), "sdk.py", proxy.addr()).await;
    let lines = nginx.access_lines().await;
    let foreign: Vec<_> =
        lines.iter().filter(|line| line.starts_with("PUT") && !line.contains("/documents/")).collect();
    assert!(foreign.is_empty(), "only blobs are put: {foreign:?}");
}

#[tokio::test]
async fn the_sdk_for_javascript_works_in_front_of_a_plain_server() {
    let (_nginx, proxy) = start("azure-container.toml").await;
    passes(node(), "sdk.cjs", proxy.addr()).await;
}

/// Leases of 15 seconds, the shortest that Azure knows.
#[tokio::test]
async fn leases_that_run_out_are_lost_or_renewed() {
    let (_nginx, proxy) = start("azure-blob-pessimistic.toml").await;
    passes(python(), "expiry.py", proxy.addr()).await;
}

/// Azure's documentation step by step, in Python.
#[tokio::test]
async fn the_optimistic_walk_through_goes_as_it_is_written() {
    let (nginx, proxy) = start("azure-blob-optimistic.toml").await;
    passes(python(), "optimistic.py", proxy.addr()).await;
    let writes = nginx.access_lines().await.into_iter().filter(|line| line.starts_with("PUT")).count();
    assert_eq!(writes, 3, "the stale write does not reach nginx");
}

/// The same, with a lease.
#[tokio::test]
async fn the_pessimistic_walk_through_goes_as_it_is_written() {
    let (nginx, proxy) = start("azure-blob-pessimistic.toml").await;
    passes(python(), "pessimistic.py", proxy.addr()).await;
    let writes = nginx.access_lines().await.into_iter().filter(|line| line.starts_with("PUT")).count();
    assert_eq!(writes, 3, "the write without the lease does not reach nginx");
}

/// `ifmatch why` knows a refusal by the id that the SDK shows.
#[tokio::test]
async fn the_sdk_for_python_shows_the_id_that_a_refusal_is_kept_by() {
    let nginx = Nginx::start().await;
    let (proxy, admin) = admin::start(&Proxy::to(nginx.addr()).route(BLOBS)).await;
    let said = passes(python(), "ids.py", proxy.addr()).await;
    let id = said.lines().nth_back(1).expect("an id");
    assert_eq!(admin::ask(admin, &format!("/refusals/{id}")).await["code"], "lease-id-missing");
}

/// The promise itself, as the SDK's users know it.
#[tokio::test]
async fn clients_that_count_together_lose_nothing() {
    let (_nginx, proxy) = start("azure-blob-pessimistic.toml").await;
    passes(python(), "counter.py", proxy.addr()).await;
}
