//! Tables that repeat facts of the repository.

use std::{collections::BTreeMap, path::Path};

use crate::pages::{read, root};

/// Places are named on the page for contributors, and on the first page of the crate's documentation.
#[test]
fn places_in_the_code_exist() {
    for document in ["CONTRIBUTING.md", "src/lib.rs"].map(read) {
        let quoted = document.split('`').skip(1).step_by(2);
        let is_source = |text: &str| Path::new(text).extension().is_some_and(|extension| extension == "rs");
        let places = quoted.filter(|text| !text.starts_with('/') && (text.ends_with('/') || is_source(text)));
        let places = places.collect::<Vec<_>>();
        assert_ne!(places, [""; 0]);
        for place in places {
            let exists = root().join(place).exists() || root().join("src").join(place).exists();
            assert!(exists, "there is no {place}");
        }
    }
}

/// `docs/dependencies.md` lists each crate that is built in more than one version.
#[test]
fn crates_that_are_there_twice_are_listed() {
    let text = |line: &str, key: &str| Some(line.strip_prefix(key)?.trim_matches('"').to_owned());
    let mut versions = BTreeMap::<String, Vec<String>>::new();
    let mut name = String::new();
    for line in include_str!("../../Cargo.lock").lines() {
        if let Some(found) = text(line, "name = ") {
            name = found;
        } else if let Some(version) = text(line, "version = ").filter(|_| line.starts_with("version = \"")) {
            versions.entry(name.clone()).or_default().push(version);
        }
    }
    versions.retain(|_, versions| versions.len() > 1);
    let listed = include_str!("../../docs/dependencies.md").lines().filter(|line| line.matches('|').count() == 4);
    let listed: Vec<String> = listed.filter(|line| line.starts_with("| `")).map(str::to_owned).collect();
    let expected = versions.iter().map(|(name, versions)| format!("| `{name}` | {} | ", versions.join(", ")));
    let expected: Vec<String> = expected.collect();
    assert_eq!(listed.len(), expected.len(), "{expected:#?}");
    for (line, beginning) in listed.iter().zip(&expected) {
        assert!(line.starts_with(beginning), "{line}\nand not\n{beginning}");
    }
}

/// `docs/compatibility.md` names this version, and the formats that it writes.
#[test]
fn promises_name_the_formats_of_the_program() {
    let page = read("docs/compatibility.md");
    assert!(page.starts_with(concat!("# Promises of ", env!("CARGO_PKG_VERSION"), "\n")), "the version");
    for (file, name) in [("src/store/encoding.rs", "record format"), ("src/store/disk/log.rs", "file format")] {
        let source = read(file);
        let (_, rest) = source.split_once("const FORMAT: u32 = ").expect("the format");
        let (number, _) = rest.split_once(';').expect("its end");
        assert!(page.contains(&format!("{name} {number}")), "{name} {number} of {file}");
    }
}
