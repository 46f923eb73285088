//! docs/how-to/azure.md and docs/how-to/s3.md: their programs for an SDK, in front of a server that ignores conditions.

use std::{net::SocketAddr, process::Command};

use tokio::task::spawn_blocking;

use crate::{
    pages::page,
    support::{
        child::Child,
        clients,
        document::{Block, blocks},
        nginx::Nginx,
        ports,
        proxy::Proxy,
    },
};

/// The credentials that s3rver takes, and a region that boto3 asks for.
const CREDENTIALS: [(&str, &str); 3] =
    [("AWS_ACCESS_KEY_ID", "S3RVER"), ("AWS_SECRET_ACCESS_KEY", "S3RVER"), ("AWS_DEFAULT_REGION", "eu-central-1")];

/// The only block of a kind on a page.
fn only_block(path: &str, kind: &str) -> String {
    let of_kind: Vec<Block> = blocks(&page(path).text).into_iter().filter(|block| block.kind == kind).collect();
    let [block] = of_kind.try_into().expect("one block of that kind");
    block.text
}

/// The proxy that a file describes, in front of this server.
async fn proxy_of(file: &str, server: SocketAddr) -> Proxy {
    let file = file.replace("listen = [\"127.0.0.1:8080\"]", "{listen}").replace("127.0.0.1:9000", &server.to_string());
    Proxy::start_with(&file, &CREDENTIALS).await
}

/// Returns the output of the program of a page, which calls this proxy.
async fn printed_by_program_of(path: &str, proxy: SocketAddr) -> String {
    printed_by(&only_block(path, "python").replace("127.0.0.1:8080", &proxy.to_string())).await
}

/// Returns the output of a Python program.
async fn printed_by(program: &str) -> String {
    let mut python = clients::python();
    python.args(["-B", "-c", program]).envs(CREDENTIALS);
    let output = spawn_blocking(move || python.output()).await.expect("no panic").expect("python runs");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[tokio::test]
async fn the_program_for_azure_is_refused_as_its_comment_says() {
    let nginx = Nginx::start().await;
    let proxy = proxy_of(&page("config/azure-blob-pessimistic.toml").text, nginx.addr()).await;
    assert_eq!(printed_by_program_of("docs/how-to/azure.md", proxy.addr()).await, "ConditionNotMet\n");
    assert_eq!(std::fs::read_to_string(nginx.root().join("photos/cat.jpg")).expect("the blob"), "four");
}

/// Of an address of 127.0.0.1 or localhost, the SDK can take the container for an account. It would then lease another
/// blob. The servers of these tests have other addresses.
#[tokio::test]
async fn the_program_for_azure_addresses_the_blob_that_is_named() {
    let program = only_block("docs/how-to/azure.md", "python");
    let (client, _) = program.split_once("\netag = ").expect("the first request");
    assert_eq!(printed_by(&format!("{client}\nprint(blob.url)")).await, "http://127.0.0.1:8080/photos/cat.jpg\n");
}

#[tokio::test]
async fn the_program_for_s3_is_refused_as_its_comment_says() {
    let (directory, addr) = (tempfile::tempdir().expect("a directory"), ports::free());
    let mut command = Command::new("node");
    command.arg(clients::node_package("s3rver").join("bin/s3rver.js")).arg("--directory").arg(directory.path());
    command.args(["--address", &addr.ip().to_string(), "--port", &addr.port().to_string()]);
    command.args(["--no-vhost-buckets", "--configure-bucket", "photos"]);
    let mut server = Child::spawn("s3rver", &mut command, directory.path().join("log"));
    server.accepts(addr).await.expect("it runs");
    let proxy = proxy_of(&only_block("docs/how-to/s3.md", "toml"), addr).await;
    assert_eq!(printed_by_program_of("docs/how-to/s3.md", proxy.addr()).await, "PreconditionFailed\n");
}
