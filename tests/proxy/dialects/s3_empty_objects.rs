//! Empty objects from files. botocore announces each by `Expect: 100-continue`, although no content follows. Its
//! releases before 1.41, and those in the command line of AWS, hang after an answer that came in place of the 100.

use std::{fs, net::SocketAddr, path::Path};

use serde_json::json;
use tokio::task::spawn_blocking;

use super::s3::{S3rver, boto3_of, proxy_before};
use crate::support::clients;

/// One connection for all objects, and no second attempt that would hide a missed answer.
const ONE_CONNECTION: &str = "[default]\nregion = us-east-1\nmax_attempts = 1\n\
    request_checksum_calculation = when_required\nresponse_checksum_validation = when_required\n\
    s3 =\n  addressing_style = path\n  max_concurrent_requests = 1\n";

/// RFC 9110 section 10.1.1
#[tokio::test]
async fn boto3_creates_empty_objects_one_after_the_other() {
    for (release, python) in [("today's", clients::python as fn() -> _), ("an earlier one", clients::earlier_python)] {
        let server = S3rver::start().await;
        let proxy = proxy_before(server.addr).await;
        let (created, refused) = (json!([200, null]), json!([412, "PreconditionFailed"]));
        let expected = json!({ "created": vec![created; 4], "created again": vec![refused; 4] });
        assert_eq!(boto3_of(python(), proxy.addr(), "empty").await, expected, "{release}");
    }
}

/// RFC 9110 section 10.1.1
#[tokio::test]
async fn a_tree_with_empty_files_is_synchronised_at_once() {
    let server = S3rver::start().await;
    let proxy = proxy_before(server.addr).await;
    let place = tempfile::tempdir().expect("a directory");
    let tree = place.path().join("tree");
    for directory in ["", "a", "a/b"] {
        fs::create_dir_all(tree.join(directory)).expect("a directory");
        for (name, content) in [("empty", ""), ("full", "content"), ("void", ""), ("zero", "")] {
            fs::write(tree.join(directory).join(name), content).expect("a file");
        }
    }
    let uploaded = synchronise(proxy.addr(), place.path()).await;
    assert_eq!(uploaded.matches("upload: ").count(), 12, "{uploaded}");
    assert_eq!(synchronise(proxy.addr(), place.path()).await, "", "all of them are there");
}

/// Runs `aws s3 sync` with the tree in this directory, and returns what it says.
async fn synchronise(proxy: SocketAddr, directory: &Path) -> String {
    let configuration = directory.join("configuration");
    fs::write(&configuration, ONE_CONNECTION).expect("a file");
    let mut command = clients::earlier_python_program("aws");
    command.env("AWS_CONFIG_FILE", configuration).envs([
        ("AWS_ACCESS_KEY_ID", "S3RVER"),
        ("AWS_SECRET_ACCESS_KEY", "S3RVER"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ]);
    command.args(["s3", "sync", "--endpoint-url", &format!("http://{proxy}"), "--cli-read-timeout", "20"]);
    command.args(["--size-only", "--no-progress"]).arg(directory.join("tree")).arg("s3://bucket/tree");
    let output = spawn_blocking(move || command.output()).await.expect("no panic").expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
