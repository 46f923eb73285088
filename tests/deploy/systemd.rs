//! The unit for systemd, read by systemd itself.

use std::{fs, process::Command};

use super::{file, output};

#[test]
fn systemd_finds_no_fault_with_the_unit() {
    let directory = tempfile::tempdir().expect("a directory");
    let unit = fs::read_to_string(file("deploy/systemd/ifmatch.service")).expect("the unit");
    let unit = unit.replace("/usr/local/bin/ifmatch", env!("CARGO_BIN_EXE_ifmatch"));
    let path = directory.path().join("ifmatch.service");
    fs::write(&path, unit).expect("a file");
    let verify = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output();
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
