//! The test binaries of the copy: built once, for all mutants.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use super::copy;

/// The target of the library's unit tests; each other target has the name of its file in `tests`.
pub const LIBRARY: &str = "lib";

/// The test binaries by their targets.
pub type Programs = BTreeMap<String, PathBuf>;

/// True if a target has tests.
pub fn exists(root: &Path, target: &str) -> bool {
    let tests = root.join("tests");
    target == LIBRARY || tests.join(target).join("main.rs").exists() || tests.join(target).with_extension("rs").exists()
}

/// Builds these targets, in their own directory of artefacts: the program in it can be broken.
pub fn build(root: &Path, targets: &BTreeSet<String>) -> Programs {
    // The simulation takes most of the time, and needs only a tenth of it in the profile that is made for it.
    let mut words = vec!["test", "--no-run", "--profile", "simulation", "--target-dir", "target/mutants/build"];
    for target in targets {
        if target == LIBRARY {
            words.push("--lib");
        } else {
            words.extend(["--test", target]);
        }
    }
    let programs: Programs = cargo(root, &words).iter().filter_map(program).collect();
    let missing: Vec<_> = targets.iter().filter(|target| !programs.contains_key(*target)).collect();
    assert!(missing.is_empty(), "cargo has not built {missing:?}");
    programs
}

/// Checks that the library of the copy compiles. The dependencies are those that the lints have checked.
pub fn check(root: &Path) {
    cargo(root, &["check", "--lib", "--target-dir", "target"]);
}

/// Lets cargo work on the copy, and returns its messages.
fn cargo(root: &Path, words: &[&str]) -> Vec<Value> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words).args(["--locked", "--message-format=json"]).current_dir(root);
    command.arg("--manifest-path").arg(copy::directory(root).join("Cargo.toml"));
    // The outer cargo's variables about this package: some build scripts run again if they name another one.
    for (name, _) in env::vars_os().filter(|(name, _)| is_of_package(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    let output = command.stderr(Stdio::inherit()).output().expect("cargo starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let errors: Vec<&str> = messages.iter().filter_map(error).collect();
    assert!(output.status.success(), "the copy cannot be built:\n{}", errors.join("\n"));
    messages
}

fn is_of_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| variable.starts_with(prefix))
}

/// Returns an error of the compiler; its warnings are about the switches.
fn error(message: &Value) -> Option<&str> {
    let message = &message["message"];
    message["rendered"].as_str().filter(|_| message["level"] == "error")
}

/// Returns the target and the file of a test binary, from a message of cargo.
fn program(message: &Value) -> Option<(String, PathBuf)> {
    let executable = message["executable"].as_str()?;
    let target = &message["target"];
    let is_library = target["kind"].as_array()?.iter().any(|kind| kind == LIBRARY);
    let name = if is_library { LIBRARY } else { target["name"].as_str()? };
    (message["profile"]["test"] == true).then(|| (name.to_owned(), PathBuf::from(executable)))
}
