//! Every configuration in the repository, as `ifmatch check` finds it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{file, kubernetes::documents, output};

/// The directories with configurations of ifmatch.
const DIRECTORIES: [&str; 3] = ["config", "deploy", "benches"];

/// What the benchmarks write in the places of their configurations.
const PLACES: [(&str, &str); 6] = [
    ("@STORE@", "kind = \"memory\""),
    ("@BACKEND@", "9000"),
    ("@GUARDED@", "8080"),
    ("@LEASES@", "8080"),
    ("@PORT@", "8080"),
    ("@UNGUARDED@", "8080"),
];

/// The files in a directory and below it whose name ends so.
fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path, ending) } else { vec![path] })
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect()
}

/// Runs `ifmatch check` over a text.
fn check(name: &str, text: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("ifmatch.toml");
    fs::write(&path, text).expect("a file");
    let table = output(Command::new(env!("CARGO_BIN_EXE_ifmatch")).arg("check").arg(&path));
    assert!(table.starts_with("NAME"), "{name}: {table}");
}

#[test]
fn every_configuration_file_is_valid() {
    let found: Vec<PathBuf> = DIRECTORIES.iter().flat_map(|directory| files(&file(directory), ".toml")).collect();
    for path in &found {
        let text = fs::read_to_string(path).expect("a file");
        let text = PLACES.iter().fold(text, |text, (place, value)| text.replace(place, value));
        check(&path.display().to_string(), &text);
    }
    assert!(found.len() >= 19, "they were found: {found:?}");
}

/// Those of a `ConfigMap`, too.
#[test]
fn every_configuration_in_a_manifest_is_valid() {
    let mut found = 0;
    for path in files(&file("deploy/kubernetes"), ".yaml") {
        let name = path.file_name().expect("a name").to_string_lossy();
        for document in documents(&name).iter().filter(|document| document["kind"] == "ConfigMap") {
            for (key, text) in document["data"].as_object().expect("data") {
                check(&format!("{name}: {key}"), text.as_str().expect("a text"));
                found += 1;
            }
        }
    }
    assert_eq!(found, 1, "that of the sidecar");
}
