//! The files in `deploy/`, tried without their targets.

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
    path::{Path, PathBuf},
    process::Command,
};

mod balancers;
mod build_tools;
mod compose;
mod configurations;
mod haproxy;
mod image;
mod kubernetes;
mod kubernetes_access;
mod observability;
#[path = "../proxy/support/mod.rs"]
mod support;
mod systemd;

use serde_json::Value;
use support::clients::python;

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the content of a YAML file with one document.
fn yaml(path: &Path) -> Value {
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    serde_json::from_str(&output(python().args(["-c", script]).arg(path))).expect("JSON")
}

/// Returns the output of a program, which must succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{complaint}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}
