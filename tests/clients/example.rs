//! The page with React of `examples/notes`, as two people use it.

use std::{fs, process::Command};

use crate::support::{child::Child, chromium::drive, clients::typescript_package, proxy::Proxy};

#[tokio::test]
async fn two_people_edit_a_note_see_each_other_and_merge() {
    let directory = typescript_package().join("../../examples/notes");
    let built = Command::new("npm").args(["run", "--silent", "build"]).current_dir(&directory).output().expect("npm");
    assert!(built.status.success(), "run `make setup-test`: {}", String::from_utf8_lossy(&built.stdout));
    let logs = tempfile::tempdir().expect("a temporary directory");
    let (addr, _server) = Child::on_free_port("server.mjs", &logs.path().join("log"), |addr| {
        let mut node = Command::new("node");
        node.arg(directory.join("server.mjs")).args([addr.port().to_string(), addr.ip().to_string()]);
        node
    })
    .await;
    let configuration = fs::read_to_string(directory.join("ifmatch.toml")).expect("the configuration");
    let configuration = configuration.replace(r#"listen = ["127.0.0.1:8080"]"#, "{listen}");
    let proxy = Proxy::start(&configuration.replace("127.0.0.1:9000", &addr.to_string())).await;
    let expected = [
        "Ben sees: Ann is editing",
        "Ben was told: You began with: milk",
        "Ben sees: Saved",
        "Ann sees: milk, bread\\nmilk, tea",
        "Ann sees the note of Ben",
    ];
    assert_eq!(drive("clients/notes.cjs", &[&format!("http://{}/", proxy.addr())]).await, expected);
}
