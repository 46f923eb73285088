//! Every configuration in the repository, as `ifmatch check` finds it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{file, kubernetes::documents, output, support::clients::python};

/// The directories with configurations of ifmatch.
const DIRECTORIES: [&str; 3] = ["config", "deploy", "benches"];

/// The values that the benchmarks write in the places of their configurations.
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
    let schema = Schema::print();
    for path in &found {
        let text = fs::read_to_string(path).expect("a file");
        let text = PLACES.iter().fold(text, |text, (place, value)| text.replace(place, value));
        check(&path.display().to_string(), &text);
        assert_eq!(schema.errors(&text), "", "{}", path.display());
    }
    assert!(found.len() >= 19, "they were found: {found:?}");
}

#[test]
fn every_default_is_valid_by_the_schema_that_shows_it() {
    assert_eq!(Schema::print().errors_of_defaults(), "");
}

#[test]
fn the_schema_refuses_what_check_refuses() {
    let schema = Schema::print();
    for (wrong, told) in [
        ("[server]\ntreads = 4", "treads"),
        ("[server]\nthreads = \"four\"", "four"),
        ("[server]\nbody_timeout = \"5 parsecs per\"", "parsecs"),
        ("[server]\nmax_body_size = \"10\"", "10"),
        ("[defaults]\npolicy = \"optimstic\"", "optimstic"),
        ("[defaults]\netag = \"headers:x\"", "headers:x"),
        ("[upstreams.a]\nhealth = { chek = \"off\" }", "chek"),
    ] {
        let errors = schema.errors(wrong);
        assert!(errors.contains(told), "{wrong}: {errors:?}");
    }
    for right in [
        "[defaults]\netag = \"header:X-Version\"",
        "[server]\nbody_timeout = \"${TIMEOUT}\"",
        "[server]\nbody_timeout = \"1h 30m\"",
    ] {
        assert_eq!(schema.errors(right), "", "{right}");
    }
}

/// The JSON Schema of the configuration, and a validator as editors have one.
struct Schema(tempfile::TempDir);

impl Schema {
    fn print() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let schema = output(Command::new(env!("CARGO_BIN_EXE_ifmatch")).arg("schema"));
        fs::write(directory.path().join("schema.json"), schema).expect("a file");
        Self(directory)
    }

    /// Returns the errors of a text, one a line.
    fn errors(&self, text: &str) -> String {
        const SCRIPT: &str = "import tomllib\n\
                              for error in validator.iter_errors(tomllib.load(open(sys.argv[2], 'rb'))):\n\
                              \x20   print(error.json_path, error.message)\n";
        let file = self.0.path().join("ifmatch.toml");
        fs::write(&file, text).expect("a file");
        output(self.validator(SCRIPT).arg(file))
    }

    /// Returns the errors of its defaults, one a line.
    fn errors_of_defaults(&self) -> String {
        const SCRIPT: &str = "tables = validator.schema['$defs'].values()\n\
                              keys = [key for table in tables for key in table.get('properties', {}).items()]\n\
                              keys = [(name, shape) for name, shape in keys if 'default' in shape]\n\
                              assert len(keys) > 80, keys\n\
                              for name, shape in keys:\n\
                              \x20   for error in validator.evolve(schema=shape).iter_errors(shape['default']):\n\
                              \x20       print(name, error.json_path, error.message)\n";
        output(&mut self.validator(SCRIPT))
    }

    /// Returns a Python that runs a script with this `validator`.
    fn validator(&self, script: &str) -> Command {
        const VALIDATOR: &str = "import json, sys, jsonschema\n\
                                 validator = jsonschema.Draft202012Validator(json.load(open(sys.argv[1])))\n\
                                 validator.check_schema(validator.schema)\n";
        let mut command = python();
        command.args(["-c", &[VALIDATOR, script].concat()]).arg(self.0.path().join("schema.json"));
        command
    }
}

/// The configurations of a `ConfigMap`, too.
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
