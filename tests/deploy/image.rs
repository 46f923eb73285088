//! The container image: its steps taken without the engine.

use std::{collections::BTreeSet, fs, net::SocketAddr, os::unix::fs::PermissionsExt as _, process::Command};

use rustix::process::geteuid;
use tempfile::TempDir;

use super::{
    file, output,
    support::{backend::Backend, child::Child, clients::node_package, ports, raw::get},
};

/// The root of the image, as the last step of its Dockerfile makes it.
pub fn image() -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    output(Command::new(file("deploy/docker/image-root")).arg(env!("CARGO_BIN_EXE_ifmatch")).arg(root.path()));
    root
}

/// The program in the image: as the user that the image names, or as the user of this test, who may become no other.
pub fn run(root: &TempDir, arguments: &[&str]) -> Command {
    let mut command = if geteuid().is_root() {
        let mut chroot = Command::new("/usr/sbin/chroot");
        chroot.arg("--userspec=65532:65532");
        chroot
    } else {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--root"]);
        unshare
    };
    command.arg(root.path()).arg("/ifmatch").args(arguments).env_clear();
    command
}

/// Adds to the image's root what every engine brings along, and the names of other containers.
pub fn complete(root: &TempDir, names: &[(&str, SocketAddr)]) {
    fs::create_dir(root.path().join("dev")).expect("a directory");
    fs::write(root.path().join("dev/null"), "").expect("a file");
    let hosts: Vec<String> = names.iter().map(|(name, addr)| format!("{} {name}\n", addr.ip())).collect();
    fs::write(root.path().join("etc/hosts"), hosts.concat()).expect("a file");
}

#[test]
fn the_linter_of_dockerfiles_finds_no_fault() {
    let linter = node_package("dockerfile-utils").join("bin/dockerfile-utils");
    let said = output(Command::new("node").arg(linter).arg("lint").arg(file("deploy/docker/Dockerfile")));
    assert_eq!(said, "");
}

/// The image is built from what the Makefile installs for the same program. Its base has a compiler, and rustup the reader of
/// profiles.
#[test]
fn the_image_is_built_with_what_the_makefile_installs() {
    let makefile = fs::read_to_string(file("Makefile")).expect("the Makefile");
    let targets = ["setup-compilers:", "setup-build:", "setup-profile:"];
    let rules = makefile
        .split("\n\n")
        .filter(|rule| targets.iter().any(|target| rule.lines().any(|line| line.starts_with(target))));
    let words = rules.flat_map(str::lines).filter(|line| line.starts_with('\t')).flat_map(str::split_whitespace);
    let named: BTreeSet<&str> = words.filter_map(|word| word.split_once('=')).map(|(_, package)| package).collect();
    let elsewhere = BTreeSet::from(["build-essential", "llvm-19"]);
    assert!(named.is_superset(&elsewhere), "{named:?}");
    let dockerfile = fs::read_to_string(file("deploy/docker/Dockerfile")).expect("the Dockerfile");
    let (_, installed) = dockerfile.split_once("--no-install-recommends").expect("packages");
    let (installed, _) = installed.split_once("WORKDIR").expect("what follows them");
    let installed: BTreeSet<&str> = installed.split_whitespace().filter(|word| *word != "\\").collect();
    assert_eq!(installed, named.difference(&elsewhere).copied().collect());
}

/// The layer of the dependencies is built from two files. Cargo accepts them with what the script puts beside them, and the
/// program is not taken for built.
#[test]
fn the_dependencies_are_built_before_the_sources_are_there() {
    let source = tempfile::tempdir().expect("a directory");
    let script = source.path().join("deploy/packages/profile-guided");
    fs::create_dir_all(script.parent().expect("a directory")).expect("a directory");
    for path in ["Cargo.toml", "Cargo.lock", "deploy/packages/profile-guided"] {
        fs::copy(file(path), source.path().join(path)).expect("a copy");
    }
    let cargo = source.path().join("cargo");
    let reads = "#!/bin/sh\nmkdir -p \"$PWD/built/counting/any/release/.fingerprint/ifmatch-1\"\n\
                 exec cargo metadata --offline --locked --no-deps --format-version 1\n";
    fs::write(&cargo, reads).expect("a file");
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).expect("a mode");
    let told = output(Command::new(&script).args(["--dependencies", "built"]).env("CARGO", &cargo));
    for target in ["lease_load", "bare_pingora", "target"] {
        assert!(told.contains(&format!("\"name\":\"{target}\"")), "{target}: {told}");
    }
    let fingerprints = source.path().join("built/counting/any/release/.fingerprint");
    assert_eq!(fs::read_dir(fingerprints).expect("a directory").count(), 0);
}

#[test]
fn the_program_runs_in_the_image_with_nothing_else_in_it() {
    let root = image();
    let version = output(&mut run(&root, &["-V"]));
    assert_eq!(version, concat!("ifmatch ", env!("CARGO_PKG_VERSION"), "\n"));
    let shells = ["bin/sh", "usr/bin/env"].map(|path| root.path().join(path).exists());
    assert_eq!(shells, [false; 2], "an image without a shell");
}

/// Names are looked up with what the image has, not with what the machine has.
#[tokio::test]
async fn the_proxy_in_the_image_finds_a_backend_by_its_name() {
    let backend = Backend::start().await;
    backend.put("/document", "found");
    let root = image();
    complete(&root, &[("backend", backend.addr())]);
    let listen = ports::free();
    let configuration = format!(
        "server.listen = [\"{listen}\"]\n[upstreams.backend]\nservers = [\"backend:{}\"]\n\
         [[routes]]\nname = \"all\"\npath = \"/{{*rest}}\"\nupstream = \"backend\"\npolicy = \"optimistic\"\n",
        backend.addr().port(),
    );
    fs::write(root.path().join("etc/ifmatch/ifmatch.toml"), configuration).expect("a file");
    let log = tempfile::tempdir().expect("a directory");
    let mut command = run(&root, &["run", "/etc/ifmatch/ifmatch.toml"]);
    let mut proxy = Child::spawn("the image", &mut command, log.path().join("log"));
    proxy.accepts(listen).await.unwrap_or_else(|status| panic!("it ended: {status}"));
    assert_eq!(get(listen, "/document").await.text(), "found");
}
