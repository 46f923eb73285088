//! The Debian package: its files, and its way through dpkg.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use rustix::process::geteuid;

use super::{PACKAGES, PROGRAM, UNPACKED, directory, output, package};

#[test]
fn the_program_runs_and_accepts_the_example_configuration() {
    let program = UNPACKED.join("usr/bin/ifmatch");
    assert_eq!(output(Command::new(&program).arg("-V")), concat!("ifmatch ", env!("CARGO_PKG_VERSION"), "\n"));
    output(Command::new(&program).arg("check").arg(UNPACKED.join("etc/ifmatch/ifmatch.toml")));
}

#[test]
fn the_unit_starts_the_program_where_the_package_has_it() {
    let unit = fs::read_to_string(UNPACKED.join("usr/lib/systemd/system/ifmatch.service")).unwrap();
    assert!(unit.contains("\nExecStart=/usr/bin/ifmatch run /etc/ifmatch/ifmatch.toml\n"), "{unit}");
    let path = directory("unit").join("ifmatch.service");
    fs::write(&path, unit.replace("/usr/bin/ifmatch", UNPACKED.join("usr/bin/ifmatch").to_str().unwrap())).unwrap();
    let verify = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&verify.stderr), "");
}

/// A machine without the repository has what its monitoring loads.
#[test]
fn alerts_and_the_dashboard_come_with_the_documents() {
    let documents = UNPACKED.join("usr/share/doc/ifmatch");
    for path in ["prometheus/alerts.yaml", "grafana/ifmatch.json", "balancer/haproxy.cfg", "kubernetes/sidecar.yaml"] {
        assert!(documents.join("deploy").join(path).exists(), "{path}");
    }
    assert!(!documents.join("deploy/packages").exists());
}

/// Names and lines of the program come back with the file that is shipped apart.
#[test]
fn the_line_tables_are_found_beside_the_program() {
    let place = directory("line-tables");
    fs::copy(UNPACKED.join("usr/bin/ifmatch"), place.join("ifmatch")).unwrap();
    let symbols = output(Command::new("nm").arg(PACKAGES.join("ifmatch.debug")));
    let main = symbols.lines().find(|line| line.contains("7ifmatch4main")).expect("the symbol of main");
    let address = main.split(' ').next().unwrap();
    let line = || output(Command::new("addr2line").arg("--exe").arg(place.join("ifmatch")).arg(address));
    assert!(!line().contains("src/main.rs"), "{}", line());
    fs::copy(PACKAGES.join("ifmatch.debug"), place.join("ifmatch.debug")).unwrap();
    assert!(line().contains("src/main.rs:"), "{}", line());
    let size = |path: &Path| fs::metadata(path).unwrap().len();
    assert!(size(&place.join("ifmatch")) < size(Path::new(PROGRAM)) / 2);
}

/// dpkg on a system of its own, which has nothing but its database. Dependencies are those of the machine.
fn dpkg(root: &Path) -> Command {
    let mut command = if geteuid().is_root() {
        Command::new("dpkg")
    } else {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "dpkg"]);
        unshare
    };
    command.arg(format!("--root={}", root.display())).arg("--force-script-chrootless").stdin(Stdio::null());
    command
}

#[test]
fn dpkg_installs_and_removes_it() {
    let root = directory("root");
    for needed in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
        fs::create_dir_all(root.join(needed)).unwrap();
    }
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    output(dpkg(&root).arg("--force-depends").arg("--install").arg(package("deb")));
    let query = ["-f=${Status} ${Version}", "--show", "ifmatch"];
    let admin = format!("--admindir={}", root.join("var/lib/dpkg").display());
    let status = output(Command::new("dpkg-query").arg(admin).args(query));
    assert_eq!(status, concat!("install ok installed ", env!("CARGO_PKG_VERSION")));
    assert_eq!(output(dpkg(&root).args(["--verify", "ifmatch"])), "", "all files are as their checksums say");
    let (program, configuration) = (root.join("usr/bin/ifmatch"), root.join("etc/ifmatch/ifmatch.toml"));
    output(Command::new(&program).arg("check").arg(&configuration));
    output(dpkg(&root).args(["--remove", "ifmatch"]));
    assert_eq!((program.exists(), configuration.exists()), (false, true), "a configuration stays until it is purged");
    output(dpkg(&root).args(["--purge", "ifmatch"]));
    assert!(!configuration.exists());
}

#[test]
fn it_depends_on_the_library_of_c() {
    let depends = output(Command::new("dpkg-deb").arg("--field").arg(package("deb")).arg("Depends"));
    assert!(depends.contains("libc6 (>= "), "{depends}");
}
