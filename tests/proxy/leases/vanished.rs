//! A machine that vanishes while its client holds a lease by a stream. It closes nothing, so only a packet that nobody
//! acknowledges shows it.

use std::{fs, path::Path, process::Command};

use tokio::task::spawn_blocking;

const CONFIGURATION: &str = "[server]\nlisten = [\"192.0.2.1:8080\"]\n\
    [upstreams.files]\nservers = [\"127.0.0.1:9000\"]\n\
    [[routes]]\nname = \"files\"\npath = \"/{*file}\"\nupstream = \"files\"\npolicy = \"pessimistic\"\n\
    [routes.lease]\ndefault = \"2s\"\nmin = \"1s\"\nlinger = \"0s\"\n";

/// A command in a network of its own.
fn alone(command: &[&str]) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["--map-root-user", "--net"]).args(command);
    unshare
}

/// The proxy renews the lease until then, beyond its term. A connection ends 60 s after the first byte that nobody takes, and
/// a stream without events has one each 15 s.
#[tokio::test]
async fn a_machine_that_vanishes_gives_its_lease_up() {
    if !alone(&["true"]).output().is_ok_and(|output| output.status.success()) {
        println!("no network namespace can be made here: there is no machine to vanish");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("ifmatch.toml"), CONFIGURATION).expect("a file");
    fs::create_dir(directory.path().join("www")).expect("a directory");
    fs::write(directory.path().join("www/doc"), "one").expect("a file");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers/vanish.sh");
    let program = [script.to_str().expect("UTF-8"), env!("CARGO_BIN_EXE_ifmatch")];
    let mut command = alone(&program);
    command.arg(directory.path());
    let output = spawn_blocking(move || command.output()).await.expect("no panic").expect("the script runs");
    let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let held = said.lines().last().and_then(|line| line.strip_prefix("held for ")?.strip_suffix(" s")?.parse().ok());
    assert!(output.status.success() && held.is_some_and(|seconds: u64| seconds > 10), "{said}{complaint}");
}
