//! The packages that `make dist` makes, installed and run. They are made of the program that the tests have anyway:
//! the profile of a program changes nothing about its packages but their size.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

mod bill;
#[path = "../proxy/support/clients.rs"]
mod clients;
mod for_clients;
mod from_source;
mod installed;
mod shells;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ifmatch");

/// The directory of the packages, which are made once.
static PACKAGES: LazyLock<PathBuf> = LazyLock::new(|| packages("packages"));

/// The files of the Debian package, unpacked once.
static UNPACKED: LazyLock<PathBuf> = LazyLock::new(|| {
    let unpacked = directory("unpacked");
    output(Command::new("dpkg-deb").arg("--extract").arg(package("deb")).arg(&unpacked));
    unpacked
});

fn packages(name: &str) -> PathBuf {
    let packages = directory(name);
    output(Command::new(file("deploy/packages/build")).arg(PROGRAM).arg(&packages));
    packages
}

/// An empty directory that the next run clears.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dist").join(name);
    if directory.exists() {
        fs::remove_dir_all(&directory).unwrap();
    }
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// The package of this kind, by the end of its name.
fn package(kind: &str) -> PathBuf {
    let architecture = output(Command::new("dpkg").arg("--print-architecture"));
    PACKAGES.join(format!("ifmatch_{}_{}.{kind}", env!("CARGO_PKG_VERSION"), architecture.trim()))
}

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the output of a program, which must succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{complaint}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn the_checksums_are_those_of_all_files() {
    output(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&*PACKAGES));
    let sums = fs::read_to_string(PACKAGES.join("SHA256SUMS")).unwrap();
    let listed: Vec<&str> = sums.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    let there = fs::read_dir(&*PACKAGES).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut there: Vec<String> = there.filter(|name| name != "SHA256SUMS").collect();
    there.sort();
    assert_eq!(listed, there);
}

#[test]
fn the_same_program_gives_the_same_packages() {
    let again = packages("again");
    let sums = |directory: &Path| fs::read_to_string(directory.join("SHA256SUMS")).unwrap();
    assert_eq!(sums(&again), sums(&PACKAGES));
}

#[test]
fn the_archive_has_the_files_of_the_debian_package() {
    let archive = directory("archive");
    output(Command::new("tar").arg("--extract").arg("--file").arg(package("tar.gz")).arg("--directory").arg(&archive));
    let root = archive.join(concat!("ifmatch-", env!("CARGO_PKG_VERSION")));
    output(Command::new("diff").args(["--recursive", "--no-dereference"]).arg(root).arg(&*UNPACKED));
}
