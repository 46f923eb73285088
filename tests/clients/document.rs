//! The document: its programs, and what it points at.

use std::{collections::BTreeSet, fs, path::Path};

const DOCUMENT: &str = include_str!("../../docs/clients.md");
const REFUSALS: &str = include_str!("../../docs/refusals.md");

/// The text of the fenced block of a file, whose first line names the language and the file.
pub fn block(file: &str) -> String {
    let is_begin =
        |line: &&str| line.strip_prefix("```").and_then(|info| info.split_once(' ')) == Some((kind(file), file));
    let mut lines = DOCUMENT.lines();
    assert!(lines.by_ref().any(|line| is_begin(&line)), "docs/clients.md has no block of {file}");
    lines.take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect()
}

/// The language of a file, as blocks name it.
fn kind(file: &str) -> &'static str {
    match Path::new(file).extension().and_then(|extension| extension.to_str()) {
        Some("sh") => "bash",
        Some("py") => "python",
        Some("mjs") => "javascript",
        Some("rs") => "rust",
        Some("go") => "go",
        _ => panic!("nobody knows the language of {file}"),
    }
}

#[test]
fn rust_programs_are_those_that_cargo_builds() {
    for file in ["examples/counter.rs", "examples/lease.rs"] {
        let built = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect(file);
        assert_eq!(block(file), built, "{file} differs from its block");
    }
}

#[test]
fn files_that_are_linked_exist() {
    let targets = DOCUMENT.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let local = targets.filter(|target| !target.contains("://")).map(|target| target.split('#').next().unwrap());
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let missing = local.filter(|target| !docs.join(target).exists()).collect::<BTreeSet<_>>();
    assert_eq!(missing, BTreeSet::new());
}

/// The tables name refusals that exist: `docs/refusals.md` lists all of them.
#[test]
fn codes_are_those_of_the_refusals() {
    let rows = DOCUMENT.lines().filter(|line| line.starts_with('|'));
    let words = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let is_code =
        |word: &&str| word.contains('-') && word.chars().all(|letter| letter == '-' || letter.is_ascii_lowercase());
    let codes: BTreeSet<&str> = words.filter(is_code).collect();
    assert!(codes.contains("write-in-flight"), "{codes:?}");
    let unknown: Vec<_> = codes.iter().filter(|code| !REFUSALS.contains(&format!("`{code}`"))).collect();
    assert_eq!(unknown, [&""; 0]);
}
