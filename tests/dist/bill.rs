//! The bill of materials.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use super::{PACKAGES, clients::python, file, output};

/// The crates of Cargo.lock: name, version and checksum.
fn locked() -> BTreeSet<(String, String, String)> {
    let lock: toml::Table = fs::read_to_string(file("Cargo.lock")).unwrap().parse().unwrap();
    let packages = lock["package"].as_array().unwrap().iter();
    let text = |package: &toml::Value, key: &str| package.get(key)?.as_str().map(str::to_owned);
    packages
        .filter_map(|package| Some((text(package, "name")?, text(package, "version")?, text(package, "checksum")?)))
        .collect()
}

#[test]
fn it_lists_the_crates_of_the_build_as_they_are_locked() {
    let bill: Value = serde_json::from_slice(&fs::read(PACKAGES.join("ifmatch.cdx.json")).unwrap()).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    assert_eq!(bill["metadata"]["component"]["version"], env!("CARGO_PKG_VERSION"));
    let locked = locked();
    let mut names = BTreeSet::new();
    for part in bill["components"].as_array().unwrap() {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (name, version) = (text(&part["name"]), text(&part["version"]));
        assert_eq!(part["purl"], format!("pkg:cargo/{name}@{version}"));
        let crate_of_lock = (name.clone(), version, text(&part["hashes"][0]["content"]));
        assert!(locked.contains(&crate_of_lock), "{crate_of_lock:?} is not in Cargo.lock");
        names.insert(name);
    }
    // Linked in, linked in by others, a macro, and a tool of a build script.
    for name in ["tokio", "pingora-core", "ring", "etcd-client", "redis", "serde_derive", "prost-build", "cmake"] {
        assert!(names.contains(name), "{name}");
    }
    for name in ["criterion", "proptest", "rcgen", "ureq", "ifmatch"] {
        assert!(!names.contains(name), "{name} is not compiled into ifmatch");
    }
}

/// By that schema any text is a licence, so the expressions are read too.
#[test]
fn it_is_valid_by_the_schema_of_its_version() {
    const SCRIPT: &str = "import json, sys\n\
                          from cyclonedx.schema import SchemaVersion\n\
                          from cyclonedx.spdx import is_expression\n\
                          from cyclonedx.validation.json import JsonStrictValidator\n\
                          text = open(sys.argv[1]).read()\n\
                          bill = json.loads(text)\n\
                          validator = JsonStrictValidator(SchemaVersion.from_version(bill['specVersion']))\n\
                          for error in validator.validate_str(text, all_errors=True) or []:\n\
                          \x20   print(error.data.json_path, error.data.message)\n\
                          for part in bill['components']:\n\
                          \x20   for licence in part['licenses']:\n\
                          \x20       if not is_expression(licence['expression']):\n\
                          \x20           print(part['name'], licence)\n";
    let errors = output(python().args(["-c", SCRIPT]).arg(PACKAGES.join("ifmatch.cdx.json")));
    assert_eq!(errors, "");
}

#[test]
fn it_tells_what_each_crate_needs() {
    let bill: Value = serde_json::from_slice(&fs::read(PACKAGES.join("ifmatch.cdx.json")).unwrap()).unwrap();
    let references = |list: &Value, member: &str| -> BTreeSet<String> {
        list.as_array().unwrap().iter().map(|each| each[member].as_str().unwrap().to_owned()).collect()
    };
    let mut known = references(&bill["components"], "bom-ref");
    known.insert(concat!("pkg:cargo/ifmatch@", env!("CARGO_PKG_VERSION")).to_owned());
    assert_eq!(references(&bill["dependencies"], "ref"), known);
    for needs in bill["dependencies"].as_array().unwrap() {
        let on = needs["dependsOn"].as_array().unwrap().iter().map(|one| one.as_str().unwrap());
        let unknown: Vec<&str> = on.filter(|one| !known.contains(*one)).collect();
        assert_eq!(unknown, [""; 0], "{}", needs["ref"]);
    }
}
