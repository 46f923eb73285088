//! Programs of others that tests run as they are, installed by `make setup-test` below `target/`.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

/// The package for TypeScript, built once.
static TYPESCRIPT: LazyLock<PathBuf> = LazyLock::new(|| {
    let package = package("typescript");
    let built = Command::new("npm").args(["run", "--silent", "build"]).current_dir(&package).output();
    let built = built.expect("npm is missing: run `make setup-test`");
    assert!(built.status.success(), "run `make setup-test`: {}", String::from_utf8_lossy(&built.stdout));
    package
});

/// The Python that has the packages of `tests/python/requirements.txt`.
pub fn python() -> Command {
    Command::new(installed("python/bin/python"))
}

/// The Python that has the packages of `clients/python/requirements.txt`, which build and test the package there.
pub fn package_python() -> Command {
    Command::new(installed("python-package/bin/python"))
}

/// Returns the folder from which a fresh environment installs the package.
pub fn python_wheels() -> PathBuf {
    installed("python-package/wheels")
}

/// The same Python with the package of `clients/python`, as its programs import it.
pub fn python_with_package() -> Command {
    let mut python = package_python();
    python.env("PYTHONPATH", package("python").join("src"));
    python
}

/// The package of `clients/typescript`, with its modules in `dist`.
pub fn typescript_package() -> &'static Path {
    &TYPESCRIPT
}

/// The directory of a package of `clients/`.
pub fn package(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(name)
}

/// The Python that has the packages of `tests/python/earlier.txt`: clients that many people still run.
pub fn earlier_python() -> Command {
    Command::new(installed("python-earlier/bin/python"))
}

/// A program that comes with one of those packages.
pub fn earlier_python_program(name: &str) -> Command {
    Command::new(installed(&format!("python-earlier/bin/{name}")))
}

/// A program that comes with one of the packages of `tests/python/requirements.txt`.
pub fn python_program(name: &str) -> Command {
    Command::new(installed(&format!("python/bin/{name}")))
}

/// A file of one of those packages.
pub fn python_file(path: &str) -> PathBuf {
    let versions = std::fs::read_dir(installed("python/lib")).expect("a directory");
    let file = |version: std::fs::DirEntry| version.path().join("site-packages").join(path);
    let found = versions.map(|version| file(version.expect("an entry"))).find(|file| file.exists());
    found.unwrap_or_else(|| panic!("{path} is missing: run `make setup-test`"))
}

/// Returns the place of a package of `tests/node/package.json`.
pub fn node_package(name: &str) -> PathBuf {
    installed(&format!("node/node_modules/{name}"))
}

fn installed(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target").join(path);
    assert!(path.exists(), "{} is missing: run `make setup-test`", path.display());
    path
}
