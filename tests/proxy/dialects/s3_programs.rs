//! Programs for S3 that copy, move and delete, in front of moto, a server that makes copies of parts too.

use std::net::SocketAddr;

use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::s3::{boto3, proxy_before, script};
use crate::support::{child::Child, clients};

/// A running moto with a bucket.
struct Moto {
    _server: Child,
    _directory: TempDir,
    addr: SocketAddr,
}

impl Moto {
    async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (addr, server) = Child::on_free_port("moto", &directory.path().join("log"), |addr| {
            let mut command = clients::python_program("moto_server");
            command.args(["--host", &addr.ip().to_string(), "--port", &addr.port().to_string()]);
            command
        })
        .await;
        boto3(addr, "prepare").await;
        Self { _server: server, _directory: directory, addr }
    }
}

/// Runs a part of the script `programs.py` through a proxy; all that it checks must hold.
async fn passes(program: &str) {
    let server = Moto::start().await;
    let proxy = proxy_before(server.addr).await;
    let mut command = clients::python();
    command.arg("-B").arg(script("programs.py")).args([program, &format!("http://{}", proxy.addr())]);
    command.arg(clients::earlier_python_program("aws").get_program());
    let output = spawn_blocking(move || command.output()).await.expect("no panic").expect("python runs");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("finished"), "{program}: {said}\n{}", proxy.log());
}

#[tokio::test]
async fn boto3_copies_at_once_and_in_parts() {
    passes("boto3").await;
}

#[tokio::test]
async fn minio_copies_and_removes_lists() {
    passes("minio").await;
}

#[tokio::test]
async fn s3fs_copies_moves_and_removes_trees() {
    passes("s3fs").await;
}

#[tokio::test]
async fn the_command_line_of_aws_copies_moves_and_removes_trees() {
    passes("aws").await;
}

#[tokio::test]
async fn rclone_copies_moves_and_removes_trees() {
    passes("rclone").await;
}
