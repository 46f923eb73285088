//! The SDKs for Azure Queue Storage as they are, in front of servers that only keep files (`config/azure-queue.toml`).
//!
//! The scripts of `tests/azure/` have their operations and the expected results.

use std::process::Command;

use super::{
    azure_sdk::{passes, python},
    s3::S3rver,
};
use crate::{
    leases::next_member::LISTING,
    operations::example_files::{start_changed, start_in_front_of},
    support::{clients, nginx::Nginx, proxy::Proxy, wsgidav::Wsgidav},
};

const FILE: &str = "azure-queue.toml";

fn node() -> Command {
    let mut command = Command::new("node");
    let package = clients::node_package("@azure/storage-queue");
    let modules = package.ancestors().nth(2).expect("a package lies in a directory of a directory of packages");
    command.env("NODE_PATH", modules);
    command
}

async fn before_nginx() -> (Nginx, Proxy) {
    let nginx = Nginx::with(LISTING).await;
    let proxy = start_in_front_of(nginx.addr(), FILE).await;
    (nginx, proxy)
}

#[tokio::test]
async fn the_sdk_for_python_works_in_front_of_a_plain_server() {
    let (nginx, proxy) = before_nginx().await;
    passes(python(), "queues.py", proxy.addr()).await;
    let lines = nginx.access_lines().await;
    assert!(lines.iter().all(|line| !line.contains('?')), "no receipt and no signature reaches the backend: {lines:?}");
}

/// With a signature, and with an account in the path, as emulators have it.
#[tokio::test]
async fn the_sdk_for_python_may_sign_its_requests() {
    let (_nginx, proxy) = before_nginx().await;
    let mut command = python();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/azure/queues.py");
    command.args([script, &format!("http://{}/account", proxy.addr()), "account", "a2V5"]);
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("no panic").expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.ends_with("\nfinished\n"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn the_sdk_for_javascript_works_in_front_of_a_plain_server() {
    let (_nginx, proxy) = before_nginx().await;
    passes(node(), "queues.cjs", proxy.addr()).await;
}

/// Workers in processes of their own take each message once. That of a worker that is killed comes back.
#[tokio::test]
async fn workers_of_the_sdk_share_a_queue() {
    let (_nginx, proxy) = before_nginx().await;
    passes(python(), "queue_workers.py", proxy.addr()).await;
}

#[tokio::test]
async fn the_sdks_work_in_front_of_a_bucket() {
    let server = S3rver::start().await;
    let bucket = |text: String| text.replace("index = \"nginx-json\"", "index = \"s3\"\nadd_prefix = \"/bucket\"");
    let proxy = start_changed(server.addr, FILE, bucket).await;
    passes(python(), "queues.py", proxy.addr()).await;
    passes(node(), "queues.cjs", proxy.addr()).await;
}

#[tokio::test]
async fn the_sdks_work_in_front_of_a_webdav_server() {
    let server = Wsgidav::start().await;
    let proxy = start_changed(server.addr(), FILE, |text| text.replace("\"nginx-json\"", "\"webdav\"")).await;
    passes(python(), "queues.py", proxy.addr()).await;
    passes(node(), "queues.cjs", proxy.addr()).await;
}
