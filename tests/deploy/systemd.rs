//! The unit for systemd, read by systemd itself.

use std::{fs, process::Command};

use super::{
    file, output,
    support::{backend::Backend, child::Child, ports, raw::get},
};

#[test]
fn systemd_finds_no_fault_with_the_unit() {
    let directory = tempfile::tempdir().expect("a directory");
    let unit = fs::read_to_string(file("deploy/systemd/ifmatch.service")).expect("the unit");
    let unit = unit.replace("/usr/local/bin/ifmatch", env!("CARGO_BIN_EXE_ifmatch"));
    let [path, socket] = ["ifmatch.service", "ifmatch.socket"].map(|name| directory.path().join(name));
    fs::write(&path, unit).expect("a file");
    fs::copy(file("deploy/systemd/ifmatch.socket"), &socket).expect("a copy");
    let verify = Command::new("systemd-analyze").args(["verify", "--man=no"]).args([&path, &socket]).output();
    let verify = verify.expect("systemd-analyze is missing: `make setup-test` installs it");
    // It succeeds with warnings, too.
    assert_eq!(String::from_utf8_lossy(&verify.stderr), "");
    assert!(verify.status.success(), "{}", verify.status);
}

#[test]
fn the_service_is_confined() {
    let unit = file("deploy/systemd/ifmatch.service");
    // 10 is a service without any confinement. Exit 1: it is more exposed than this.
    output(
        Command::new("systemd-analyze").args(["security", "--offline=true", "--threshold=20", "--no-pager"]).arg(unit),
    );
}

/// systemd compares these statuses with that of the main process alone. A program before it that fails is tried without end.
#[test]
fn a_file_with_problems_is_not_tried_again() {
    let unit = fs::read_to_string(file("deploy/systemd/ifmatch.service")).expect("the unit");
    assert!(unit.lines().any(|line| line == "RestartPreventExitStatus=64 78"), "{unit}");
    assert!(
        !unit.lines().any(|line| line.starts_with("ExecStartPre=") || line.starts_with("ExecCondition=")),
        "{unit}"
    );
}

/// systemd's own program hands the socket over, as the unit makes it do.
#[tokio::test]
async fn the_socket_of_the_unit_is_served() {
    let unit = fs::read_to_string(file("deploy/systemd/ifmatch.socket")).expect("the unit");
    let named: Vec<&str> = unit.lines().filter_map(|line| line.strip_prefix("ListenStream=")).collect();
    let quickstart = fs::read_to_string(file("config/quickstart.toml")).expect("the configuration");
    assert_eq!(named, ["127.0.0.1:8080"]);
    assert!(quickstart.contains(&format!("listen = [{:?}]", named[0])), "each name is one of server.listen");

    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let (directory, listen) = (tempfile::tempdir().expect("a directory"), ports::free());
    let path = directory.path().join("ifmatch.toml");
    let text = quickstart.replace(named[0], &listen.to_string()).replace("127.0.0.1:9000", &backend.addr().to_string());
    fs::write(&path, text).expect("a file");
    let mut command = Command::new("systemd-socket-activate");
    command.arg("--listen").arg(listen.to_string()).arg(env!("CARGO_BIN_EXE_ifmatch")).arg("run").arg(&path);
    let mut activated = Child::spawn("systemd-socket-activate", &mut command, directory.path().join("log"));
    activated.accepts(listen).await.unwrap_or_else(|status| panic!("it ended: {status}"));
    assert_eq!(get(listen, "/doc").await.text(), "one");
}
